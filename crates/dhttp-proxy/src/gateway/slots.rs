//! Connections of the event loop, by number, and how many each client has.
//!
//! The counts make the limit of a client's connections (`accept`) independent of the number of other connections.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;

use super::read_request::WatchedConnection;
use super::tunnel::Tunnel;
use crate::fetches::site;

/// State of a connection.
pub(super) enum ConnectionSlot {
    Watched(Box<WatchedConnection>),
    /// Leased to a thread.
    Leased(SocketAddr, Arc<TcpStream>),
    Tunnel(Box<Tunnel>),
}

impl ConnectionSlot {
    fn peer(&self) -> SocketAddr {
        match self {
            Self::Watched(waiting) => waiting.connection.peer,
            Self::Leased(peer, _) => *peer,
            Self::Tunnel(tunnel) => tunnel.peer,
        }
    }

    /// Whether it is a connection of this client.
    pub(super) fn is_of(&self, client: IpAddr) -> bool {
        site(self.peer().ip()) == client
    }
}

/// All connections of clients.
#[derive(Default)]
pub(super) struct Slots {
    by_number: BTreeMap<u64, ConnectionSlot>,
    /// Number of connections of each client: an IPv4 address, or an IPv6 /64.
    by_client: BTreeMap<IpAddr, usize>,
}

impl Slots {
    /// Returns the number of all connections.
    pub(super) fn len(&self) -> usize {
        self.by_number.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_number.is_empty()
    }

    /// Returns the number of connections of a client.
    pub(super) fn count(&self, client: IpAddr) -> usize {
        self.by_client.get(&client).copied().unwrap_or_default()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &ConnectionSlot)> {
        self.by_number.iter().map(|(number, slot)| (*number, slot))
    }

    pub(super) fn get(&self, number: u64) -> Option<&ConnectionSlot> {
        self.by_number.get(&number)
    }

    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut ConnectionSlot> {
        self.by_number.get_mut(&number)
    }

    /// Inserts a connection under a number that is free.
    pub(super) fn insert(&mut self, number: u64, slot: ConnectionSlot) {
        *self.by_client.entry(site(slot.peer().ip())).or_default() += 1;
        let previous = self.by_number.insert(number, slot);
        debug_assert!(previous.is_none(), "the number of another connection");
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<ConnectionSlot> {
        let slot = self.by_number.remove(&number)?;
        let client = site(slot.peer().ip());
        if let Some(count) = self.by_client.get_mut(&client) {
            *count -= 1;
            if *count == 0 {
                self.by_client.remove(&client);
            }
        }
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
        let mut slots = Slots::default();
        let peers =
            ["192.0.2.1:1", "[::ffff:192.0.2.1]:2", "192.0.2.2:3", "[2001:db8::1]:4", "[2001:db8::2]:5"];
        for (number, peer) in (0..).zip(peers) {
            slots.insert(number, ConnectionSlot::Leased(peer.parse().unwrap(), Arc::clone(&stream)));
        }
        let count = |slots: &Slots, ip: &str| slots.count(site(ip.parse().unwrap()));
        assert_eq!(["192.0.2.1", "192.0.2.2", "2001:db8::3"].map(|ip| count(&slots, ip)), [2, 1, 2]);
        assert!(slots.remove(1).is_some() && slots.remove(1).is_none());
        assert_eq!((slots.len(), count(&slots, "192.0.2.1")), (4, 1));
        slots.retain(|slot| !slot.is_of(site("2001:db8::9".parse().unwrap())));
        assert_eq!((slots.len(), slots.by_client.len()), (2, 2));
    }
}
