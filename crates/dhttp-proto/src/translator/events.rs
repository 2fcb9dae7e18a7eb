//! Inputs and outputs of a translator.
//!
//! Values only; what follows from what is in [`super`].

use core::net::{IpAddr, SocketAddr};
use core::ops::RangeInclusive;
use std::fmt;

use wire::{Duration, Time};

use crate::Id;
use crate::client::Responders;

/// Configuration of a router's DHTTP support.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranslatorConfig {
    /// Translation of addresses and ports.
    pub translation: Translation,
    /// Hosts that may respond: only the server of the request, or caches on the path as well.
    pub answerers: Responders,
    /// Timeout of a connection, and of a response.
    pub timeout: Duration,
    /// Idle timeout of a mapping.
    pub idle: Duration,
    /// Mappings in all, and for one host.
    pub most: usize,
    /// See `most`.
    pub most_per_host: usize,
}

/// Translation of addresses and ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Translation {
    /// Inside hosts appear at this address, at one of these ports: UDP and TCP at the same.
    To(IpAddr, RangeInclusive<u16>),
    /// Addresses stay as they are: a firewall.
    None,
}

impl TranslatorConfig {
    /// 30 seconds for an answer, two minutes for a mapping (RFC 4787, section 4.3), 64 mappings a host.
    pub const fn new(translation: Translation) -> Self {
        Self {
            translation,
            answerers: Responders::Server,
            timeout: Duration::from_secs(30),
            idle: Duration::from_secs(120),
            most: 4_096,
            most_per_host: 64,
        }
    }
}

/// Event of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input<'a> {
    /// An inside host sent a datagram to a server.
    Request {
        /// The inside host.
        from: SocketAddr,
        /// The server.
        to: SocketAddr,
        /// Payload of the datagram.
        datagram: &'a [u8],
    },
    /// A datagram came to a mapping's outside.
    Answer {
        /// Outside address and port it was sent to.
        at: SocketAddr,
        /// Its sender.
        from: SocketAddr,
        /// Payload of the datagram.
        datagram: &'a [u8],
    },
    /// ICMP said at a mapping's outside that nobody listens there.
    Unreachable {
        /// Outside address and port it was sent to.
        at: SocketAddr,
        /// The server that was asked.
        server: SocketAddr,
    },
    /// The mapping's outside port cannot be had: another program has it.
    Taken(Mapping),
}

/// Action for the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// The mapping begins: take its outside port.
    Begin(Mapping),
    /// The mapping is over, with everything that was open for it.
    End(Mapping),
    /// Let one connection in.
    Open(Pinhole),
    /// Do so no longer; it may have come already.
    Close(Pinhole),
    /// Send this from the mapping's outside.
    Request {
        /// From there.
        outside: SocketAddr,
        /// The server.
        to: SocketAddr,
        /// Payload to send.
        datagram: Vec<u8>,
    },
    /// Send this to the inside host, as from the one who answered.
    Answer {
        /// The host that responded.
        from: SocketAddr,
        /// The inside host.
        to: SocketAddr,
        /// Payload to send.
        datagram: Vec<u8>,
    },
    /// Tell the inside host that nobody listens there.
    Unreachable {
        /// The server that was asked.
        server: SocketAddr,
        /// The inside host.
        to: SocketAddr,
    },
    /// Nothing is done about a datagram from there.
    Refused(SocketAddr, Refusal),
    /// Nothing until then, or until something happens.
    Timeout(Option<Time>),
}

/// An inside host's ports, and where they appear outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mapping {
    /// The UDP port that it asks from.
    pub inside: SocketAddr,
    /// The TCP port that it accepts connections on; 0 if on none.
    pub tcp_port: u16,
    /// Both, as the world sees them.
    pub outside: SocketAddr,
}

impl Mapping {
    /// Where connections go.
    pub const fn listener(&self) -> SocketAddr {
        SocketAddr::new(self.inside.ip(), self.tcp_port)
    }

    /// Where the world connects to.
    pub const fn appears_at(&self, translation: &Translation) -> SocketAddr {
        match translation {
            Translation::To(..) => self.outside,
            Translation::None => self.listener(),
        }
    }
}

/// A hole for one connection, as small as it can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pinhole {
    /// Server that may come through, besides the caches that may; `None`: any host.
    pub server: Option<IpAddr>,
    /// Where it is, as the world sees it.
    pub outside: SocketAddr,
    /// Where it leads.
    pub inside: SocketAddr,
    /// Which of those there are between these two.
    pub slot: u8,
    /// Id that the connection's bytes must begin with.
    pub id: Id,
    /// It closes by itself.
    pub lifetime: Duration,
}

/// Why nothing is done about a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// A request names a TCP port on which other services listen: a page that wants to reach them
    /// (`papers/dhttp#section-iv-c`).
    Port(u16),
    /// A request comes from where no client can be.
    Source,
    /// This host has as many mappings as one may have, or there are no more for anybody.
    Crowded,
    /// An answer that nobody asked for, or that is not from who was asked.
    Unasked,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Port(port) => {
                write!(f, "a request wants a hole to TCP port {port}, where other services listen")
            }
            Self::Source => f.write_str("a request comes from an address or a port that no client has"),
            Self::Crowded => f.write_str("there are too many clients behind this router, or on that host"),
            Self::Unasked => f.write_str("no matching request for this response"),
        }
    }
}
