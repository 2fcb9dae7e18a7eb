//! A window that is still opening: a round trip for each doubling.
//!
//! **Rule**: a sender without losses waits for an acknowledgement in the middle of sending, at its first flight or at
//! one that has grown since the last wait. Not a fault, unless the initial window is smaller than necessary. **Refuted
//! by**: any other cause of a sender's wait, each with a rule before this one; a flight that does not grow; a segment
//! within the initial window of every current stack (its program had not written it).

use wire::Duration;

use crate::cause::{Cause, CauseInfo, Fix, Party};
use crate::finding::Confidence;
use crate::gap::Gap;
use crate::ruling::Ruling;
use crate::text::{counted, millis, packets};

pub(crate) const ABOUT: CauseInfo = CauseInfo {
    description: "The sender's congestion window was still opening: it sent a full window and waited a round trip for an acknowledgement.",
    fixes: &[
        Fix { party: Party::ClientApplication, change: "reuse connections: an open window stays open" },
        Fix {
            party: Party::SendingKernel,
            change: "an initial window of ten segments (ip route change ... initcwnd 10)",
        },
        Fix {
            party: Party::ServerApplication,
            change: "send less (compression), or full segments in the first flight",
        },
    ],
    is_fault: false,
    min_duration: Duration::from_millis(10),
};

pub(crate) fn rule(gap: &Gap) -> Option<Ruling> {
    gap.awaited()?;
    if gap.has_lost || !gap.has_room {
        return None;
    }
    let grows = match gap.burst.rounds.latest().next() {
        None => true,
        // Growth by at least half a segment, however few the acknowledgements.
        Some(before) => gap.flight.bytes > before + gap.mss / 2,
    };
    grows.then(|| Ruling {
        confidence: Confidence::Medium,
        saving: None,
        ..Ruling::all(gap, Cause::SlowStart, evidence)
    })
}

fn evidence(gap: &Gap) -> String {
    let ack = gap.trigger.map_or(0, |ack| ack.frame);
    format!(
        "the {} sent {}, {} ({}), and waited {} for an acknowledgement (packet {ack}) \
         before it sent more",
        gap.wait.side,
        counted(gap.flight.segments, "segment"),
        counted(gap.flight.bytes, "byte"),
        packets(gap.flight.frames.0, gap.flight.frames.1),
        millis(gap.duration()),
    )
}

#[cfg(test)]
mod tests {
    use crate::Cause;
    use crate::report::VantagePoint;
    use crate::script::{Script, opened};

    /// Found in the corpus: a lost SYN/ACK was mistaken for a loss that reduces the window.
    #[test]
    fn regress_window_also_opens_after_a_lost_syn_ack() {
        let lines = "0 C syn\n15 S syn lost\n1015 S reopen\n1030 C\n1030.1 C send=100
            1045.2 S send=1460
            1045.2 S send=1460
            1060.3 C
            1075.4 S send=1460
            1075.4 S send=1460
            1075.4 S send=1460
            1090.5 C
            1105.6 S send=1460
            1105.6 S send=1460";
        let report = Script { one_way_ms: 15.0, lines }.diagnose(VantagePoint::Server);
        let opening = report.findings.iter().filter(|finding| finding.cause == Cause::SlowStart);
        assert_eq!(opening.count(), 2, "{:?}", report.findings);
    }

    #[test]
    fn each_doubling_of_a_new_window_costs_a_round_trip() {
        let lines = opened(
            15.0,
            "
            30 C send=100
            45 S send=1460
            45 S send=1460
            60 C
            75.1 S send=1460
            75.1 S send=1460
            75.1 S send=1460
            90.2 C
            105.2 S send=1460
            105.2 S send=1460
            120.2 C",
        );
        for vantage_point in [VantagePoint::Client, VantagePoint::Server, VantagePoint::Between] {
            let found = Script { one_way_ms: 15.0, lines: &lines }.diagnose(vantage_point);
            let rounds = found.counts.iter().find(|count| count.cause == Cause::SlowStart).unwrap();
            assert_eq!((rounds.times, rounds.lost.as_nanos() / 1_000_000), (2, 60), "{vantage_point:?}");
            assert!(!found.is_worth_fixing());
        }
    }

    #[test]
    fn nine_bytes_in_flight_wait_for_no_window() {
        // A handler of 43 ms behind a short frame; the receiver's delayed acknowledgement comes just before.
        let found = |scale: &str| {
            let lines = format!(
                "0 C syn{scale}\n0.01 S syn{scale}\n0.02 C\n1 C send=100\n1.1 S send=9\n41.2 C\n44 S send=40\n44.1 C"
            );
            let report = Script { one_way_ms: 0.01, lines: &lines }.diagnose(VantagePoint::Server);
            report.counts.iter().map(|count| count.cause).collect::<Vec<_>>()
        };
        assert_eq!(found(" scale=7"), [Cause::ServerThink]);
    }
}
