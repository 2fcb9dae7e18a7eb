//! Configuration of a DHTTP server: the paper's profile and the one for the Internet of today, as values.
//!
//! Not the secrets: keys come from the caller's CSPRNG.

use wire::Duration;

use super::sizes::Adaptation;
use crate::Extension;
use crate::address::Reach;
use crate::limiter::LimiterConfig;
use crate::parts::MAX_PARTS;
use http1::message::Limits;

/// Configuration of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// The size threshold, S: the largest UDP payload that is sent, id and head included, in bytes.
    pub threshold: u64,
    /// Whether S falls where the way to a client carries less.
    pub adapts: Option<Adaptation>,
    /// In how many datagrams an answer may go to a client that takes them, 10 at most; 1: no answer is divided.
    pub parts: u8,
    /// When small answers leave UDP.
    pub loss: LossConfig,
    /// Number of responses by TCP that are remembered, so that a late resend gets no second response.
    pub remembered: usize,
    /// Connections in all.
    pub connections: usize,
    /// Connections to one client, that is, one address and TCP port.
    pub per_client: PerClient,
    /// Timeouts of a connection.
    pub timeout: ConnectionTimeouts,
    /// Service to a client that has not proved its address yet.
    pub validation: Validation,
    /// Where connections may go.
    pub reach: Reach,
    /// Whether requests with `Authorization` or `Cookie` are answered over UDP, where everybody on the path reads them.
    pub takes_credentials: bool,
    /// Limits on a client's messages.
    pub limits: Limits,
}

/// When small answers leave UDP (`papers/dhttp#section-iii-c`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossConfig {
    /// The loss threshold, L, in millionths: over so many resent requests for each fresh one, loss is high.
    pub threshold_ppm: u32,
    /// Clients whose losses are counted together.
    pub scope: Scope,
    /// Both counters are halved when so many fresh requests were counted, so that the past fades; `None`: never.
    pub fades_after: Option<u64>,
}

/// Clients whose losses are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Everybody's, as in the paper.
    Aggregate,
    /// Those of clients with the same prefix (/24, or /48 of IPv6).
    Prefix {
        /// Of how many prefixes there is room for counters; the others count as if nothing was ever resent there.
        prefixes: usize,
        /// Fresh requests that a prefix is given to begin with, so that a single loss says nothing yet.
        credit: u64,
        /// Both counters are halved when so much time has gone by.
        half_life: Duration,
    },
}

impl Scope {
    /// 4,096 prefixes; a hundred fresh requests, so that one loss is not above 1%; halved every minute.
    pub const BY_PREFIX: Self =
        Self::Prefix { prefixes: 4_096, credit: 100, half_life: Duration::from_secs(60) };
}

/// Connections to one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerClient {
    /// As many as this.
    pub usual: usize,
    /// As many as this while there are few in all (`papers/dhttp`, section VII).
    pub when_few: usize,
    /// Fewer than this is few.
    pub few: usize,
}

impl PerClient {
    /// Two; as many as browsers open (six) while there are fewer than a thousand in all.
    pub const MORE_WHEN_FEW: Self = Self { usual: 2, when_few: 6, few: 1_000 };
    /// One, as in the paper, and however many there are.
    pub const ONE: Self = Self { usual: 1, when_few: 1, few: 0 };
}

/// Timeouts of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionTimeouts {
    /// To be there.
    pub open: Duration,
    /// To carry another answer: the persistent connection time-out.
    pub idle: Duration,
    /// To take bytes that wait for it.
    pub stall: Duration,
}

/// Service to a client that has not proved its address yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validation {
    /// Everything: every address is taken for real. Such a server reflects 26 bytes for each that it gets.
    Trusting,
    /// Without a token at most `factor` bytes for each byte of the request, by UDP alone, within `limiter`'s share; with one
    /// everything, within the share of `rate`.
    Tokens {
        /// Bytes for a byte.
        factor: u64,
        /// Lifetime of a token.
        lifetime: Duration,
        /// Responses for clients without a token.
        limiter: LimiterConfig,
        /// Bytes for clients with one, in units of [`crate::limiter::UNIT_BYTES`]. Loopback addresses have no limit.
        rate: LimiterConfig,
    },
}

impl ServerConfig {
    /// The same with, or without, something that goes beyond the paper.
    #[must_use]
    pub fn with(mut self, extension: Extension, is_on: bool) -> Self {
        match extension {
            Extension::LossByPrefix => {
                self.loss.scope = if is_on { Scope::BY_PREFIX } else { Scope::Aggregate };
            }
            Extension::MoreConnections => {
                self.per_client = if is_on { PerClient::MORE_WHEN_FEW } else { PerClient::ONE };
            }
            Extension::Parts => self.parts = if is_on { MAX_PARTS } else { 1 },
            Extension::AdaptiveSize => self.adapts = is_on.then_some(Adaptation::USUAL),
        }
        self
    }

    /// As in the paper. What the paper leaves open is as the Apache 1.3 had it that it was made from. For
    /// laboratories: it believes every address.
    pub fn paper() -> Self {
        Self {
            // papers/dhttp#section-iii-b: "default threshold of 1460 bytes".
            threshold: 1_460,
            adapts: None,
            parts: 1,
            // papers/dhttp#section-iii-c: "L (currently 1%)".
            loss: LossConfig { threshold_ppm: 10_000, scope: Scope::Aggregate, fades_after: None },
            // papers/dhttp#section-iii-c: "room for 10000 global request IDs".
            remembered: 10_000,
            // Apache 1.3: MaxClients 150, KeepAliveTimeout 15, Timeout 300.
            connections: 150,
            per_client: PerClient::ONE,
            timeout: ConnectionTimeouts {
                open: Duration::from_secs(75),
                idle: Duration::from_secs(15),
                stall: Duration::from_secs(300),
            },
            validation: Validation::Trusting,
            reach: Reach::Anywhere,
            takes_credentials: true,
            limits: Limits::default(),
        }
    }

    /// For the Internet of today: nothing for nothing.
    pub fn internet() -> Self {
        Self {
            // 1,280 bytes, the least that every IPv6 link carries (RFC 8200, section 5), without IPv6 and UDP headers.
            threshold: 1_232,
            adapts: Some(Adaptation::USUAL),
            parts: 1,
            loss: LossConfig { threshold_ppm: 10_000, scope: Scope::BY_PREFIX, fades_after: Some(10_000) },
            remembered: 10_000,
            connections: 100_000,
            per_client: PerClient::MORE_WHEN_FEW,
            timeout: ConnectionTimeouts {
                open: Duration::from_secs(10),
                idle: Duration::from_secs(15),
                stall: Duration::from_secs(30),
            },
            // 3: RFC 9000, section 8.1.
            validation: Validation::Tokens {
                factor: 3,
                // Minutes: RFC 9000, section 8.1.3 asks for a short lifetime of tokens that may be shown again.
                lifetime: Duration::from_secs(600),
                limiter: LimiterConfig::default(),
                rate: LimiterConfig::for_tokens(),
            },
            reach: Reach::Internet,
            takes_credentials: false,
            limits: Limits { head_bytes: 4_096, target_bytes: 2_048, ..Limits::default() },
        }
    }
}
