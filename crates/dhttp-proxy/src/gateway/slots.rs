//! Connections of the event loop, by number, and how many each client has.
//!
//! The counts make the limit of a client's connections (`accept`) independent of the number of other connections.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::abort::Abort;
use super::read_request::WatchedConnection;
use super::tunnel::Tunnel;
use dhttp_proto::shares::{Network, Shares};

/// State of a connection.
pub(super) enum ConnectionSlot {
    Watched(Box<WatchedConnection>),
    /// Leased to a thread, whose exchange may be aborted.
    Leased(SocketAddr, Arc<TcpStream>, Arc<Abort>),
    Tunnel(Box<Tunnel>),
}

impl ConnectionSlot {
    fn peer(&self) -> SocketAddr {
        match self {
            Self::Watched(waiting) => waiting.connection.peer,
            Self::Leased(peer, ..) => *peer,
            Self::Tunnel(tunnel) => tunnel.peer,
        }
    }

    /// Whether it is a connection of this network.
    pub(super) fn is_of(&self, network: Network) -> bool {
        network.contains(self.peer().ip())
    }
}

/// Connections of clients that an event loop watches.
pub(super) struct Slots {
    by_number: BTreeMap<u64, ConnectionSlot>,
    /// Numbers of connections by client, an IPv4 address or an IPv6 /64, and by network: of all event loops.
    shares: Arc<Mutex<Shares>>,
}

impl Slots {
    /// Creates it without connections.
    pub(super) const fn new(shares: Arc<Mutex<Shares>>) -> Self {
        Self { by_number: BTreeMap::new(), shares }
    }

    /// Returns the number of all its connections.
    pub(super) fn len(&self) -> usize {
        self.by_number.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_number.is_empty()
    }

    /// Returns the numbers of connections by client and by network, in all event loops.
    pub(super) fn shares(&self) -> MutexGuard<'_, Shares> {
        // A thread that panicked while it held the lock left no partial change.
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &ConnectionSlot)> {
        self.by_number.iter().map(|(number, slot)| (*number, slot))
    }

    /// Returns the most recent connections, the oldest of them first.
    pub(super) fn recent(&self, count: usize) -> impl Iterator<Item = (u64, &ConnectionSlot)> {
        let first = count.checked_sub(1).and_then(|index| self.by_number.keys().rev().nth(index)).copied();
        self.by_number.range(first.unwrap_or(u64::MAX)..).map(|(number, slot)| (*number, slot))
    }

    pub(super) fn get(&self, number: u64) -> Option<&ConnectionSlot> {
        self.by_number.get(&number)
    }

    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut ConnectionSlot> {
        self.by_number.get_mut(&number)
    }

    /// Inserts a connection under a number that is free.
    pub(super) fn insert(&mut self, number: u64, slot: ConnectionSlot) {
        self.shares().add(slot.peer().ip());
        self.insert_counted(number, slot);
    }

    /// Inserts one that has been counted.
    pub(super) fn insert_counted(&mut self, number: u64, slot: ConnectionSlot) {
        let previous = self.by_number.insert(number, slot);
        debug_assert!(previous.is_none(), "the number of another connection");
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<ConnectionSlot> {
        let slot = self.by_number.remove(&number)?;
        self.shares().give_back(slot.peer().ip());
        Some(slot)
    }

    /// Removes the connections for which `predicate` is `false`.
    pub(super) fn retain(&mut self, predicate: impl Fn(&ConnectionSlot) -> bool) {
        let removed: Vec<u64> =
            self.iter().filter(|(_, slot)| !predicate(slot)).map(|(number, _)| number).collect();
        for number in removed {
            self.remove(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn connections_are_counted_by_address_and_by_64() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = Arc::new(TcpStream::connect(listener.local_addr().unwrap()).unwrap());
        let mut slots = Slots::new(Arc::default());
        let peers =
            ["192.0.2.1:1", "[::ffff:192.0.2.1]:2", "192.0.2.2:3", "[2001:db8::1]:4", "[2001:db8::2]:5"];
        for (number, peer) in (0..).zip(peers) {
            slots.insert(
                number,
                ConnectionSlot::Leased(peer.parse().unwrap(), Arc::clone(&stream), Arc::default()),
            );
        }
        let client = |ip: &str| Network::client(ip.parse().unwrap());
        let count = |slots: &Slots, ip: &str| slots.shares().of(client(ip));
        assert_eq!(["192.0.2.1", "192.0.2.2", "2001:db8::3"].map(|ip| count(&slots, ip)), [2, 1, 2]);
        assert!(slots.remove(1).is_some() && slots.remove(1).is_none());
        assert_eq!((slots.len(), count(&slots, "192.0.2.1")), (4, 1));
        slots.retain(|slot| !slot.is_of(client("2001:db8::9")));
        assert_eq!((slots.len(), slots.shares().total()), (2, 2));
        let recent = |count| slots.recent(count).map(|(number, _)| number).collect::<Vec<_>>();
        assert_eq!([recent(0), recent(1), recent(2)], [vec![], vec![2], vec![0, 2]]);
    }
}
