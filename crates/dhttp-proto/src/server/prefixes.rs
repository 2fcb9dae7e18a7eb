//! State of some prefixes: a table of fixed size in which clients cannot change the entries of others.
//!
//! A prefix is a /24, or a /48 of IPv6: the longest that routers of the Internet announce, so that its hosts share a
//! path. A keyed hash selects its set of entries, and an entry belongs to one prefix alone. A client with many prefixes
//! can evict the entries of others, which resets their state, but cannot change them. Not counters of clients without a
//! token: that is [`crate::limiter`].

use core::net::IpAddr;

use crate::address::unmapped;
use crate::secret::Secret;

/// Set-associative table of the states of prefixes.
#[derive(Debug)]
pub(super) struct Prefixes<T> {
    key: Secret,
    sets: Vec<[Entry<T>; WAYS]>,
    used: usize,
    /// Weight of an entry: the lightest is evicted first.
    weight: fn(&T) -> u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry<T> {
    /// The prefix's hash; 0 if the entry is free.
    tag: u64,
    value: T,
}

/// Entries of a set, each of which a prefix may use.
const WAYS: usize = 4;

impl<T: Copy + Default> Prefixes<T> {
    /// Empty table for this number of prefixes.
    pub(super) fn new(key: [u8; 16], prefixes: usize, weight: fn(&T) -> u64) -> Self {
        let sets = vec![[Entry::default(); WAYS]; prefixes.div_ceil(WAYS).max(1)];
        Self { key: Secret(key), sets, used: 0, weight }
    }

    /// Returns the state of a client's prefix.
    pub(super) fn find(&mut self, client: IpAddr) -> Option<&mut T> {
        // Without losses the table is empty, and there is nothing to look up.
        if self.used == 0 {
            return None;
        }
        let tag = self.tag(client);
        self.set(tag)?.iter_mut().find(|entry| entry.tag == tag).map(|entry| &mut entry.value)
    }

    /// The same, but inserts `begun` if there is no entry; the lightest entry is evicted.
    pub(super) fn find_or_begin(&mut self, client: IpAddr, begun: T) -> Option<&mut T> {
        let (tag, weight) = (self.tag(client), self.weight);
        let set = self.set(tag)?;
        let known = set.iter().position(|entry| entry.tag == tag);
        let free = || set.iter().position(|entry| entry.tag == 0);
        let index = known.or_else(free).unwrap_or_else(|| {
            let weights = set.iter().map(|entry| weight(&entry.value)).enumerate();
            weights.min_by_key(|(_, weight)| *weight).map_or(0, |(index, _)| index)
        });
        let entry = set.get_mut(index)?;
        let is_new = entry.tag == 0;
        if known.is_none() {
            *entry = Entry { tag, value: begun };
        }
        self.used += usize::from(is_new);
        self.set(tag)?.get_mut(index).map(|entry| &mut entry.value)
    }

    /// Removes the entry of a client's prefix.
    pub(super) fn forget(&mut self, client: IpAddr) {
        let tag = self.tag(client);
        let entry = self.set(tag).and_then(|set| set.iter_mut().find(|entry| entry.tag == tag));
        if let Some(entry) = entry {
            *entry = Entry::default();
            self.used -= 1;
        }
    }

    fn tag(&self, client: IpAddr) -> u64 {
        self.key.hash(&prefix(client)).max(1)
    }

    fn set(&mut self, tag: u64) -> Option<&mut [Entry<T>; WAYS]> {
        // The tag as a fraction of all tags.
        let index = (u128::from(tag) * self.sets.len() as u128) >> 64;
        self.sets.get_mut(usize::try_from(index).ok()?)
    }
}

/// The first three bytes of an IPv4 address, the first six of IPv6.
fn prefix(client: IpAddr) -> [u8; 7] {
    match unmapped(client) {
        IpAddr::V4(address) => {
            let [a, b, c, _] = address.octets();
            [a, b, c, 0, 0, 0, 4]
        }
        IpAddr::V6(address) => {
            let [a, b, c, d, e, f, ..] = address.octets();
            [a, b, c, d, e, f, 6]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::{Ipv4Addr, Ipv6Addr};

    fn four(net: u8, host: u8) -> IpAddr {
        Ipv4Addr::new(10, 0, net, host).into()
    }

    fn six(net: u16, host: u16) -> IpAddr {
        Ipv6Addr::new(0x2001, 0xdb8, net, host, 0, 0, 0, 1).into()
    }

    #[test]
    fn only_addresses_of_one_prefix_share_an_entry() {
        let mut prefixes = Prefixes::new([1; 16], 8, |value: &u64| *value);
        assert_eq!(prefixes.find(four(1, 1)), None);
        *prefixes.find_or_begin(four(1, 1), 7).unwrap() += 1;
        *prefixes.find_or_begin(six(1, 1), 3).unwrap() += 1;
        assert_eq!(prefixes.find(four(1, 200)), Some(&mut 8));
        assert_eq!(prefixes.find(six(1, 99)), Some(&mut 4));
        assert_eq!(prefixes.find(four(2, 1)), None);
        assert_eq!(prefixes.find(six(2, 1)), None);
        prefixes.forget(four(1, 9));
        prefixes.forget(four(1, 9));
        assert_eq!(prefixes.find(four(1, 1)), None);
        assert_eq!(prefixes.used, 1);
    }

    #[test]
    fn full_table_evicts_the_lightest_entry() {
        let mut prefixes = Prefixes::new([1; 16], 8, |value: &u64| *value);
        prefixes.find_or_begin(four(1, 1), 1_000_000);
        for net in 0..10_000 {
            prefixes.find_or_begin(six(net, 0), 1);
        }
        assert_eq!((prefixes.sets.len(), prefixes.used), (2, 8));
        assert_eq!(prefixes.find(four(1, 1)), Some(&mut 1_000_000));
    }
}
