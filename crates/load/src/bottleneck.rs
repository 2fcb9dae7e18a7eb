//! Summary of a run's seconds: number of seconds with each bottleneck, and whether the latencies are the generator's own.
//!
//! It evaluates the record, and measures nothing.

use rustix::time::{ClockId, clock_gettime};
use wire::Duration;

use crate::record::Record;
use crate::second::{Bottleneck, Second, is_behind, is_late, limit};

/// Whether any second left requests without a response, on time or not.
pub(crate) fn has_seconds_behind(record: &Record) -> bool {
    record.seconds.iter().any(|second| is_behind(second.due, second.responses + second.failed))
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

/// Lateness of the generator that 99.9% of the requests do not exceed, in microseconds.
pub(crate) fn lateness_us(record: &Record) -> f64 {
    record.lateness.value_at_quantile(0.999) as f64 / 1e3
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
    use crate::record::Channel;

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
}
