//! `simulate`'s own stalls compared with `diagnose`'s findings in their packets: two independent derivations of one name.
//!
//! The simulator's endpoints report what prevented them from sending; the diagnosis sees a capture, as of any other host.
//! Where they differ, one of them is wrong, or packets cannot show it. Only listed differences of the second kind are
//! permitted. The corpus for tuning rules is larger, and includes measurements.

use std::collections::BTreeMap;
use std::sync::Arc;

use diagnose::report::Protocol as Carrier;
use diagnose::{Cause, Diagnosis, Finding, FlowReport, KeyLog, KeyUse, Options, PacketPosition, Severity};
use packets::Reader;
use scenario::{Network, Page, Protocol, Scenario, Stack, Tls};
use simulate::{Experiment, Hosts};
use trace::Stall;
use wire::Bytes;
use wire::packet::Packet;

const NETWORKS: [&str; 5] = ["ethernet", "fast-internet", "modem", "adsl", "direcpc"];
const PAGES: [&str; 3] = ["small-cluster", "medium-cluster", "large-page"];
const PROTOCOLS: [Protocol; 4] =
    [Protocol::Http10, Protocol::Http10KeepAlive, Protocol::Http11, Protocol::Http11Pipelined];

/// Permitted differences: the endpoints' cause, the finding, and the reason why packets cannot show more.
const PERMITTED: [(&str, &str, &str); 4] = [
    (
        "delayed-ack",
        "slow-start",
        "over a modem a segment takes as long as an acknowledgement is delayed, and a few samples of a satellite's path leave as much open: it could have been in flight",
    ),
    (
        "delayed-ack",
        "congestion-window",
        "after a loss the same: the delay is within what the path varies by",
    ),
    (
        "connection-setup",
        "retransmission-timeout",
        "Solaris 2.5 retransmits a SYN after half a second, the round trip of a satellite: it counts as lost until the SYN/ACK arrives",
    ),
    (
        "send-buffer-limited",
        "receive-window-limited",
        "buffer and window are of one size, and the window is the one that can be seen",
    ),
];
/// The same over TLS and HTTP/2.
const PERMITTED_OVER_TLS: [(&str, &str, &str); 0] = [];
/// The same over HTTP/3, with the capture's own key log.
const PERMITTED_OVER_HTTP3: [(&str, &str, &str); 2] =
    [("slow-start", "nothing", SHORT), ("quic-amplification-limit", "quic-handshake", REPEATED)];
const REPEATED: &str = "the client of a satellite repeats its Initials before the first one is answered: which one was does not show";
const SHORT: &str = "shorter than a finding; or a later request is as short as an acknowledgement, for which the endpoints take it";
/// Maximum percentage of other differences: two causes within one round trip.
const MAX_OTHER_PERCENT: usize = 2;

#[test]
fn diagnosed_causes_agree_with_the_endpoints() {
    compare(scenarios(), &PERMITTED, 1_000);
}

#[test]
fn diagnosed_causes_agree_with_the_endpoints_over_tls_and_http2() {
    compare(secure_scenarios(), &PERMITTED_OVER_TLS, 1_000);
}

#[test]
fn diagnosed_causes_agree_with_the_endpoints_over_http3() {
    compare(http3_scenarios(), &PERMITTED_OVER_HTTP3, 500);
}

/// Compares at least this number of the endpoints' causes with the findings, of which only these differences are permitted.
fn compare(scenarios: impl Iterator<Item = Scenario>, permitted: &[(&str, &str, &str)], min: usize) {
    let mut pairs: BTreeMap<(String, String), (usize, String)> = BTreeMap::new();
    for scenario in scenarios {
        for (known, found) in names(&scenario) {
            let description = || {
                let Scenario { network, page, protocol, stack, tls, .. } = &scenario;
                let protocol = protocol.name();
                format!("{} over {}, {protocol}, TLS {}, {}", page.name, network.name, tls.name(), stack.name)
            };
            pairs.entry((known, found)).or_insert_with(|| (0, description())).0 += 1;
        }
    }
    let all: usize = pairs.values().map(|(count, _)| count).sum();
    assert!(all > min, "{all} stalls are too few");
    let is_known = |known: &str, found: &str| {
        known == found || permitted.iter().any(|(one, other, _)| (*one, *other) == (known, found))
    };
    let unexpected: Vec<_> = pairs.iter().filter(|((known, found), _)| !is_known(known, found)).collect();
    let count: usize = unexpected.iter().map(|(_, (count, _))| count).sum();
    assert!(count * 100 <= all * MAX_OTHER_PERCENT, "{count} of {all} differ: {unexpected:#?}");
    for (known, found, reason) in permitted {
        let occurs = pairs.contains_key(&((*known).to_owned(), (*found).to_owned()));
        assert!(occurs, "{known} is never found as {found} any more ({reason}): take it off the list");
    }
}

fn scenarios() -> impl Iterator<Item = Scenario> {
    let stacks: Vec<Stack> = Stack::listings().map(|listing| Stack::named(listing.name).unwrap()).collect();
    let of = move |(network, page, protocol)| {
        let stacks = stacks.clone();
        stacks.into_iter().map(move |stack| scenario(network, page, protocol, stack))
    };
    let grid = NETWORKS.into_iter().flat_map(|network| {
        PAGES.into_iter().flat_map(move |page| PROTOCOLS.map(|protocol| (network, page, protocol)))
    });
    grid.flat_map(of)
}

