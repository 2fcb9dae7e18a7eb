//! What limited each second of a run: the generator, the network, the server, or nothing.
//!
//! Not a measurement: it looks at what was recorded. A load generator that was late, or whose threads had no processor left,
//! has measured itself; its latencies are not the server's.

use rustix::time::{ClockId, clock_gettime};
use wire::Duration;

use crate::record::{Record, Second};

/// What stood in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limit {
    /// Everything came as it was due.
    Nothing,
    /// The server left more unanswered than before.
    Server,
    /// This machine's kernel threw datagrams away.
    Network,
    /// Requests were sent late, or a thread was busy all the time.
    Generator,
}

impl Limit {
    /// Every one, the worst last.
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

/// Of a hundred requests so many may be late by chance.
const LATE_SHARE: f64 = 0.01;
/// A thread that is busy for more of a second has nothing left.
const BUSY: f64 = 0.95;
/// The share of what was due that a server may leave for the next second.
const LEFT_SHARE: f64 = 0.05;
/// So few are no sign of anything.
const FEW: u64 = 10;

/// What limited this second.
pub fn limit(second: &Second) -> Limit {
    let Second {
        due,
        late,
        answered,
        failed,
        bytes: _,
        intended: _,
        processor,
        opened: _,
        open: _,
        dropped,
        worst,
    } = second;
    let done = answered + failed;
    let own = if is_late(*late, *due) || *processor > BUSY {
        Limit::Generator
    } else if *dropped > 0 {
        Limit::Network
    } else if *due > done + FEW && (*due - done) as f64 > LEFT_SHARE * *due as f64 {
        Limit::Server
    } else {
        Limit::Nothing
    };
    own.max(*worst)
}

/// Whether so many of what was due say that the generator is late, and not that a thread was woken late once: that is all
/// objects of a page at a time.
fn is_late(late: u64, due: u64) -> bool {
    late as f64 > LATE_SHARE * due as f64 && (late > FEW || late * 2 > due)
}

/// How much of what was due in a whole run the generator came to late, from 0 to 1.
fn late_share(record: &Record) -> f64 {
    let [late, due] = late_and_due(record);
    late as f64 / due.max(1) as f64
}

/// Whether it was late again and again, though in each second too rarely to say so.
fn is_late_throughout(record: &Record) -> bool {
    let [late, due] = late_and_due(record);
    is_late(late, due)
}

fn late_and_due(record: &Record) -> [u64; 2] {
    let sum = |of: fn(&Second) -> u64| record.seconds.iter().map(of).sum();
    [sum(|second| second.late), sum(|second| second.due)]
}

/// How much of the mean latency may be the generator's own.
const OWN_SHARE: f64 = 0.1;

/// Whether a run's mean latency says nothing of its server: more than a tenth of it is the generator's own, which came as late to
/// answers as it came to what was due. It holds at any rate: late by a millisecond is much for an answer of a millisecond,
/// and nothing for one of a second.
pub fn is_void(record: &Record) -> bool {
    2.0 * record.lateness.mean() > OWN_SHARE * record.intended.mean()
}

/// The seconds of a run; the moment in which the last responses come is none.
fn seconds_of(record: &Record) -> usize {
    const MOMENT_S: f64 = 0.1;
    let touched = record.seconds.len();
    let is_moment = touched > 1 && record.elapsed.as_secs_f64() < (touched - 1) as f64 + MOMENT_S;
    if is_moment && record.elapsed > Duration::ZERO { touched - 1 } else { touched }
}

/// The verdict on a run: its first line.
pub fn verdict(record: &Record) -> String {
    let whole = seconds_of(record);
    let of = |wanted: Limit| {
        let limited = record.seconds.iter().filter(|second| limit(second) == wanted).count();
        limited.min(whole)
    };
    let seconds = |count: usize| if count == 1 { "1 second".to_owned() } else { format!("{count} seconds") };
    let late = record.lateness.value_at_quantile(0.999) as f64 / 1e3;
    let failed = failed(record);
    match (of(Limit::Generator), of(Limit::Network), of(Limit::Server)) {
        (0, ..) if is_late_throughout(record) => format!(
            "THE GENERATOR WAS THE LIMIT: {:.1}% of the requests left more than a millisecond late, a few in each second; these \
             are not the server's latencies; use more threads, or more machines",
            100.0 * late_share(record)
        ),
        (0, 0, 0) if !failed.is_empty() => {
            format!("{failed}; requests left within {late:.0} us of their time (99.9%)")
        }
        (0, 0, 0) => format!(
            "nothing was the limit in {}; requests left within {late:.0} us of their time (99.9%)",
            seconds(whole)
        ),
        (0, 0, server) => format!(
            "the server was the limit in {server} of {}{}{failed}; requests left within {late:.0} us of their time (99.9%)",
            seconds(whole),
            if failed.is_empty() { "" } else { "; " }
        ),
        (0, network, _) => format!(
            "the network was the limit in {network} of {}: this machine's kernel threw datagrams away; these are not the \
             server's latencies",
            seconds(whole)
        ),
        (generator, ..) => format!(
            "THE GENERATOR WAS THE LIMIT in {generator} of {}: requests left up to {late:.0} us late (99.9%); these are not the \
             server's latencies; use more threads, or more machines",
            seconds(whole)
        ),
    }
}

/// The failures of a run in words; empty if there are none.
fn failed(record: &Record) -> String {
    let failures = record.failures();
    if failures == 0 {
        return String::new();
    }
    let requests = record.answers() + failures;
    let share = 100.0 * record.failure_share();
    // A share that is rounded to nothing, or to everything, would say something else.
    let share = match failures {
        _ if failures == requests => "100%".to_owned(),
        _ if share < 0.01 => "less than 0.01%".to_owned(),
        _ if share > 99.99 => "more than 99.99%".to_owned(),
        _ => format!("{share:.2}%"),
    };
    let kinds: Vec<_> =
        record.troubles.iter().map(|(trouble, count)| format!("{count} {}", trouble.name())).collect();
    let whole = if failures == requests { "EVERY REQUEST FAILED" } else { "REQUESTS FAILED" };
    format!("{whole}: {failures} of {requests}, {share} ({})", kinds.join(", "))
}

/// What the calling thread has had of a processor.
pub(crate) fn processor() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or(0));
    seconds + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use wire::Duration;

    use super::*;
    use crate::record::{Channel, Trouble};

    #[test]
    fn the_worst_of_several_limits_is_named() {
        let second = |due, late, answered, processor, dropped| {
            limit(&Second { due, late, answered, processor, dropped, ..Second::default() })
        };
        assert_eq!(second(1_000, 10, 1_000, 0.5, 0), Limit::Nothing);
        assert_eq!(second(1_000, 11, 1_000, 0.5, 9), Limit::Generator);
        // A page of ten objects, once; and somebody who is always late.
        assert_eq!(second(118, 10, 118, 0.5, 0), Limit::Nothing);
        assert_eq!(second(8, 5, 8, 0.5, 0), Limit::Generator);
        assert_eq!(second(1_000, 0, 1_000, 0.96, 0), Limit::Generator);
        assert_eq!(second(1_000, 0, 500, 0.5, 1), Limit::Network);
        assert_eq!(second(1_000, 0, 949, 0.5, 0), Limit::Server);
        assert_eq!(second(1_000, 0, 951, 0.5, 0), Limit::Nothing);
        assert_eq!(second(5, 0, 0, 0.5, 0), Limit::Nothing);
    }

    #[test]
    fn regress_a_few_late_pages_at_a_low_rate_are_not_the_limit_and_many_are() {
        let run = |late: [u64; 20]| {
            let second = |late| Second { due: 118, late, answered: 118, ..Second::default() };
            verdict(&Record { seconds: late.map(second).into(), ..Record::default() })
        };
        let mut late = [0; 20];
        [late[3], late[8], late[12]] = [3, 2, 5];
        assert!(run(late).starts_with("nothing was the limit"), "{}", run(late));
        // In each second too few to say anything, in all 2.5%.
        let always = run([3; 20]);
        assert!(always.starts_with("THE GENERATOR WAS THE LIMIT: 2.5%"), "{always}");
    }

    #[test]
    fn regress_of_a_run_whose_requests_failed_nobody_says_that_nothing_was_the_limit() {
        let second = Second { due: 30, answered: 20, failed: 10, ..Second::default() };
        let mut record = Record { seconds: vec![second], ..Record::default() };
        record.channels.insert(Channel::TcpClient, 20);
        record.troubles.insert(Trouble::Status, 10);
        let said = verdict(&record);
        assert!(said.starts_with("REQUESTS FAILED: 10 of 30, 33.33% (10 status); requests left"), "{said}");
        record.channels.clear();
        let said = verdict(&record);
        assert!(said.starts_with("EVERY REQUEST FAILED: 10 of 10, 100% (10 status)"), "{said}");
    }

    #[test]
    fn a_run_is_void_if_its_latency_is_the_generators_own() {
        let run = |lateness: Duration, took: Duration| {
            let mut record = Record::default();
            for number in 0..100 {
                let when = Duration::from_millis(number);
                record.due(when, lateness);
                record.answered(when, 1, Channel::Udp, took, lateness + took);
            }
            record
        };
        let [late, fast, slow] = [50, 600, 100_000].map(Duration::from_micros);
        assert!(!is_void(&run(Duration::from_micros(20), fast)) && is_void(&run(late, fast)));
        assert!(!is_void(&run(late, slow)) && is_void(&run(slow, slow)) && !is_void(&Record::default()));
    }

    #[test]
    fn a_run_in_which_the_generator_was_the_limit_says_so_first() {
        let seconds = vec![Second::default(), Second { due: 9, late: 9, ..Second::default() }];
        let record = Record { seconds, ..Record::default() };
        assert!(
            verdict(&record).starts_with("THE GENERATOR WAS THE LIMIT in 1 of 2 seconds"),
            "{}",
            verdict(&record)
        );
    }
}
