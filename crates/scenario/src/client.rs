//! Behaviour of the client: visit, requests, connections.
//!
//! The messages are the protocol's.

use quantity::names::{self, UnknownName};
use wire::Bytes;

use crate::Protocol;

/// Behaviour of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    /// Size of each request with its headers, from 1 byte to 64 KiB. The papers use 256 bytes
    /// (`papers/heidemann-model#workloads`).
    pub request: Bytes,
    /// Whether a request may leave before the previous object has arrived.
    pub requests: Requests,
    /// Maximum number of concurrent connections, from 1 to 1000. More than one is for protocols that can open
    /// several ([`crate::Protocol::is_parallel`]); engines refuse it for others.
    pub parallel: u16,
    /// Whether the first request finds a connection (or T/TCP's and ARDP's cached state) from an earlier page.
    pub connection: Connection,
}

impl Client {
    /// Error of an engine whose protocol has one connection where several are given: the part that it cannot
    /// honour, and the remedy.
    pub fn refused_parallel(&self, protocol: Protocol) -> Option<(String, &'static str)> {
        let part = || format!("{} over {} concurrent connections", protocol.name(), self.parallel);
        (self.parallel > 1 && !protocol.is_parallel()).then(|| (part(), PARALLEL_REMEDY))
    }
}

/// Remedy for several connections that a protocol or an engine does not have.
pub const PARALLEL_REMEDY: &str = "use http10 or http11-parallel, or leave --parallel out";

impl Default for Client {
    /// Sequential requests of 256 bytes over one connection that is not open yet.
    fn default() -> Self {
        Self {
            request: Bytes::new(256),
            requests: Requests::Dependent,
            parallel: 1,
            connection: Connection::Cold,
        }
    }
}

/// Whether the client has seen the page before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Visit {
    /// Nothing cached: every object is transferred.
    #[default]
    First,
    /// Everything cached: every object is requested conditionally.
    Revalidate,
}

impl Visit {
    /// Every visit.
    pub const ALL: [Self; 2] = [Self::First, Self::Revalidate];

    /// The name on the command line and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Revalidate => "revalidate",
        }
    }

    /// The visit of that name.
    ///
    /// # Errors
    /// [`UnknownName`] for any other name.
    pub fn named(name: &str) -> Result<Self, UnknownName> {
        names::find("visit", name, &Self::ALL, Self::name)
    }
}

/// Condition under which a request may leave (`papers/heidemann-model#section-iii-b`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Requests {
    /// All immediately, as the model assumes.
    #[default]
    Independent,
    /// All when the first object, the document, is complete: "all image references are in the last segment of the
    /// first page" (`papers/heidemann-model#section-iv-a`).
    AfterDocument,
    /// Sequentially, as the papers' Perl client and our robot do: one more round trip for each object after
    /// the first.
    Dependent,
}

impl Requests {
    /// Every order.
    pub const ALL: [Self; 3] = [Self::Independent, Self::AfterDocument, Self::Dependent];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Independent => "independent",
            Self::AfterDocument => "after-document",
            Self::Dependent => "dependent",
        }
    }

    /// The order of that name.
    ///
    /// # Errors
    /// [`UnknownName`] for any other name.
    pub fn named(name: &str) -> Result<Self, UnknownName> {
        names::find("order of requests", name, &Self::ALL, Self::name)
    }
}

/// State that the first request encounters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Connection {
    /// No connection: a cache miss; it is opened, and its window starts small.
    #[default]
    Cold,
    /// An open connection with its window open: a cache hit.
    Warm,
}

impl Connection {
    /// Every state.
    pub const ALL: [Self; 2] = [Self::Cold, Self::Warm];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cold => "cold",
            Self::Warm => "warm",
        }
    }

    /// The state of that name.
    ///
    /// # Errors
    /// [`UnknownName`] for any other name.
    pub fn named(name: &str) -> Result<Self, UnknownName> {
        names::find("connection", name, &Self::ALL, Self::name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found() {
        assert!(Visit::ALL.into_iter().all(|visit| Visit::named(visit.name()) == Ok(visit)));
        assert!(Requests::ALL.into_iter().all(|requests| Requests::named(requests.name()) == Ok(requests)));
        assert!(
            Connection::ALL
                .into_iter()
                .all(|connection| Connection::named(connection.name()) == Ok(connection))
        );
    }
}
