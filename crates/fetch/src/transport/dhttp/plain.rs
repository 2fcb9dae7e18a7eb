//! Plain HTTP of a DHTTP client: one request on each connection.
//!
//! [`Http1`] is the transport; here is the time for which a connection may be silent.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU8;

use wire::{Duration, Time};

use crate::plan::Http1Config;
use crate::transport::http1::Http1;
use crate::transport::{ConnectionId, Endpoint, FromWire, Outcome, Progress, Request};

/// Exchanges over plain HTTP.
#[derive(Debug)]
pub(super) struct PlainExchanges {
    http1: Http1,
    /// Maximum idle time of a connection: a server that died, and whose reset was lost, sends nothing more.
    stall: Duration,
    /// Open connections, and the timeout of each.
    due: BTreeMap<ConnectionId, Time>,
}

impl PlainExchanges {
    pub(super) const fn new(config: Http1Config, stall: Duration) -> Self {
        // A request without a response is tried by DHTTP again.
        let http1 = Http1::new(Http1Config { tries: NonZeroU8::MIN, ..config });
        Self { http1, stall, due: BTreeMap::new() }
    }

    /// Opens a connection for a request. It requests `Connection: close`.
    pub(super) fn open(
        &mut self,
        now: Time,
        id: ConnectionId,
        request: &Request,
        outcomes: &mut VecDeque<Outcome>,
    ) {
        let mut request = request.clone();
        request.head.fields.push_checked(b"Connection", b"close");
        self.http1.request_on(now, id, request);
        self.settle(now, outcomes);
    }

    /// Handles an event of a connection.
    pub(super) fn handle(&mut self, now: Time, input: FromWire<'_>, outcomes: &mut VecDeque<Outcome>) {
        match input {
            FromWire::Connected(id) if self.http1.origin(id).is_some() => {
                self.due.insert(id, now + self.stall);
            }
            FromWire::Received(id, _) => {
                self.due.entry(id).and_modify(|due| *due = now + self.stall);
            }
            FromWire::EndOfStream(id) | FromWire::Broken(id, _) => self.forget(id),
            FromWire::Connected(_)
            | FromWire::Accepted(..)
            | FromWire::Datagram(..)
            | FromWire::Unreachable(_) => {}
        }
        self.http1.handle(now, input);
        self.settle(now, outcomes);
    }

    /// Moves what has happened to `outcomes`.
    pub(super) fn settle(&mut self, now: Time, outcomes: &mut VecDeque<Outcome>) {
        self.http1.settle(now);
        while let Some(outcome) = self.http1.take() {
            if let Outcome::Wire(crate::Wire::Close(id, _)) = &outcome {
                self.forget(*id);
            }
            outcomes.push_back(outcome);
        }
    }

    /// Closes the connection of an exchange.
    pub(super) fn close(&mut self, id: ConnectionId, outcomes: &mut VecDeque<Outcome>) {
        if self.http1.abort(id) {
            self.forget(id);
            outcomes.push_back(Outcome::Wire(crate::Wire::Close(id, crate::Ending::Reset)));
        }
    }

    /// Aborts all connections.
    pub(super) fn abort(&mut self, outcomes: &mut VecDeque<Outcome>) {
        self.http1.request(crate::transport::ToTransport::Abort);
        self.due = BTreeMap::new();
        outcomes.extend(std::iter::from_fn(|| self.http1.take()));
    }

    /// Server of a connection.
    pub(super) fn origin(&self, id: ConnectionId) -> Option<Endpoint> {
        self.http1.origin(id)
    }

    /// The connection that is silent for too long first, and when that is.
    pub(super) fn next_timeout(&self) -> Option<(ConnectionId, Time)> {
        self.due.iter().min_by_key(|(_, due)| **due).map(|(id, due)| (*id, *due))
    }

    /// Time at which a connection is closed that its server does not close.
    pub(super) fn linger(&self) -> Option<Time> {
        match self.http1.poll() {
            Progress::Timeout(time) => time,
            Progress::Some => None,
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.http1.is_idle()
    }

    fn forget(&mut self, id: ConnectionId) {
        self.due.remove(&id);
    }
}
