//! A page without some of its objects.
//!
//! What waited for a removed object waits for what that object waited for, as if it took no time beyond its own
//! delays: nothing else is known of a page that nobody has recorded.

use wire::Duration;

use super::{Dependency, Moment, Page};

impl Page {
    /// The page that engines fetch: without the objects that take no network. What waited for one of them waits for
    /// what it waited for, and the time that it took.
    #[must_use]
    pub fn over_network(self) -> Self {
        let is_local: Vec<bool> = self.objects.iter().map(|object| object.local.is_some()).collect();
        if is_local.contains(&true) { self.without(&is_local) } else { self }
    }

    /// The page without the objects that are marked. The document is never removed: the first object stays.
    #[must_use]
    pub fn without(mut self, is_removed: &[bool]) -> Self {
        let is_removed = |index: usize| index > 0 && is_removed.get(index).copied().unwrap_or(false);
        // A removed object's dependencies are resolved before those that wait for it: in order of discovery.
        for index in self.in_order_of_discovery() {
            let after = std::mem::take(&mut self.objects[index].after);
            let mut resolved: Vec<Dependency> = Vec::new();
            for dependency in after {
                if !is_removed(dependency.on) {
                    merge(&mut resolved, dependency);
                    continue;
                }
                let removed = &self.objects[dependency.on];
                let took = match dependency.at {
                    Moment::Ended => removed.local.unwrap_or(Duration::ZERO),
                    Moment::Begun | Moment::Delivered(_) => Duration::ZERO,
                };
                for &earlier in &removed.after {
                    merge(
                        &mut resolved,
                        Dependency { plus: earlier.plus + took + dependency.plus, ..earlier },
                    );
                }
            }
            self.objects[index].after = resolved;
        }
        let mut new_index = vec![0; self.objects.len()];
        let mut count = 0;
        for (index, new) in new_index.iter_mut().enumerate() {
            *new = count;
            count += usize::from(!is_removed(index));
        }
        let objects = std::mem::take(&mut self.objects).into_iter().enumerate();
        self.objects = objects.filter(|(index, _)| !is_removed(*index)).map(|(_, object)| object).collect();
        for dependency in self.objects.iter_mut().flat_map(|object| &mut object.after) {
            dependency.on = new_index[dependency.on];
        }
        self.contents = None;
        self.without_unused_hosts()
    }

    /// The page without hosts that no object is on.
    #[must_use]
    pub(crate) fn without_unused_hosts(mut self) -> Self {
        let mut is_used = vec![false; self.hosts.len()];
        self.objects.iter().for_each(|object| is_used[object.host] = true);
        let mut new_index = vec![0; self.hosts.len()];
        let mut count = 0;
        for (new, is_used) in new_index.iter_mut().zip(&is_used) {
            *new = count;
            count += usize::from(*is_used);
        }
        let hosts = std::mem::take(&mut self.hosts).into_iter().zip(&is_used);
        self.hosts = hosts.filter(|(_, is_used)| **is_used).map(|(host, _)| host).collect();
        self.objects.iter_mut().for_each(|object| object.host = new_index[object.host]);
        self
    }
}

/// Adds a dependency; of two on the same moment, the longer delay counts.
fn merge(dependencies: &mut Vec<Dependency>, new: Dependency) {
    match dependencies.iter_mut().find(|known| (known.on, known.at) == (new.on, new.at)) {
        Some(known) => known.plus = known.plus.max(new.plus),
        None => dependencies.push(new),
    }
}

#[cfg(test)]
mod tests {
    use wire::Bytes;

    use super::*;
    use crate::{Host, Object};

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// A document, a script 5 ms after its first 10 bytes, and an image 7 ms after the script.
    fn page() -> Page {
        let after = |on, at, plus| vec![Dependency { on, at, plus: ms(plus) }];
        let objects = vec![
            Object::sized(Bytes::new(100)),
            Object {
                host: 1,
                after: after(0, Moment::Delivered(Bytes::new(10)), 5),
                ..Object::sized(Bytes::new(50))
            },
            Object { after: after(1, Moment::Ended, 7), ..Object::sized(Bytes::new(60)) },
        ];
        Page { hosts: vec![Host::new("www"), Host::new("scripts")], ..Page::of("page", objects) }
    }

    #[test]
    fn dependents_of_a_removed_object_wait_for_what_it_waited_for() {
        let without = page().without(&[true, true, false]);
        assert_eq!(without.check(), Ok(()));
        assert_eq!(without.objects.len(), 2, "the document stays");
        let expected = Dependency { on: 0, at: Moment::Delivered(Bytes::new(10)), plus: ms(12) };
        assert_eq!(without.objects[1].after, [expected]);
        assert_eq!(without.hosts, [Host::new("www")]);
    }

    #[test]
    fn objects_without_network_leave_their_time() {
        let mut page = page();
        page.objects[1].local = Some(ms(100));
        let over_network = page.over_network();
        assert_eq!(over_network.objects[1].after[0].plus, ms(112));
        assert_eq!(self::page().over_network(), self::page());
    }
}
