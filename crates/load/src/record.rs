//! Results of a load: every response and every failure, second by second.
//!
//! Nothing is judged here: [`crate::second`] names the bottleneck of a second. Latencies are histograms with three digits
//! (the seconds' with two), which merge without loss.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use wire::Duration;

use crate::evidence::Evidence;
use crate::second::{MAX_NANOS, Second, limit};

/// Channel of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Channel {
    /// In a datagram.
    Udp,
    /// On a connection that the server opened.
    TcpOpened,
    /// On a connection of the client's.
    TcpClient,
    /// On a connection of QUIC.
    Quic,
    /// On a QUIC connection, requested before its handshake was complete (0-RTT).
    QuicEarly,
}

impl Channel {
    /// Every channel.
    pub const ALL: [Self; 5] = [Self::Udp, Self::TcpOpened, Self::TcpClient, Self::Quic, Self::QuicEarly];

    /// The name in tables and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::TcpOpened => "tcp-opened",
            Self::TcpClient => "tcp-client",
            Self::Quic => "quic",
            Self::QuicEarly => "quic-0rtt",
        }
    }
}

/// Reason why a response is missing or wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailureReason {
    /// No connection was established.
    Refused,
    /// The server closed the connection before the response was complete.
    Closed,
    /// The response was invalid.
    Garbage,
    /// Its status does not count as success.
    Status,
    /// A response of another length than the plan's file.
    Size,
    /// No response before the timeout.
    Timeout,
    /// No free socket or port on this host.
    Exhausted,
}

impl FailureReason {
    /// Every kind.
    pub const ALL: [Self; 7] = [
        Self::Refused,
        Self::Closed,
        Self::Garbage,
        Self::Status,
        Self::Size,
        Self::Timeout,
        Self::Exhausted,
    ];

    /// The name in tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Closed => "closed",
            Self::Garbage => "garbage",
            Self::Status => "status",
            Self::Size => "size",
            Self::Timeout => "timeout",
            Self::Exhausted => "exhausted",
        }
    }
}

/// Times in nanoseconds.
pub type Latencies = Histogram<u64>;

/// Results of a run, or of a part of it.
#[derive(Clone, Debug)]
pub struct Record {
    /// Start time, since 1970; of several parts, the first.
    pub began: Duration,
    /// The seconds, from the first request on.
    pub seconds: Vec<Second>,
    /// Service times: from when requests were sent, in nanoseconds.
    pub experienced: Latencies,
    /// Response times: from when they were due, in nanoseconds.
    pub intended: Latencies,
    /// Lateness of the generator in sending, in nanoseconds.
    pub lateness: Latencies,
    /// Responses by channel.
    pub channels: BTreeMap<Channel, u64>,
    /// Failures by kind.
    pub failure_counts: BTreeMap<FailureReason, u64>,
    /// Requests that were retried, because a kept-alive connection turned out to be closed.
    pub retries: u64,
    /// Connections that users opened, and that servers opened to them.
    pub connections: u64,
    /// Time from the first request to the last response, and at least the time of the schedule.
    pub elapsed: Duration,
    /// Responses by status, successful or not.
    pub statuses: BTreeMap<u16, u64>,
    /// Results of the single requests of a list; empty if there is only one, or more than the maximum. Not in a log.
    pub requests: Vec<RequestStats>,
    /// Time of an interruption, counted from the start. Requests in flight at that time are neither among the
    /// responses nor among the failures.
    pub cut: Option<Duration>,
    /// Evidence of what limited the run.
    pub evidence: Evidence,
}

impl Default for Record {
    fn default() -> Self {
        let latencies = || Histogram::new_with_bounds(1, MAX_NANOS, 3).expect("the bounds are in order");
        Self {
            began: Duration::ZERO,
            seconds: Vec::new(),
            experienced: latencies(),
            intended: latencies(),
            lateness: latencies(),
            channels: BTreeMap::new(),
            failure_counts: BTreeMap::new(),
            retries: 0,
            connections: 0,
            elapsed: Duration::ZERO,
            statuses: BTreeMap::new(),
            requests: Vec::new(),
            cut: None,
            evidence: Evidence::default(),
        }
    }
}

