//! A window made small by losses: the sender waits for acknowledgements though the path has room.
//!
//! **Rule**: a sender that has lost something waits for an acknowledgement in the middle of sending, the receiver's
//! window has room and the path is not full. Its flight is smaller than one before, or grows no faster than congestion avoidance
//! lets it, by two segments since it stopped last: after a loss in a small window `ssthresh` is two segments (RFC 5681, section
//! 3.1), and the flight is no smaller than before and yet smaller than without the loss. **Refuted by**: a queue on the path
//! (`transfer`), a window without room, a flight larger than any before that grows faster (nothing has made it small), and one
//! that stays as it is for round trips (congestion avoidance adds a segment for each one or two of them: something else holds it).

use wire::Duration;

use super::opening;
use crate::cause::{Cause, CauseInfo, Fix, Party};
use crate::gap::{Gap, millis};
use crate::judge::{Confidence, Ruling};
use crate::sender::Ack;

pub(crate) const ABOUT: CauseInfo = CauseInfo {
    what: "Losses had reduced the sender's congestion window, and it waited for acknowledgements though the path had capacity.",
    fixes: &[
        Fix {
            who: Party::Network,
            change: "find where packets are lost (a queue too short, a faulty link, a policer)",
        },
        Fix {
            who: Party::SendingKernel,
            change: "a congestion control that stray losses do not slow down (sysctl -w \
                     net.ipv4.tcp_congestion_control=bbr)",
        },
    ],
    is_fault: true,
    least: Duration::from_millis(10),
};

pub(crate) fn rule(gap: &Gap) -> Option<Ruling> {
    let ack = gap.awaited()?;
    (gap.has_lost && gap.has_room && (is_smaller(gap) || grows_slowly(gap, ack))).then(|| Ruling {
        confidence: Confidence::Medium,
        saving: Some(opening::saved_without_loss(gap)),
        ..Ruling::all(gap, Cause::CongestionWindow, evidence)
    })
}

/// Whether the flight is smaller than one before: by a segment, and by more than the same limit varies.
fn is_smaller(gap: &Gap) -> bool {
    gap.flight.bytes + gap.mss.max(gap.largest_flight / 8) <= gap.largest_flight
}

/// Whether the flight grows as congestion avoidance lets it: by no more than two segments since the last stop, and, since the
/// smallest after the loss, by half of what it adds at the least (half a segment for a round trip with delayed acknowledgements).
fn grows_slowly(gap: &Gap, ack: &Ack) -> bool {
    let is_slow =
        gap.burst.rounds.latest().next().is_none_or(|before| gap.flight.bytes <= before + 2 * gap.mss);
    let stands_still = gap.burst.since_loss.is_some_and(|(since, flight)| {
        let round_trip = gap.path.round_trip.max(ack.after().unwrap_or_default());
        let rounds = gap.to.at.since(since).as_nanos() / round_trip.as_nanos().max(1);
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
        "after losses the {} stopped at {} bytes in flight (packet {}) and waited {}; {before}",
        gap.side,
        gap.flight.bytes,
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
        // After the repair, and at four segments.
        assert_eq!(found.len(), 2, "{found:?}");
    }

    #[test]
    fn flights_that_stay_equal_for_round_trips_are_not_named() {
        let found = after_a_loss(&[8; 40]);
        assert!(found.len() < 15, "{}", found.len());
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
        // Without the loss its window would have doubled with what came back at 75 ms: all would have left then, and not at
        // 360.7 ms.
        let findings = Script { one_way_ms: 15.0, lines: &lines }.diagnose(VantagePoint::Server).findings;
        let of_it = findings.iter().filter(|finding| finding.cause != Cause::ConnectionSetup);
        let saved: f64 =
            of_it.filter_map(|finding| finding.saving).map(|saving| saving.as_millis_f64()).sum();
        assert!((saved - 285.0).abs() < 2.0, "{saved}");
    }
}
