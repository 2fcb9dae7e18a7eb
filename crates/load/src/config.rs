//! Whom to ask, and how.
//!
//! Not when and what for: that is the plan's.

use std::net::{IpAddr, SocketAddr};

use dhttp_proto::ClientConfig;
use wire::Duration;

use crate::secure::Security;

/// A server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Where it listens, TCP and UDP.
    pub address: SocketAddr,
    /// The value of the field `Host`.
    pub host: String,
    /// What the paths of files begin with: a slash at least, and one at the end.
    pub folder: String,
    /// How it is asked by encrypted connections; `None`: by others.
    pub security: Option<Security>,
}

impl Target {
    /// Whether it is on this machine, or in a network that is nobody else's: loopback, private and link-local addresses.
    /// All others are to be loaded only by who owns them. What is unspecified is this machine, too (ip(7)).
    pub fn is_near(&self) -> bool {
        match self.address.ip().to_canonical() {
            IpAddr::V4(ip) => {
                ip.is_loopback() || ip.is_private() || ip.is_link_local() || ip.is_unspecified()
            }
            IpAddr::V6(ip) => {
                ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local() || ip.is_unspecified()
            }
        }
    }

    /// Whether it is many at once (multicast or broadcast): no server, and whoever sends datagrams there asks all of them.
    pub fn is_many(&self) -> bool {
        match self.address.ip().to_canonical() {
            IpAddr::V4(ip) => ip.is_multicast() || ip.is_broadcast(),
            IpAddr::V6(ip) => ip.is_multicast(),
        }
    }
}

/// How files are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.0, a connection for each.
    Http10,
    /// HTTP/1.1, one after the other on connections that are kept.
    KeepAlive,
    /// HTTP/1.1, without waiting for the answers before.
    Pipelined,
    /// HTTP/2, many at once on connections that are kept.
    Http2,
    /// HTTP/3, the same over QUIC.
    Http3,
    /// By datagrams, and on connections that the server opens.
    Dhttp,
}

impl Protocol {
    /// Every one.
    pub const ALL: [Self; 6] =
        [Self::Http10, Self::KeepAlive, Self::Pipelined, Self::Http2, Self::Http3, Self::Dhttp];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http10 => "http10",
            Self::KeepAlive => "http11",
            Self::Pipelined => "http11-pipelined",
            Self::Http2 => "http2",
            Self::Http3 => "http3",
            Self::Dhttp => "dhttp",
        }
    }

    /// What people call it.
    pub const fn spoken(self) -> &'static str {
        match self {
            Self::Http10 => "HTTP/1.0",
            Self::KeepAlive | Self::Pipelined => "HTTP/1.1",
            Self::Http2 => "HTTP/2",
            Self::Http3 => "HTTP/3",
            Self::Dhttp => "DHTTP",
        }
    }
}

/// UDP ports of a thread, if nobody says otherwise: several, so that a server's threads all have something to do.
pub const PORTS: usize = 8;

/// A user has no more connections.
pub const MOST_CONNECTIONS: usize = 1_000;

/// A part of a plan, for one of several generators: each has its share of the users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Which, from 0.
    index: u32,
    of: u32,
}

impl Shard {
    /// All of it.
    pub const WHOLE: Self = Self { index: 0, of: 1 };

    /// The part with this number, from 1, of so many; `None` if there is no such part.
    pub fn new(number: u32, of: u32) -> Option<Self> {
        let index = number.checked_sub(1).filter(|index| *index < of)?;
        Some(Self { index, of })
    }

    /// Its number, from 1.
    pub const fn number(self) -> u32 {
        self.index + 1
    }

    /// How many parts there are.
    pub const fn of(self) -> u32 {
        self.of
    }

    /// Whether the user with this number is in it.
    pub(crate) fn has(self, user: usize) -> bool {
        user % self.of as usize == self.index as usize
    }
}

/// How the load is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How files are asked for.
    pub protocol: Protocol,
    /// How users of DHTTP ask: as clients of today, or as the paper's.
    pub dhttp: ClientConfig,
    /// Connections that a user may have at once, from 1 to [`MOST_CONNECTIONS`].
    pub connections: usize,
    /// UDP ports of each thread, which its users share, for DHTTP; at least one, and no more than users.
    pub ports: usize,
    /// Whether users close their connections after each page ("altruistic", `papers/dhttp#section-vi-b`).
    pub closes_early: bool,
    /// How long users keep a connection that has nothing to do; zero: they close it with its answer. `None`: for as long as
    /// the server does.
    pub keeps: Option<Duration>,
    /// Whether requests of HTTP/1 leave with the SYN where a server has let that (RFC 7413), which others may repeat.
    pub fast_open: bool,
    /// Whether users of HTTP/3 who come back ask in their first datagrams (0-RTT), which others may repeat.
    pub has_early: bool,
    /// Threads, at least 1.
    pub threads: usize,
    /// The part of the plan that is run here.
    pub shard: Shard,
    /// Users who take the requests of an open schedule in turn, in all parts together; the users of a closed one are the
    /// plan's.
    pub users: u32,
    /// How long an answer may take.
    pub patience: Duration,
    /// When to begin, since 1970, so that several generators do at once; `None`: at once.
    pub at: Option<Duration>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(address: &str) -> Target {
        let address = address.parse().unwrap();
        Target { address, host: String::new(), folder: "/".to_owned(), security: None }
    }

    #[test]
    fn only_what_is_near_is_loaded_without_a_word() {
        let is_near = |address| target(address).is_near();
        for near in [
            "127.0.0.1:80",
            "127.255.255.254:80",
            "0.0.0.0:80",
            "10.1.2.3:80",
            "172.16.0.1:80",
            "192.168.0.1:80",
            "169.254.1.1:80",
            "[::1]:80",
            "[::]:80",
            "[fd00::1]:80",
            "[fe80::1%2]:80",
            "[::ffff:10.0.0.1]:80",
            "[::ffff:0.0.0.0]:80",
        ] {
            assert!(is_near(near), "{near}");
        }
        for far in [
            "8.8.8.8:80",
            "172.15.0.1:80",
            "172.32.0.1:80",
            "0.0.0.1:80",
            "100.64.0.1:80",
            "198.18.0.1:80",
            "[2001:db8::1]:80",
            "[fec0::1]:80",
            "[::ffff:8.8.8.8]:80",
            // An address of IPv4 in an older form, and behind a translator: not ours to tell where they lead.
            "[::127.0.0.1]:80",
            "[64:ff9b::10.0.0.1]:80",
        ] {
            assert!(!is_near(far), "{far}");
        }
    }

    #[test]
    fn what_is_many_is_no_server() {
        for many in
            ["224.0.0.1:80", "239.1.2.3:80", "255.255.255.255:80", "[ff02::1]:80", "[::ffff:224.0.0.1]:80"]
        {
            assert!(target(many).is_many() && !target(many).is_near(), "{many}");
        }
        assert!(!target("10.255.255.254:80").is_many() && !target("[fe80::1]:80").is_many());
    }
}
