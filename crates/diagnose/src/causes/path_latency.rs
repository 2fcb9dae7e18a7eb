//! Latency: most of the time was spent on round trips.
//!
//! **Rule**: round trips, the handshake and slow start took at least half of the time in which either side waited, and
//! a round trip takes at least 20 ms. A note. **Refuted by**: any other cause that took more; round trips that took three
//! times as long on average as at best, or as in another connection between the same hosts (`shared_link`): `bottleneck-queue`.

use wire::Duration;

use crate::cause::{Cause, CauseInfo, Fix, Party};
use crate::finding::Finding;
use crate::text::millis;
use crate::whole::WholeFacts;

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

pub(crate) fn note(whole: &WholeFacts<'_>) -> Option<Finding> {
    let (path_time, round_trip) = whole.path_time()?;
    if whole.has_queue || whole.path.inflated_round_trip().is_some() {
        return None;
    }
    let evidence = format!(
        "{} of {} went on round trips of {}: distance",
        millis(path_time),
        millis(whole.account.waited()),
        millis(round_trip)
    );
    Some(Finding::note(Cause::PathLatency, whole.started, path_time, evidence))
}

#[cfg(test)]
mod tests {
    use crate::Cause;
    use crate::report::VantagePoint;
    use crate::script::{Script, at_client, opened};

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

    #[test]
    fn round_trips_that_another_transfer_prolongs_are_a_queue() {
        let said = |round_trip: u32| {
            let mut lines = String::new();
            for n in 0..12 {
                let at = 100 + (round_trip + 2) * n;
                let back = at + round_trip - 15;
                lines += &format!(
                    "{at} C send=100\n{} S\n{back} S send=900\n{} C\n",
                    back - 1,
                    at + round_trip + 1
                );
            }
            let report = at_client(&lines);
            let causes = [Cause::PathLatency, Cause::BottleneckQueue];
            report
                .counts
                .iter()
                .map(|count| count.cause)
                .filter(|cause| causes.contains(cause))
                .collect::<Vec<_>>()
        };
        assert_eq!((said(31), said(370)), (vec![Cause::PathLatency], vec![Cause::BottleneckQueue]));
    }
}
