//! A receiver that accepts no data: its program does not read, its buffer is full, and it advertises that.
//!
//! **Rule**: the time from an acknowledgement with a zero window to the next one that opens it
//! (`flow/closed_windows.rs`). **Or** with a window smaller than a segment whose edge did not move when data was
//! acknowledged: the data was not read. A sender does not split a segment to fill a partial window (RFC 9293, section
//! 3.8.6.2.1) until its timer expires. **Evidence**: both packets, or probes that never got an open window. **Refuted
//! by**: a reset or a SYN (their windows mean nothing); a sender that neither probed nor sent as soon as the window
//! opened; an edge that moves; half of the largest window, however large a segment may be (a loopback's is 64 kB).
//!
//! **Saved** is the time from the first acknowledgement that did not advance the window and left the sender blocked:
//! had the program read, the sender would have continued then.

use wire::Duration;

use crate::cause::{Cause, CauseInfo, Describe as _, Fix, Party};
use crate::failure::ClosedWindow;
use crate::finding::Finding;
use crate::text::millis;

pub(crate) const ABOUT: CauseInfo = CauseInfo {
    description: "The receiver's buffer was full, because its program did not read: it advertised a window of zero.",
    fixes: &[
        Fix {
            party: Party::ReceivingApplication,
            change: "read as soon as data is there: do the slow work elsewhere than where the socket is read",
        },
        Fix { party: Party::ReceivingApplication, change: "a larger SO_RCVBUF if it reads in bursts" },
    ],
    is_fault: true,
    min_duration: Duration::from_millis(1),
};

/// Detects a window that was opened again; the sender was `halted` for a part of that time, which a fix would save.
pub(crate) fn rule(closed: &ClosedWindow, halted: Duration) -> Option<Finding> {
    let ClosedWindow { window, probes, wait } = *closed;
    // A small window that was opened without a probe was too small, but not closed.
    let cause = if window == 0 || probes > 0 { Cause::ZeroWindow } else { Cause::ReceiveWindowLimited };
    let evidence = format!(
        "the {} offered a window of {window} (packet {}) and opened it again (packet {}) {} later",
        wait.side.other(),
        wait.from.frame,
        wait.to.frame,
        millis(wait.duration())
    );
    let is_long = wait.duration() >= Cause::ZeroWindow.about().min_duration;
    is_long.then(|| Finding { saving: Some(halted), ..wait.finding(cause, evidence) })
}

/// Returns the finding of a window that was never opened again, and that its sender probed.
pub(crate) fn to_the_end(closed: &ClosedWindow) -> Finding {
    let ClosedWindow { window, probes, wait } = *closed;
    let times = if probes == 1 { "once".to_owned() } else { format!("{probes} times") };
    let evidence = format!(
        "the {} offered a window of {window} (packet {}) and never opened it again, to the end of the \
         connection (packet {}) {} later; the {} probed it {times}",
        wait.side.other(),
        wait.from.frame,
        wait.to.frame,
        millis(wait.duration()),
        wait.side
    );
    wait.finding(Cause::ZeroWindow, evidence)
}

#[cfg(test)]
mod tests {
    use crate::Cause;
    use crate::report::VantagePoint;
    use crate::script::{Script, opened};

    #[test]
    fn a_receiver_that_does_not_read_is_named_until_it_does() {
        let lines = opened(
            15.0,
            "
            30 C send=100 win=2920
            45 S send=1460
            45.1 S send=1460
            60.2 C win=0
            300 S seq=2919 send=1
            315.1 C win=0
            500 C win=5840
            515.1 S send=1460
            530.2 C win=5840",
        );
        for vantage_point in [VantagePoint::Client, VantagePoint::Server, VantagePoint::Between] {
            let script = Script { one_way_ms: 15.0, lines: &lines };
            assert_eq!(script.faults(vantage_point), [(Cause::ZeroWindow, 440)], "{vantage_point:?}");
            // From the acknowledgement that should have allowed more data, 60.2 ms, to the one that did.
            let findings = script.diagnose(vantage_point).findings;
            let closed = findings.iter().find(|finding| finding.cause == Cause::ZeroWindow).unwrap();
            let saved = closed.saving.unwrap().as_millis_f64();
            assert!((saved - 439.8).abs() < 1.0, "{vantage_point:?}: {saved}");
        }
    }

    /// Found on Linux: the program does not read, and the remaining window is smaller than a segment.
    #[test]
    fn regress_a_window_with_less_room_than_a_segment_is_closed_while_its_edge_stands_still() {
        let first = |bytes: u32, vantage_point: VantagePoint| {
            let lines = format!(
                "30 C send=100 win=3208
                45 S send=1460
                45.1 S send=1460
                60.3 C ack=2920 win=288
                279 S send={bytes}
                294 C win=65535
                309.1 S send=1460"
            );
            let lines = opened(15.0, &lines);
            Script { one_way_ms: 15.0, lines: &lines }.faults(vantage_point)[0]
        };
        for vantage_point in [VantagePoint::Client, VantagePoint::Server, VantagePoint::Between] {
            assert_eq!(first(288, vantage_point), (Cause::ZeroWindow, 234), "{vantage_point:?}");
            assert_eq!(first(200, vantage_point), (Cause::ZeroWindow, 234), "{vantage_point:?}");
        }
    }
}
