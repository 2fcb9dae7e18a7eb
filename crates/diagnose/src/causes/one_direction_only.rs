//! A capture with only one direction of a connection.
//!
//! **Rule**: no packet of one side was captured, although the other acknowledges it. A note. Of its waits one direction shows
//! the server's: from the server's own acknowledgement of a request to its response, or, at the client, until the client
//! acknowledges the response, less the round trip of the handshake and what the echoed timestamp (TSecr) shows that the client
//! delayed. Without timestamps a delayed acknowledgement may have taken 200 ms of it. **Confidence low** in a protocol that
//! cannot be read. The other waits are `unknown`; if they are long, the capture has no verdict. **Refuted by**: any packet of the
//! other side; a SYN without an acknowledgement.

use dissect::{Mark, Side};
use wire::Duration;

use crate::cause::{Cause, CauseInfo, Describe as _, Fix, Party};
use crate::causes::think;
use crate::finding::{Confidence, Finding, Severity};
use crate::gap::Wait;
use crate::text::millis;
use crate::whole::WholeFacts;

pub(crate) const ABOUT: CauseInfo = CauseInfo {
    description: "Only one direction of the connection was captured.",
    fixes: &[Fix {
        party: Party::Network,
        change: "capture where both directions pass (asymmetric routes, one leg of a bond, a one-way mirror port)",
    }],
    is_fault: false,
    min_duration: Duration::ZERO,
};

pub(crate) fn note(whole: &WholeFacts<'_>) -> Option<Finding> {
    let missing = whole.missing?;
    let evidence = format!(
        "no packet of the {missing} was captured: what it did shows only in what the other side acknowledged and when"
    );
    Some(Finding::note(Cause::OneDirectionOnly, whole.started, Duration::ZERO, evidence))
}

/// Pauses from here on are counted, where one direction does not explain them: in a small flight, and in a long one.
pub(crate) const NOTICEABLE: Duration = Duration::from_millis(20);
pub(crate) const LONG: Duration = Duration::from_millis(100);
/// After this silence no side waits.
pub(crate) const IDLE: Duration = Duration::from_secs(30);
/// No round trip is longer.
pub(crate) const LONGEST_PATH: Duration = Duration::from_secs(1);

/// Returns the time of a server before a response that the client acknowledged after it had `waited`, beyond the round trip, if
/// the acknowledgement was sent `late`.
pub(crate) fn shown(waited: Duration, late: Option<Duration>) -> Duration {
    /// Longest delay of acknowledgements by common stacks (Windows, Linux on slow connections).
    const DELAYED: Duration = Duration::from_millis(200);
    waited.saturating_sub(late.unwrap_or(DELAYED))
}

/// Returns the finding of a response that was not captured, `thought` after its request.
pub(crate) fn response(from: Mark, to: Mark, thought: Duration, is_readable: bool) -> Option<Finding> {
    if thought < think::SERVER.min_duration {
        return None;
    }
    let evidence = format!(
        "the request left (packet {}) and its response was acknowledged (packet {}): at least {} of this were the server's, the \
         round trip of the handshake and a delayed acknowledgement subtracted; its own packets were not captured",
        from.frame,
        to.frame,
        millis(thought)
    );
    let confidence = if is_readable { Confidence::High } else { Confidence::Low };
    let finding = Wait { from, to, side: Side::Server }.finding(Cause::ServerThink, evidence);
    let severity = Severity::most(Cause::ServerThink).unless(!is_readable);
    Some(Finding { lost: thought, saving: Some(thought), confidence, severity, ..finding })
}

/// Returns whether one direction shows a cause: losses, the server's time, and what blames neither side.
pub(crate) fn shows(cause: Cause) -> bool {
    let is_shown = matches!(
        cause,
        Cause::RetransmissionTimeout
            | Cause::FastRetransmit
            | Cause::TailLossProbe
            | Cause::TlsAlert
            | Cause::ServerThink
            | Cause::ConnectionPerRequest
    );
    is_shown
        || !cause.about().is_fault
            && !matches!(cause, Cause::ClientThink | Cause::SlowStart | Cause::HeadOfLine)
}

#[cfg(test)]
mod tests {
    use crate::report::VantagePoint;
    use crate::script::{Script, opened};
    use crate::{Cause, Side};

    #[test]
    fn missing_direction_is_noted_and_only_the_server_is_timed() {
        let lines =
            opened(15.0, "30 C send=100\n900 S send=1460\n915 C\n950 C send=100\n2000 S send=1460\n2015 C");
        let script = Script { one_way_ms: 15.0, lines: &lines };
        for side in [Side::Client, Side::Server] {
            let report = script.diagnose_only(VantagePoint::Client, side);
            assert_eq!(report.missing_direction, Some(side.other()));
            assert!(!report.is_worth_fixing(), "{:?}", report.findings);
            assert!(report.counts.iter().any(|count| count.cause == Cause::OneDirectionOnly));
        }
        assert_eq!(script.diagnose(VantagePoint::Client).missing_direction, None);
    }
}
