//! A receiver that delays its acknowledgement while the sender cannot send anything more.
//!
//! **Rule**: a sender in the middle of sending continues immediately on a late acknowledgement. That came at least 20
//! ms (and a tenth of the round trip to the receiver) later than possible, for less than two full segments, and covers
//! everything that the receiver had. **Refuted by**: an acknowledgement that does not cover data received by then (a
//! timer's would); an acknowledgement right before it (what it covers came after that, at the pace of the link, and any
//! further delay is a queue's); a sender that did not continue immediately; two full segments (acknowledged
//! immediately, RFC 9293); a delay of more than half a second (RFC 1122); an echo (TSecr) of a timestamp that was never
//! captured (it acknowledges data that was not captured); an acknowledgement that does not advance the window's edge (the
//! receiving program had not read: it, or its window, held the sender); Nagle and short first segments, which have rules
//! of their own. A delayed acknowledgement for which the sender does not wait is no stall.
//!
//! **Confidence medium**: a window smaller than the one before, as of a reader that was busy.
//!
//! **Saved** is the delay, if the acknowledgement covers all that is in flight: nothing else lets the sender continue, and
//! all that follows comes later. Otherwise the acknowledgement of the rest clocks the next round, and nothing is saved.

use wire::Duration;

use crate::cause::{Cause, CauseInfo, Fix, Party};
use crate::finding::Confidence;
use crate::gap::Gap;
use crate::ruling::Ruling;
use crate::text::{counted, millis, packets};

pub(crate) const ABOUT: CauseInfo = CauseInfo {
    description: "The sender had filled its window and waited for an acknowledgement that the receiver delayed.",
    fixes: &[
        Fix {
            party: Party::ReceivingKernel,
            change: "acknowledge immediately: ip route change ... quickack 1, or the socket option TCP_QUICKACK before each \
                     message (it wears off)",
        },
        Fix {
            party: Party::SendingKernel,
            change: "an initial window of ten segments (ip route change ... initcwnd 10)",
        },
        Fix { party: Party::SendingApplication, change: "write in larger pieces, so that segments are full" },
    ],
    is_fault: true,
    min_duration: Duration::from_millis(5),
};

pub(crate) fn rule(gap: &Gap) -> Option<Ruling> {
    // A sender with little in flight that did not continue immediately may have had nothing to send.
    let ack = gap.awaited().filter(|_| gap.is_prompt() || gap.flight.bytes >= 2 * gap.mss)?;
    if ack.edge.is_some() && !ack.widens {
        return None;
    }
    let late = gap.late?;
    let ruling = Ruling::all(gap, Cause::DelayedAck, evidence);
    // A program that reads opens the window, and that acknowledges (RFC 9293, section 3.8.6.2.2): of a smaller one it left a part.
    let is_read = gap.window.is_none_or(|before| gap.window_now >= Some(before));
    let (saving, confidence) = match gap.in_flight {
        0 if gap.acks <= 1 && gap.is_prompt() && is_read => (late.min(gap.duration()), Confidence::High),
        0 => (late.min(gap.duration()), Confidence::Medium),
        _others_follow => (Duration::ZERO, Confidence::Medium),
    };
    Some(Ruling { saving: Some(saving), confidence, ..ruling })
}

