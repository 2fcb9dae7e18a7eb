//! Nagle's algorithm: a short segment is held while any data is unacknowledged. If the receiver delays that acknowledgement, each
//! waits for the other (papers/p-http#section-2-3, papers/p-http#figure-4).
//!
//! **Rule**: a sender in the middle of sending sends a short segment immediately after an acknowledgement, and not before. In the
//! original algorithm (RFC 896) that acknowledgement covers *everything* sent; in Minshall's variant (Linux) at least the last short
//! segment. It is distinguished from a full window by one of three facts: an earlier acknowledgement allowed data that was not sent,
//! more had been in flight before, or only one segment was. An acknowledgement late beyond the round trip was delayed (`nagle-
//! delayed-ack`); otherwise a round trip is lost (`nagle`).
//!
//! **Refuted by**: a full segment (Nagle never holds one), or data that is missing before it; a FIN (it flushes); a full window; a
//! segment that comes later than an acknowledgement explains, by a quarter of the round trip (the program had not written it yet), or
//! that echoes a timestamp (TSecr) older than that acknowledgement; a loss before, unless everything had been acknowledged; a sender
//! that has sent a short segment while another was unacknowledged (TCP_NODELAY), unless it may have been a probe for the end of a
//! flight.

use wire::Duration;

use crate::cause::{Cause, CauseInfo, Fix, Party};
use crate::finding::Confidence;
use crate::gap::Gap;
use crate::ruling::Ruling;
use crate::text::{counted, millis};

const FIXES: &[Fix] = &[
    Fix {
        party: Party::SendingApplication,
        change: "write headers and body with one call (writev, a buffered writer flushed once), not piece by piece",
    },
    Fix {
        party: Party::SendingApplication,
        change: "set TCP_NODELAY on the socket (nginx tcp_nodelay on; Node socket.setNoDelay(true); Java \
                 setTcpNoDelay(true); Python StreamRequestHandler.disable_nagle_algorithm = True and wbufsize = -1; \
                 PHP stream_context_create(['socket' => ['tcp_nodelay' => true]]); C# NoDelay = true; Rust \
                 set_nodelay(true); Ruby, Perl and C setsockopt(IPPROTO_TCP, TCP_NODELAY); Go sets it unless \
                 SetNoDelay(false) is called; socat nodelay)",
    },
    Fix {
        party: Party::SendingApplication,
        change: "or hold the pieces together with TCP_CORK until the message is whole",
    },
];

pub(crate) const DELAYED: CauseInfo = CauseInfo {
    description: "The last short piece of a message was held back (Nagle's algorithm) until the receiver acknowledged the \
           piece before, and the receiver delayed that acknowledgement.",
    fixes: FIXES,
    is_fault: true,
    min_duration: Duration::from_millis(5),
};

pub(crate) const ABOUT: CauseInfo = CauseInfo {
    description: "The last short piece of a message was held back (Nagle's algorithm) for a round trip, until the piece \
           before was acknowledged.",
    fixes: FIXES,
    is_fault: true,
    min_duration: Duration::from_millis(5),
};

/// Longest delay of an acknowledgement in use (200 ms in Windows, BSD and Linux), and a tick.
const LONGEST: Duration = Duration::from_millis(250);

/// A reaction this much shorter than the wait is a coincidence in one case of as many.
const COINCIDENCE: u64 = 50;

