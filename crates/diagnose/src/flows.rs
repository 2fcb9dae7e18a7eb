//! The open connections, found by their two sockets.
//!
//! A hash table with open addressing, at most half full: a packet of one connection among ten thousand touches one
//! cache line, where an ordered map touches a dozen. Nothing depends on its order. At most [`MAX_PROBES`] connections
//! with colliding addresses are stored, which limits an attacker who chooses them; chance never produces more.

use core::net::{IpAddr, SocketAddr};

use crate::flow::Flow;
use crate::retention::RetentionLimits;

/// The two sockets of a connection, in either order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    one: SocketAddr,
    other: SocketAddr,
    /// Hash, equal for both orders.
    hash: u32,
}

/// Index of an open connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot(u32);

/// The open connections.
#[derive(Debug)]
pub(crate) struct Flows {
    /// Hash table: each entry is [`EMPTY`] or a connection's slot.
    table: Vec<HashSlot>,
    slots: Vec<Option<Box<Flow>>>,
    free: Vec<u32>,
    /// Number of connections in other tables of the same capture.
    other_count: usize,
    /// Retention limits of each connection, by the number of connections in all tables.
    limits: RetentionLimits,
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
    pub(crate) fn of(one: SocketAddr, other: SocketAddr) -> Self {
        let (first, second) = (number(one), number(other));
        let hash = mix(first.min(second), first.max(second)) >> 32;
        Self { one, other, hash: u32::try_from(hash).unwrap_or_default() }
    }

    fn of_flow(flow: &Flow) -> Self {
        Self::of(flow.client, flow.server)
    }

    fn is_of(&self, flow: &Flow) -> bool {
        let sockets = (flow.client, flow.server);
        sockets == (self.one, self.other) || sockets == (self.other, self.one)
    }
}

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
const fn mix(one: u64, other: u64) -> u64 {
    const ONE: u64 = 0x9e37_79b9_7f4a_7c15;
    const OTHER: u64 = 0xd6e8_feb8_6659_fd93;
    let hash = (one ^ ONE).wrapping_mul(OTHER) ^ other.rotate_left(32).wrapping_mul(ONE);
    let hash = (hash ^ (hash >> 32)).wrapping_mul(OTHER);
    hash ^ (hash >> 29)
}

impl Default for Flows {
    fn default() -> Self {
        let table = vec![EMPTY; MIN_SLOTS];
        Self { table, slots: Vec::new(), free: Vec::new(), other_count: 0, limits: RetentionLimits::among(0) }
    }
}

impl Flows {
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(crate) const fn limits(&self) -> RetentionLimits {
        self.limits
    }

    /// Sets the number of connections in other tables.
    pub(crate) fn set_other_count(&mut self, other_count: usize) {
        self.other_count = other_count;
        self.limits = RetentionLimits::among(self.len() + other_count);
    }

    pub(crate) fn find(&self, key: &Key) -> Option<Slot> {
        self.index(key).map(|index| Slot(self.table[index].slot))
    }

    pub(crate) fn at(&mut self, slot: Slot) -> Option<&mut Flow> {
        self.slots.get_mut(slot.0 as usize)?.as_deref_mut()
    }

