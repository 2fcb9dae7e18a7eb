//! What came of a load: every answer and every failure, second by second.
//!
//! Not a judgement: what limited a second is said by [`crate::audit`]. Latencies are histograms with three digits (the
//! seconds' with two), which merge without loss.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use wire::Duration;

use crate::audit::{Limit, limit};

/// How an answer came.
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
    /// On one of QUIC, asked before its handshake was over (0-RTT).
    QuicEarly,
}

impl Channel {
    /// Every one.
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

/// Why an answer did not come, or not as it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trouble {
    /// No connection came about.
    Refused,
    /// The server ended the connection before the answer was whole.
    Closed,
    /// It was no answer.
    Garbage,
    /// It was a response with a status that is no success.
    Status,
    /// It had another length than the plan's file.
    Size,
    /// It did not come in time.
    Timeout,
    /// This machine had no socket or port left.
    Exhausted,
}

impl Trouble {
    /// Every one.
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

/// One second of a run.
#[derive(Clone, Debug)]
pub struct Second {
    /// Requests that were due in it.
    pub due: u64,
    /// Of these, how many the generator came to more than a millisecond late.
    pub late: u64,
    /// Answers that became whole in it.
    pub answered: u64,
    /// Requests that failed in it.
    pub failed: u64,
    /// Bytes of bodies that came in answers.
    pub bytes: u64,
    /// The answers' times from when they were due, in nanoseconds.
    pub intended: Histogram<u32>,
    /// The largest share that a thread of the generator had of a processor, from 0 to 1.
    pub processor: f64,
    /// Connections that were opened in it.
    pub opened: u64,
    /// The most that were open at once in it: of each thread, added up.
    pub open: u64,
    /// Datagrams that this machine's kernel threw away in it.
    pub dropped: u64,
    /// What limited the worst of the generators whose seconds these are.
    pub worst: Limit,
}

impl Default for Second {
    fn default() -> Self {
        Self {
            due: 0,
            late: 0,
            answered: 0,
            failed: 0,
            bytes: 0,
            intended: Histogram::new_with_bounds(1, MOST_NANOS, 2).expect("the bounds are in order"),
            processor: 0.0,
            opened: 0,
            open: 0,
            dropped: 0,
            worst: Limit::Nothing,
        }
    }
}

impl Second {
    /// Adds the same second of another part of the run.
    pub(crate) fn add(&mut self, other: Self) {
        let Self { due, late, answered, failed, bytes, intended, processor, opened, open, dropped, worst } =
            other;
        self.due += due;
        self.late += late;
        self.answered += answered;
        self.failed += failed;
        self.bytes += bytes;
        self.intended.add(intended).expect("all of them have the same bounds");
        self.processor = self.processor.max(processor);
        self.opened += opened;
        self.open += open;
        self.dropped += dropped;
        self.worst = self.worst.max(worst);
    }
}

/// Times in nanoseconds.
pub type Latencies = Histogram<u64>;

/// An hour, in nanoseconds: nobody waits longer.
const MOST_NANOS: u64 = 3_600_000_000_000;

/// Everything that came of a run, or of a part of it.
#[derive(Clone, Debug)]
pub struct Record {
    /// When it began, since 1970; of several parts, the first.
    pub began: Duration,
    /// The seconds, from the first request on.
    pub seconds: Vec<Second>,
    /// From when an answer was asked for, in nanoseconds.
    pub experienced: Latencies,
    /// From when it was to be asked for, in nanoseconds.
    pub intended: Latencies,
    /// How late the generator came to what was due, in nanoseconds.
    pub lateness: Latencies,
    /// Answers by the way they came.
    pub channels: BTreeMap<Channel, u64>,
    /// Failures by their kind.
    pub troubles: BTreeMap<Trouble, u64>,
    /// Requests that were asked again, because a kept connection turned out to have been closed.
    pub again: u64,
    /// Connections that users opened, and that servers opened to them.
    pub connections: u64,
    /// From the first request to the last response, and at least the time of the schedule.
    pub elapsed: Duration,
    /// Responses by their status, whether it is a success or not.
    pub statuses: BTreeMap<u16, u64>,
    /// The requests of a list, told apart; empty where there is only one, or more than a run tells apart. Not in a log.
    pub requests: Vec<OfRequest>,
    /// When it was ended before its time, counted from its beginning; what was under way then and did not come is neither among
    /// the answers nor among the failures.
    pub cut: Option<Duration>,
}

impl Default for Record {
    fn default() -> Self {
        let latencies = || Histogram::new_with_bounds(1, MOST_NANOS, 3).expect("the bounds are in order");
        Self {
            began: Duration::ZERO,
            seconds: Vec::new(),
            experienced: latencies(),
            intended: latencies(),
            lateness: latencies(),
            channels: BTreeMap::new(),
            troubles: BTreeMap::new(),
            again: 0,
            connections: 0,
            elapsed: Duration::ZERO,
            statuses: BTreeMap::new(),
            requests: Vec::new(),
            cut: None,
        }
    }
}

/// The responses to one request of a list.
#[derive(Clone, Debug)]
pub struct OfRequest {
    /// Successes.
    pub answered: u64,
    /// Failures.
    pub failed: u64,
    /// From when it was due, in nanoseconds.
    pub intended: Histogram<u32>,
}

impl Default for OfRequest {
    fn default() -> Self {
        Self { answered: 0, failed: 0, intended: Second::default().intended }
    }
}

impl Record {
    /// A record in which so many requests are told apart.
    pub(crate) fn telling_apart(requests: usize) -> Self {
        Self { requests: vec![OfRequest::default(); requests], ..Self::default() }
    }

