//! Stage 1, what to run: names, flags and TOML in; checked values with units out.
//!
//! A [`Scenario`] is a value: one page over one network, by one protocol, between two stacks. Every engine takes
//! the same one. Read in this order:
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`names`] | what names stand for, and what is said when there is no such name |
//! | [`network`] | round trip, rate, segment size; the papers' thirteen by name |
//! | [`page`] | the objects of a page and their sizes; the papers' pages by name |
//! | [`protocol`] | how the page is fetched |
//! | [`stack`] | how TCP behaves at both ends |
//! | [`value`] | the values of flags and TOML keys, exactly |
//!
//! What it is not: it runs nothing, reads no file and prints nothing. What TOML looks like stays in its own
//! module; the values here know no format.

pub mod names;
pub mod network;
pub mod page;
pub mod protocol;
pub mod stack;
pub mod value;

pub use network::Network;
pub use page::{Object, Page};
pub use protocol::Protocol;
pub use stack::Stack;

use wire::{Bytes, Duration, Seed};

/// One thing to run: the whole input of an engine.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The path between client and server.
    pub network: Network,
    /// What is fetched.
    pub page: Page,
    /// Whether the client has seen the page before.
    pub visit: Visit,
    /// How it is fetched.
    pub protocol: Protocol,
    /// How TCP behaves at both ends.
    pub stack: Stack,
    /// What the client does between one object and the next.
    pub client: Client,
    /// What the server does for each request.
    pub server: Server,
    /// How often, for engines whose results vary.
    pub runs: u32,
    /// What makes a run repeatable.
    pub seed: Seed,
}

/// Whether the client has seen the page before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Visit {
    /// Nothing cached: every object comes whole.
    #[default]
    First,
    /// Everything cached: every object is asked for again, conditionally.
    Revalidate,
}

impl Visit {
    /// The name on the command line and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Revalidate => "revalidate",
        }
    }
}

/// What the client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    /// The size of each request, head and all. The papers use 256 bytes (`papers/heidemann-model#workloads`).
    pub request: Bytes,
    /// Whether a request may leave before the object before it has arrived.
    pub requests: Requests,
    /// Connections open at once, at least 1. More than one is for protocols that open one per object.
    pub parallel: u16,
    /// Whether the first request finds a connection (or T/TCP's and ARDP's cached state) from an earlier page.
    pub connection: Connection,
}

/// When a request may leave (`papers/heidemann-model`, section III-B).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Requests {
    /// All at once, as the model assumes.
    #[default]
    Independent,
    /// One after the other, as the papers' Perl client and our robot do: one round trip more for each object
    /// after the first.
    Dependent,
}

/// What the first request finds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Connection {
    /// Nothing: a cache miss, the connection is opened and its window starts small.
    #[default]
    Cold,
    /// An open connection with its window open: a cache hit.
    Warm,
}

/// What the server does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Server {
    /// From the arrival of a request to the first byte of the answer.
    pub processing: Duration,
}
