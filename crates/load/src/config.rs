//! The server, and the configuration of the load.
//!
//! The requests and their schedule are the plan's.

use std::net::{IpAddr, SocketAddr};

use dhttp_proto::ClientConfig;
use wire::Duration;

use crate::tls::Security;

/// A server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its address, for TCP and UDP.
    pub address: SocketAddr,
    /// Value of the header field `Host`.
    pub host: String,
    /// Prefix of the paths of files: at least a slash, with one at the end.
    pub directory: String,
    /// Configuration of encrypted connections; `None` for unencrypted ones.
    pub security: Option<Security>,
}

impl Target {
    /// Whether the server is on this host, or in a private network: loopback, private and link-local addresses. Only its owner may load
    /// any other. The unspecified address is this host, too (ip(7)).
    pub fn is_local_or_private(&self) -> bool {
        match self.address.ip().to_canonical() {
            IpAddr::V4(ip) => {
                ip.is_loopback() || ip.is_private() || ip.is_link_local() || ip.is_unspecified()
            }
            IpAddr::V6(ip) => {
                ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local() || ip.is_unspecified()
            }
        }
    }

    /// Whether it is a multicast or broadcast address: datagrams there would reach many hosts.
    pub fn is_multicast_or_broadcast(&self) -> bool {
        match self.address.ip().to_canonical() {
            IpAddr::V4(ip) => ip.is_multicast() || ip.is_broadcast(),
            IpAddr::V6(ip) => ip.is_multicast(),
        }
    }
}

/// Protocol of the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.0, with a connection for each request.
    Http10,
    /// HTTP/1.1, sequentially on kept-alive connections.
    KeepAlive,
    /// HTTP/1.1, pipelined.
    Pipelined,
    /// HTTP/2, concurrently on kept-alive connections.
    Http2,
    /// HTTP/3, the same over QUIC.
    Http3,
    /// DHTTP: datagrams, and connections that the server opens.
    Dhttp,
}

impl Protocol {
    /// Every protocol.
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

    /// The protocol's usual name.
    pub const fn display_name(self) -> &'static str {
        match self {
            Self::Http10 => "HTTP/1.0",
            Self::KeepAlive | Self::Pipelined => "HTTP/1.1",
            Self::Http2 => "HTTP/2",
            Self::Http3 => "HTTP/3",
            Self::Dhttp => "DHTTP",
        }
    }
}

/// Default number of UDP ports of a thread: several, so that a server distributes the requests over its threads.
pub const PORTS: usize = 8;

/// Maximum number of connections of a user.
pub const MAX_CONNECTIONS: usize = 1_000;

/// A shard of a plan, for one of several generators: each has its share of the users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Its index, from 0.
    index: u32,
    count: u32,
}

impl Shard {
    /// The whole plan.
    pub const WHOLE: Self = Self { index: 0, count: 1 };

    /// The shard with this number, from 1, of `count` shards; `None` if there is no such shard.
    pub fn new(number: u32, count: u32) -> Option<Self> {
        let index = number.checked_sub(1).filter(|index| *index < count)?;
        Some(Self { index, count })
    }

    /// Parses a shard such as `2/8`, the second of eight.
    ///
    /// # Errors
    /// A sentence, if it is not one.
    pub fn parse(text: &str) -> Result<Self, String> {
        let shard = text
            .split_once('/')
            .and_then(|(number, count)| Self::new(number.parse().ok()?, count.parse().ok()?));
        shard.ok_or_else(|| format!("`{text}` is not a shard; give I/N, such as 2/8, I from 1 to N"))
    }

    /// Its number, from 1.
    pub const fn number(self) -> u32 {
        self.index + 1
    }

    /// Number of shards.
    pub const fn count(self) -> u32 {
        self.count
    }

    /// Whether it includes the user with this index.
    pub(crate) fn has(self, user: usize) -> bool {
        user % self.count as usize == self.index as usize
    }
}

/// Configuration of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Protocol of the requests.
    pub protocol: Protocol,
    /// Configuration of DHTTP clients: today's, or the paper's.
    pub dhttp: ClientConfig,
    /// Concurrent connections of a user, from 1 to [`MAX_CONNECTIONS`].
    pub connections: usize,
    /// UDP ports of each thread for DHTTP, which its users share; at least one, and at most one for each user.
    pub ports: usize,
    /// Whether users close their connections after each page ("altruistic", `papers/dhttp#section-vi-b`).
    pub closes_early: bool,
    /// Idle timeout of users' connections; zero: they close it with the response. `None`: the server's timeout applies.
    pub idle_timeout: Option<Duration>,
    /// Whether HTTP/1 requests leave with the SYN where a server allows it (RFC 7413); such requests can be replayed.
    pub fast_open: bool,
    /// Whether returning users of HTTP/3 send requests in their first datagrams (0-RTT); such requests can be replayed.
    pub has_early: bool,
    /// Threads, at least 1.
    pub threads: usize,
    /// The shard that is run here.
    pub shard: Shard,
    /// Number of users that share the requests of an open schedule, in all shards together; a closed one has the plan's users.
    pub users: u32,
    /// Timeout of a request.
    pub timeout: Duration,
    /// Start time since 1970, so that several generators start together; `None`: immediately.
    pub at: Option<Duration>,
}

/// Parses a time in seconds since 1970 that is after `now`, by at most a day.
///
/// # Errors
/// A sentence, if it is not one.
pub fn parse_start_time(text: &str, now: Duration) -> Result<Duration, String> {
    let at = text.parse().ok().map(Duration::from_secs);
    let at = at.filter(|at| *at > now && at.saturating_sub(now) <= MAX_WAIT);
    at.ok_or_else(|| {
        let now = now.as_nanos() / 1_000_000_000;
        format!("`{text}` is not within the next day; it is {now} now")
    })
}

/// Maximum wait for the start: a day.
const MAX_WAIT: Duration = Duration::from_secs(86_400);

#[cfg(test)]
mod tests {
    use super::*;

    fn target(address: &str) -> Target {
        let address = address.parse().unwrap();
        Target { address, host: String::new(), directory: "/".to_owned(), security: None }
    }

    #[test]
    fn only_local_and_private_addresses_are_loaded_without_confirmation() {
        let is_local_or_private = |address| target(address).is_local_or_private();
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
            assert!(is_local_or_private(near), "{near}");
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
            // An IPv4 address in an older form, and behind a translator: their destinations are unknown.
            "[::127.0.0.1]:80",
            "[64:ff9b::10.0.0.1]:80",
        ] {
            assert!(!is_local_or_private(far), "{far}");
        }
    }

    #[test]
    fn multicast_and_broadcast_addresses_are_not_servers() {
        for many in
            ["224.0.0.1:80", "239.1.2.3:80", "255.255.255.255:80", "[ff02::1]:80", "[::ffff:224.0.0.1]:80"]
        {
            assert!(
                target(many).is_multicast_or_broadcast() && !target(many).is_local_or_private(),
                "{many}"
            );
        }
        assert!(
            !target("10.255.255.254:80").is_multicast_or_broadcast()
                && !target("[fe80::1]:80").is_multicast_or_broadcast()
        );
    }
}
