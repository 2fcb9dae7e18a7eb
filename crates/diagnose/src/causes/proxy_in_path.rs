//! A proxy or NAT near the client that acknowledges for the server, or completes handshakes for it.
//!
//! **Rule**: at least two acknowledgements of the client's data, and eight of ten, came within a tenth of the time that
//! the SYN/ACK took, and that was at least 20 ms. Or the SYN/ACK came within a tenth of the time of acknowledgements
//! that no receiver delays. A note; the time of the handshake then counts as the round trip when the server responds.
//! **Refuted by**: a retransmitted SYN (which delayed the SYN/ACK).

use wire::Duration;

use crate::cause::{Cause, CauseInfo, Fix, Party};
use crate::finding::Finding;
use crate::gap::{Gap, GapEnd, GapStart};
use crate::ruling::Ruling;
use crate::side::Side;
use crate::text::millis;
use crate::whole::WholeFacts;
use trace::account::Share;

pub(crate) const ABOUT: CauseInfo = CauseInfo {
    description: "A proxy or NAT near the client acknowledges for the server.",
    fixes: &[Fix {
        party: Party::Network,
        change: "capture between it and the server to see that path (slirp, Docker Desktop, service meshes, VPN clients)",
    }],
    is_fault: false,
    min_duration: Duration::ZERO,
};

/// A response one round trip after its request: the round trip is that of the handshake, because acknowledgements come
/// from the proxy.
pub(crate) fn rule(gap: &Gap) -> Option<Ruling> {
    let beyond = gap.path.beyond_proxy?;
    let is_turn = gap.wait.side == Side::Server
        && gap.before == GapStart::Data(Side::Client)
        && matches!(gap.end, GapEnd::Data);
    let is_distance = gap.duration() <= beyond + beyond / 4;
    (is_turn && is_distance).then(|| Ruling::plain(gap, Share::RoundTrip))
}

/// Notes acknowledgements that arrive much sooner or much later than the SYN/ACK did.
pub(crate) fn note(whole: &WholeFacts<'_>) -> Option<Finding> {
    let proxy = whole.path.proxy(Side::Server)?;
    let (handshake, data) = (millis(proxy.handshake), millis(proxy.data));
    let evidence = if proxy.data < proxy.handshake {
        format!(
            "the SYN/ACK came {handshake} after the SYN, acknowledgements of data come after {data}: a proxy or NAT nearby \
             acknowledges for the server, and the round trip to it is not seen"
        )
    } else {
        format!(
            "the SYN/ACK came {handshake} after the SYN, acknowledgements of data come after {data}: something nearby \
             answers handshakes for the server"
        )
    };
    Some(Finding::note(Cause::ProxyInPath, whole.started, Duration::ZERO, evidence))
}

#[cfg(test)]
mod tests {
    use crate::Cause;
    use crate::report::VantagePoint;
    use crate::script::Script;

    fn found(lines: &str) -> (bool, Vec<(Cause, u64)>) {
        let script = Script { one_way_ms: 0.1, lines };
        let report = script.diagnose(VantagePoint::Client);
        (
            report.counts.iter().any(|count| count.cause == Cause::ProxyInPath),
            script.faults(VantagePoint::Client),
        )
    }

    #[test]
    fn quick_acknowledgements_after_a_long_handshake_show_a_proxy() {
        let lines = "0 C syn\n500 S syn\n500.2 C\n501 C send=100\n501.2 S\n1015 S send=900\n1015.3 C
            1020 C send=100\n1020.2 S\n1530 S send=900\n1530.3 C";
        assert_eq!(found(lines), (true, vec![]));
    }

    #[test]
    fn a_handshake_as_long_as_the_round_trip_shows_none() {
        let lines = "0 C syn\n0.1 S syn\n0.3 C\n1 C send=100\n1.2 S\n515 S send=900\n515.3 C\n520 C send=100\n520.2 S\n1030 S send=900";
        let (is_proxy, faults) = found(lines);
        assert!(!is_proxy);
        assert_eq!(faults.len(), 2, "{faults:?}");
    }
}
