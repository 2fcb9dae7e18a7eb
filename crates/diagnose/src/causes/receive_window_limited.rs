//! A receive window too small for the path, or full because the program does not read.
//!
//! **Rule**: before the acknowledgement on which the sender continued, the known window did not allow what it then
//! sent. **Evidence**: the window and the data in flight. **Refuted by**: a window that allows the segment, also after
//! an acknowledgement on which a short one did not leave (Nagle's algorithm holds it); windows that cannot be read (a
//! capture that begins after the handshake, where the scale is unknown, unless the sender stops where one scale puts them,
//! again and again). A window whose edge does not move until it
//! allows no full segment has its own rule (`zero_window`). Also refuted by a queue on the path that doubles the round
//! trip, if the slowest link needs longer than a round trip for the flight: the link is never idle, and a wider window
//! only lengthens the queue. For a window update, which shows no round trip, a standing queue suffices. While a loss is repaired,
//! what arrives behind it fills any window.
//!
//! **Or**: a segment fills the window to the byte, after at least a persist timer, and is smaller than the MSS and than half of
//! the largest window. A sender leaves such a window unused until its timer expires (silly window avoidance, RFC 9293,
//! section 3.8.6.2.1). It is no retransmission, even of data that was sent before: that arrived when the window was closed,
//! and the receiver discarded it.

use wire::Duration;

use super::opening;
use crate::cause::{Cause, CauseInfo, Fix, Party};
use crate::gap::{Gap, GapEnd, GapStart};
use crate::ruling::Ruling;
use crate::text::{counted, millis};
use trace::account::Share;

pub(crate) const ABOUT: CauseInfo = CauseInfo {
    description: "The sender had filled the receiver's window and waited for it to move.",
    fixes: &[
        Fix {
            party: Party::ReceivingApplication,
            change: "read as soon as data is there; where SO_RCVBUF is set, leave it to the kernel, or \
                     set it to rate x round trip and more",
        },
        Fix {
            party: Party::ReceivingKernel,
            change: "raise the middle value of net.ipv4.tcp_rmem, with which a window begins, to rate x round trip, and the last \
                     one if the window had reached it; net.ipv4.tcp_window_scaling=1",
        },
    ],
    is_fault: true,
    min_duration: Duration::from_millis(5),
};

pub(crate) fn rule(gap: &Gap) -> Option<Ruling> {
    let ack = gap.awaited()?;
    let is_full = gap.headroom? < gap.length.min(gap.mss);
    // The acknowledgement must have opened the window far enough.
    let opened =
        ack.edge.is_some_and(|edge| edge >= gap.flight.start + gap.flight.bytes + gap.length.min(gap.mss));
    // A short segment that an earlier acknowledgement had allowed waited for something else.
    let had_window = gap.freed_early() && gap.is_short();
    // A window update shows no round trip of its own: a standing queue keeps the link busy meanwhile.
    let is_queue = gap.path.is_saturated || (gap.path.has_queue && ack.bytes == 0);
    let is_link_busy = is_queue && gap.fills_path();
    if !is_full || !opened || had_window || is_link_busy {
        return None;
    }
    // What arrives behind a loss fills any window.
    Some(match gap.was_recovering {
        Some(loss) => Ruling::plain(gap, Share::Stall(loss)),
        None => Ruling {
            saving: Some(opening::saved_with_room(gap)),
            ..Ruling::all(gap, Cause::ReceiveWindowLimited, evidence)
        },
    })
}

/// Minimum persist timer, less a tick.
const PERSIST: Duration = Duration::from_millis(190);

/// The window is too small to send into: the sender waited for its timer.
pub(crate) fn too_small(gap: &Gap) -> Option<Ruling> {
    let is_timer = matches!(gap.end, GapEnd::Data | GapEnd::Repair(_)) && gap.duration() >= PERSIST;
    let is_filled = gap.window_now == Some(gap.length) && gap.length > 0 && gap.length < gap.mss;
    let is_small = gap.widest.is_some_and(|widest| 2 * gap.length < widest);
    let is_continued = gap.before != GapStart::Data(gap.wait.side.other());
    (is_timer && is_filled && is_small && is_continued).then(|| {
        // Until the window was offered, the program had not read.
        let offered = gap.last_ack_at.filter(|at| *at > gap.wait.from.at).unwrap_or(gap.wait.from.at);
        let saving = Some(gap.wait.to.at.since(offered));
        Ruling { saving, ..Ruling::all(gap, Cause::ReceiveWindowLimited, silly) }
    })
}

