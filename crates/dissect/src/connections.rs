//! Table of open connections, found by their two sockets.
//!
//! A hash table with open addressing, at most half full: a packet of one connection among ten thousand touches one
//! cache line, where an ordered map touches a dozen. Nothing depends on its order. At most `MAX_PROBES` connections
//! with colliding addresses are stored, which limits an attacker who chooses them; chance never produces more.

use core::net::{IpAddr, SocketAddr};

/// The two sockets of a connection, in either order.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    one: SocketAddr,
    other: SocketAddr,
    /// Hash, equal for both orders.
    hash: u32,
}

/// Index of an open connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot(u32);

/// A value stored for a connection.
pub trait Sockets {
    /// Returns the connection's two sockets.
    fn sockets(&self) -> (SocketAddr, SocketAddr);
}

/// The open connections, a `T` for each.
#[derive(Debug)]
pub struct Connections<T> {
    /// Hash table: each entry is [`EMPTY`] or a connection's slot.
    table: Vec<HashSlot>,
    slots: Vec<Option<Box<T>>>,
    free: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct HashSlot {
    hash: u32,
    slot: u32,
}

const EMPTY: HashSlot = HashSlot { hash: 0, slot: u32::MAX };
const MIN_SLOTS: usize = 64;
/// Maximum number of slots probed for one connection.
const MAX_PROBES: usize = 64;

impl Key {
    /// Returns the key of a connection between these sockets.
    #[inline]
    pub fn of(one: SocketAddr, other: SocketAddr) -> Self {
        let (first, second) = (number(one), number(other));
        let hash = mix(first.min(second), first.max(second)) >> 32;
        Self { one, other, hash: u32::try_from(hash).unwrap_or_default() }
    }

    fn of_value(value: &impl Sockets) -> Self {
        let (one, other) = value.sockets();
        Self::of(one, other)
    }

    fn is_of(&self, value: &impl Sockets) -> bool {
        let sockets = value.sockets();
        sockets == (self.one, self.other) || sockets == (self.other, self.one)
    }
}

#[inline]
fn number(socket: SocketAddr) -> u64 {
    match socket.ip() {
        IpAddr::V4(ip) => u64::from(ip.to_bits()) << 16 | u64::from(socket.port()),
        IpAddr::V6(ip) => {
            let [a, b, c, d, e, f, g, h] = ip.segments().map(u64::from);
            mix(a << 48 | b << 32 | c << 16 | d, e << 48 | f << 32 | g << 16 | h) ^ u64::from(socket.port())
        }
    }
}

/// Returns which of `shards` diagnoses follows the packets between two hosts, in either direction. What connections
/// share, they share by pair of hosts: a client's habits with a server, and dialogues of DHTTP.
pub fn shard_of(one: IpAddr, other: IpAddr, shards: usize) -> usize {
    let number = |ip: IpAddr| number(SocketAddr::new(ip, 0));
    let hash = mix(number(one).min(number(other)), number(one).max(number(other))) >> 32;
    usize::try_from((hash * shards as u64) >> 32).unwrap_or_default()
}

/// Mixes both over all bits: the halves of a product of odd numbers without a pattern.
#[inline]
const fn mix(one: u64, other: u64) -> u64 {
    const ONE: u64 = 0x9e37_79b9_7f4a_7c15;
    const OTHER: u64 = 0xd6e8_feb8_6659_fd93;
    let hash = (one ^ ONE).wrapping_mul(OTHER) ^ other.rotate_left(32).wrapping_mul(ONE);
    let hash = (hash ^ (hash >> 32)).wrapping_mul(OTHER);
    hash ^ (hash >> 29)
}

impl<T> Default for Connections<T> {
    fn default() -> Self {
        Self { table: vec![EMPTY; MIN_SLOTS], slots: Vec::new(), free: Vec::new() }
    }
}

impl<T: Sockets> Connections<T> {
    /// Returns the number of connections.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the slot of a connection.
    pub fn find(&self, key: &Key) -> Option<Slot> {
        self.index(key).map(|index| Slot(self.table[index].slot))
    }

    /// Returns the connection in a slot.
    pub fn at(&mut self, slot: Slot) -> Option<&mut T> {
        self.slots.get_mut(slot.0 as usize)?.as_deref_mut()
    }