pub(crate) fn rule(gap: &Gap) -> Option<Ruling> {
    let ack = gap.awaited()?;
    let flight = &gap.flight;
    // Nagle's algorithm does not hold the data that is missing before it.
    let is_held = gap.is_short() && gap.length > 0 && !gap.has_fin && !gap.is_behind_hole;
    let all_arrived = gap.in_flight == 0;
    // The first acknowledgement of the last short segment releases the next.
    let newly = ack.to.saturating_sub(ack.bytes.into())..ack.to;
    let short_arrived = flight.short_segments > 0
        && newly.start < flight.last_short_end
        && newly.end >= flight.last_short_end;
    // During or after a repair, other acknowledgements than that of the last short segment release data, too.
    let is_clear = !gap.has_lost || all_arrived;
    if !is_held || !is_clear || !(all_arrived || short_arrived) || !gap.is_prompt() {
        return None;
    }
    let had_window = gap.freed_early()
        || flight.bytes + gap.length <= gap.largest_since_loss
        // Every stack since RFC 3390 starts with four segments or 4,380 bytes; older ones with one or two.
        // Stacks that scale windows (RFC 1323) are newer than initial windows of one segment.
        // After a repaired loss the window is at least two segments.
        || (flight.segments == 1 && (!gap.has_lost || gap.largest_since_loss > 0))
        || (!gap.has_lost && flight.segments == 2 && (!flight.begins_short || gap.has_scale));
    // Of several acknowledgements close together any may have triggered it.
    if !had_window || (gap.acks > 1 && !gap.freed_early()) {
        return None;
    }
    let confidence =
        if gap.freed_early() || flight.segments == 1 { Confidence::High } else { Confidence::Medium };
    Some(match gap.late {
        // Beyond any timer in use the path may have been slow.
        Some(late) if late > LONGEST => Ruling {
            confidence: confidence.min(Confidence::Medium),
            ..Ruling::all(gap, Cause::NagleDelayedAck, delayed)
        },
        Some(_) => Ruling { confidence, ..Ruling::all(gap, Cause::NagleDelayedAck, delayed) },
        // Near the sender, a segment right after the acknowledgement, relative to the wait, is no coincidence.
        None if gap.path.is_at_sender && gap.reaction() * COINCIDENCE <= gap.duration() => {
            Ruling { confidence, ..Ruling::all(gap, Cause::Nagle, held) }
        }
        None => {
            Ruling { confidence: confidence.min(Confidence::Medium), ..Ruling::all(gap, Cause::Nagle, held) }
        }
    })
}

fn delayed(gap: &Gap) -> String {
    let late = gap.late.map(millis).unwrap_or_default();
    format!("{}; the {} delayed that acknowledgement by {late}", held(gap), gap.wait.side.other())
}

fn held(gap: &Gap) -> String {
    let ack = gap.trigger.map_or(0, |ack| ack.frame);
    // Minshall's variant waits for the last short segment, although full ones after it are still in flight.
    let what = if gap.in_flight == 0 {
        let were = if gap.flight.last == 1 { "was" } else { "were" };
        format!(
            "the {} sent before (packet {}) {were}",
            counted(gap.flight.last, "byte"),
            gap.flight.frames.1
        )
    } else {
        "the last short segment before them was".to_owned()
    };
    format!(
        "the {} held {} (packet {}) until {what} acknowledged (packet {ack}), and sent {} {}, {} after what came before",
        gap.wait.side,
        counted(gap.length, "byte"),
        gap.wait.to.frame,
        if gap.length == 1 { "it" } else { "them" },
        reaction(gap),
        millis(gap.duration()),
    )
}

/// Returns a sentence on how soon the sender reacted.
fn reaction(gap: &Gap) -> String {
    const IMMEDIATE: Duration = Duration::from_micros(500);
    let reaction = gap.reaction();
    if reaction < IMMEDIATE { "immediately".to_owned() } else { format!("{} later", millis(reaction)) }
}

#[cfg(test)]
mod tests {
    use crate::Cause;
    use crate::finding::Confidence;
    use crate::report::VantagePoint;
    use crate::script::{Script, at_client, opened};

    #[test]
    fn acknowledgement_later_than_any_timer_leaves_doubt() {
        let confidence = |late: u32| {
            let lines = format!(
                "30 C send=1\n45 S\n60 C send=1\n{} S\n{} C send=2\n{} S",
                75 + late,
                90 + late,
                105 + late
            );
            let report = at_client(&lines);
            let mut held = report.findings.iter().filter(|finding| finding.cause == Cause::NagleDelayedAck);
            held.next().map(|finding| finding.confidence)
        };
        assert_eq!((confidence(200), confidence(440)), (Some(Confidence::High), Some(Confidence::Medium)));
    }