    /// A response with this status has come.
    pub(crate) fn status(&mut self, status: u16) {
        *self.statuses.entry(status).or_default() += 1;
    }

    /// One of the requests told apart succeeded.
    pub(crate) fn answered_one(&mut self, number: u32, intended: Duration) {
        if let Some(request) = self.requests.get_mut(number as usize) {
            request.answered += 1;
            request.intended.saturating_record(intended.as_nanos());
        }
    }

    /// One of the requests told apart failed.
    pub(crate) fn failed_one(&mut self, number: u32) {
        if let Some(request) = self.requests.get_mut(number as usize) {
            request.failed += 1;
        }
    }

    /// Successes for each second that elapsed.
    pub fn answers_per_second(&self) -> f64 {
        let elapsed = self.elapsed.as_secs_f64();
        if elapsed > 0.0 { self.answers() as f64 / elapsed } else { 0.0 }
    }

    /// The share of requests that failed, from 0 to 1; of no requests, 0.
    pub fn failure_share(&self) -> f64 {
        self.failures() as f64 / (self.answers() + self.failures()).max(1) as f64
    }

    /// The second with this number; those before it are there, too.
    pub(crate) fn second(&mut self, since_beginning: Duration) -> &mut Second {
        let number = usize::try_from(since_beginning.as_nanos() / 1_000_000_000).unwrap_or(usize::MAX);
        if self.seconds.len() <= number {
            self.seconds.resize_with(number + 1, Second::default);
        }
        &mut self.seconds[number]
    }

    /// Something was due then, and the generator came to it so late.
    pub(crate) fn due(&mut self, when: Duration, lateness: Duration) {
        self.lateness.saturating_record(lateness.as_nanos());
        let second = self.second(when);
        second.due += 1;
        second.late += u64::from(lateness > LATE);
    }

    /// An answer is whole.
    pub(crate) fn answered(
        &mut self,
        when: Duration,
        bytes: u64,
        way: Channel,
        experienced: Duration,
        intended: Duration,
    ) {
        self.experienced.saturating_record(experienced.as_nanos());
        self.intended.saturating_record(intended.as_nanos());
        *self.channels.entry(way).or_default() += 1;
        let second = self.second(when);
        second.answered += 1;
        second.bytes += bytes;
        second.intended.saturating_record(intended.as_nanos());
    }

    /// A request failed.
    pub(crate) fn failed(&mut self, when: Duration, trouble: Trouble) {
        *self.troubles.entry(trouble).or_default() += 1;
        self.second(when).failed += 1;
    }

    /// Answers in all.
    pub fn answers(&self) -> u64 {
        self.channels.values().sum()
    }

    /// Failures in all.
    pub fn failures(&self) -> u64 {
        self.troubles.values().sum()
    }

