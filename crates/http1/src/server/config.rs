//! How a server treats a connection: what a client may send, how long it may take, how answers are cut.
//!
//! Not what is answered: that is the application's.

use std::num::NonZeroU32;

use wire::{Duration, Rate};

use crate::message::{Limits, WritePolicy};

/// How a server treats a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// How much a client may send. While a request is being answered, what follows it is read up to
    /// [`Limits::head_bytes`], and not beyond.
    pub limits: Limits,
    /// How responses are cut into writes.
    pub writes: WritePolicy,
    /// Requests on one connection before it is closed: `None` is as many as the client wants, 1 is none kept
    /// alive.
    pub requests: Option<NonZeroU32>,
    /// How it ends a connection.
    pub closing: Closing,
    /// How long a client may take.
    pub patience: Patience,
}

/// How a server ends a connection behind its last answer (`papers/w3c#connection-management`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Closing {
    /// Its own half first, and the other when the client has closed it, or has had [`Patience::linger`].
    #[default]
    Careful,
    /// Both halves at once. Requests that are still on their way then meet a reset, which destroys the answers that
    /// the client has not read yet.
    Naive,
}

impl Default for ServerConfig {
    /// As many requests as the client wants, each response one write.
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            writes: WritePolicy::default(),
            requests: None,
            closing: Closing::default(),
            patience: Patience::default(),
        }
    }
}

/// How long a client may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// From the opening, or the end of a response, to the first byte of a request. Default 75 s.
    pub idle: Duration,
    /// From the first byte of a head to its last, and between two arrivals of a body. Default 30 s.
    pub request: Duration,
    /// How fast a body must come in, behind its first [`Patience::request`]: each byte buys as much time as it takes at
    /// this rate, and never more than that patience. Default 500 bytes a second, as Apache's `mod_reqtimeout` has it.
    pub least_rate: Rate,
    /// From our end of the stream to the client's: what it still sends is thrown away, but not met by a reset
    /// that would destroy our last response on its way (`papers/w3c`, on closing). Default 2 s.
    pub linger: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(75),
            request: Duration::from_secs(30),
            least_rate: LEAST_RATE,
            linger: Duration::from_secs(2),
        }
    }
}

const LEAST_RATE: Rate = Rate::from_bits_per_second(500 * 8).expect("is not zero");
