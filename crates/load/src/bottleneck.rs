//! Bottleneck of each second of a run: the generator, the network, the server, or none; and the verdict on a run.
//!
//! It evaluates the record, and measures nothing. A load generator that was late, or whose threads had no CPU time left,
//! has measured itself; its latencies are not the server's.

use rustix::time::{ClockId, clock_gettime};
use wire::Duration;

use crate::attribution::{self, Attribution, Kind};
use crate::record::{Record, Second};

/// Bottleneck of a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bottleneck {
    /// Every response came in time.
    Nothing,
    /// The server left more requests without a response than before.
    Server,
    /// Datagrams dropped by this host's kernel.
    Network,
    /// Requests were sent late, or a thread was busy all the time.
    Generator,
}

impl Bottleneck {
    /// Every bottleneck, the worst last.
    pub const ALL: [Self; 4] = [Self::Nothing, Self::Server, Self::Network, Self::Generator];

    /// The name in tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Server => "server",
            Self::Network => "network",
            Self::Generator => "generator",
        }
    }
}

/// Share of requests that may be late by chance.
const LATE_SHARE: f64 = 0.01;
/// Share of a second beyond which a thread has no CPU time left.
const BUSY: f64 = 0.95;
/// Share of the requests due that a server may leave for the next second.
const LEFT_SHARE: f64 = 0.05;
/// Maximum number of late requests without significance.
const FEW: u64 = 10;

/// Bottleneck of this second.
pub fn limit(second: &Second) -> Bottleneck {
    let Second {
        due,
        late,
        responses,
        failed,
        bytes: _,
        intended: _,
        cpu_share,
        opened: _,
        open: _,
        dropped,
        worst,
    } = second;
    let done = responses + failed;
    let own = if is_late(*late, *due) || *cpu_share > BUSY {
        Bottleneck::Generator
    } else if *dropped > 0 {
        Bottleneck::Network
    } else if is_behind(*due, done) {
        Bottleneck::Server
    } else {
        Bottleneck::Nothing
    };
    own.max(*worst)
}

/// Whether a second left requests without a response.
fn is_behind(due: u64, done: u64) -> bool {
    due > done + FEW && (due - done) as f64 > LEFT_SHARE * due as f64
}

/// Whether any second left requests without a response, on time or not.
pub(crate) fn has_seconds_behind(record: &Record) -> bool {
    record.seconds.iter().any(|second| is_behind(second.due, second.responses + second.failed))
}

/// Whether this many late requests show that the generator is late. A single late wake-up of a thread delays all
/// objects of a page together.
fn is_late(late: u64, due: u64) -> bool {
    late as f64 > LATE_SHARE * due as f64 && (late > FEW || late * 2 > due)
}

/// Share of the requests due in a whole run that were sent late, from 0 to 1.
fn late_share(record: &Record) -> f64 {
    let [late, due] = late_and_due(record);
    late as f64 / due.max(1) as f64
}

/// Whether the generator was late repeatedly, though in each second too rarely to be significant.
pub(crate) fn is_late_throughout(record: &Record) -> bool {
    let [late, due] = late_and_due(record);
    is_late(late, due)
}

fn late_and_due(record: &Record) -> [u64; 2] {
    let sum = |count: fn(&Second) -> u64| record.seconds.iter().map(count).sum();
    [sum(|second| second.late), sum(|second| second.due)]
}

/// Maximum share of the mean latency that may be the generator's own.
const OWN_SHARE: f64 = 0.1;

/// Whether a run's mean latency is void: more than a tenth of it is the generator's own, which is as late in receiving
/// responses as in sending requests. The rule is relative: a millisecond matters for a response of a millisecond, but not for
/// one of a second.
pub fn is_void(record: &Record) -> bool {
    2.0 * record.lateness.mean() > OWN_SHARE * record.intended.mean()
}

/// The seconds of a run, without the last moment in which only responses arrive.
fn seconds_of(record: &Record) -> usize {
    const MOMENT_S: f64 = 0.1;
    let seconds = record.seconds.len();
    let is_moment = seconds > 1 && record.elapsed.as_secs_f64() < (seconds - 1) as f64 + MOMENT_S;
    if is_moment && record.elapsed > Duration::ZERO { seconds - 1 } else { seconds }
}

/// Number of seconds with this bottleneck.
pub(crate) fn limited_seconds(record: &Record, wanted: Bottleneck) -> usize {
    record.seconds.iter().filter(|second| limit(second) == wanted).count().min(seconds_of(record))
}

/// The seconds of a run in words.
pub(crate) fn count_seconds(record: &Record) -> String {
    match seconds_of(record) {
        1 => "1 second".to_owned(),
        seconds => format!("{seconds} seconds"),
    }
}

/// Whether the generator was the bottleneck in any second.
pub(crate) fn has_late_seconds(record: &Record) -> bool {
    limited_seconds(record, Bottleneck::Generator) > 0
}

/// The lateness of a generator in words.
pub(crate) fn late_in_words(record: &Record) -> String {
    const REMEDY: &str = "these are not the server's latencies; use more threads, or more hosts";
    match limited_seconds(record, Bottleneck::Generator) {
        0 => format!(
            "THE GENERATOR WAS THE BOTTLENECK: {:.1}% of the requests left more than a millisecond late, a few in each second; \
             {REMEDY}",
            100.0 * late_share(record)
        ),
        seconds => format!(
            "THE GENERATOR WAS THE BOTTLENECK in {seconds} of {}: requests left up to {:.0} us late (99.9%); {REMEDY}",
            count_seconds(record),
            lateness_us(record)
        ),
    }
}

fn lateness_us(record: &Record) -> f64 {
    record.lateness.value_at_quantile(0.999) as f64 / 1e3
}