    /// Inserts a connection that is not there yet; returns one to drop if its sockets collide with too many others.
    pub(crate) fn insert(&mut self, key: Key, flow: Flow) -> (Slot, Option<Box<Flow>>) {
        if (self.len() + 1) * 2 > self.table.len() {
            self.grow();
        }
        let home = self.home(key.hash);
        let is_crowded = (0..MAX_PROBES).all(|step| !self.is_empty(home + step));
        let abandoned = is_crowded.then(|| self.table[home].slot);
        let abandoned =
            abandoned.and_then(|slot| self.slots.get(slot as usize)?.as_deref().map(Key::of_flow));
        let abandoned = abandoned.and_then(|key| self.remove(&key));
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            u32::try_from(self.slots.len() - 1).expect("a table has fewer connections than 2^32")
        });
        self.slots[slot as usize] = Some(Box::new(flow));
        self.settle(HashSlot { hash: key.hash, slot });
        self.limits = RetentionLimits::among(self.len() + self.other_count);
        (Slot(slot), abandoned)
    }

    pub(crate) fn remove(&mut self, key: &Key) -> Option<Box<Flow>> {
        let mut gap = self.index(key)?;
        let slot = self.table[gap].slot;
        let mask = self.table.len() - 1;
        // Later entries move up, unless that would be before their home slot.
        let mut next = gap;
        loop {
            next = (next + 1) & mask;
            if self.is_empty(next) {
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
        self.limits = RetentionLimits::among(self.len() + self.other_count);
        self.slots[slot as usize].take()
    }

    /// Removes the connection in a known slot.
    pub(crate) fn remove_at(&mut self, slot: Slot) -> Option<Box<Flow>> {
        let key = self.slots.get(slot.0 as usize)?.as_deref().map(Key::of_flow)?;
        self.remove(&key)
    }

    /// Iterates over all connections, in arbitrary order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Slot, &Flow)> {
        (0..).map(Slot).zip(&self.slots).filter_map(|(slot, flow)| Some((slot, flow.as_deref()?)))
    }

    fn index(&self, key: &Key) -> Option<usize> {
        let hash = key.hash;
        let mask = self.table.len() - 1;
        let mut index = self.home(hash);
        while !self.is_empty(index) {
            let HashSlot { hash: expected, slot } = self.table[index];
            let is_it = || self.slots[slot as usize].as_deref().is_some_and(|flow| key.is_of(flow));
            if expected == hash && is_it() {
                return Some(index);
            }
            index = (index + 1) & mask;
        }
        None
    }

    fn home(&self, hash: u32) -> usize {
        hash as usize & (self.table.len() - 1)
    }

    fn is_empty(&self, index: usize) -> bool {
        self.table[index & (self.table.len() - 1)].slot == EMPTY.slot
    }

    fn settle(&mut self, new: HashSlot) {
        let mask = self.table.len() - 1;
        let mut index = self.home(new.hash);
        while !self.is_empty(index) {
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

    use wire::Time;
    use wire::packet::{Flags, Packet, TcpBuilder, Transport};

    use super::*;
    use crate::table::Options;
    use dissect::Segment;
    use dissect::Side;

    fn key(number: u32) -> (Key, Flow) {
        let [a, b, c, d] = number.to_be_bytes();
        let sockets = (([10, a, b, c], 1_024 + u16::from(d)).into(), ([192, 168, 0, 1], 80).into());
        let (source, destination) = sockets;
        let mut bytes = Vec::new();
        TcpBuilder { source, destination, seq: 0, ack: 0, flags: Flags::SYN, window: 0, options: &[] }
            .write(&[], &mut bytes)
            .unwrap();
        let packet = Packet::read(&bytes).unwrap();
        let Transport::Tcp(tcp) = packet.transport else { panic!("{packet:?}") };
        let first = Segment::new(1, Time::ZERO, Side::Client, &packet, tcp);
        (Key::of(source, destination), Flow::new(source, destination, &first, Options::default()))
    }

    #[test]
    fn inserted_connection_is_found_until_removed() {
        let mut flows = Flows::default();
        let mut expected = BTreeSet::new();
        for number in 0..5_000 {
            let (key, flow) = key(number);
            assert!(flows.find(&key).is_none());
            assert!(flows.insert(key, flow).1.is_none(), "nothing is crowded here");
            expected.insert(number);
            if number % 3 == 0 {
                let removed = number / 2;
                assert_eq!(
                    flows.remove(&self::key(removed).0).is_some(),
                    expected.remove(&removed),
                    "{removed}"
                );
            }
        }
        assert_eq!(flows.len(), expected.len());
        for number in 0..5_000 {
            assert_eq!(flows.find(&key(number).0).is_some(), expected.contains(&number), "{number}");
        }
    }

    #[test]
    fn number_of_colliding_sockets_is_bounded() {
        let mut flows = Flows::default();
        let mut together = (0..).map(key).filter(|(key, _)| key.hash & 0xfff == 7);
        let abandoned = (0..200).filter(|_| {
            let (key, flow) = together.next().unwrap();
            flows.insert(key, flow).1.is_some()
        });
        assert!(abandoned.count() > 0);
        assert!(flows.len() < 200);
    }
}
