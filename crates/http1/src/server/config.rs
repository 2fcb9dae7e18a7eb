//! Configuration of a server's connections: limits, timeouts, and the division of responses into writes.
//!
//! Not the responses: those are the application's.

use std::num::NonZeroU32;

use wire::{Duration, Rate};

use crate::message::{Limits, WritePolicy};

/// Configuration of a server's connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// Limits on a client's messages. While a request is being handled, at most [`Limits::head_bytes`] after it are read ahead.
    pub limits: Limits,
    /// Division of responses into writes.
    pub writes: WritePolicy,
    /// Requests on one connection before it is closed: `None` for no limit, 1 for no keep-alive.
    pub requests: Option<NonZeroU32>,
    /// Closing behaviour.
    pub closing: Closing,
    /// Timeouts of a client.
    pub timeout: ConnectionTimeouts,
}

/// Closing behaviour of a server after the last response of a connection (`papers/w3c#connection-management`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Closing {
    /// Half-closes, and closes fully when the client has closed, or after [`ConnectionTimeouts::linger`].
    #[default]
    Careful,
    /// Closes both halves immediately. Requests in flight then cause a reset, which destroys the responses that the client has
    /// not read yet.
    Naive,
}

impl Default for ServerConfig {
    /// Unlimited requests, each response in one write.
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            writes: WritePolicy::default(),
            requests: None,
            closing: Closing::default(),
            timeout: ConnectionTimeouts::default(),
        }
    }
}

/// Timeouts of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionTimeouts {
    /// From the opening, or the end of a response, to the first byte of a request. Default 75 s.
    pub idle: Duration,
    /// From the first byte of a head to its last, and between two arrivals of a body. Default 30 s.
    pub request: Duration,
    /// Minimum rate of a body, after its first [`ConnectionTimeouts::request`]. Each byte extends the deadline by its duration
    /// at this rate, but never beyond that timeout. Default 500 bytes/s, as in Apache's `mod_reqtimeout`.
    pub least_rate: Rate,
    /// Maximum time from the server's FIN to the client's [default: 2 s]. Data that arrives meanwhile is
    /// discarded: a reset would destroy the last response in flight (`papers/w3c`, on closing).
    pub linger: Duration,
}

impl Default for ConnectionTimeouts {
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(75),
            request: Duration::from_secs(30),
            least_rate: MIN_RATE,
            linger: Duration::from_secs(2),
        }
    }
}

const MIN_RATE: Rate = Rate::from_bits_per_second(500 * 8).expect("is not zero");