    /// Adds what another generator came to with its part of the plan. A second in which one of them was the limit stays one,
    /// however many others there are.
    pub fn join(&mut self, mut other: Self) {
        for second in self.seconds.iter_mut().chain(&mut other.seconds) {
            second.worst = limit(second);
        }
        self.merge(other);
    }

    /// Adds what another part of the same run came to.
    pub(crate) fn merge(&mut self, other: Self) {
        let Self {
            began,
            seconds,
            experienced,
            intended,
            lateness,
            channels,
            troubles,
            again,
            connections,
            elapsed,
            statuses,
            requests,
            cut,
        } = other;
        // A thread's part does not know when the run began.
        self.began = match (self.began, began) {
            (Duration::ZERO, known) | (known, Duration::ZERO) => known,
            (one, other) => one.min(other),
        };
        if self.seconds.len() < seconds.len() {
            self.seconds.resize_with(seconds.len(), Second::default);
        }
        for (ours, theirs) in self.seconds.iter_mut().zip(seconds) {
            ours.add(theirs);
        }
        for (ours, theirs) in [
            (&mut self.experienced, experienced),
            (&mut self.intended, intended),
            (&mut self.lateness, lateness),
        ] {
            ours.add(theirs).expect("all of them have the same bounds");
        }
        for (way, count) in channels {
            *self.channels.entry(way).or_default() += count;
        }
        for (trouble, count) in troubles {
            *self.troubles.entry(trouble).or_default() += count;
        }
        for (status, count) in statuses {
            *self.statuses.entry(status).or_default() += count;
        }
        if self.requests.len() < requests.len() {
            self.requests.resize_with(requests.len(), OfRequest::default);
        }
        for (ours, theirs) in self.requests.iter_mut().zip(requests) {
            let OfRequest { answered, failed, intended } = theirs;
            ours.answered += answered;
            ours.failed += failed;
            ours.intended.add(intended).expect("all of them have the same bounds");
        }
        self.again += again;
        self.connections += connections;
        self.elapsed = self.elapsed.max(elapsed);
        self.cut = self.cut.into_iter().chain(cut).min();
    }
}

/// Who comes later than this to what is due is late.
pub const LATE: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generator_that_was_the_limit_is_not_outvoted() {
        let part = |late| Record {
            seconds: vec![Second { due: 1_000, late, answered: 1_000, ..Second::default() }],
            ..Record::default()
        };
        let mut whole = part(20);
        for _ in 0..9 {
            whole.join(part(0));
        }
        assert_eq!((whole.seconds[0].due, limit(&whole.seconds[0])), (10_000, Limit::Generator));
    }

    #[test]
    fn regress_a_rate_is_of_the_time_that_elapsed_not_of_the_seconds_that_were_touched() {
        let mut record = Record { elapsed: Duration::from_millis(5_001), ..Record::default() };
        for number in 0..20_000 {
            let when = Duration::from_nanos(number * 250_050);
            record.answered(when, 1, Channel::TcpClient, Duration::ZERO, Duration::ZERO);
        }
        assert_eq!(record.seconds.len(), 6);
        assert!((record.answers_per_second() - 3_999.2).abs() < 0.1, "{}", record.answers_per_second());
    }

    #[test]
    fn parts_of_a_run_merge_without_loss() {
        let part = |millis: u64| {
            let mut record = Record::default();
            let (when, took) = (Duration::from_millis(millis), Duration::from_millis(millis));
            record.due(when, Duration::from_millis(millis / 1_000));
            record.answered(when, 10, Channel::Udp, took, took + took);
            record.failed(when, Trouble::Timeout);
            record
        };
        let mut whole = part(500);
        whole.merge(part(2_500));
        assert_eq!((whole.answers(), whole.failures(), whole.seconds.len()), (2, 2, 3));
        let answered: Vec<u64> = whole.seconds.iter().map(|second| second.answered).collect();
        assert_eq!(answered, [1, 0, 1]);
        assert_eq!(whole.seconds[2].late, 1);
        assert_eq!(whole.intended.len(), 2);
        assert!(whole.intended.max() >= 5_000_000_000 - 5_000_000);
    }
}