    /// papers/p-http#figure-4, as printed (captured on the client's network, less than a millisecond away).
    const FIGURE_4: &str = "
        0.1 C send=58
        0.6 S
        9.3 S send=1460
        10.5 S send=1460
        11.5 S send=1176
        12.3 C ack=2920
        178.7 C ack=4096
        178.9 S send=13";

    #[test]
    fn paper_the_odd_short_final_segment_of_figure_4_is_named() {
        let lines = opened(0.05, FIGURE_4);
        let found = Script { one_way_ms: 0.05, lines: &lines }.faults_everywhere();
        assert_eq!(found, [(Cause::NagleDelayedAck, 167)]);
    }

    #[test]
    fn two_short_writes_wait_for_a_delayed_acknowledgement_on_any_path() {
        for one_way in [0.5, 20.0, 200.0] {
            let round_trip = 2.0 * one_way;
            let (held, answered) = (2.0 * round_trip + 45.0, 3.0 * round_trip + 46.0);
            let lines = opened(
                one_way,
                &format!(
                    "{round_trip} C send=100\n{0} S\n{held} C send=40\n{1} S send=500\n{answered} C\n",
                    round_trip + one_way + 44.9,
                    held + one_way,
                ),
            );
            let script = Script { one_way_ms: one_way, lines: &lines };
            let cost = (round_trip + 45.0).round();
            for vantage_point in [VantagePoint::Client, VantagePoint::Server, VantagePoint::Between] {
                let found = script.faults(vantage_point);
                // With one sample of a long path, 45 ms do not count as a delay.
                let [(Cause::NagleDelayedAck | Cause::Nagle, lost)] = found[..] else {
                    panic!("{one_way} {vantage_point:?}: {found:?}")
                };
                assert!((lost as f64 - cost).abs() <= 1.0, "{one_way} {vantage_point:?}: {lost}");
            }
        }
    }

    #[test]
    fn held_for_a_round_trip_it_is_nagle_alone() {
        let lines = opened(15.0, "30 C send=100\n45 S\n60.1 C send=40\n76 S send=500\n91 C");
        let script = Script { one_way_ms: 15.0, lines: &lines };
        assert_eq!(script.faults_everywhere(), [(Cause::Nagle, 30)]);
    }

    /// Six segments before a link that needs 100 ms each, and a short one after the last acknowledgement.
    fn behind_a_slow_link(last: f64) -> Vec<(Cause, u64)> {
        let mut lines = String::from("100 C send=100\n");
        (0..6).for_each(|n| lines.push_str(&format!("{} S send=1460\n", 150.0 + 0.1 * f64::from(n))));
        (1..=3).for_each(|pair| {
            let at = if pair == 3 { last } else { 200.0 + 200.0 * f64::from(pair) };
            lines.push_str(&format!("{at} C ack={}\n", 2_920 * pair));
        });
        lines.push_str(&format!("{} S send=200\n{} C", last + 50.1, last + 110.0));
        let lines = opened(50.0, &lines);
        Script { one_way_ms: 50.0, lines: &lines }.faults(VantagePoint::Server)
    }

    #[test]
    fn a_queue_before_the_link_does_not_hide_what_is_held() {
        let found = behind_a_slow_link(800.0);
        assert!(matches!(found[..], [(Cause::Nagle, _)]), "{found:?}");
    }

