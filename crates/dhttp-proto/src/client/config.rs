//! Configuration of a DHTTP client: the paper's profile and the one for the Internet of today, as values.
//!
//! Not what is asked for, and not the ids: those come from the caller, one at a time.

use core::net::IpAddr;

use wire::Duration;

use crate::Extension;
use crate::parts::MAX_PARTS;
use crate::prefix::Prefixes;
use http1::message::Limits;

/// Configuration of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// The largest UDP payload a request may be, in bytes.
    pub request_bytes: usize,
    /// Size to which a request is padded for a server that has given no token, in bytes: it may respond with three
    /// times as many. 0: no padding.
    pub fill_to: usize,
    /// When a request is sent again.
    pub resend: Resend,
    /// In how many datagrams an answer may come, 10 at most; 1: no request says that it takes parts.
    pub parts: u8,
    /// Whether requests over plain HTTP name the TCP port on which this client accepts connections
    /// ([`crate::token::PORT_FIELD`]), so that their responses bring tokens.
    pub names_port: bool,
    /// Hosts whose responses are accepted.
    pub answerers: Responders,
    /// Whether requests with `Authorization` or `Cookie` may go over UDP, where everybody on the path reads them.
    pub sends_credentials: bool,
    /// Requests that may be under way at once.
    pub outstanding: usize,
    /// Connections that servers may have open to this client.
    pub connections: usize,
    /// Servers whose round-trip time and token are remembered.
    pub servers: usize,
    /// A connection that is silent for so long in the middle of an answer is given up.
    pub stall: Duration,
    /// A connection that carries nothing for so long is closed; longer than a server's, who should close first.
    pub idle: Duration,
    /// Number of finished requests that are remembered, so that late copies of their responses do no harm.
    pub remembered: usize,
    /// Limits on a server's messages.
    pub limits: Limits,
}

/// When a request is sent again (`papers/dhttp#section-iii-a`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resend {
    /// After each of these waits, and after the last wait once more it is given up.
    Fixed {
        /// Before the first resend, and before the second.
        waits: [Duration; 2],
    },
    /// As the round trips to a server are found to be (RFC 6298), each wait twice as long as the one before.
    Adaptive {
        /// Before a round trip was seen.
        first: Duration,
        /// The shortest wait.
        least: Duration,
        /// The longest.
        most: Duration,
        /// Maximum number of resends.
        times: u8,
        /// As long as the server is heard on any channel, the answer may be behind what comes: the wait begins again
        /// until so many bytes have come since the request was sent.
        queue: u64,
        /// And no longer than this.
        queued: Duration,
    },
}

/// Hosts whose responses are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Responders {
    /// Only those that come from where the request went.
    Server,
    /// And those of caches at these addresses.
    Caches(Prefixes),
    /// Also those of caches on the way, which answer from their own address (`papers/dhttp#section-iv-a`). The id is
    /// then all that tells an answer from a forgery.
    Anybody,
}

impl Responders {
    /// Whether one at this address may answer that was not asked itself.
    pub fn include(self, address: IpAddr) -> bool {
        match self {
            Self::Server => false,
            Self::Caches(prefixes) => prefixes.contain(address),
            Self::Anybody => true,
        }
    }
}

impl ClientConfig {
    /// The same with, or without, something that goes beyond the paper, if it is the client's.
    #[must_use]
    pub const fn with(mut self, extension: Extension, is_on: bool) -> Self {
        match extension {
            Extension::Parts => self.parts = if is_on { MAX_PARTS } else { 1 },
            Extension::LossByPrefix | Extension::MoreConnections | Extension::AdaptiveSize => {}
        }
        self
    }

    /// As in the paper.
    pub fn paper() -> Self {
        Self {
            // papers/dhttp#section-iii: "a request below 1460 bytes".
            request_bytes: 1_460,
            fill_to: 0,
            // papers/dhttp#section-iii-a: "we use 5 and 10 seconds".
            resend: Resend::Fixed { waits: [Duration::from_secs(5), Duration::from_secs(10)] },
            parts: 1,
            names_port: false,
            answerers: Responders::Anybody,
            sends_credentials: true,
            ..Self::internet()
        }
    }

    /// For the Internet of today.
    pub fn internet() -> Self {
        Self {
            // 1,280 bytes, the least that every IPv6 link carries (RFC 8200, section 5), without IPv6 and UDP headers.
            request_bytes: 1_232,
            // A third of the largest answer by UDP.
            fill_to: 411,
            resend: Resend::Adaptive {
                // RFC 8085, section 3.1.1: one second before there is an estimate.
                first: Duration::from_secs(1),
                // Not below what delayed acknowledgements and busy servers take.
                least: Duration::from_millis(300),
                most: Duration::from_secs(60),
                times: 3,
                // What the queues of slow links hold; at 100 Mbit/s it is there in 20 ms.
                queue: 256 << 10,
                // A modem takes that long for 200 KB.
                queued: Duration::from_secs(60),
            },
            parts: 1,
            names_port: true,
            answerers: Responders::Server,
            sends_credentials: false,
            outstanding: 1_024,
            connections: 64,
            servers: 1_024,
            stall: Duration::from_secs(30),
            idle: Duration::from_secs(60),
            remembered: 4_096,
            limits: Limits::default(),
        }
    }
}
