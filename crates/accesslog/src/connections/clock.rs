//! Resolution of the timestamps of a stretch of a log, which selects the counting method. It reads no clock.

use wire::Time;

use crate::Request;

use super::query::Query;
use super::second_counter::MAX_TIMEOUT_MS;

/// The unit of a stretch's times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Any time; requests within one millisecond are simultaneous.
    Milliseconds,
    /// All times are whole seconds, and many have a request: they can be [counted by the
    /// second](super::second_counter).
    Seconds,
}

/// Seconds per request up to which counting by the second pays: seconds without a request are counted, too.
const SECONDS_A_REQUEST: u64 = 4;
/// Last second after 1970 that fits the table of clients.
const LAST_SECOND: u64 = 1 << 31;

impl TimeUnit {
    /// Fastest unit for these requests, which are in order, under this query; the counts are the same.
    pub fn of<'a>(requests: impl Iterator<Item = &'a [Request]>, query: &Query) -> Self {
        let (mut count, mut first, mut last) = (0, None, Time::ZERO);
        for requests in requests {
            if !requests.iter().all(|request| request.time.as_nanos().is_multiple_of(SECOND)) {
                return Self::Milliseconds;
            }
            count += requests.len() as u64;
            first = first.or(requests.first().map(|request| request.time));
            last = requests.last().map_or(last, |request| request.time);
        }
        let seconds = last.since(first.unwrap_or(last)).as_nanos() / SECOND;
        let is_dense = seconds <= count * SECONDS_A_REQUEST;
        let is_near = last.as_nanos() < LAST_SECOND * SECOND;
        let is_short = query.longest().as_nanos() <= MAX_TIMEOUT_MS * 1_000_000;
        if is_dense && is_near && is_short { Self::Seconds } else { Self::Milliseconds }
    }
}

const SECOND: u64 = 1_000_000_000;

impl TimeUnit {
    /// Returns whether a counter with this clock can continue with these requests, which are in order.
    pub fn covers(self, requests: &[Request]) -> bool {
        let is_whole = |request: &Request| request.time.as_nanos().is_multiple_of(SECOND);
        let is_near = |last: &Request| last.time.as_nanos() < LAST_SECOND * SECOND;
        match self {
            Self::Milliseconds => true,
            Self::Seconds => requests.iter().all(is_whole) && requests.last().is_none_or(is_near),
        }
    }
}
