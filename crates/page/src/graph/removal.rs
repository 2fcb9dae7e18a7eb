//! A page without some of its objects.
//!
//! Dependents of a removed object wait for what that object waited for, as if it took no time beyond its own
//! delays: nothing else is known of a page that nobody has recorded.

use wire::Duration;

use std::collections::BTreeMap;

use super::{Dependency, Hints, Host, Moment, Page};

impl Page {
    /// The page that engines fetch: without the objects that take no network. What waited for one of them waits for
    /// what it waited for, and the time that it took. Anonymous objects are on hosts of their own, which are where the others
    /// are: they share no connection with them.
    #[must_use]
    pub fn over_network(self) -> Self {
        let is_local: Vec<bool> = self.objects.iter().map(|object| object.local.is_some()).collect();
        let page = if is_local.contains(&true) { self.without(&is_local) } else { self };
        page.with_anonymous_hosts()
    }

    fn with_anonymous_hosts(mut self) -> Self {
        let groups = self.hosts.iter().filter_map(|host| host.address_group).max().map_or(0, |max| max + 1);
        let mut anonymous = BTreeMap::new();
        for object in self.objects.iter_mut().filter(|object| object.is_anonymous) {
            if self.hosts.len() == Self::MAX_HOSTS && !anonymous.contains_key(&object.host) {
                continue;
            }
            let host = anonymous.entry(object.host).or_insert_with(|| {
                let own = self.hosts[object.host].clone();
                let address_group = own.address_group.map(|group| group.saturating_add(groups));
                self.hosts.push(Host { address_group, ..own });
                self.hosts.len() - 1
            });
            object.host = *host;
        }
        // A host whose requests are all anonymous needs no other connection.
        for index in
            anonymous.into_keys().filter(|index| self.objects.iter().all(|object| object.host != *index))
        {
            self.hosts[index].hints = Hints::NONE;
        }
        self
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
        // A script that is removed gives no hints.
        let renumbered =
            |hint: Dependency| (!is_removed(hint.on)).then(|| Dependency { on: new_index[hint.on], ..hint });
        for Hints { preconnect, dns_prefetch } in self.hosts.iter_mut().map(|host| &mut host.hints) {
            *preconnect = preconnect.and_then(renumbered);
            *dns_prefetch = dns_prefetch.and_then(renumbered);
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
    fn anonymous_objects_are_on_hosts_of_their_own() {
        let mut page = page();
        page.hosts[1].address_group = Some(4);
        page.objects[1].is_anonymous = true;
        page.hosts[1].hints.preconnect = Some(Dependency::on_end(0));
        let Page { hosts, objects, .. } = page.over_network();
        assert_eq!(hosts[1].hints, Hints::NONE, "no request uses a connection with credentials");
        assert_eq!(hosts[2].hints.preconnect, Some(Dependency::on_end(0)));
        assert_eq!(objects.iter().map(|object| object.host).collect::<Vec<_>>(), [0, 2, 0]);
        assert_eq!((hosts[2].name.as_str(), hosts[2].address_group), ("scripts", Some(9)));
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
