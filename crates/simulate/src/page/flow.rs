//! Grouping of a page's packets into flows: a connection, or the datagrams between two ports.
//!
//! Contents are not read; a page has one client.

use tcp::segment::Framing;

use crate::web::QuicProbe;
use crate::web::server::{PORT, SECURE_PORT};
use crate::world::{Address, CLIENT, Probe, Record, SERVER};

/// A connection, or all datagrams between two ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Flow {
    is_datagrams: bool,
    /// The server's host, 0 for the first.
    host: u16,
    server: u16,
    client: u16,
}

impl Flow {
    /// The flow of a packet.
    pub fn of(record: &Record) -> Self {
        let is_datagrams = match record.segment.framing {
            Framing::Tcp | Framing::Ardp => false,
            Framing::Datagram => true,
        };
        Self::between(record.from, record.to, is_datagrams)
    }

    /// The flow of a probe.
    pub fn of_probe(probe: &Probe) -> Self {
        Self::between(probe.local, probe.peer, false)
    }

    /// The flow of a probe of QUIC.
    pub fn of_quic_probe(probe: &QuicProbe) -> Self {
        Self::between(probe.local, probe.peer, true)
    }

    /// Whether it consists of datagrams.
    pub const fn is_datagrams(self) -> bool {
        self.is_datagrams
    }

    /// Whether it is a connection that the server opened: the server's port is not the web's there.
    pub const fn is_opened_by_server(self) -> bool {
        !self.is_datagrams && self.server != PORT && self.server != SECURE_PORT
    }

    /// Whether it carries TLS.
    pub const fn has_tls(self) -> bool {
        !self.is_datagrams && self.server == SECURE_PORT
    }

    /// Whether it is a connection of QUIC.
    pub const fn has_quic(self) -> bool {
        self.is_datagrams && self.server == SECURE_PORT
    }

    /// Port of the end that opened it, which identifies it to a reader.
    pub const fn port(self) -> u16 {
        if self.is_opened_by_server() { self.server } else { self.client }
    }

    /// Number that is unique among the flows of a page.
    pub fn number(self) -> u64 {
        u64::from(self.host) << 33
            | u64::from(self.is_datagrams) << 32
            | u64::from(self.server) << 16
            | u64::from(self.client)
    }

    fn between(one: Address, other: Address, is_datagrams: bool) -> Self {
        let (client, server) = if one.host == CLIENT { (one, other) } else { (other, one) };
        let host = server.host.0.saturating_sub(SERVER.0);
        Self { is_datagrams, host, server: server.port, client: client.port }
    }
}