/// The responses to one request of a list.
#[derive(Clone, Debug)]
pub struct RequestStats {
    /// Successes.
    pub responses: u64,
    /// Failures.
    pub failed: u64,
    /// Response times from when it was due, in nanoseconds.
    pub intended: Histogram<u32>,
}

impl Default for RequestStats {
    fn default() -> Self {
        Self { responses: 0, failed: 0, intended: Second::default().intended }
    }
}

impl Record {
    /// A record with separate results for this number of requests.
    pub(crate) fn with_separate_results(requests: usize) -> Self {
        Self { requests: vec![RequestStats::default(); requests], ..Self::default() }
    }

    /// Counts the status of a response.
    pub(crate) fn status(&mut self, status: u16) {
        *self.statuses.entry(status).or_default() += 1;
    }

    /// Counts a success of one of the separate requests.
    pub(crate) fn count_separate_response(&mut self, number: u32, intended: Duration) {
        if let Some(request) = self.requests.get_mut(number as usize) {
            request.responses += 1;
            request.intended.saturating_record(intended.as_nanos());
        }
    }

    /// Counts a failure of one of the separate requests.
    pub(crate) fn failed_one(&mut self, number: u32) {
        if let Some(request) = self.requests.get_mut(number as usize) {
            request.failed += 1;
        }
    }

    /// Successes per elapsed second.
    pub fn responses_per_second(&self) -> f64 {
        let elapsed = self.elapsed.as_secs_f64();
        if elapsed > 0.0 { self.responses() as f64 / elapsed } else { 0.0 }
    }

    /// The share of requests that failed, from 0 to 1; 0 without requests.
    pub fn failure_share(&self) -> f64 {
        self.failures() as f64 / (self.responses() + self.failures()).max(1) as f64
    }

    /// The second of this time; earlier ones exist, too.
    pub(crate) fn second(&mut self, since_beginning: Duration) -> &mut Second {
        let number = usize::try_from(since_beginning.as_nanos() / 1_000_000_000).unwrap_or(usize::MAX);
        if self.seconds.len() <= number {
            self.seconds.resize_with(number + 1, Second::default);
        }
        &mut self.seconds[number]
    }

    /// Counts a request that was due then, with the generator's lateness.
    pub(crate) fn due(&mut self, when: Duration, lateness: Duration) {
        self.lateness.saturating_record(lateness.as_nanos());
        let second = self.second(when);
        second.due += 1;
        second.late += u64::from(lateness > LATE);
    }

    /// Counts a complete response.
    pub(crate) fn count_response(
        &mut self,
        when: Duration,
        bytes: u64,
        channel: Channel,
        experienced: Duration,
        intended: Duration,
    ) {
        self.experienced.saturating_record(experienced.as_nanos());
        self.intended.saturating_record(intended.as_nanos());
        *self.channels.entry(channel).or_default() += 1;
        let second = self.second(when);
        second.responses += 1;
        second.bytes += bytes;
        second.intended.saturating_record(intended.as_nanos());
    }

    /// Counts a failed request.
    pub(crate) fn failed(&mut self, when: Duration, reason: FailureReason) {
        *self.failure_counts.entry(reason).or_default() += 1;
        self.second(when).failed += 1;
    }

    /// Number of responses.
    pub fn responses(&self) -> u64 {
        self.channels.values().sum()
    }

    /// Number of failures.
    pub fn failures(&self) -> u64 {
        self.failure_counts.values().sum()
    }

    /// Adds the results of another generator with its shard of the plan. A second in which any of them was the
    /// bottleneck stays one.
    pub fn join(&mut self, mut other: Self) {
        for second in self.seconds.iter_mut().chain(&mut other.seconds) {
            second.worst = limit(second);
        }
        self.merge(other);
    }

