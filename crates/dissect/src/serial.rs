//! Requests of one connection that follow one another: a pool of one connection, or a query for each row.

use wire::{Duration, Time};

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
    /// Adds an exchange that began at `at` and took `elapsed`, with the server's part and the path's.
    pub fn add(&mut self, at: Time, elapsed: Duration, [thinking, travelling]: [Duration; 2]) {
        if let Some(ended) = self.ended {
            self.has_overlapped |= at < ended;
            self.immediate += u64::from(at.since(ended) <= IMMEDIATE);
        }
        self.count += 1;
        self.total += elapsed;
        self.thinking += thinking;
        self.travelling += travelling;
        self.ended = Some(at + elapsed);
    }

    /// Returns whether nine in ten requests follow the response before immediately, and no two are in flight.
    pub const fn is_back_to_back(&self) -> bool {
        !self.has_overlapped && self.immediate * 10 >= self.count.saturating_sub(1) * 9
    }
}
