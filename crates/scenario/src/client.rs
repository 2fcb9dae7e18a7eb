//! What the client does: visit, requests, connections.
//!
//! Not how it speaks: that is the protocol.

use quantity::names::{self, Unknown};
use wire::Bytes;

use crate::Protocol;

/// What the client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    /// The size of each request, head and all, from 1 byte to 64 KiB. The papers use 256 bytes
    /// (`papers/heidemann-model#workloads`).
    pub request: Bytes,
    /// Whether a request may leave before the object before it has arrived.
    pub requests: Requests,
    /// Connections open at once, from 1 to 1000. More than one is for protocols that can open several
    /// ([`crate::Protocol::is_parallel`]); engines refuse it for others.
    pub parallel: u16,
    /// Whether the first request finds a connection (or T/TCP's and ARDP's cached state) from an earlier page.
    pub connection: Connection,
}

impl Client {
    /// The error of an engine whose protocol has one connection where several are given: the part it cannot honour, and
    /// the remedy.
    pub fn refused_parallel(&self, protocol: Protocol) -> Option<(String, &'static str)> {
        let part = || format!("{} over {} connections at once", protocol.name(), self.parallel);
        (self.parallel > 1 && !protocol.is_parallel()).then(|| (part(), PARALLEL_REMEDY))
    }
}

/// What to do about several connections that a protocol or an engine does not have.
pub const PARALLEL_REMEDY: &str = "use http10 or http11-parallel, or leave --parallel out";

impl Default for Client {
    /// Requests of 256 bytes, one after the other, over one connection that is not open yet.
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
    /// Nothing cached: every object comes whole.
    #[default]
    First,
    /// Everything cached: every object is asked for again, conditionally.
    Revalidate,
}

impl Visit {
    /// Every one.
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
    /// [`Unknown`] when there is none.
    pub fn named(name: &str) -> Result<Self, Unknown> {
        names::find("visit", name, &Self::ALL, Self::name)
    }
}

/// When a request may leave (`papers/heidemann-model#section-iii-b`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Requests {
    /// All at once, as the model assumes.
    #[default]
    Independent,
    /// One after the other, as the papers' Perl client and our robot do: one round trip more for each object
    /// after the first.
    Dependent,
}

impl Requests {
    /// Every one.
    pub const ALL: [Self; 2] = [Self::Independent, Self::Dependent];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Independent => "independent",
            Self::Dependent => "dependent",
        }
    }

    /// The order of that name.
    ///
    /// # Errors
    /// [`Unknown`] when there is none.
    pub fn named(name: &str) -> Result<Self, Unknown> {
        names::find("order of requests", name, &Self::ALL, Self::name)
    }
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

impl Connection {
    /// Every one.
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
    /// [`Unknown`] when there is none.
    pub fn named(name: &str) -> Result<Self, Unknown> {
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
