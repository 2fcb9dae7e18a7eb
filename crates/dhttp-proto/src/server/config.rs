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
    /// Size threshold, S: the maximum UDP payload of a response, id and header section included, in bytes.
    pub threshold: u64,
    /// Adaptation of S to paths that carry less; `None`: S is fixed.
    pub adapts: Option<Adaptation>,
    /// Maximum number of datagrams of a response to a client that accepts parts, at most 10; 1: no response is divided.
    pub parts: u8,
    /// Conditions under which small responses move from UDP to TCP.
    pub loss: LossConfig,
    /// Number of responses by TCP that are remembered, so that a late resend gets no second response.
    pub remembered: usize,
    /// Maximum number of connections.
    pub connections: usize,
    /// Whether a connection is opened for a deferred request before the size of its response is known
    /// ([`super::Server::open_early`]).
    pub opens_early: bool,
    /// Limits on connections to one client, that is, one address and TCP port.
    pub per_client: PerClient,
    /// Timeouts of a connection.
    pub timeout: ConnectionTimeouts,
    /// Service to a client that has not proved its address yet.
    pub validation: Validation,
    /// Permitted destinations of connections.
    pub reach: Reach,
    /// Whether requests with `Authorization` or `Cookie` are served over UDP, where everyone on the path can read them.
    pub takes_credentials: bool,
    /// Limits on a client's messages.
    pub limits: Limits,
}

/// Conditions under which small responses move from UDP to TCP (`papers/dhttp#section-iii-c`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossConfig {
    /// Loss threshold, L, in millionths: loss is high if the ratio of resent to fresh requests exceeds it.
    pub threshold_ppm: u32,
    /// Clients whose losses are counted together.
    pub scope: Scope,
    /// Number of fresh requests after which both counters are halved, so that the past fades; `None`: never.
    pub fades_after: Option<u64>,
}

/// Clients whose losses are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All clients, as in the paper.
    Aggregate,
    /// Clients with the same prefix (/24, or /48 of IPv6).
    Prefix {
        /// Maximum number of prefixes with counters; the others are treated as if they never resent a request.
        prefixes: usize,
        /// Initial count of fresh requests of a prefix, so that a single loss has no effect.
        credit: u64,
        /// Time after which both counters are halved.
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
    /// Maximum number of connections to a client.
    pub max: usize,
    /// Maximum number while there are few in total (`papers/dhttp`, section VII).
    pub max_when_few: usize,
    /// Total number of connections below which there are few.
    pub few_below: usize,
}

impl PerClient {
    /// Two; six, as many as browsers open, while there are fewer than a thousand in total.
    pub const MORE_WHEN_FEW: Self = Self { max: 2, max_when_few: 6, few_below: 1_000 };
    /// One, as in the paper, whatever the total.
    pub const ONE: Self = Self { max: 1, max_when_few: 1, few_below: 0 };
}

/// Timeouts of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionTimeouts {
    /// Until it is established.
    pub open: Duration,
    /// Until it carries another response: the persistent connection time-out.
    pub idle: Duration,
    /// Until it accepts queued bytes.
    pub stall: Duration,
}

/// Service to a client that has not proved its address yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validation {
    /// Full service: every source address is trusted. Such a server reflects 26 bytes for each that it receives.
    Trusting,
    /// Without a token, at most `factor` bytes for each byte of the request, only by UDP, within the limits of
    /// `limiter`. With one, full service within the limits of `rate`.
    Tokens {
        /// Bytes of response per byte of request.
        factor: u64,
        /// Lifetime of a token.
        lifetime: Duration,
        /// Limits on responses to clients without a token.
        limiter: LimiterConfig,
        /// Limits on bytes to clients with one, in units of [`crate::limiter::UNIT_BYTES`]. Loopback addresses have no
        /// limit.
        rate: LimiterConfig,
    },
}

impl Validation {
    /// Sets the number of responses for an address without a token ([`LimiterConfig::of_responses`]).
    pub fn limit_responses(&mut self, count: usize) {
        if let Self::Tokens { factor: _, lifetime: _, limiter, rate: _ } = self {
            *limiter = limiter.of_responses(u32::try_from(count).unwrap_or(u32::MAX));
        }
    }

    /// Sets the burst of bytes for an address with a token ([`LimiterConfig::of_address`]).
    pub fn limit_bytes(&mut self, bytes: u64) {
        if let Self::Tokens { factor: _, lifetime: _, limiter: _, rate } = self {
            *rate = rate.of_address(bytes);
        }
    }
}

impl ServerConfig {
    /// Returns this configuration with an extension turned on or off.
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

    /// The paper's profile. Values that the paper leaves open are those of Apache 1.3, on which its server was based.
    /// For laboratories: it trusts every address.
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
            opens_early: false,
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

    /// Profile for the Internet of today: a client without a token gets little.
    pub fn internet() -> Self {
        Self {
            // 1,280 bytes, the minimum MTU of IPv6 (RFC 8200, section 5), without IPv6 and UDP headers.
            threshold: 1_232,
            adapts: Some(Adaptation::USUAL),
            parts: 1,
            loss: LossConfig { threshold_ppm: 10_000, scope: Scope::BY_PREFIX, fades_after: Some(10_000) },
            remembered: 10_000,
            connections: 100_000,
            opens_early: false,
            per_client: PerClient::MORE_WHEN_FEW,
            timeout: ConnectionTimeouts {
                open: Duration::from_secs(10),
                idle: Duration::from_secs(15),
                stall: Duration::from_secs(30),
            },
            // 3: RFC 9000, section 8.1.
            validation: Validation::Tokens {
                factor: 3,
                // Minutes: RFC 9000, section 8.1.3 calls for a short lifetime of tokens that may be reused.
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
