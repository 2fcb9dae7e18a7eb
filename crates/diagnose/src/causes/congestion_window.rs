//! A window made small by losses: the sender waits for acknowledgements though the path has room.
//!
//! **Rule**: a sender that has lost something waits for an acknowledgement in the middle of sending, the receiver's
//! window has room and the path is not full. **Refuted by**: a queue on the path (`transfer`), a window without room, a flight
//! as large as any before: no loss has made that smaller.

use wire::Duration;

use super::opening;
use crate::cause::{About, Cause, Fix, Who};
use crate::gap::{Gap, millis};
use crate::judge::{Confidence, Ruling};

pub(crate) const ABOUT: About = About {
    what: "Losses had made the sender's window small, and it waited for acknowledgements though the path had room.",
    fixes: &[
        Fix {
            who: Who::Network,
            change: "find where packets are lost (a queue too short, a faulty link, a policer)",
        },
        Fix {
            who: Who::SendingKernel,
            change: "a congestion control that stray losses do not slow down (sysctl -w \
                     net.ipv4.tcp_congestion_control=bbr)",
        },
    ],
    is_fault: true,
    least: Duration::from_millis(10),
};

pub(crate) fn rule(gap: &Gap) -> Option<Ruling> {
    gap.awaited()?;
    let is_smaller = gap.flight.bytes + gap.mss <= gap.largest_flight;
    (gap.has_lost && is_smaller && gap.has_room).then(|| Ruling {
        confidence: Confidence::Medium,
        saving: Some(opening::saved_without_loss(gap)),
        ..Ruling::all(gap, Cause::CongestionWindow, evidence)
    })
}

fn evidence(gap: &Gap) -> String {
    format!(
        "after losses the {} stopped at {} bytes on their way (packet {}) and waited {}; it had had {} before",
        gap.side,
        gap.flight.bytes,
        gap.flight.frames.1,
        millis(gap.duration()),
        gap.largest_flight,
    )
}

#[cfg(test)]
mod tests {
    use crate::Cause;
    use crate::report::Place;
    use crate::script::{Script, opened};

    #[test]
    fn small_flights_after_a_loss_are_the_losss() {
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
        let found = Script { one_way_ms: 15.0, lines: &lines }.faults(Place::Server);
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
        let findings = Script { one_way_ms: 15.0, lines: &lines }.diagnose(Place::Server).findings;
        let of_it = findings.iter().filter(|finding| finding.cause != Cause::ConnectionSetup);
        let saved: f64 =
            of_it.filter_map(|finding| finding.saving).map(|saving| saving.as_millis_f64()).sum();
        assert!((saved - 285.0).abs() < 2.0, "{saved}");
    }
}
