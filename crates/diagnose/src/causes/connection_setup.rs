//! The handshake: a round trip before the first request.
//!
//! **Rule**: the time between the segments of the handshake. **Refuted by**: a retransmitted SYN, which is a loss
//! rather than distance (`retransmission`). Not a fault by itself, only if every request pays for it
//! (`connection_per_request`).

use wire::Duration;

use crate::cause::{Cause, CauseInfo, Fix, Party};
use crate::gap::{Gap, GapEnd};
use crate::ruling::Ruling;
use trace::account::Share;

pub(crate) const ABOUT: CauseInfo = CauseInfo {
    description: "Opening the connection took a round trip before the first request could leave.",
    fixes: &[
        Fix { party: Party::ClientApplication, change: "keep connections open and reuse them" },
        Fix {
            party: Party::ServerApplication,
            change: "allow keep-alive (nginx keepalive_timeout, Apache KeepAlive On, Node server.keepAliveTimeout)",
        },
        Fix {
            party: Party::ServerApplication,
            change: "for idempotent requests, TCP Fast Open (socket option TCP_FASTOPEN, \
                     sysctl net.ipv4.tcp_fastopen=3)",
        },
    ],
    is_fault: false,
    min_duration: Duration::from_millis(5),
};

pub(crate) fn rule(gap: &Gap) -> Option<Ruling> {
    match gap.end {
        GapEnd::Handshake { previous: _ } => Some(Ruling::plain(gap, Share::Stall(Cause::ConnectionSetup))),
        GapEnd::Data | GapEnd::Repair(_) | GapEnd::Fin | GapEnd::Reset => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::Cause;
    use crate::report::VantagePoint;
    use crate::script::{Script, opened};

    #[test]
    fn the_handshake_takes_a_round_trip_and_is_no_fault() {
        let lines = opened(15.0, "30 C send=100\n46 S send=100");
        for vantage_point in [VantagePoint::Client, VantagePoint::Server, VantagePoint::Between] {
            let report = Script { one_way_ms: 15.0, lines: &lines }.diagnose(vantage_point);
            let [setup, distance] = &report.findings[..] else { panic!("{:?}", report.findings) };
            assert_eq!(distance.cause, Cause::PathLatency);
            assert_eq!((setup.cause, setup.lost.as_nanos()), (Cause::ConnectionSetup, 30_000_000));
            assert_eq!(
                (report.round_trip.unwrap().as_nanos(), report.vantage_point),
                (30_000_000, vantage_point)
            );
        }
    }
}
