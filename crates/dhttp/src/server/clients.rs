//! Limits of one client and of all clients together: connections, and buffered request bodies.
//!
//! A client is an IPv4 address or an IPv6 /64, since the holder of one address of a /64 holds them all (RFC 6177). Larger networks
//! have [shares](dhttp_proto::shares) of the connections. The accounts are shared by a server's threads. They are updated when a connection begins or ends, and when a body is buffered. Not which
//! connection is evicted for another: that is the worker's.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use dhttp_proto::shares::{Network, ShareLimits, ShareRefusal, Shares};

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
    shares: ShareLimits,
    accounts: Mutex<Accounts>,
}

#[derive(Debug, Default)]
struct Accounts {
    connections: Shares,
    /// Bytes of request bodies, by client; without clients that have none.
    bodies: BTreeMap<IpAddr, u64>,
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
    Network::client(address).first()
}

/// Minimum rates while the total is full, in multiples of the usual one.
const MAX_PRESSURE: u64 = 32;

impl Clients {
    /// Accounts for this many connections in total.
    pub(super) fn new(limits: ClientLimits, total: usize) -> Arc<Self> {
        let has_networks = limits.connections != usize::MAX;
        let to_u64 = |count| u64::try_from(count).unwrap_or(u64::MAX);
        let shares = ShareLimits { total: to_u64(total), client: to_u64(limits.connections), has_networks };
        Arc::new(Self { limits, shares, accounts: Mutex::default() })
    }

    /// Enters a connection from this address.
    ///
    /// # Errors
    /// The reason why it may not be entered.
    pub(super) fn enter(self: &Arc<Self>, address: IpAddr) -> Result<ConnectionSlot, ShareRefusal> {
        let client = client_of(address);
        let mut accounts = self.accounts.lock().map_err(|_| ShareRefusal::Total)?;
        accounts.connections.take(client, self.shares)?;
        drop(accounts);
        Ok(ConnectionSlot { clients: Arc::clone(self), client, body_bytes: 0 })
    }

    /// Whether a connection from this address may take the place of another's: it is within its own shares.
    pub(super) fn may_replace(&self, address: IpAddr) -> bool {
        let one_more = ShareLimits { total: self.shares.total.saturating_add(1), ..self.shares };
        let accounts = self.accounts.lock();
        accounts.is_ok_and(|accounts| accounts.connections.check(client_of(address), one_more).is_ok())
    }

    /// Returns the factor of minimum rates: 1 while at most half of the connections are in use, and then up to
    /// [`MAX_PRESSURE`].
    pub(super) fn pressure(&self) -> u64 {
        let used = self.accounts.lock().map_or(0, |accounts| accounts.connections.total());
        let above_half = used.saturating_sub(self.shares.total / 2);
        1 + above_half.saturating_mul(2 * (MAX_PRESSURE - 1)) / self.shares.total.max(1)
    }

    /// Returns the connections of the client at this address, and of the largest network that it is part of.
    pub(super) fn connections_of(&self, address: IpAddr) -> (u64, u64) {
        self.accounts.lock().map_or((0, 0), |accounts| {
            let of = &accounts.connections;
            (of.of(Network::client(address)), of.of_largest(address))
        })
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
        let Accounts { connections: _, bodies, body_bytes: total } = &mut *accounts;
        let of_client = bodies.entry(self.client).or_default();
        let is_within = *of_client + bytes <= limits.body_bytes && *total + bytes <= limits.total_body_bytes;
        if is_within {
            *of_client += bytes;
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
            if let Some(of_client) = accounts.bodies.get_mut(&self.client) {
                *of_client -= bytes;
            }
        }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.release();
        let Ok(mut accounts) = self.clients.accounts.lock() else { return };
        accounts.connections.give_back(self.client);
        if accounts.bodies.get(&self.client) == Some(&0) {
            accounts.bodies.remove(&self.client);
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
        let clients = Clients::new(LIMITS, 1_000);
        let leases = ["10.0.0.1", "::ffff:10.0.0.1"].map(|one| clients.enter(address(one)));
        assert!(leases.iter().all(Result::is_ok) && clients.enter(address("10.0.0.1")).is_err());
        assert!(clients.enter(address("10.0.0.2")).is_ok());
        let six = ["2600::1", "2600::ffff:1"].map(|one| clients.enter(address(one)));
        assert!(six.iter().all(Result::is_ok) && clients.enter(address("2600::2:1")).is_err());
        assert!(clients.enter(address("2600:0:0:1::1")).is_ok());
    }

    #[test]
    fn closed_connection_returns_its_share() {
        let clients = Clients::new(LIMITS, 1_000);
        let mut one = clients.enter(address("10.0.0.1")).unwrap();
        let mut other = clients.enter(address("10.0.0.1")).unwrap();
        assert!(one.reserve(6) && !other.reserve(5) && other.reserve(4), "ten bytes for one client");
        let mut third = clients.enter(address("10.0.0.2")).unwrap();
        assert!(!third.reserve(6) && third.reserve(5), "fifteen for all");
        drop(one);
        assert!(other.reserve(6) && clients.enter(address("10.0.0.1")).is_ok());
        other.release();
        drop((other, third));
        assert_eq!(clients.body_bytes(), 0);
        let accounts = clients.accounts.lock().unwrap();
        assert!(accounts.bodies.is_empty() && accounts.connections.total() == 0);
    }

    #[test]
    fn minimum_rates_rise_when_more_than_half_of_the_connections_are_in_use() {
        let clients = Clients::new(ClientLimits { connections: 10, ..LIMITS }, 40);
        let enter = |number: u32| clients.enter(std::net::Ipv4Addr::from_bits(number << 16).into());
        let mut leases: Vec<_> = (0..20).map(enter).collect();
        assert_eq!(clients.pressure(), 1);
        leases.extend((20..30).map(enter));
        assert_eq!(clients.pressure(), 16);
        leases.extend((30..40).map(enter));
        assert_eq!((clients.pressure(), leases.iter().all(Result::is_ok)), (32, true));
        assert_eq!(enter(41).unwrap_err(), ShareRefusal::Total);
    }
}
