//! A message that begins with a short segment, a header section flushed alone, wastes an initial window of only one or
//! two segments: the receiver has less than two full segments, so it delays its acknowledgement, and the sender waits
//! (papers/p-http#section-2-2, papers/p-http#figure-2).
//!
//! **Rule**: the first flight of a message begins with a short segment, is at most two segments long, and the sender
//! continues only when it is acknowledged. With stacks that count the window in segments (Linux), also a longer first
//! flight most of which is short. **Evidence**: the flight and the acknowledgement. **Refuted by**: a short segment
//! next (Nagle may hold that), a larger flight before without a pause since (then the window was wider), a receiver's
//! window without room, a next segment that is a multiple of the first (it was full: the capture merges segments).

use wire::Duration;

use super::opening;
use crate::cause::{Cause, CauseInfo, Fix, Party};
use crate::finding::Confidence;
use crate::gap::Gap;
use crate::ruling::Ruling;
use crate::text::{counted, millis};

pub(crate) const ABOUT: CauseInfo = CauseInfo {
    description: "The message began with a short segment, its header section, which used up a window of one or two segments; \
           the rest had to wait for an acknowledgement.",
    fixes: &[
        Fix {
            party: Party::SendingApplication,
            change: "write head and first part of the body with one call (writev; a buffered writer, without a flush \
                     after the head; Python wbufsize = -1; Node cork()/uncork())",
        },
        Fix {
            party: Party::SendingApplication,
            change: "or set TCP_CORK (nginx tcp_nopush on) until the body follows",
        },
        Fix {
            party: Party::SendingKernel,
            change: "an initial window of ten segments (ip route change ... initcwnd 10)",
        },
    ],
    is_fault: true,
    min_duration: Duration::from_millis(5),
};

/// Windows of fewer segments are smaller than the initial window of any current stack.
const NARROW: u64 = 2;
/// MSS of a sender that has not read another (RFC 9293, section 3.7.1).
const LEAST_MSS: u64 = 536;
/// Linux's initial window (RFC 6928).
const INITIAL_WINDOW: u64 = 10;

/// Returns whether an initial window of ten segments would also have spared a wait for a window that was still opening.
pub(crate) fn is_spared_too(gap: &Gap) -> bool {
    gap.burst.began_narrow
        && gap.sent_in_burst() + opening::unused_beside_header_section(gap) < INITIAL_WINDOW * gap.mss
}

pub(crate) fn rule(gap: &Gap) -> Option<Ruling> {
    gap.awaited()?;
    let flight = &gap.flight;
    let begins_message = flight.begins_short && flight.start == gap.burst.start;
    // Nagle's algorithm may hold a short one, and a window that was wide enough before still is, without a pause.
    let had_window =
        flight.bytes + gap.length <= gap.largest_since_loss && gap.burst.silence <= gap.burst.timeout;
    // Offloading merges full segments: then the largest captured one is a multiple of a full one.
    let is_full = flight.segments == 1
        && flight.bytes >= LEAST_MSS
        && gap.length > flight.bytes
        && gap.length.is_multiple_of(flight.bytes);
    if !begins_message || is_full || (gap.is_short() && !gap.has_fin) || had_window {
        return None;
    }
    let is_narrow = flight.segments <= NARROW && (gap.late.is_some() || flight.segments == 1);
    let is_used_up = flight.segments >= INITIAL_WINDOW
        && 2 * flight.short_segments > flight.segments
        && flight.bytes < flight.segments * gap.mss / 2;
    if !is_narrow && !is_used_up {
        return None;
    }
    // With full segments a window of two would have continued: its acknowledgement takes only a round trip. A window of
    // one segment would not, because a single segment is acknowledged late: only a wider one helps, and avoids the wait
    // entirely.
    let saving = gap.late.filter(|_| flight.segments > 1).unwrap_or(gap.duration()).min(gap.duration());
    // Without the handshake the next segment may be short, too, and held by Nagle's algorithm.
    let is_certain = gap.late.is_some() && gap.is_mss_agreed;
    let confidence = if is_certain { Confidence::High } else { Confidence::Medium };
    Some(Ruling {
        saving: Some(saving),
        confidence,
        ..Ruling::all(gap, Cause::ShortInitialSegment, evidence)
    })
}

