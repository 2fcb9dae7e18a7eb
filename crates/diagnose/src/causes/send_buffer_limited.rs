//! A socket buffer smaller than the path's capacity: the sender cannot have more in flight than the buffer holds, however wide the
//! windows (papers/p-http#section-2-5).
//!
//! **Rule**: three times in a row, over at least a round trip, the sender stops at the same flight, to within half a segment (an
//! eighth, if the last segment is short), below the receiver's window, without a loss, and continues promptly on acknowledgements. A
//! congestion window would grow meanwhile, by at least half a segment per round trip: from the fifth stop on nothing else fits.
//!
//! **Or**: it does not react to acknowledgements of more than a third of the data in flight (and two thirds of a segment: from a
//! distance the packets do not show exactly which one it reacted to), and continues on a later one. A congestion window releases some
//! data for each acknowledgement. Linux saves up at most a third of it to send together (`tcp_tso_win_divisor`). A program that waits
//! for its buffer is woken when a third of that is free (`sk_stream_write_space`), and until then there is nothing to send. The data
//! in flight varies with the writes: with 8 kB at a time in 16 kB it alternates between one and two writes.
//!
//! **Refuted by**: a flight that grows (except under the second rule); a loss; a full receive window; a full path, or a queue on it; a segment that
//! comes later than an acknowledgement explains, or echoes (TSecr) an earlier one; for the second rule, a short segment that ends the
//! wait, short ones in a third of the flight, or acknowledgements closer together than the path to the sender varies.

use trace::account::Share;
use wire::Duration;

use super::opening;
use crate::cause::{Cause, CauseInfo, Fix, Party};
use crate::finding::Confidence;
use crate::gap::Gap;
use crate::ruling::{Evidence, Ruling};
use crate::text::{counted, millis};

pub(crate) const ABOUT: CauseInfo = CauseInfo {
    description: "The sender never had more in flight than its socket buffer holds, though the path and the receiver would \
           have taken more.",
    fixes: &[
        Fix {
            party: Party::SendingApplication,
            change: "where SO_SNDBUF is set, leave it to the kernel, or set it to rate x round trip and \
                     more",
        },
        Fix {
            party: Party::SendingKernel,
            change: "raise the middle value of net.ipv4.tcp_wmem, with which a buffer begins, and the last one if the buffer had \
                     reached it",
        },
        Fix {
            party: Party::SendingApplication,
            change: "keep the buffer filled: write before it runs empty",
        },
    ],
    is_fault: true,
    min_duration: Duration::from_millis(5),
};

/// Number of waits at the same flight, this one included; and the number at which a congestion window would have grown by
/// at least two segments, even with delayed acknowledgements.
const ROUNDS: [usize; 2] = [3, 5];

pub(crate) fn rule(gap: &Gap) -> Option<Ruling> {
    gap.awaited()?;
    let rounds = &gap.burst.rounds;
    // Stops within one round trip have the same flight under any window: each acknowledgement releases as much as it covers.
    let is_long = rounds.last_but_one().is_some_and(|end| gap.wait.to.at.since(end) >= gap.path.round_trip);
    let equal = rounds.latest().take_while(|flight| is_same(gap, *flight)).count() + 1;
    let is_plateau = equal >= ROUNDS[0] && is_long && gap.flight.bytes >= 2 * gap.mss;
    let is_proven = is_plateau && equal >= ROUNDS[1];
    let evidence: Evidence = match (is_plateau, leaves_window_unused(gap)) {
        (true, _) => level,
        (false, true) => unused,
        (false, false) => return None,
    };
    if is_queued(gap) {
        return Some(Ruling::plain(gap, Share::Transfer));
    }
    // Data that no acknowledgement released was written late.
    (!gap.has_lost && gap.has_room && gap.is_prompt()).then(|| Ruling {
        // A receiver's window of unknown scale may be as large as the flight.
        confidence: if is_proven && gap.window.is_some() { Confidence::High } else { Confidence::Medium },
        saving: Some(opening::saved_with_room(gap)),
        ..Ruling::all(gap, Cause::SendBufferLimited, evidence)
    })
}

