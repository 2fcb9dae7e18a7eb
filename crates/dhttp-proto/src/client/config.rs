//! Configuration of a DHTTP client: the paper's profile and the one for the Internet of today, as values.
//!
//! Not the requests, and not their ids: the caller passes those, one at a time.

use core::net::IpAddr;

use wire::Duration;

use crate::Extension;
use crate::parts::MAX_PARTS;
use crate::prefix::Prefixes;
use http1::message::Limits;

/// Configuration of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// Maximum UDP payload of a request, in bytes.
    pub request_bytes: usize,
    /// Size, in bytes, to which a request without a token is padded. The server may respond with three times as
    /// many. 0: no padding.
    pub fill_to: usize,
    /// Schedule of a request's resends.
    pub resend: Resend,
    /// Maximum number of datagrams of a response, at most 10; 1: no request offers to accept parts.
    pub parts: u8,
    /// Whether requests ask for a token in the fallback message ([`crate::token::TOKEN_REQUEST`]), and tokens of an
    /// earlier client are shown.
    pub takes_tokens: bool,
    /// Hosts whose responses are accepted.
    pub responders: Responders,
    /// Whether requests with `Authorization` or `Cookie` may go over UDP, where everyone on the path can read them.
    pub sends_credentials: bool,
    /// Maximum number of requests in flight.
    pub outstanding: usize,
    /// Maximum number of connections that servers may have open to this client.
    pub connections: usize,
    /// Maximum number of servers whose round-trip time and token are remembered.
    pub servers: usize,
    /// Timeout of a connection that is silent in the middle of a response.
    pub stall: Duration,
    /// Idle timeout of a connection; longer than a server's, which should close first.
    pub idle: Duration,
    /// Number of finished requests that are remembered, so that late copies of their responses do no harm.
    pub remembered: usize,
    /// Limits on a server's messages.
    pub limits: Limits,
}

/// Schedule of a request's resends (`papers/dhttp#section-iii-a`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resend {
    /// After each of these timeouts; after the last timeout once more, the client falls back to plain HTTP.
    Fixed {
        /// Before the first resend, and before the second.
        waits: [Duration; 2],
    },
    /// By the measured round trips to a server (RFC 6298), each timeout twice as long as the one before.
    Adaptive {
        /// Timeout before a round trip was measured.
        first: Duration,
        /// Minimum timeout.
        min: Duration,
        /// Maximum timeout.
        max: Duration,
        /// Maximum number of resends.
        times: u8,
        /// Bytes from the server since the request after which the timeout is no longer extended. While data arrives
        /// from the server on any channel, the response may be queued behind it.
        queue: u64,
        /// Maximum time of such extensions.
        queued: Duration,
    },
}

/// Hosts whose responses are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Responders {
    /// Only the server that the request was sent to.
    Server,
    /// The server, and caches at these addresses.
    Caches(Prefixes),
    /// The server, and any cache on the path, which responds from its own address (`papers/dhttp#section-iv-a`). Only
    /// the id then distinguishes a response from a forgery.
    AnyHost,
}

impl Responders {
    /// Whether a host at this address may respond in place of the server.
    pub fn include(self, address: IpAddr) -> bool {
        match self {
            Self::Server => false,
            Self::Caches(prefixes) => prefixes.contain(address),
            Self::AnyHost => true,
        }
    }
}

impl ClientConfig {
    /// Returns this configuration with an extension turned on or off, if it is the client's.
    #[must_use]
    pub const fn with(mut self, extension: Extension, is_on: bool) -> Self {
        match extension {
            Extension::Parts => self.parts = if is_on { MAX_PARTS } else { 1 },
            Extension::LossByPrefix | Extension::MoreConnections | Extension::AdaptiveSize => {}
        }
        self
    }

    /// The paper's profile.
    pub fn paper() -> Self {
        Self {
            // papers/dhttp#section-iii: "a request below 1460 bytes".
            request_bytes: 1_460,
            fill_to: 0,
            // papers/dhttp#section-iii-a: "we use 5 and 10 seconds".
            resend: Resend::Fixed { waits: [Duration::from_secs(5), Duration::from_secs(10)] },
            parts: 1,
            takes_tokens: false,
            responders: Responders::AnyHost,
            sends_credentials: true,
            ..Self::internet()
        }
    }

    /// Profile for the Internet of today.
    pub fn internet() -> Self {
        Self {
            // 1,280 bytes, the minimum MTU of IPv6 (RFC 8200, section 5), without IPv6 and UDP headers.
            request_bytes: 1_232,
            // A third of the largest response by UDP.
            fill_to: 411,
            resend: Resend::Adaptive {
                // RFC 8085, section 3.1.1: one second before there is an estimate.
                first: Duration::from_secs(1),
                // Not below what delayed acknowledgements and busy servers take.
                min: Duration::from_millis(300),
                max: Duration::from_secs(60),
                times: 3,
                // Capacity of the queues of slow links; at 100 Mbit/s it arrives in 20 ms.
                queue: 256 << 10,
                // A modem takes that long for 200 KB.
                queued: Duration::from_secs(60),
            },
            parts: 1,
            takes_tokens: true,
            responders: Responders::Server,
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
