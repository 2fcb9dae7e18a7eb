//! A fixed wait of every response: the load does not explain it.

use crate::record::Record;

/// Linux's minimum delayed ACK, 40 ms (TCP_DELACK_MIN in include/net/tcp.h), less the clock's tick; and with what a path and a
/// server may add.
const DELAYED_ACK_MS: [f64; 2] = [38.0, 48.0];
/// Minimum number of responses that show a wait.
const FEW: u64 = 5;
/// Shortest wait that counts, in milliseconds: shorter ones are work.
const SHORTEST_MS: f64 = 5.0;
/// Maximum spread of a wait, and what a host's scheduler adds, in milliseconds.
const SPREAD: f64 = 1.25;
const SCHEDULER_MS: f64 = 3.0;
/// Maximum wait for a CPU that counts as spread, as a share of the fixed wait.
const MAX_CPU_WAIT: f64 = 0.5;

/// Service times of 6 of 10 responses, in milliseconds: a busy host delays some of the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FixedWait {
    /// The 10th percentile.
    pub low_ms: f64,
    /// The 70th percentile.
    pub high_ms: f64,
}

/// The wait; `None` if response times vary, are short, or are few. `cpu_wait_ms`: mean time of a response in which the server's
/// threads waited for a CPU that others had.
pub fn find(record: &Record, cpu_wait_ms: f64) -> Option<FixedWait> {
    let at = |share: f64| record.experienced.value_at_quantile(share) as f64 / 1e6;
    let (low_ms, high_ms) = (at(0.1), at(0.7));
    let is_fixed = record.responses() >= FEW
        && low_ms >= SHORTEST_MS
        && high_ms <= (low_ms * SPREAD).max(low_ms + SCHEDULER_MS) + cpu_wait_ms.min(low_ms * MAX_CPU_WAIT);
    is_fixed.then_some(FixedWait { low_ms, high_ms })
}

/// Whether a time in milliseconds is as long as a delayed acknowledgement.
pub(crate) fn is_delayed_ack(ms: f64) -> bool {
    let [shortest, longest] = DELAYED_ACK_MS;
    (shortest..=longest).contains(&ms)
}

#[cfg(test)]
mod tests {
    use wire::Duration;

    use super::*;
    use crate::record::Channel;

    fn record(response_ms: impl Fn(u64) -> u64) -> Record {
        let mut record = Record::default();
        for number in 0..100 {
            let took = Duration::from_millis(response_ms(number));
            record.count_response(Duration::from_millis(number), 1, Channel::TcpClient, took, took);
        }
        record
    }

    fn of(response_ms: impl Fn(u64) -> u64) -> Option<FixedWait> {
        find(&record(response_ms), 0.0)
    }

    #[test]
    fn responses_that_take_equally_long_have_a_fixed_wait() {
        assert!(of(|_| 44).is_some_and(|wait| wait.low_ms > 43.9 && wait.high_ms < 44.1));
        assert!(of(|number| 40 + number % 5).is_some());
        assert!(is_delayed_ack(44.0) && !is_delayed_ack(30.0) && !is_delayed_ack(60.0));
    }

    #[test]
    fn other_response_times_and_few_responses_have_none() {
        assert_eq!(of(|number| 20 + number), None);
        assert_eq!(of(|_| 2), None);
        assert_eq!(find(&Record::default(), 0.0), None);
    }

    #[test]
    fn waits_for_a_cpu_are_spread_but_cannot_explain_any_spread() {
        // A busy host: 40 to 58 ms.
        let delayed = record(|number| 40 + number % 10 * 2);
        assert!(find(&delayed, 0.0).is_none() && find(&delayed, 5.0).is_some());
        assert_eq!(find(&record(|number| 20 + number), 1e6), None);
    }
}
