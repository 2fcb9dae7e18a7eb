//! A receiver that takes nothing: its program does not read, its buffer is full, and it says so.
//!
//! **Rule**: the time from an acknowledgement with a window of zero to the next with room. **Evidence**: both.
//! **Refuted by**: a reset or a SYN (their windows mean nothing); a sender known to have nothing more to send.

use wire::Duration;

use crate::cause::{About, Fix, Who};

pub(crate) const ABOUT: About = About {
    what: "The receiver's buffer was full, because its program did not read: it forbade the sender to send.",
    fixes: &[
        Fix {
            who: Who::ReceivingApplication,
            change: "read as soon as data is there: do the slow work elsewhere than where the socket is read",
        },
        Fix { who: Who::ReceivingApplication, change: "a larger SO_RCVBUF if it reads in bursts" },
    ],
    is_fault: true,
    least: Duration::from_millis(1),
};

#[cfg(test)]
mod tests {
    use crate::Cause;
    use crate::report::Place;
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
        for place in [Place::Client, Place::Server, Place::Between] {
            let script = Script { one_way_ms: 15.0, lines: &lines };
            assert_eq!(script.faults(place), [(Cause::ZeroWindow, 440)], "{place:?}");
            // From the last that might be sent, 45.1 ms, to the first that might again.
            let findings = script.diagnose(place).findings;
            let closed = findings.iter().find(|finding| finding.cause == Cause::ZeroWindow).unwrap();
            let saved = closed.saving.unwrap().as_millis_f64();
            assert!((saved - 470.0).abs() < 1.0, "{place:?}: {saved}");
        }
    }
}
