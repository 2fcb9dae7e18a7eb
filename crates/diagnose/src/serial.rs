//! Requests of one connection that follow one another: a pool of one connection, or a query for each row.

use wire::{Duration, Time};

use crate::account::Share;
use crate::cause::Cause;
use crate::report::exchange::ExchangeReport;

/// Totals of all exchanges of a connection, also of those that are not retained.
#[derive(Clone, Copy, Debug, Default)]
pub struct SerialRequests {
    /// Number of requests with complete responses.
    pub count: u64,
    /// Number of those that were sent immediately after the response before.
    pub immediate: u64,
    /// Whether any was sent before that response was complete.
    pub has_overlapped: bool,
    /// Total time of the exchanges.
    pub total: Duration,
    /// The server's part of it.
    pub thinking: Duration,
    /// The path's part of it.
    pub travelling: Duration,
    ended: Option<Time>,
}

/// Maximum time between a response and the next request that counts as immediate.
const IMMEDIATE: Duration = Duration::from_millis(1);

impl SerialRequests {
    pub(crate) fn add(&mut self, exchange: &ExchangeReport) {
        if let Some(ended) = self.ended {
            self.has_overlapped |= exchange.at < ended;
            self.immediate += u64::from(exchange.at.since(ended) <= IMMEDIATE);
        }
        self.count += 1;
        self.total += exchange.elapsed;
        self.thinking += exchange.account.of(Share::Stall(Cause::ServerThink));
        self.travelling += exchange.account.of(Share::RoundTrip);
        self.ended = Some(exchange.at + exchange.elapsed);
    }

    /// Returns whether nine in ten requests follow the response before immediately, and no two are in flight.
    pub const fn is_back_to_back(&self) -> bool {
        !self.has_overlapped && self.immediate * 10 >= self.count.saturating_sub(1) * 9
    }
}