fn silly(gap: &Gap) -> String {
    format!(
        "the {}'s window of {} was less than a segment ({}) and than half of what it had been: the {} must not use it until a          timer expires, and filled it to the byte (packet {}) {} after packet {}",
        gap.wait.side.other(),
        counted(gap.length, "byte"),
        gap.mss,
        gap.wait.side,
        gap.wait.to.frame,
        millis(gap.duration()),
        gap.wait.from.frame,
    )
}

fn evidence(gap: &Gap) -> String {
    format!(
        "the {}'s window of {} was full ({} in flight, packet {}); the {} waited {} for it to move",
        gap.wait.side.other(),
        counted(gap.window.unwrap_or_default(), "byte"),
        counted(gap.flight.bytes, "byte"),
        gap.flight.frames.1,
        gap.wait.side,
        millis(gap.duration()),
    )
}

#[cfg(test)]
mod tests {
    use crate::Cause;
    use crate::report::VantagePoint;
    use crate::script::{Script, opened};

    #[test]
    fn a_window_of_four_kilobytes_stops_the_sender_each_round_trip() {
        let lines = opened(
            15.0,
            "
            30 C send=100 win=4380
            45 S send=1460
            45.1 S send=1460
            45.2 S send=1460
            60.3 C win=4380
            75.4 S send=1460
            75.5 S send=1460
            75.6 S send=1460
            90.7 C win=4380
            105.8 S send=1460
            105.9 S send=400
            121 C win=4380",
        );
        let found = Script { one_way_ms: 15.0, lines: &lines }.faults_everywhere();
        assert_eq!(found, [(Cause::ReceiveWindowLimited, 30); 2]);
    }

    /// A reader of 16 kB at a time, with a segment of 64 kB (a loopback's).
    fn slow_reader(filled: u32) -> Vec<(Cause, u64)> {
        let mut lines = String::from(
            "0 C syn mss=65495\n0.01 S syn mss=65495\n0.02 C\n0.1 C send=32768\n0.2 S\n\
             1 C send=32768\n1.01 C send=32768\n1.02 S ack=65536 win=0\n50 S ack=65536 win=16384\n\
             209 C seq=65536 send=16384\n225 S ack=81920 win=16384\n449 C seq=81920 send=16384\n465 S ack=98304 win=16384\n",
        );
        for n in 0..3 {
            let at = 679 + 230 * n;
            lines += &format!("{at} C send={filled}\n{} S win=16384\n", at + 16);
        }
        Script { one_way_ms: 0.005, lines: &lines }.faults(VantagePoint::Client)
    }

    #[test]
    fn window_filled_to_the_byte_after_each_timer_is_too_small_to_use() {
        let found = slow_reader(16_384);
        assert!(found.iter().all(|(cause, _)| is_of_window(*cause)), "{found:?}");
        let lost: u64 = found.iter().map(|(_, lost)| lost).sum();
        assert!((1_130..1_150).contains(&lost), "{found:?}");
        // A program that writes this much in that rhythm does not fill it.
        let paced = slow_reader(9_000);
        assert_eq!(paced, found[..3]);
    }

    fn is_of_window(cause: Cause) -> bool {
        matches!(cause, Cause::ReceiveWindowLimited | Cause::ZeroWindow)
    }

    /// A loopback's segment is larger than any window, and the sender has sent short ones before: each still fills the window to
    /// the byte.
    #[test]
    fn window_of_less_than_a_segment_that_is_filled_each_time_holds_the_sender() {
        let mut lines = String::from(
            "0 C syn mss=65495\n0.01 S syn mss=65495 win=8192\n0.02 C\n0.1 C send=4096\n0.12 C send=4096\n\
             2 S ack=8192 win=8192\n",
        );
        for round in 0..40 {
            let at = 2.02 + 10.0 * f64::from(round);
            lines += &format!("{at} C send=8192\n{} S ack={} win=8192\n", at + 9.98, 16_384 + 8_192 * round);
        }
        let found = Script { one_way_ms: 0.005, lines: &lines }.faults(VantagePoint::Client);
        assert_eq!(found.len(), 39, "{found:?}");
        assert!(found.iter().all(|found| *found == (Cause::ReceiveWindowLimited, 10)), "{found:?}");
    }

    #[test]
    fn a_window_with_room_is_not_the_reason() {
        let lines = opened(
            15.0,
            "
            30 C send=100 win=8760
            45 S send=1460
            45.1 S send=1460
            60.2 C win=8760
            75.3 S send=1460
            75.4 S send=1460
            75.5 S send=1460
            90.7 C win=8760",
        );
        assert_eq!(Script { one_way_ms: 15.0, lines: &lines }.faults_everywhere(), []);
    }
}
