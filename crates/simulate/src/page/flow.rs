//! Which packets of a page belong together: a connection, or the datagrams between two ports.
//!
//! Not what they say; a page has one client, one server and one path.

use tcp::segment::Framing;

use super::CLIENT;
use crate::web::server::PORT;
use crate::world::{Address, Probe, Record};

/// A connection, or all datagrams between two ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Flow {
    is_datagrams: bool,
    server: u16,
    client: u16,
}

impl Flow {
    /// The one that a packet belongs to.
    pub fn of(record: &Record) -> Self {
        let is_datagrams = match record.segment.framing {
            Framing::Tcp | Framing::Ardp => false,
            Framing::Datagram => true,
        };
        Self::between(record.from, record.to, is_datagrams)
    }

    /// The one that was looked at.
    pub fn of_probe(probe: &Probe) -> Self {
        Self::between(probe.local, probe.peer, false)
    }

    /// Whether no connection carries it.
    pub const fn is_datagrams(self) -> bool {
        self.is_datagrams
    }

    /// Whether it is a connection that the server opened: its end of those is not where the web is.
    pub const fn is_opened_by_server(self) -> bool {
        !self.is_datagrams && self.server != PORT
    }

    /// The port of the end that opened it, by which a reader knows it.
    pub const fn port(self) -> u16 {
        if self.is_opened_by_server() { self.server } else { self.client }
    }

    /// A number that no other flow of the same page has.
    pub fn number(self) -> u64 {
        u64::from(self.is_datagrams) << 32 | u64::from(self.server) << 16 | u64::from(self.client)
    }

    fn between(one: Address, other: Address, is_datagrams: bool) -> Self {
        let (client, server) = if one.host == CLIENT { (one, other) } else { (other, one) };
        Self { is_datagrams, server: server.port, client: client.port }
    }
}