    /// Inserts a connection that is not there yet; returns one to drop if its sockets collide with too many others.
    pub fn insert(&mut self, key: Key, value: T) -> (Slot, Option<Box<T>>) {
        if (self.len() + 1) * 2 > self.table.len() {
            self.grow();
        }
        let home = self.home(key.hash);
        let is_crowded = (0..MAX_PROBES).all(|step| !self.is_free(home + step));
        let abandoned = is_crowded.then(|| self.table[home].slot);
        let abandoned =
            abandoned.and_then(|slot| self.slots.get(slot as usize)?.as_deref().map(Key::of_value));
        let abandoned = abandoned.and_then(|key| self.remove(&key));
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            u32::try_from(self.slots.len() - 1).expect("a table has fewer connections than 2^32")
        });
        self.slots[slot as usize] = Some(Box::new(value));
        self.settle(HashSlot { hash: key.hash, slot });
        (Slot(slot), abandoned)
    }

    /// Removes a connection.
    pub fn remove(&mut self, key: &Key) -> Option<Box<T>> {
        let mut gap = self.index(key)?;
        let slot = self.table[gap].slot;
        let mask = self.table.len() - 1;
        // Later entries move up, unless that would be before their home slot.
        let mut next = gap;
        loop {
            next = (next + 1) & mask;
            if self.is_free(next) {
                break;
            }
            let home = self.home(self.table[next].hash);
            if (next.wrapping_sub(home) & mask) >= (next.wrapping_sub(gap) & mask) {
                self.table[gap] = self.table[next];
                gap = next;
            }
        }
        self.table[gap] = EMPTY;
        self.free.push(slot);
        self.slots[slot as usize].take()
    }

    /// Removes the connection in a known slot.
    pub fn remove_at(&mut self, slot: Slot) -> Option<Box<T>> {
        let key = self.slots.get(slot.0 as usize)?.as_deref().map(Key::of_value)?;
        self.remove(&key)
    }

    /// Iterates over all connections, in arbitrary order.
    pub fn iter(&self) -> impl Iterator<Item = (Slot, &T)> {
        (0..).map(Slot).zip(&self.slots).filter_map(|(slot, value)| Some((slot, value.as_deref()?)))
    }

    fn index(&self, key: &Key) -> Option<usize> {
        let hash = key.hash;
        let mask = self.table.len() - 1;
        let mut index = self.home(hash);
        while !self.is_free(index) {
            let HashSlot { hash: expected, slot } = self.table[index];
            let is_it = || self.slots[slot as usize].as_deref().is_some_and(|value| key.is_of(value));
            if expected == hash && is_it() {
                return Some(index);
            }
            index = (index + 1) & mask;
        }
        None
    }

    #[inline]
    fn home(&self, hash: u32) -> usize {
        hash as usize & (self.table.len() - 1)
    }

    fn is_free(&self, index: usize) -> bool {
        self.table[index & (self.table.len() - 1)].slot == EMPTY.slot
    }

    fn settle(&mut self, new: HashSlot) {
        let mask = self.table.len() - 1;
        let mut index = self.home(new.hash);
        while !self.is_free(index) {
            index = (index + 1) & mask;
        }
        self.table[index] = new;
    }

    fn grow(&mut self) {
        let table = vec![EMPTY; self.table.len() * 2];
        let old = std::mem::replace(&mut self.table, table);
        for index in old.into_iter().filter(|index| index.slot != EMPTY.slot) {
            self.settle(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    impl Sockets for (SocketAddr, SocketAddr) {
        fn sockets(&self) -> (SocketAddr, SocketAddr) {
            *self
        }
    }

    fn key(number: u32) -> (Key, (SocketAddr, SocketAddr)) {
        let [a, b, c, d] = number.to_be_bytes();
        let sockets = (([10, a, b, c], 1_024 + u16::from(d)).into(), ([192, 168, 0, 1], 80).into());
        (Key::of(sockets.0, sockets.1), sockets)
    }

    #[test]
    fn inserted_connection_is_found_until_removed() {
        let mut connections = Connections::default();
        let mut expected = BTreeSet::new();
        for number in 0..5_000 {
            let (key, value) = key(number);
            assert!(connections.find(&key).is_none());
            assert!(connections.insert(key, value).1.is_none(), "nothing is crowded here");
            expected.insert(number);
            if number % 3 == 0 {
                let removed = number / 2;
                assert_eq!(
                    connections.remove(&self::key(removed).0).is_some(),
                    expected.remove(&removed),
                    "{removed}"
                );
            }
        }
        assert_eq!(connections.len(), expected.len());
        for number in 0..5_000 {
            assert_eq!(connections.find(&key(number).0).is_some(), expected.contains(&number), "{number}");
        }
    }

    #[test]
    fn number_of_colliding_sockets_is_bounded() {
        let mut connections = Connections::default();
        let mut together = (0..).map(key).filter(|(key, _)| key.hash & 0xfff == 7);
        let abandoned = (0..200).filter(|_| {
            let (key, value) = together.next().unwrap();
            connections.insert(key, value).1.is_some()
        });
        assert!(abandoned.count() > 0);
        assert!(connections.len() < 200);
    }
}
