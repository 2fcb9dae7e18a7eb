//! Exchanges of one connection: requests that follow one another (a pool of one connection, or a query for each row), and polls.

use wire::{Duration, Time};

/// Totals of all exchanges of a connection, also of those that are not retained.
#[derive(Clone, Debug, Default)]
pub struct SerialRequests {
    /// Number of requests with complete responses.
    pub count: u64,
    /// Time of the client between a response and the next request.
    pub paused: Duration,
    /// Whether any was sent before that response was complete.
    pub has_overlapped: bool,
    /// Total time of the exchanges.
    pub total: Duration,
    /// The server's part of it.
    pub thinking: Duration,
    /// The path's part of it.
    pub travelling: Duration,
    ended: Option<Time>,
    /// Polls, and exchanges that were as long: the method and the path, when it began, its time, whether nothing had happened.
    held: Vec<(String, Time, Duration, bool)>,
}

/// Maximum share of the client's pauses: one that has the next request ready needs no more to read the response.
const MAX_PAUSES: u64 = 4;
/// Minimum time for which a server holds a request until an event.
const HELD: Duration = Duration::from_secs(1);
/// Minimum time that may be reported as the server's.
const SLOW: Duration = Duration::from_millis(30);
/// Limit on the memory of one connection.
const MAX_HELD: usize = 32;

impl SerialRequests {
    /// Adds an exchange that began at `at` and took `elapsed`, with the server's part and the path's.
    pub fn add(&mut self, at: Time, elapsed: Duration, [thinking, travelling]: [Duration; 2]) {
        if let Some(ended) = self.ended {
            self.has_overlapped |= at < ended;
            self.paused += at.since(ended);
        }
        self.count += 1;
        self.total += elapsed;
        self.thinking += thinking;
        self.travelling += travelling;
        self.ended = Some(at + elapsed);
    }

    /// Adds a turn of a protocol of which no request is `read`, with the time that its server took.
    pub fn turn(&mut self, read: u64, at: Time, [elapsed, thinking]: [Duration; 2]) {
        if read == 0 {
            self.add(at, elapsed, [thinking, elapsed.saturating_sub(thinking)]);
        }
    }

    /// Records an exchange of HTTP: a server that responds to a GET with 204 (No Content) after a second or more had held it until an
    /// event, and none came (RFC 6202, section 2).
    pub fn record(&mut self, request: &str, status: Option<u16>, at: Time, elapsed: Duration) {
        let is_over = status == Some(204) && elapsed >= HELD && request.starts_with("GET ");
        if self.held.len() < MAX_HELD && elapsed >= SLOW {
            let path = request.split_once('?').map_or(request, |(path, _)| path);
            self.held.push((path.to_owned(), at, elapsed, is_over));
        }
    }

    /// Returns whether `at` is within an exchange of a path that is polled: its other responses waited for events.
    pub fn is_polled(&self, at: Time) -> bool {
        let within =
            self.held.iter().find(|(_, began, elapsed, _)| (*began..=*began + *elapsed).contains(&at));
        within
            .is_some_and(|(path, ..)| self.held.iter().any(|(other, .., is_over)| *is_over && other == path))
    }

    /// Returns whether requests follow the responses before without long pauses, and no two are in flight.
    pub fn is_back_to_back(&self) -> bool {
        !self.has_overlapped && self.paused <= self.total / MAX_PAUSES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn responses_of_a_path_that_is_polled_waited_for_events() {
        let mut exchanges = SerialRequests::default();
        let mut record = |request, status, began, took| {
            exchanges.record(request, Some(status), at(began), Duration::from_millis(took));
        };
        record("GET /poll?since=1", 200, 0, 640);
        record("GET /poll?since=2", 204, 700, 1_000);
        record("GET /report", 200, 2_000, 800);
        record("POST /poll", 200, 3_000, 800);
        let is_polled = |millis| exchanges.is_polled(at(millis));
        assert!(is_polled(10) && is_polled(1_500));
        assert!(!is_polled(2_500) && !is_polled(3_500), "another path, another method");
        let mut quick = SerialRequests::default();
        quick.record("GET /ping", Some(204), at(0), Duration::from_millis(300));
        assert!(!quick.is_polled(at(100)), "no wait of a poll");
    }

    #[test]
    fn pauses_of_a_client_with_a_queue_of_requests_are_short() {
        let of = |pause: u64| {
            let mut exchanges = SerialRequests::default();
            let took = Duration::from_millis(50);
            (0..20).for_each(|number| exchanges.add(at(number * (50 + pause)), took, [took, Duration::ZERO]));
            exchanges.is_back_to_back()
        };
        assert!(of(0) && of(13));
        assert!(!of(14), "fewer pauses than exchanges");
    }
}
