//! A congestion window reduced by losses: the sender waits for acknowledgements although the path has capacity.
//!
//! **Rule**: a sender that has lost something waits for an acknowledgement in the middle of sending, although the
//! receiver's window allows more and the path is not full. Its flight is smaller than an earlier one, or grows by at
//! most two segments since its last stop, as in congestion avoidance. After a loss in a small window `ssthresh` is two
//! segments (RFC 5681, section 3.1): the flight is then no smaller than before, but smaller than without the loss.
//! **Refuted by**: a queue on the path (`transfer`); a full receive window; a flight larger than any before that grows
//! faster (nothing has reduced it); a flight that ends with a short segment (the program had written no more); one that
//! stays constant for round trips (congestion avoidance adds a segment every one or two round trips, so something else
//! limits it).

use dissect::sender::Ack;
use wire::Duration;

use super::opening;
use crate::cause::{Cause, CauseInfo, Fix, Party};
use crate::finding::Confidence;
use crate::gap::Gap;
use crate::ruling::Ruling;
use crate::text::{counted, millis};

pub(crate) const ABOUT: CauseInfo = CauseInfo {
    description: "Losses had reduced the sender's congestion window, and it waited for acknowledgements though the path had capacity.",
    fixes: &[
        Fix {
            party: Party::Network,
            change: "find where packets are lost (a queue too short, a faulty link, a policer)",
        },
        Fix {
            party: Party::SendingKernel,
            change: "a congestion control that stray losses do not slow down (sysctl -w \
                     net.ipv4.tcp_congestion_control=bbr)",
        },
    ],
    is_fault: true,
    min_duration: Duration::from_millis(10),
};

pub(crate) fn rule(gap: &Gap) -> Option<Ruling> {
    let ack = gap.awaited()?;
    let has_more = gap.flight.last_short_end < gap.flight.start + gap.flight.bytes;
    (gap.has_lost && gap.has_room && has_more && (is_smaller(gap) || grows_slowly(gap, ack))).then(|| {
        Ruling {
            confidence: Confidence::Medium,
            saving: Some(opening::saved_without_loss(gap)),
            ..Ruling::all(gap, Cause::CongestionWindow, evidence)
        }
    })
}

/// Returns whether the flight is smaller than an earlier one: by a segment, and by more than a constant limit varies.
fn is_smaller(gap: &Gap) -> bool {
    gap.flight.bytes + gap.mss.max(gap.largest_flight / 8) <= gap.largest_flight
}

/// Returns whether the flight grows as in congestion avoidance. It grows by at most two segments since the last stop.
/// Since the smallest flight after the loss it grows by at least half of the minimum growth (half a segment per round
/// trip with delayed acknowledgements).
fn grows_slowly(gap: &Gap, ack: &Ack) -> bool {
    let is_slow =
        gap.burst.rounds.latest().next().is_none_or(|before| gap.flight.bytes <= before + 2 * gap.mss);
    let stands_still = gap.burst.since_loss.is_some_and(|(since, flight)| {
        let round_trip = gap.path.round_trip.max(ack.after().unwrap_or_default());
        let rounds = gap.wait.to.at.since(since).as_nanos() / round_trip.as_nanos().max(1);
        gap.flight.bytes + 2 * gap.mss < flight.saturating_add(gap.mss.saturating_mul(rounds) / 4)
    });
    is_slow && !stands_still
}

fn evidence(gap: &Gap) -> String {
    let before = if is_smaller(gap) {
        format!("it had had {} before", gap.largest_flight)
    } else {
        "its window has grown slowly since".to_owned()
    };
    format!(
        "after losses the {} stopped at {} in flight (packet {}) and waited {}; {before}",
        gap.wait.side,
        counted(gap.flight.bytes, "byte"),
        gap.flight.frames.1,
        millis(gap.duration()),
    )
}

#[cfg(test)]
mod tests {
    use crate::Cause;
    use crate::report::VantagePoint;
    use crate::script::{Script, opened};

    /// A loss in a window of two segments, then flights of these sizes, each acknowledged as a whole.
    fn after_a_loss(flights: &[u32]) -> Vec<(Cause, u64)> {
        let mut lines = String::from(
            "30 C send=100\n45 S send=1460 lost\n45.1 S send=1460\n60.2 C ack=0\n345 S seq=0 send=1460\n360 C ack=2920\n",
        );
        let mut now = 375.1;
        for flight in flights {
            (0..*flight).for_each(|_| lines.push_str(&format!("{now} S send=1460\n")));
            lines.push_str(&format!("{} C\n", now + 15.0));
            now += 30.1;
        }
        let lines = opened(15.0, &lines);
        let found = Script { one_way_ms: 15.0, lines: &lines }.faults(VantagePoint::Server);
        found.into_iter().filter(|(cause, _)| *cause == Cause::CongestionWindow).collect()
    }

    #[test]
    fn after_a_loss_in_a_small_window_flights_are_no_smaller_and_grow_slowly() {
        assert_eq!(after_a_loss(&[2, 2, 3, 3, 4]), [(Cause::CongestionWindow, 30); 5]);
    }

    #[test]
    fn flights_larger_than_any_before_that_double_were_not_made_small() {
        let found = after_a_loss(&[4, 8, 16, 32]);
        // After the repair, and at a flight of four segments.
        assert_eq!(found.len(), 2, "{found:?}");
    }

    #[test]
    fn flights_that_stay_equal_for_round_trips_are_not_named() {
        let found = after_a_loss(&[8; 40]);
        assert!(found.len() < 15, "{}", found.len());
    }

    #[test]
    fn small_messages_after_a_loss_are_all_that_the_program_wrote() {
        let mut lines = String::from(
            "30 C send=100\n45 S send=1460 lost\n45.1 S send=1460\n60.2 C ack=0\n345 S seq=0 send=1460\n360 C ack=2920\n",
        );
        for n in 0..5 {
            let at = 400 + 30 * n;
            lines.push_str(&format!("{at} S send=10\n{} C\n", at + 15));
        }
        let lines = opened(15.0, &lines);
        let found = Script { one_way_ms: 15.0, lines: &lines }.faults(VantagePoint::Server);
        assert!(found.iter().all(|(cause, _)| *cause != Cause::CongestionWindow), "{found:?}");
    }

    #[test]
    fn small_flights_after_a_loss_are_caused_by_it() {
        let lines = opened(
            15.0,
            "
            30 C send=100
            45 S send=1460
            45.1 S send=1460 lost
            45.2 S send=1460
            60.2 C ack=1460
            60.3 C ack=1460
            300 S seq=1460 send=1460
            315.1 C ack=4380
            330.2 S send=1460
            330.3 S send=1460
            345.4 C
            360.5 S send=1460
            360.6 S send=1460
            360.7 S send=1460
            375.8 C",
        );
        let found = Script { one_way_ms: 15.0, lines: &lines }.faults(VantagePoint::Server);
        assert_eq!(
            found,
            [
                (Cause::RetransmissionTimeout, 255),
                (Cause::CongestionWindow, 30),
                (Cause::CongestionWindow, 30)
            ]
        );
        // Without the loss the acknowledgements at 75 ms would have doubled its window, and everything would have left
        // then instead of at 360.7 ms.
        let findings = Script { one_way_ms: 15.0, lines: &lines }.diagnose(VantagePoint::Server).findings;
        let of_it = findings.iter().filter(|finding| finding.cause != Cause::ConnectionSetup);
        let saved: f64 =
            of_it.filter_map(|finding| finding.saving).map(|saving| saving.as_millis_f64()).sum();
        assert!((saved - 285.0).abs() < 2.0, "{saved}");
    }
}
