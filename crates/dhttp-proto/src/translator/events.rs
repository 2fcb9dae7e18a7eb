//! Inputs and outputs of a translator.
//!
//! Values only; the state machine is in [`super`].

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
    pub responders: Responders,
    /// Timeout of a connection, and of a response.
    pub timeout: Duration,
    /// Idle timeout of a mapping.
    pub idle: Duration,
    /// Mappings in all, and for one host.
    pub max: usize,
    /// See `max`.
    pub most_per_host: usize,
}

/// Translation of addresses and ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Translation {
    /// Inside hosts appear at this address, at one of these ports: the same for UDP and TCP.
    To(IpAddr, RangeInclusive<u16>),
    /// Addresses stay as they are: a firewall.
    None,
}

impl TranslatorConfig {
    /// 30 seconds for a response, two minutes for a mapping (RFC 4787, section 4.3), 64 mappings per host.
    pub const fn new(translation: Translation) -> Self {
        Self {
            translation,
            responders: Responders::Server,
            timeout: Duration::from_secs(30),
            idle: Duration::from_secs(120),
            max: 4_096,
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
    /// A datagram arrived at a mapping's outside port.
    Response {
        /// Outside address and port it was sent to.
        at: SocketAddr,
        /// Its sender.
        from: SocketAddr,
        /// Payload of the datagram.
        datagram: &'a [u8],
    },
    /// ICMP reported to a mapping's outside port that the server's port is unreachable.
    Unreachable {
        /// Outside address and port it was sent to.
        at: SocketAddr,
        /// The server of the request.
        server: SocketAddr,
    },
    /// The mapping's outside port is in use by another program.
    Taken(Mapping),
}

/// Action for the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A mapping begins: bind its outside port.
    Begin(Mapping),
    /// A mapping ends, with everything that was open for it.
    End(Mapping),
    /// Open a pinhole for one connection.
    Open(Pinhole),
    /// Close a pinhole; its connection may have arrived already.
    Close(Pinhole),
    /// Send this datagram from the mapping's outside port.
    Request {
        /// The mapping's outside address and port.
        outside: SocketAddr,
        /// The server.
        to: SocketAddr,
        /// Payload to send.
        datagram: Vec<u8>,
    },
    /// Send this datagram to the inside host, with the responder as its source.
    Response {
        /// The host that responded.
        from: SocketAddr,
        /// The inside host.
        to: SocketAddr,
        /// Payload to send.
        datagram: Vec<u8>,
    },
    /// Report to the inside host that the server's port is unreachable.
    Unreachable {
        /// The server of the request.
        server: SocketAddr,
        /// The inside host.
        to: SocketAddr,
    },
    /// A datagram from this address was refused.
    Refused(SocketAddr, Refusal),
    /// No action before this time or the next input.
    Timeout(Option<Time>),
}

/// An inside host's ports, and their address and port outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mapping {
    /// Address and UDP port from which it sends requests.
    pub inside: SocketAddr,
    /// The TCP port that it accepts connections on; 0 if on none.
    pub tcp_port: u16,
    /// Both as they appear outside.
    pub outside: SocketAddr,
}

impl Mapping {
    /// Inside address and port that accepts connections.
    pub const fn listener(&self) -> SocketAddr {
        SocketAddr::new(self.inside.ip(), self.tcp_port)
    }

    /// Outside address and port that servers connect to.
    pub const fn appears_at(&self, translation: &Translation) -> SocketAddr {
        match translation {
            Translation::To(..) => self.outside,
            Translation::None => self.listener(),
        }
    }
}

/// Permission for one inbound connection, as narrow as possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pinhole {
    /// Server that may come through, besides the caches that may; `None`: any host.
    pub server: Option<IpAddr>,
    /// Its address and port outside.
    pub outside: SocketAddr,
    /// Its address and port inside.
    pub inside: SocketAddr,
    /// Its number among those between this server and this client.
    pub slot: u8,
    /// Id that the connection's bytes must begin with.
    pub id: Id,
    /// Time after which it closes by itself.
    pub lifetime: Duration,
}

/// Reason why a datagram is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// A request names a TCP port on which other services listen, as a web page might to reach them
    /// (`papers/dhttp#section-iv-c`).
    Port(u16),
    /// The source of a request cannot be a client.
    Source,
    /// The maximum number of mappings is reached, for this host or in total.
    Crowded,
    /// No outstanding request matches this response, or another host sent it.
    Unsolicited,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Port(port) => {
                write!(f, "a request would open a pinhole to TCP port {port}, where other services listen")
            }
            Self::Source => f.write_str("a request has a source address or port that no client can have"),
            Self::Crowded => f.write_str("there are too many clients behind this router, or on that host"),
            Self::Unsolicited => f.write_str("no matching request for this response"),
        }
    }
}
