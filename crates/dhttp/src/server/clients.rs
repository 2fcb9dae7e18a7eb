//! Limits of one client and of all clients together: connections, and buffered request bodies.
//!
//! A client is an IPv4 address or an IPv6 /64, since the holder of one address of a /64 holds them all (RFC 6177). The accounts
//! are shared by a server's threads. They are updated when a connection begins or ends, and when a body is buffered. Not which
//! connection is evicted for another: that is the worker's.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex};

/// Limits of clients on connections that they open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientLimits {
    /// Connections of one client. Default 256.
    pub connections: usize,
    /// Bytes of request bodies that are buffered for one client. Default 16 MiB.
    pub body_bytes: u64,
    /// Bytes of request bodies that are buffered for all. Default 256 MiB.
    pub total_body_bytes: u64,
    /// Minimum rate in bytes per second at which a client must read a response, over each [`super::ServerConfig::stall`].
    /// Default 500, as for what it sends.
    pub min_read_rate: u64,
    /// Requests of one client that wait for a handler, in one thread. Default 1,024.
    pub pending: usize,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            connections: 256,
            body_bytes: 16 << 20,
            total_body_bytes: 256 << 20,
            min_read_rate: 500,
            pending: 1_024,
        }
    }
}

/// Accounts of the clients that have connections now.
#[derive(Debug)]
pub(super) struct Clients {
    limits: ClientLimits,
    accounts: Mutex<Accounts>,
}

#[derive(Debug, Default)]
struct Accounts {
    of: BTreeMap<IpAddr, Account>,
    body_bytes: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Account {
    connections: usize,
    body_bytes: u64,
}

/// A connection in its client's account, until it is dropped.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    clients: Arc<Clients>,
    client: IpAddr,
    body_bytes: u64,
}

/// Returns the address that identifies a client: its own, or its /64.
pub(super) fn client_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        address @ IpAddr::V4(_) => address,
    }
}

impl Clients {
    pub(super) fn new(limits: ClientLimits) -> Arc<Self> {
        Arc::new(Self { limits, accounts: Mutex::default() })
    }

    /// Enters a connection from this address; `None` if its client has too many.
    pub(super) fn enter(self: &Arc<Self>, address: IpAddr) -> Option<ConnectionSlot> {
        let client = client_of(address);
        let mut accounts = self.accounts.lock().ok()?;
        let account = accounts.of.entry(client).or_default();
        if account.connections >= self.limits.connections {
            return None;
        }
        account.connections += 1;
        drop(accounts);
        Some(ConnectionSlot { clients: Arc::clone(self), client, body_bytes: 0 })
    }

    /// Returns the bytes of request bodies that are buffered now.
    pub(super) fn body_bytes(&self) -> u64 {
        self.accounts.lock().map_or(0, |accounts| accounts.body_bytes)
    }
}

impl ConnectionSlot {
    /// Returns the client's address, as [`client_of`] gives it.
    pub(super) const fn client(&self) -> IpAddr {
        self.client
    }

    /// Reserves buffer for part of a body; `false` if the client's share or the total is used up.
    pub(super) fn reserve(&mut self, bytes: usize) -> bool {
        let bytes = bytes as u64;
        let limits = self.clients.limits;
        let Ok(mut accounts) = self.clients.accounts.lock() else { return false };
        let Accounts { of, body_bytes: total } = &mut *accounts;
        let Some(account) = of.get_mut(&self.client) else { return false };
        let is_within =
            account.body_bytes + bytes <= limits.body_bytes && *total + bytes <= limits.total_body_bytes;
        if is_within {
            account.body_bytes += bytes;
            *total += bytes;
            self.body_bytes += bytes;
        }
        is_within
    }

    /// Releases what was reserved.
    pub(super) fn release(&mut self) {
        let bytes = std::mem::take(&mut self.body_bytes);
        if bytes > 0
            && let Ok(mut accounts) = self.clients.accounts.lock()
        {
            accounts.body_bytes -= bytes;
            if let Some(account) = accounts.of.get_mut(&self.client) {
                account.body_bytes -= bytes;
            }
        }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.release();
        let Ok(mut accounts) = self.clients.accounts.lock() else { return };
        if let Some(account) = accounts.of.get_mut(&self.client) {
            account.connections -= 1;
            if account.connections == 0 {
                accounts.of.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: ClientLimits =
        ClientLimits { connections: 2, body_bytes: 10, total_body_bytes: 15, min_read_rate: 0, pending: 1 };

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_client_is_an_address_of_ipv4_or_a_prefix_of_64_bits() {
        let clients = Clients::new(LIMITS);
        let leases = ["10.0.0.1", "::ffff:10.0.0.1"].map(|one| clients.enter(address(one)));
        assert!(leases.iter().all(Option::is_some) && clients.enter(address("10.0.0.1")).is_none());
        assert!(clients.enter(address("10.0.0.2")).is_some());
        let six = ["2600::1", "2600::ffff:1"].map(|one| clients.enter(address(one)));
        assert!(six.iter().all(Option::is_some) && clients.enter(address("2600::2:1")).is_none());
        assert!(clients.enter(address("2600:0:0:1::1")).is_some());
    }

    #[test]
    fn closed_connection_returns_its_share() {
        let clients = Clients::new(LIMITS);
        let mut one = clients.enter(address("10.0.0.1")).unwrap();
        let mut other = clients.enter(address("10.0.0.1")).unwrap();
        assert!(one.reserve(6) && !other.reserve(5) && other.reserve(4), "ten bytes for one client");
        let mut third = clients.enter(address("10.0.0.2")).unwrap();
        assert!(!third.reserve(6) && third.reserve(5), "fifteen for all");
        drop(one);
        assert!(other.reserve(6) && clients.enter(address("10.0.0.1")).is_some());
        other.release();
        drop((other, third));
        assert_eq!(clients.body_bytes(), 0);
        assert!(clients.accounts.lock().unwrap().of.is_empty());
    }
}
