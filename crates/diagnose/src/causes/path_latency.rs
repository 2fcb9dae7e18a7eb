//! Latency: most of the time was spent on round trips.
//!
//! **Rule**: round trips, the handshake and slow start took at least half of the time in which either side waited, and
//! a round trip takes at least 20 ms. A note. **Refuted by**: any other cause that took more.

use wire::Duration;

use crate::cause::{CauseInfo, Fix, Party};

pub(crate) const ABOUT: CauseInfo = CauseInfo {
    description: "Most of the time went on round trips: the server is far away.",
    fixes: &[
        Fix {
            party: Party::ServerApplication,
            change: "serve from a nearer place (a CDN, a regional server)",
        },
        Fix {
            party: Party::ClientApplication,
            change: "fewer round trips: concurrent requests, persistent connections",
        },
    ],
    is_fault: false,
    min_duration: Duration::ZERO,
};

#[cfg(test)]
mod tests {
    use crate::Cause;
    use crate::report::VantagePoint;
    use crate::script::{Script, opened};

    fn is_said(one_way_ms: f64, lines: &str) -> bool {
        let lines = opened(one_way_ms, lines);
        let report = Script { one_way_ms, lines: &lines }.diagnose(VantagePoint::Client);
        report.counts.iter().any(|count| count.cause == Cause::PathLatency)
    }

    #[test]
    fn prompt_but_distant_server_is_path_latency() {
        assert!(is_said(50.0, "100 C send=100\n151 S send=900\n201 C"));
        assert!(!is_said(50.0, "100 C send=100\n900 S send=900\n950 C"));
        assert!(!is_said(0.5, "1 C send=100\n1.6 S send=900\n2.1 C"));
    }
}
