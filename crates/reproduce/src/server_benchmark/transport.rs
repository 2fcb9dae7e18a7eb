//! Transports of the users other than plain HTTP/1 and DHTTP: TCP Fast Open, HTTP/2, HTTP/3.
//!
//! Not the users (the crate `load`), nor the configuration of their servers (`server`).

use std::fs;

use load::tls::{Security, Trust};
use load::{Protocol, Record, record::Channel};

use super::Error;
use super::hosts::Hosts;
use super::server::ServerKind;

/// Transport of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Transport {
    /// HTTP/1 or DHTTP, as the server speaks.
    Usual,
    /// The same; returning users send requests with the SYN (RFC 7413).
    FastOpen,
    /// HTTP/2 with prior knowledge, without encryption.
    Http2,
    /// HTTP/2 over TLS.
    Http2Tls,
    /// HTTP/3.
    Http3,
    /// HTTP/3; returning users send requests with the first datagram (0-RTT).
    Http3Early,
}

impl Transport {
    /// The protocol for this server, with an idle timeout of `idle_s` seconds.
    pub fn protocol(self, kind: ServerKind, idle_s: u64) -> Protocol {
        match (self, kind) {
            (Self::Http2 | Self::Http2Tls, _) => Protocol::Http2,
            (Self::Http3 | Self::Http3Early, _) | (_, ServerKind::Quinn) => Protocol::Http3,
            (_, ServerKind::Dhttp) => Protocol::Dhttp,
            // One response for each connection: 0-RTT would save nothing.
            (
                _,
                ServerKind::Prefork
                | ServerKind::PreforkModified
                | ServerKind::Event
                | ServerKind::Nginx
                | ServerKind::NginxFew
                | ServerKind::Hyper
                | ServerKind::Roundtrip,
            ) => {
                if idle_s == 0 {
                    Protocol::Http10
                } else {
                    Protocol::Pipelined
                }
            }
        }
    }

    /// Encryption, and certificate verification: any certificate is accepted, because it was made for this run.
    pub fn security(self) -> Option<Security> {
        match self {
            Self::Usual | Self::FastOpen | Self::Http2 => None,
            Self::Http2Tls | Self::Http3 | Self::Http3Early => {
                Some(Security { name: "server".to_owned(), trust: Trust::Unverified })
            }
        }
    }

    /// Configures the hosts, before a server listens.
    ///
    /// # Errors
    /// The system's error.
    pub fn prepare(self, hosts: &Hosts) -> Result<(), Error> {
        if self != Self::FastOpen {
            return Ok(());
        }
        hosts
            .server
            .run(|| fs::write(SWITCH, ALL_LISTENERS).map_err(Error::system("switch TCP Fast Open on")))?;
        hosts.users.run(|| fs::write(SWITCH, CLIENTS).map_err(Error::system("switch TCP Fast Open on")))
    }

    /// Share of responses whose request was in the first packet of a connection, once a run is finished.
    ///
    /// # Errors
    /// The system's error.
    pub fn early(self, hosts: &Hosts, record: &Record) -> Result<f64, Error> {
        let responses = record.responses().max(1) as f64;
        let early = match self {
            Self::FastOpen => hosts.server.start(accepted_early).wait()?,
            Self::Http3Early => record.channels.get(&Channel::QuicEarly).copied().unwrap_or(0),
            Self::Usual | Self::Http2 | Self::Http2Tls | Self::Http3 => 0,
        };
        Ok(early as f64 / responses)
    }
}

/// Documentation/networking/ip-sysctl.rst: `tcp_fastopen`.
const SWITCH: &str = "/proc/sys/net/ipv4/tcp_fastopen";
/// All listeners accept it without a socket option (0x400), servers may use it (0x2), and clients may (0x1).
const ALL_LISTENERS: &str = "1027";
const CLIENTS: &str = "1";

/// Connections of this network namespace that were accepted with data in the SYN.
fn accepted_early() -> u64 {
    let counters = fs::read_to_string("/proc/thread-self/net/netstat").unwrap_or_default();
    let mut lines = counters.lines().filter_map(|line| line.strip_prefix("TcpExt: "));
    let (names, values) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let mut pairs = names.split(' ').zip(values.split(' '));
    let passive = pairs.find(|(name, _)| *name == "TCPFastOpenPassive");
    passive.and_then(|(_, value)| value.parse().ok()).unwrap_or(0)
}