/// Returns whether the flight waited in a queue on the path: an acknowledgement of two full segments, which few receivers delay (RFC
/// 5681, section 4.2), took three times as long as on the empty path.
fn is_queued(gap: &Gap) -> bool {
    const LATE: Duration = Duration::from_millis(10);
    gap.awaited().is_some_and(|ack| {
        let least = gap.path.to_receiver.filter(|_| u64::from(ack.bytes) >= 2 * gap.mss);
        least.zip(ack.after()).is_some_and(|(least, after)| after >= least * 3 + LATE)
    })
}

/// Returns whether a buffer that held `before` is as full now: a window is a number of full segments, to within half of
/// one; if a short segment is the last, the buffer's size shows to the byte, and otherwise writes differ.
fn is_same(gap: &Gap, before: u64) -> bool {
    gap.is_level(before) && (!gap.ends_short() || 8 * before.abs_diff(gap.flight.bytes) <= gap.mss)
}

/// Returns whether the sender did not use what acknowledgements had freed until a later one arrived. Acknowledgements
/// of a flight are complete within some round trips: later data was written later.
fn leaves_window_unused(gap: &Gap) -> bool {
    const MIN_PAUSE: Duration = Duration::from_millis(50);
    let is_soon = gap.duration() <= MIN_PAUSE.max(gap.path.round_trip * 3);
    // A program that fills its buffer continues with full segments, and writes more than one at a time.
    let is_filled = !gap.is_short() && gap.flight.short_segments * 3 < gap.flight.segments;
    is_soon && is_filled && 3 * gap.surely_freed > gap.flight.bytes + 2 * gap.mss
}

/// Returns whether a gap may belong to a plateau that is still too short to judge.
pub(crate) fn may_be(gap: &Gap) -> bool {
    gap.awaited().is_some() && !gap.has_lost && gap.flight.bytes >= 2 * gap.mss
}

fn unused(gap: &Gap) -> String {
    format!(
        "the {} had {} in flight (packet {}); acknowledgements of {} of these passed before it sent more, \
         {} later, though each lets a congestion window go on: it had nothing more in its buffer",
        gap.wait.side,
        counted(gap.flight.bytes, "byte"),
        gap.flight.frames.1,
        gap.freed,
        millis(gap.duration()),
    )
}

