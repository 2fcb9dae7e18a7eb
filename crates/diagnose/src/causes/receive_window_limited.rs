//! A receive window too small for the path, or full because the program does not read.
//!
//! **Rule**: before the acknowledgement on which the sender continued, the known window did not allow what it then
//! sent. **Evidence**: the window and the data in flight. **Refuted by**: a window that allows the segment, also after
//! an acknowledgement on which a short one did not leave (Nagle's algorithm holds it); windows that cannot be read (a
//! capture that begins after the handshake, where the scale is unknown). A window whose edge does not move until it
//! allows no full segment has its own rule (`zero_window`). Also refuted by a queue on the path that doubles the round
//! trip, if the slowest link needs longer than a round trip for the flight: the link is never idle, and a wider window
//! only lengthens the queue. For a window update, which shows no round trip, a standing queue suffices.

use wire::Duration;

use super::opening;
use crate::cause::{Cause, CauseInfo, Fix, Party};
use crate::gap::{Gap, counted, millis};
use crate::ruling::Ruling;

pub(crate) const ABOUT: CauseInfo = CauseInfo {
    description: "The sender had filled the receiver's window and waited for it to move.",
    fixes: &[
        Fix {
            party: Party::ReceivingApplication,
            change: "do not set SO_RCVBUF (Linux then grows it), or set it to rate x round trip and more; read as soon \
                     as data is there",
        },
        Fix {
            party: Party::ReceivingKernel,
            change: "raise the limit: sysctl -w net.ipv4.tcp_rmem='4096 131072 33554432', and \
                     net.ipv4.tcp_window_scaling=1",
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
    (is_full && opened && !had_window && !is_link_busy).then(|| Ruling {
        saving: Some(opening::saved_with_room(gap)),
        ..Ruling::all(gap, Cause::ReceiveWindowLimited, evidence)
    })
}

fn evidence(gap: &Gap) -> String {
    format!(
        "the {}'s window of {} was full ({} in flight, packet {}); the {} waited {} for it to move",
        gap.side.other(),
        counted(gap.window.unwrap_or_default(), "byte"),
        counted(gap.flight.bytes, "byte"),
        gap.flight.frames.1,
        gap.side,
        millis(gap.duration()),
    )
}

#[cfg(test)]
mod tests {
    use crate::Cause;
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

    /// Eight segments of 10 ms on a path of half a second: the last of each burst queues for 70 ms, then the link is
    /// idle.
    #[test]
    fn a_burst_that_queues_for_a_moment_does_not_fill_a_long_path() {
        let mut lines = String::from("500 C send=100 win=11680\n");
        let mut now = 750.0;
        for round in 0..6 {
            (0..8).for_each(|n| lines.push_str(&format!("{} S send=1460\n", now + 0.1 * f64::from(n))));
            for pair in 1..=4 {
                let ack = 11_680 * round + 2_920 * pair;
                lines.push_str(&format!("{} C ack={ack} win=11680\n", now + 250.0 + 20.0 * f64::from(pair)));
            }
            now += 600.0;
        }
        let lines = opened(250.0, &lines);
        let found = Script { one_way_ms: 250.0, lines: &lines }.faults(crate::report::VantagePoint::Server);
        assert_eq!(
            found.iter().filter(|(cause, _)| *cause == Cause::ReceiveWindowLimited).count(),
            5,
            "{found:?}"
        );
    }

    #[test]
    fn queue_that_doubles_the_round_trip_is_not_the_receive_window() {
        // Twenty segments in flight, four acknowledged every 80 ms: the round trip is 400 ms, of which the path needs
        // 30.
        let mut lines = String::from("30 C send=100 win=29200\n");
        (0..20).for_each(|n| lines.push_str(&format!("{} S send=1460\n", 45.0 + 0.1 * f64::from(n))));
        for n in 1..12 {
            let at = 60 + 80 * n;
            lines.push_str(&format!("{at} C ack={} win=29200\n", 4 * 1_460 * n));
            (1..=4).for_each(|k| lines.push_str(&format!("{}.{k} S send=1460\n", at + 15)));
        }
        let lines = opened(15.0, &lines);
        let found = Script { one_way_ms: 15.0, lines: &lines }.faults(crate::report::VantagePoint::Server);
        let waits = found.iter().filter(|(cause, _)| *cause == Cause::ReceiveWindowLimited).count();
        assert!(waits <= 4, "{found:?}");
    }

    #[test]
    fn regress_window_update_behind_a_standing_queue_is_not_awaited() {
        // As above; later the receiver acknowledges with a smaller window, and widens it 40 ms later.
        let mut lines = String::from("30 C send=100 win=29200\n");
        (0..20).for_each(|n| lines.push_str(&format!("{} S send=1460\n", 45.0 + 0.1 * f64::from(n))));
        for n in 1..40 {
            let (at, ack) = (60 + 80 * n, 4 * 1_460 * n);
            let update = if n < 20 { at } else { at + 40 };
            if update > at {
                lines.push_str(&format!("{at} C ack={ack} win=23360\n"));
            }
            lines.push_str(&format!("{update} C ack={ack} win=29200\n"));
            (1..=4).for_each(|k| lines.push_str(&format!("{}.{k} S send=1460\n", update + 15)));
        }
        let lines = opened(15.0, &lines);
        let found = Script { one_way_ms: 15.0, lines: &lines }.faults(crate::report::VantagePoint::Server);
        assert_eq!(found, []);
    }
}