fn evidence(gap: &Gap) -> String {
    let (first, last) = gap.flight.frames;
    let ack = gap.trigger.map_or(0, |ack| ack.frame);
    let late = match gap.late {
        Some(late) => format!(", which the {} delayed by {}", gap.wait.side.other(), millis(late)),
        None => String::new(),
    };
    format!(
        "the {}'s message began with a short segment (packet {first}); after {} (to packet {last}) it waited \
         {} for an acknowledgement (packet {ack}){late}",
        gap.wait.side,
        counted(gap.flight.segments, "segment"),
        millis(gap.duration()),
    )
}

#[cfg(test)]
mod tests {
    use crate::Cause;
    use crate::script::{Script, opened};

    #[test]
    fn paper_the_short_initial_segment_of_figure_2_is_named() {
        let lines = opened(
            0.1,
            "
            0.9 C send=52
            3.0 S send=226
            4.6 S send=1460
            188.8 C
            190.3 S send=1460
            191.6 S send=1460
            191.8 C",
        );
        let found = Script { one_way_ms: 0.1, lines: &lines }.faults_everywhere();
        assert_eq!(found, [(Cause::ShortInitialSegment, 186)]);
    }

    const ALONE: &str = "30 C send=100\n45 S send=226\n101 C\n116 S send=1460\n116.1 S send=1460\n131.2 C\n";

    #[test]
    fn a_header_section_that_alone_fills_a_window_of_one_segment_is_named() {
        let found = Script { one_way_ms: 15.0, lines: &opened(15.0, ALONE) }.faults_everywhere();
        assert_eq!(found, [(Cause::ShortInitialSegment, 71)]);
    }

    #[test]
    fn a_wider_window_would_have_avoided_the_later_waits_too() {
        let lines = opened(15.0, &format!("{ALONE}146.2 S send=1460\n146.3 S send=1460\n161.4 C"));
        let report = Script { one_way_ms: 15.0, lines: &lines }.diagnose(crate::report::VantagePoint::Server);
        let head =
            report.findings.iter().find(|finding| finding.cause == Cause::ShortInitialSegment).unwrap();
        let (lost, saved) = (head.lost.as_millis_f64(), head.saving.unwrap().as_millis_f64());
        assert!((lost - 71.0).abs() < 0.5 && (saved - 101.0).abs() < 0.5, "{lost} {saved}");
    }

    #[test]
    fn a_separate_header_section_in_a_wide_window_costs_nothing() {
        let lines = opened(
            15.0,
            "
            30 C send=100
            45 S send=226
            45.1 S send=1460
            45.2 S send=1460
            45.3 S send=1460
            60.2 C ack=1686
            60.3 C ack=4606
            75.2 S send=1460
            75.3 S send=1460
            90.3 C",
        );
        assert_eq!(Script { one_way_ms: 15.0, lines: &lines }.faults_everywhere(), []);
    }

    #[test]
    fn full_segment_before_merged_ones_is_not_short() {
        // A sender whose MSS is 1,382: the capture merges the next two.
        let lines = |next: u32| {
            opened(
                15.0,
                &format!(
                    "30 C send=100\n45 S send=1382\n101 C\n116 S send={next}\n131 C\n146 S send={next}\n161 C"
                ),
            )
        };
        let is_named = |next| {
            let found = Script { one_way_ms: 15.0, lines: &lines(next) }.faults_everywhere();
            found.iter().any(|(cause, _)| *cause == Cause::ShortInitialSegment)
        };
        assert_eq!((is_named(2_764), is_named(2_920)), (false, true));
    }
}