/// TLS of each kind and HTTP/2, also in the clear, on today's networks, with and without loss.
fn secure_scenarios() -> impl Iterator<Item = Scenario> {
    let protocols = [Protocol::Http11, Protocol::Http11Parallel, Protocol::Http2];
    let all = ["fibre", "cable", "dsl", "4g", "3g", "geo-satellite"].into_iter().flat_map(move |network| {
        PAGES.into_iter().flat_map(move |page| protocols.map(|protocol| (network, page, protocol)))
    });
    let loss = |percent| quantity::path::loss(percent).unwrap();
    all.flat_map(move |(network, page, protocol)| {
        Tls::ALL.into_iter().flat_map(move |tls| {
            ["0%", "1%"].map(|percent| {
                let mut scenario = scenario(network, page, protocol, Stack::LINUX);
                (scenario.network.down.loss, scenario.tls) = (loss(percent), tls);
                scenario
            })
        })
    })
}

/// The same over HTTP/3, also with certificates above the limit before the client's address is validated.
fn http3_scenarios() -> impl Iterator<Item = Scenario> {
    let networks = ["fibre", "cable", "dsl", "4g", "3g", "geo-satellite"];
    let all = networks.into_iter().flat_map(|network| PAGES.map(|page| (network, page)));
    all.flat_map(|(network, page)| {
        [Tls::V13, Tls::V13Resumed, Tls::V13EarlyData].into_iter().flat_map(move |tls| {
            [("0%", 2_000), ("0%", 12_000), ("1%", 2_000), ("3%", 2_000), ("5%", 2_000)].map(
                |(percent, chain)| {
                    let mut scenario = scenario(network, page, Protocol::Http3, Stack::LINUX);
                    scenario.network.down.loss = quantity::path::loss(percent).unwrap();
                    scenario.page.hosts[0].certificate_chain = Some(Bytes::new(chain));
                    Scenario { tls, ..scenario }
                },
            )
        })
    })
}

fn scenario(network: &str, page: &str, protocol: Protocol, stack: Stack) -> Scenario {
    Scenario::new(Network::named(network).unwrap(), Page::named(page).unwrap(), protocol, stack)
}

/// Returns for each relevant stall the endpoints' cause, and the finding at its time.
fn names(scenario: &Scenario) -> Vec<(String, String)> {
    let experiment = Experiment::new(scenario, Hosts::default()).unwrap();
    let fetched = experiment.run(0, true).unwrap();
    let Some(elapsed) = fetched.elapsed else { return Vec::new() };
    let mut capture = Vec::new();
    simulate::capture::write(&fetched.records, simulate::capture::CapturePoint::Both, &mut capture, "")
        .unwrap();
    let found = diagnosed(&capture);
    let min_ms = (elapsed.as_millis_f64() / 50.0).max(5.0);
    let stalls = experiment.spent(&fetched).stalls.into_iter().filter(|stall| stall.lost_ms >= min_ms);
    stalls.map(|stall| (stall.cause.name().to_owned(), name_at(&found, &stall))).collect()
}

/// Returns the finding that covers most of a stall, at least a third of it.
fn name_at(found: &[Stall], stall: &Stall) -> String {
    let overlap = |other: &Stall| {
        let end = (stall.at_ms + stall.lost_ms).min(other.at_ms + other.lost_ms);
        end - stall.at_ms.max(other.at_ms)
    };
    // A connection for one request is found together with its set-up, at the same time.
    let rank = |other: &Stall| (overlap(other), other.cause == stall.cause);
    let best = found.iter().max_by(|one, other| {
        let ((one, is_one), (other, is_other)) = (rank(one), rank(other));
        one.total_cmp(&other).then(is_one.cmp(&is_other))
    });
    let best = best.filter(|best| overlap(best) > 0.3 * stall.lost_ms);
    best.map_or_else(|| "nothing".to_owned(), |best| best.cause.name().to_owned())
}

/// Whether a finding is a note about the path, as long as the connection; the endpoints' stalls have no such notes.
fn is_of_the_path(finding: &Finding) -> bool {
    let notes = [Cause::PathLatency, Cause::BandwidthLimited, Cause::BottleneckQueue];
    finding.severity == Severity::Note && notes.contains(&finding.cause)
}

fn diagnosed(capture: &[u8]) -> Vec<Stall> {
    let mut reader = Reader::new(capture).unwrap();
    let mut diagnosis = Diagnosis::new(Options::default());
    let (mut began, mut keys) = (None, KeyLog::default());
    while let Some(frame) = reader.read_with(&mut |secrets| keys.read(secrets)).unwrap() {
        diagnosis.keys.get_or_insert_with(|| Arc::new(keys.clone()));
        let packet = frame.ip().map(Packet::read).unwrap().unwrap();
        began.get_or_insert(frame.at);
        diagnosis.handle(
            frame.at,
            PacketPosition { frame: frame.number, interface: frame.interface },
            &packet,
        );
    }
    diagnosis.end();
    let flows: Vec<FlowReport> = std::iter::from_fn(|| diagnosis.poll()).collect();
    for flow in flows.iter().filter(|flow| flow.protocol == Carrier::Quic) {
        assert_eq!((flow.keys, flow.account.total()), (Some(KeyUse::Read), flow.elapsed));
        assert!(flow.requests > 0);
    }
    let flows = flows.into_iter();
    let findings = flows.flat_map(|flow| flow.findings).filter(|finding| !is_of_the_path(finding));
    let stall = |finding: Finding| Stall {
        cause: finding.cause,
        at_ms: finding.at.since(began.unwrap()).as_millis_f64(),
        lost_ms: finding.lost.as_millis_f64(),
    };
    findings.map(stall).collect()
}