    /// Adds the results of another part of the same run.
    pub(crate) fn merge(&mut self, other: Self) {
        let Self {
            began,
            seconds,
            experienced,
            intended,
            lateness,
            channels,
            failure_counts,
            retries,
            connections,
            elapsed,
            statuses,
            requests,
            cut,
            evidence,
        } = other;
        // A thread's part does not know when the run began.
        self.began = match (self.began, began) {
            (Duration::ZERO, known) | (known, Duration::ZERO) => known,
            (one, other) => one.min(other),
        };
        if self.seconds.len() < seconds.len() {
            self.seconds.resize_with(seconds.len(), Second::default);
        }
        for (own, added) in self.seconds.iter_mut().zip(seconds) {
            own.add(added);
        }
        for (own, added) in [
            (&mut self.experienced, experienced),
            (&mut self.intended, intended),
            (&mut self.lateness, lateness),
        ] {
            own.add(added).expect("all of them have the same bounds");
        }
        for (channel, count) in channels {
            *self.channels.entry(channel).or_default() += count;
        }
        for (reason, count) in failure_counts {
            *self.failure_counts.entry(reason).or_default() += count;
        }
        for (status, count) in statuses {
            *self.statuses.entry(status).or_default() += count;
        }
        if self.requests.len() < requests.len() {
            self.requests.resize_with(requests.len(), RequestStats::default);
        }
        for (own, added) in self.requests.iter_mut().zip(requests) {
            let RequestStats { responses, failed, intended } = added;
            own.responses += responses;
            own.failed += failed;
            own.intended.add(intended).expect("all of them have the same bounds");
        }
        self.retries += retries;
        self.connections += connections;
        self.elapsed = self.elapsed.max(elapsed);
        self.cut = self.cut.into_iter().chain(cut).min();
        self.evidence.merge(evidence);
    }
}

/// Minimum lateness that counts as late.
pub const LATE: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::second::Bottleneck;

    #[test]
    fn a_generator_that_was_the_bottleneck_is_not_averaged_away() {
        let part = |late| Record {
            seconds: vec![Second { due: 1_000, late, responses: 1_000, ..Second::default() }],
            ..Record::default()
        };
        let mut whole = part(20);
        for _ in 0..9 {
            whole.join(part(0));
        }
        assert_eq!((whole.seconds[0].due, limit(&whole.seconds[0])), (10_000, Bottleneck::Generator));
    }

    #[test]
    fn regress_a_rate_is_per_elapsed_time_not_per_started_second() {
        let mut record = Record { elapsed: Duration::from_millis(5_001), ..Record::default() };
        for number in 0..20_000 {
            let when = Duration::from_nanos(number * 250_050);
            record.count_response(when, 1, Channel::TcpClient, Duration::ZERO, Duration::ZERO);
        }
        assert_eq!(record.seconds.len(), 6);
        assert!((record.responses_per_second() - 3_999.2).abs() < 0.1, "{}", record.responses_per_second());
    }

    #[test]
    fn parts_of_a_run_merge_without_loss() {
        let part = |millis: u64| {
            let mut record = Record::default();
            let (when, took) = (Duration::from_millis(millis), Duration::from_millis(millis));
            record.due(when, Duration::from_millis(millis / 1_000));
            record.count_response(when, 10, Channel::Udp, took, took + took);
            record.failed(when, FailureReason::Timeout);
            record
        };
        let mut whole = part(500);
        whole.merge(part(2_500));
        assert_eq!((whole.responses(), whole.failures(), whole.seconds.len()), (2, 2, 3));
        let responses: Vec<u64> = whole.seconds.iter().map(|second| second.responses).collect();
        assert_eq!(responses, [1, 0, 1]);
        assert_eq!(whole.seconds[2].late, 1);
        assert_eq!(whole.intended.len(), 2);
        assert!(whole.intended.max() >= 5_000_000_000 - 5_000_000);
    }
}