fn level(gap: &Gap) -> String {
    let window = gap.window.map_or_else(String::new, |window| format!(", below the receiver's {window}"));
    format!(
        "the {} stopped repeatedly at {} in flight (packet {}){window}, with nothing lost, and waited \
         {} for an acknowledgement",
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

    /// Returns flights of these sizes in bytes, each acknowledged as a whole and followed immediately by the next.
    fn flights(sizes: &[u32]) -> String {
        let mut lines = String::from("30 C send=100\n");
        let mut now = 45.0;
        for size in sizes {
            let (full, rest) = (size / 1_460, size % 1_460);
            (0..full).for_each(|_| lines.push_str(&format!("{now} S send=1460\n")));
            if rest > 0 {
                lines.push_str(&format!("{now} S send={rest}\n"));
            }
            now += 15.0;
            lines.push_str(&format!("{now} C\n"));
            now += 15.05;
        }
        lines
    }

    #[test]
    fn a_flight_that_never_grows_is_a_buffer() {
        let lines = opened(15.0, &flights(&[16_384; 7]));
        let found = Script { one_way_ms: 15.0, lines: &lines }.faults_everywhere();
        // Includes the first wait, which looked like that of an opening window.
        assert_eq!(found, [(Cause::SendBufferLimited, 30); 6]);
    }

    #[test]
    fn growing_flight_is_no_send_buffer() {
        let lines = opened(15.0, &flights(&[14_600, 16_060, 17_520, 18_980, 20_440, 21_900]));
        assert_eq!(Script { one_way_ms: 15.0, lines: &lines }.faults_everywhere(), []);
    }

    /// Flights of `of_each` segments, sent together and acknowledged two segments at a time, a millisecond apart. On
    /// each group of acknowledgements the server sends three segments for each of them: more than was in flight before.
    fn acknowledged_by_twos(of_each: u32, vantage_point: VantagePoint) -> Vec<(Cause, u64)> {
        let mut lines = String::from("30 C send=100\n");
        let send = |lines: &mut String, at: f64, segments: u32| {
            (0..segments).for_each(|_| lines.push_str(&format!("{at:.2} S send=1460\n")));
        };
        send(&mut lines, 45.0, 12);
        let (mut begin, mut acknowledged, mut flight) = (45.0, 0, 12);
        for _ in 0..3 {
            let mut more = 0;
            for pair in 1..=flight / 2 {
                acknowledged += 2;
                let at = begin + 15.0 + f64::from(pair);
                lines.push_str(&format!("{at:.2} C ack={}\n", acknowledged * 1_460));
                if pair % of_each == 0 {
                    send(&mut lines, at + 15.05, 3 * of_each);
                    more += 3 * of_each;
                }
            }
            (begin, flight) = (begin + 30.05 + f64::from(of_each), more);
        }
        let lines = opened(15.0, &lines);
        let found = Script { one_way_ms: 15.0, lines: &lines }.faults(vantage_point);
        found.into_iter().filter(|(cause, _)| *cause == Cause::SendBufferLimited).collect()
    }

    #[test]
    fn unused_window_is_a_send_buffer() {
        let found = acknowledged_by_twos(4, VantagePoint::Server);
        assert!(found.starts_with(&[(Cause::SendBufferLimited, 34); 2]), "{found:?}");
        // From a distance they may have come together.
        assert_eq!(acknowledged_by_twos(4, VantagePoint::Client), []);
    }

    #[test]
    fn sending_on_the_first_acknowledgement_is_no_send_buffer() {
        for vantage_point in [VantagePoint::Client, VantagePoint::Server, VantagePoint::Between] {
            assert_eq!(acknowledged_by_twos(1, vantage_point), [], "{vantage_point:?}");
        }
    }

    #[test]
    fn acknowledgements_within_a_paths_jitter_may_have_come_together() {
        // Sixteen segments in 3 ms; the sender continues a round trip after the last of eight acknowledgements.
        let mut lines = String::from("30 C send=100\n");
        (0..16).for_each(|n| lines.push_str(&format!("{} S send=1460\n", 45.0 + 0.2 * f64::from(n))));
        (1..=8).for_each(|n| {
            lines.push_str(&format!("{} C ack={}\n", 60.0 + 0.4 * f64::from(n), 2_920 * n));
        });
        (0..16).for_each(|_| lines.push_str("78.3 S send=1460\n"));
        let found = Script { one_way_ms: 15.0, lines: &opened(15.0, &lines) }.faults(VantagePoint::Client);
        assert_eq!(found, []);
    }

    #[test]
    fn writes_of_varying_sizes_fill_no_buffer() {
        let found = |sizes: &[u32]| {
            let lines = opened(15.0, &flights(sizes));
            let found = Script { one_way_ms: 15.0, lines: &lines }.faults(VantagePoint::Server);
            found.iter().any(|(cause, _)| *cause == Cause::SendBufferLimited)
        };
        assert!(found(&[3_320; 7]));
        assert!(!found(&[3_320, 3_700, 3_400, 3_650, 3_300, 3_600, 3_350]));
    }

    /// Found on Linux on a busy host: a program that writes late exceeds the timer's duration, and its next stops
    /// looked like those of a restarted window.
    #[test]
    fn regress_unused_window_after_a_pause_is_no_slow_start_restart() {
        let mut lines = String::from("30 C send=100\n");
        (0..12).for_each(|_| lines.push_str("45 S send=1460\n"));
        lines.push_str("60 C\n");
        (0..8).for_each(|_| lines.push_str("500 S send=1460\n"));
        (1..=8).for_each(|n| lines.push_str(&format!("{} C ack={}\n", 515 + n, (12 + n) * 1_460)));
        lines.push_str("536.05 S send=1460\n536.1 S send=1460\n551.2 C\n");
        let lines = opened(15.0, &lines);
        let found = Script { one_way_ms: 15.0, lines: &lines }.faults(VantagePoint::Server);
        assert!(found.contains(&(Cause::SendBufferLimited, 36)), "{found:?}");
        assert!(found.iter().all(|(cause, _)| *cause != Cause::SlowStartRestart), "{found:?}");
    }

    #[test]
    fn a_few_equal_flights_are_not_enough() {
        let lines = opened(15.0, &flights(&[16_384; 3]));
        let report = Script { one_way_ms: 15.0, lines: &lines }.diagnose(VantagePoint::Server);
        assert!(!report.is_worth_fixing());
        assert!(report.account.of(crate::Share::Unknown).as_nanos() > 25_000_000);
    }

    #[test]
    fn equal_flights_within_one_round_trip_are_no_plateau() {
        // Each acknowledgement of four spaced segments releases one segment.
        let mut lines = "100 C send=100\n".to_owned();
        for n in 0..8 {
            let at = 150.0 + 25.0 * f64::from(n) + if n < 4 { 0.0 } else { 0.05 };
            lines += &format!("{at} S send=1460\n{} C\n", at + 50.0);
        }
        let lines = opened(50.0, &lines);
        let found = Script { one_way_ms: 50.0, lines: &lines }.faults_everywhere();
        assert!(found.iter().all(|(cause, _)| *cause != Cause::SendBufferLimited), "{found:?}");
    }

    /// Fifteen segments in 14 ms, each acknowledged; the next flight passes 42 ms after the first. By its echo the
    /// first acknowledgement triggered it, although the path was faster before.
    fn echoing(stamp: impl Fn(u32) -> u32) -> Vec<(Cause, u64)> {
        let mut lines =
            "0 C syn ts=0:0\n13 S syn ts=5000:0\n26 C ts=26:5000\n27 C send=100 ts=27:5000\n".to_owned();
        for flight in 0..4_u32 {
            for segment in 0..15_u32 {
                let at = 40 + 42 * flight + segment;
                let echo = if flight == 0 { 27 } else { stamp(at) };
                lines += &format!("{at} S send=1460 ts={}:{echo}\n", 5_000 + at);
                lines += &format!("{} C ts={}:{}\n", at + 13, at + 13, 5_000 + at);
            }
        }
        Script { one_way_ms: 13.0, lines: &lines }.faults(VantagePoint::Client)
    }

    #[test]
    fn acknowledgements_that_had_not_come_freed_nothing() {
        assert_eq!(echoing(|at| at - 42 + 13), []);
        let all = echoing(|at| 25 + (at - 40) / 42 * 42);
        assert!(all.iter().any(|(cause, _)| *cause == Cause::SendBufferLimited), "{all:?}");
    }

    #[test]
    fn a_program_that_goes_on_with_a_short_segment_had_not_filled_a_buffer() {
        let mut lines = String::from("30 C send=100\n");
        for n in 0..4 {
            let at = 45.0 + 100.0 * f64::from(n);
            for (after, word) in [
                (0.0, "S send=1460"),
                (0.1, "S send=1460"),
                (0.2, "S send=400"),
                (15.1, "C ack="),
                (23.0, "C ack="),
            ] {
                let to = 3_320 * n + if after < 20.0 { 2_920 } else { 3_320 };
                let ack = if word.starts_with('C') { to.to_string() } else { String::new() };
                lines += &format!("{} {word}{ack}\n", at + after);
            }
        }
        let found = Script { one_way_ms: 15.0, lines: &opened(15.0, &lines) }.faults_everywhere();
        assert!(found.iter().all(|(cause, _)| *cause != Cause::SendBufferLimited), "{found:?}");
    }
}