    #[test]
    fn a_pause_of_the_program_is_not_held() {
        // The acknowledgement arrives at 60 ms; the data at 75 ms was written then.
        let lines = opened(15.0, "30 C send=100\n45 S\n75 C send=40\n91 S send=500\n106 C");
        let script = Script { one_way_ms: 15.0, lines: &lines };
        for vantage_point in [VantagePoint::Client, VantagePoint::Server, VantagePoint::Between] {
            let found = script.faults(vantage_point);
            assert!(
                !found.iter().any(|(cause, _)| matches!(cause, Cause::Nagle | Cause::NagleDelayedAck)),
                "{vantage_point:?}"
            );
        }
    }

    #[test]
    fn full_segments_and_a_fin_are_never_held() {
        let full = opened(15.0, "30 C send=1460\n45 S\n60.1 C send=1460\n76 S send=500\n91 C");
        let fin = opened(15.0, "30 C send=1460\n45 S\n60.1 C send=40 fin\n76 S send=500\n91 C");
        for lines in [&full, &fin] {
            assert_eq!(Script { one_way_ms: 15.0, lines }.faults_everywhere(), []);
        }
    }

    #[test]
    fn short_segment_behind_missing_data_was_not_held() {
        let lines = |seq: &str| format!("30 C send=586\n245 S\n260.2 C {seq} send=298\n276 S ack=586\n300 C");
        let is_nagle = |seq: &str| {
            let found =
                Script { one_way_ms: 15.0, lines: &opened(15.0, &lines(seq)) }.faults(VantagePoint::Client);
            found.iter().any(|(cause, _)| *cause == Cause::NagleDelayedAck)
        };
        assert_eq!((is_nagle(""), is_nagle("seq=2046")), (true, false));
    }

    #[test]
    fn a_sender_that_has_sent_short_segments_together_has_no_nagle() {
        // A handler that takes 44 ms: the delayed acknowledgement arrived just before.
        let lines = opened(
            0.01,
            "1 C send=100\n1.1 C send=100\n1.2 S\n100 C send=100\n140 S\n140.2 C send=40\n141 S send=9",
        );
        let found = Script { one_way_ms: 0.01, lines: &lines }.faults(VantagePoint::Client);
        assert!(found.iter().all(|(cause, _)| *cause == Cause::ServerThink), "{found:?}");
    }

    #[test]
    fn probe_with_held_data_shows_no_nodelay() {
        // A delayed acknowledgement of 400 ms: the probe takes the short segment that was held.
        let lines = |first: f64| {
            format!(
                "1 C send=100\n{first} C send=40\n401 S ack=100\n401.1 C seq=100 send=40\n401.2 S\n402 S send=9\n402.1 C\n\
                 500 C send=100\n580 S\n580.1 C send=40\n581 S send=9"
            )
        };
        let is_nagle = |first: f64| {
            let lines = opened(0.01, &lines(first));
            let found = Script { one_way_ms: 0.01, lines: &lines }.faults(VantagePoint::Client);
            found.iter().any(|(cause, _)| *cause == Cause::NagleDelayedAck)
        };
        assert_eq!((is_nagle(305.0), is_nagle(40.0)), (true, false));
    }

    #[test]
    fn pauses_of_a_program_show_no_distance() {
        // Keep-alives of the server every 26 s, acknowledged by the client; the capture begins in the middle.
        let mut lines = String::new();
        for n in 0..6 {
            let at = 26_000 * n;
            lines += &format!("{at} S send=53\n{at}.2 C\n");
        }
        let found = Script { one_way_ms: 0.05, lines: &lines }.faults_everywhere();
        assert_eq!(found, []);
    }

    #[test]
    fn data_written_a_millisecond_after_the_acknowledgement_was_not_held() {
        let lines = opened(0.01, "1 C send=100\n41 S\n42 C send=40\n43 S send=9");
        let found = Script { one_way_ms: 0.01, lines: &lines }.faults(VantagePoint::Client);
        assert_eq!(found, []);
    }