fn evidence(gap: &Gap) -> String {
    let ack = gap.trigger.map_or(0, |ack| ack.frame);
    format!(
        "the {} had {} in flight ({}) and continued (packet {}) on an acknowledgement (packet \
         {ack}) that the {} delayed by {}",
        gap.wait.side,
        counted(gap.flight.bytes, "byte"),
        packets(gap.flight.frames.0, gap.flight.frames.1),
        gap.wait.to.frame,
        gap.wait.side.other(),
        gap.late.map(millis).unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use crate::report::VantagePoint;
    use crate::script::{Script, opened};
    use crate::{Cause, Severity};

    #[test]
    fn a_window_of_one_segment_waits_for_the_receivers_timer() {
        let lines = opened(
            15.0,
            "30 C send=100\n45 S send=1460\n100 C\n115.1 S send=1460\n115.2 S send=1460\n130.3 C",
        );
        let script = Script { one_way_ms: 15.0, lines: &lines };
        assert_eq!(script.faults_everywhere(), [(Cause::DelayedAck, 70)]);
    }

    #[test]
    fn delayed_acknowledgement_costs_nothing_if_another_clocks_the_round() {
        let saved = |second: &str| {
            let lines = format!(
                "30 C send=100\n45 S send=1460\n{second}\n100 C ack=1460\n115.1 S send=1460\n115.2 S send=1460\n130.3 C"
            );
            let report =
                Script { one_way_ms: 15.0, lines: &opened(15.0, &lines) }.diagnose(VantagePoint::Server);
            let found = report.findings.into_iter().filter(|finding| finding.cause == Cause::DelayedAck);
            found
                .map(|finding| (finding.saving.unwrap().as_nanos() / 1_000_000, finding.severity))
                .collect::<Vec<_>>()
        };
        assert_eq!(saved(""), [(40, Severity::Medium)]);
        assert_eq!(saved("97 S send=1460"), [(0, Severity::Low)]);
    }

    #[test]
    fn a_delayed_acknowledgement_that_no_sender_waits_for_is_no_stall() {
        let lines =
            opened(15.0, "30 C send=100\n45 S send=700\n100 C\n400 C send=100\n415.2 S send=700\n470 C");
        let script = Script { one_way_ms: 15.0, lines: &lines };
        assert_eq!(script.faults_everywhere(), []);
    }

    #[test]
    fn a_late_acknowledgement_that_omits_received_data_was_delayed_by_the_path() {
        // The second segment arrived 0.1 ms after the first: a timer's acknowledgement would have covered both.
        let lines = opened(
            15.0,
            "
            30 C send=100
            45 S send=1460
            45.1 S send=1460
            95 C ack=1460
            110.1 S send=1460
            110.2 S send=1460
            125.3 C",
        );
        let script = Script { one_way_ms: 15.0, lines: &lines };
        assert_eq!(script.faults(VantagePoint::Server), []);
    }

    /// A delayed acknowledgement identified by its echo: `echoed` is the timestamp of the segment that it responds to.
    fn after_70_ms(echoed: u32) -> Vec<(Cause, u64)> {
        let lines = format!(
            "0 C syn ts=0:0\n15 S syn ts=5000:0\n30 C ts=30:5000\n31 C send=100 ts=31:5000\n46 S send=1460 ts=5031:31\n\
             116 C ts=116:{echoed}\n131.1 S send=1460 ts=5116:116\n131.2 S send=1460 ts=5116:116\n146.3 C ts=146:5116"
        );
        Script { one_way_ms: 15.0, lines: &lines }.faults_everywhere()
    }

    #[test]
    fn acknowledgement_of_a_packet_that_was_not_captured_is_no_evidence() {
        assert_eq!(after_70_ms(5_031), [(Cause::DelayedAck, 85)]);
        assert_eq!(after_70_ms(5_090), []);
    }

    #[test]
    fn acknowledgement_that_leaves_the_window_edge_in_place_shows_a_program_that_does_not_read() {
        let found = |window: u32| {
            let lines = format!(
                "30 C send=100 win=8000\n45 S send=1460\n100 C win={window}\n115.1 S send=1460\n115.2 S send=1460\n\
                 130.3 C win={window}"
            );
            let lines = opened(15.0, &lines);
            let found = Script { one_way_ms: 15.0, lines: &lines }.faults_everywhere();
            found.iter().any(|(cause, _)| *cause == Cause::DelayedAck)
        };
        assert_eq!((found(8_000), found(8_000 - 1_460)), (true, false));
    }

    #[test]
    fn no_receiver_delays_an_acknowledgement_for_more_than_half_a_second() {
        let lines =
            opened(15.0, "30 C send=100\n45 S send=1460\n660 C\n675.1 S send=1460\n675.2 S send=1460\n690 C");
        assert_eq!(Script { one_way_ms: 15.0, lines: &lines }.faults_everywhere(), []);
    }

    #[test]
    fn echo_shows_that_an_acknowledgement_had_come_sooner_than_the_path_seemed_to_allow() {
        // The server responds to SYN and request 45 ms late: the path therefore seems to take 60 ms instead of 30.
        let found = |echo: u32| {
            let lines = format!(
                "0 C syn ts=0:0\n45 S syn ts=500:0\n60 C ts=60:500\n61 C send=100 ts=61:500\n121 S send=1460 ts=621:61\n\
                 206 C ts=206:621\n221.1 S send=1460 ts=721:{echo}\n221.2 S send=1460 ts=721:{echo}\n236.3 C ts=237:721"
            );
            Script { one_way_ms: 15.0, lines: &lines }.faults(VantagePoint::Client)
        };
        assert!(found(206).contains(&(Cause::DelayedAck, 100)), "{:?}", found(206));
        assert!(found(61).iter().all(|(cause, _)| *cause != Cause::DelayedAck), "{:?}", found(61));
    }
}
