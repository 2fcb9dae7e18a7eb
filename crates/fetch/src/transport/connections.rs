//! Connections of a transport, by id and by origin.

use std::collections::BTreeMap;

use super::Endpoint;

/// A connection to an origin.
pub(super) trait ToOrigin {
    /// Its server.
    fn origin(&self) -> Endpoint;
}

/// Connections in the order of their ids. Those to one origin are found without a look at the others.
#[derive(Debug)]
pub(super) struct Connections<K, C> {
    all: BTreeMap<K, C>,
    of: BTreeMap<Endpoint, Vec<K>>,
}

impl<K: Copy + Ord, C: ToOrigin> Connections<K, C> {
    pub(super) const fn new() -> Self {
        Self { all: BTreeMap::new(), of: BTreeMap::new() }
    }

    pub(super) fn insert(&mut self, id: K, connection: C) {
        let ids = self.of.entry(connection.origin()).or_default();
        ids.insert(ids.partition_point(|other| *other < id), id);
        self.all.insert(id, connection);
    }

    pub(super) fn remove(&mut self, id: K) -> Option<C> {
        let connection = self.all.remove(&id)?;
        self.forget(connection.origin(), id);
        Some(connection)
    }

    fn forget(&mut self, origin: Endpoint, id: K) {
        if let Some(ids) = self.of.get_mut(&origin) {
            ids.retain(|other| *other != id);
        }
    }

    /// Removes all of them; returns their ids.
    pub(super) fn clear(&mut self) -> Vec<K> {
        self.of.clear();
        std::mem::take(&mut self.all).into_keys().collect()
    }

    /// Removes those of which `is_kept` is false; returns their ids.
    pub(super) fn retain(&mut self, is_kept: impl Fn(&C) -> bool) -> Vec<K> {
        let removed = self.all.extract_if(.., |_, connection| !is_kept(connection));
        let removed: Vec<(K, Endpoint)> = removed.map(|(id, connection)| (id, connection.origin())).collect();
        removed.iter().for_each(|(id, origin)| self.forget(*origin, *id));
        removed.into_iter().map(|(id, _)| id).collect()
    }

    pub(super) fn get(&self, id: K) -> Option<&C> {
        self.all.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: K) -> Option<&mut C> {
        self.all.get_mut(&id)
    }

    pub(super) fn contains(&self, id: K) -> bool {
        self.all.contains_key(&id)
    }

    /// Connections to this origin.
    pub(super) fn to(&self, origin: Endpoint) -> impl Iterator<Item = (K, &C)> {
        let ids = self.of.get(&origin).into_iter().flatten();
        ids.filter_map(|id| Some((*id, self.all.get(id)?)))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (K, &C)> {
        self.all.iter().map(|(id, connection)| (*id, connection))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (K, &mut C)> {
        self.all.iter_mut().map(|(id, connection)| (*id, connection))
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &C> {
        self.all.values()
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut C> {
        self.all.values_mut()
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}