    #[test]
    fn a_segment_that_echoes_an_older_stamp_did_not_wait_for_the_acknowledgement() {
        let script = |echo: u32| {
            opened(
                15.0,
                &format!(
                    "30 C send=100 ts=1000:500\n45 S send=20 ts=515:1000\n60 C ts=1030:515\n200 S ts=670:1030\n\
                     215 C send=100 ts=1185:670\n290 S ts=760:1185\n305.2 C send=40 ts=1275:{echo}\n321 S send=500"
                ),
            )
        };
        let is_nagle = |echo: u32| {
            let found = Script { one_way_ms: 15.0, lines: &script(echo) }.faults(VantagePoint::Client);
            found.iter().any(|(cause, _)| *cause == Cause::NagleDelayedAck)
        };
        assert_eq!((is_nagle(760), is_nagle(670)), (true, false));
    }

    #[test]
    fn a_segment_of_the_same_tick_as_the_one_before_was_not_held() {
        // Its timestamp is that of the first piece, or that of the acknowledgement's arrival.
        let lines = |stamp: u32| {
            format!(
                "0 C syn ts=0:0\n15 S syn ts=500:0\n30 C ts=30:500\n300 C send=100 ts=300:500\n315 S send=100 ts=800:300\n\
                 330 C ts=330:800\n345.2 S send=40 ts={stamp}:300\n361 C ts=361:800"
            )
        };
        let found = |stamp| Script { one_way_ms: 15.0, lines: &lines(stamp) }.faults_everywhere();
        assert_eq!((found(830), found(800)), (vec![(Cause::Nagle, 30)], vec![]));
    }

    #[test]
    fn header_section_and_one_full_segment_are_no_initial_window_where_windows_scale() {
        // The window scale option is younger than initial windows of a single segment.
        let found = |scale: &str| {
            let lines = format!(
                "0 C syn{scale}\n15 S syn{scale}\n30 C\n31 C send=100\n46 S send=226\n46.1 S send=1460\n61.2 C\n\
                 76.3 S send=700\n91.4 C"
            );
            let found = Script { one_way_ms: 15.0, lines: &lines }.faults_everywhere();
            found.iter().any(|(cause, _)| *cause == Cause::Nagle)
        };
        assert_eq!((found(" scale=0"), found("")), (true, false));
    }

    #[test]
    fn short_segment_with_data_in_flight_after_a_loss_may_have_waited_for_the_window() {
        let found = |lost: &str| {
            let repair = if lost.is_empty() { "" } else { "75.4 S seq=700 send=1460\n90.5 C" };
            let lines = format!(
                "30 C send=100\n45 S send=700\n45.1 S send=1460{lost}\n45.2 S send=1460\n45.3 S send=1460\n45.4 S send=1460\n\
                 60.1 C ack=700\n60.2 C ack=700\n60.3 C ack=700\n60.4 C ack=700\n{repair}\n500 C send=100\n515 S send=700\n\
                 515.1 S send=1460\n515.2 S send=1460\n530.1 C ack=7240\n545.2 S send=300\n560 C"
            );
            let lines = opened(15.0, &lines);
            let found = Script { one_way_ms: 15.0, lines: &lines }.faults(VantagePoint::Server);
            found.iter().any(|(cause, _)| *cause == Cause::Nagle)
        };
        assert_eq!((found(""), found(" lost")), (true, false));
    }

    #[test]
    fn paced_segment_after_a_later_acknowledgement_was_not_held() {
        // The short segment was acknowledged by the acknowledgement before the one that seems to trigger the next.
        let found = |first: u32| {
            let lines = format!(
                "30 C send=100\n45 S send=974\n45.1 S send=1460\n45.2 S send=1460\n60.2 C ack={first}\n60.3 C ack=2434\n\
                 75.4 S send=545\n91 C"
            );
            let lines = opened(15.0, &lines);
            let found = Script { one_way_ms: 15.0, lines: &lines }.faults(VantagePoint::Server);
            found.iter().any(|(cause, _)| *cause == Cause::Nagle)
        };
        assert_eq!((found(974), found(500)), (false, true));
    }
}