/// The verdict on a run: the first line of its results.
pub fn verdict(record: &Record) -> String {
    verdict_of(record, &attribution::attribute(record, ""))
}

/// The verdict on a run with this bottleneck.
pub fn verdict_of(record: &Record, bottleneck: &Attribution) -> String {
    let Attribution { kind, sentence, .. } = bottleneck;
    let on_time = format!("requests left within {:.0} us of their schedule (99.9%)", lateness_us(record));
    let failed = failed(record);
    match (kind, failed.is_empty()) {
        (Kind::Generator | Kind::GeneratorSockets, _) => sentence.clone(),
        (_, true) => format!("{sentence}; {on_time}"),
        (Kind::Nothing | Kind::Users, false) => format!("{failed}; {on_time}"),
        (_, false) => format!("{failed}; {sentence}; {on_time}"),
    }
}

/// The failures of a run in words; empty if there are none.
fn failed(record: &Record) -> String {
    let failures = record.failures();
    if failures == 0 {
        return String::new();
    }
    let requests = record.responses() + failures;
    let share = 100.0 * record.failure_share();
    // A share must not be rounded to none, or to all.
    let share = match failures {
        _ if failures == requests => "100%".to_owned(),
        _ if share < 0.01 => "less than 0.01%".to_owned(),
        _ if share > 99.99 => "more than 99.99%".to_owned(),
        _ => format!("{share:.2}%"),
    };
    let kinds: Vec<_> =
        record.failure_counts.iter().map(|(reason, count)| format!("{count} {}", reason.name())).collect();
    let whole = if failures == requests { "EVERY REQUEST FAILED" } else { "REQUESTS FAILED" };
    format!("{whole}: {failures} of {requests}, {share} ({})", kinds.join(", "))
}

/// CPU time of the calling thread.
pub(crate) fn thread_cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or(0));
    seconds + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use wire::Duration;

    use super::*;
    use crate::record::{Channel, FailureReason};

    #[test]
    fn the_worst_of_several_bottlenecks_is_named() {
        let second = |due, late, responses, cpu_share, dropped| {
            limit(&Second { due, late, responses, cpu_share, dropped, ..Second::default() })
        };
        assert_eq!(second(1_000, 10, 1_000, 0.5, 0), Bottleneck::Nothing);
        assert_eq!(second(1_000, 11, 1_000, 0.5, 9), Bottleneck::Generator);
        // One late page of ten objects, and a generator that is always late.
        assert_eq!(second(118, 10, 118, 0.5, 0), Bottleneck::Nothing);
        assert_eq!(second(8, 5, 8, 0.5, 0), Bottleneck::Generator);
        assert_eq!(second(1_000, 0, 1_000, 0.96, 0), Bottleneck::Generator);
        assert_eq!(second(1_000, 0, 500, 0.5, 1), Bottleneck::Network);
        assert_eq!(second(1_000, 0, 949, 0.5, 0), Bottleneck::Server);
        assert_eq!(second(1_000, 0, 951, 0.5, 0), Bottleneck::Nothing);
        assert_eq!(second(5, 0, 0, 0.5, 0), Bottleneck::Nothing);
    }

    #[test]
    fn regress_a_few_late_pages_at_a_low_rate_are_not_a_bottleneck_and_many_are() {
        let run = |late: [u64; 20]| {
            let second = |late| Second { due: 118, late, responses: 118, ..Second::default() };
            verdict(&Record { seconds: late.map(second).into(), ..Record::default() })
        };
        let mut late = [0; 20];
        [late[3], late[8], late[12]] = [3, 2, 5];
        assert!(run(late).starts_with("no bottleneck in "), "{}", run(late));
        // Too few in each second to be significant, 2.5% in all.
        let always = run([3; 20]);
        assert!(always.starts_with("THE GENERATOR WAS THE BOTTLENECK: 2.5%"), "{always}");
    }

    #[test]
    fn regress_a_run_with_failures_never_has_the_verdict_of_no_bottleneck() {
        let second = Second { due: 30, responses: 20, failed: 10, ..Second::default() };
        let mut record = Record { seconds: vec![second], ..Record::default() };
        record.channels.insert(Channel::TcpClient, 20);
        record.failure_counts.insert(FailureReason::Status, 10);
        let reported = verdict(&record);
        assert!(
            reported.starts_with("REQUESTS FAILED: 10 of 30, 33.33% (10 status); requests left"),
            "{reported}"
        );
        record.channels.clear();
        let reported = verdict(&record);
        assert!(reported.starts_with("EVERY REQUEST FAILED: 10 of 10, 100% (10 status)"), "{reported}");
    }

    #[test]
    fn a_run_is_void_if_its_latency_is_the_generators_own() {
        let run = |lateness: Duration, took: Duration| {
            let mut record = Record::default();
            for number in 0..100 {
                let when = Duration::from_millis(number);
                record.due(when, lateness);
                record.count_response(when, 1, Channel::Udp, took, lateness + took);
            }
            record
        };
        let [late, fast, slow] = [50, 600, 100_000].map(Duration::from_micros);
        assert!(!is_void(&run(Duration::from_micros(20), fast)) && is_void(&run(late, fast)));
        assert!(!is_void(&run(late, slow)) && is_void(&run(slow, slow)) && !is_void(&Record::default()));
    }

    #[test]
    fn a_verdict_names_the_generator_first_if_it_was_the_bottleneck() {
        let seconds = vec![Second::default(), Second { due: 9, late: 9, ..Second::default() }];
        let record = Record { seconds, ..Record::default() };
        assert!(
            verdict(&record).starts_with("THE GENERATOR WAS THE BOTTLENECK in 1 of 2 seconds"),
            "{}",
            verdict(&record)
        );
    }
}
