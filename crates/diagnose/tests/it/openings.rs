//! Openings that get no reply, and paths with a small MTU: causes told apart by the rest of the capture and by ICMP.

use core::net::SocketAddr;

use diagnose::{Cause, Diagnosis, Finding, FlowReport, Options, PacketPosition, Severity};
use wire::packet::{Flags, Packet, TcpBuilder, TcpOption};
use wire::{Duration, Time};

use crate::report::VantagePoint;
use crate::script::Script;

const CLIENT: &str = "10.0.0.1:40000";
const SERVER: &str = "10.0.0.2:80";
/// ICMP: destination unreachable.
const UNREACHABLE: u8 = 3;

/// A capture under construction; times are in milliseconds.
struct Capture {
    diagnosis: Diagnosis,
    frame: u64,
}

impl Capture {
    fn new() -> Self {
        Self { diagnosis: Diagnosis::new(Options::default()), frame: 0 }
    }

    fn packet(&mut self, at: u64, bytes: &[u8]) {
        self.frame += 1;
        let seen = PacketPosition { frame: self.frame, interface: 0 };
        self.diagnosis.handle(
            Time::ZERO + Duration::from_millis(1_000 + at),
            seen,
            &Packet::read(bytes).unwrap(),
        );
    }

    fn tcp(&mut self, at: u64, ends: (&str, &str), flags: Flags, numbers: (u32, u32), length: usize) {
        self.packet(at, &segment(ends, flags, numbers, length));
    }

    fn syns(&mut self, client: &str, server: &str, times: &[u64]) {
        times.iter().for_each(|at| self.tcp(*at, (client, server), Flags::SYN, (99, 0), 0));
    }

    /// Opens a connection at `at`: three packets within 2 ms.
    fn handle_syn(&mut self, at: u64, client: &str, server: &str) {
        self.tcp(at, (client, server), Flags::SYN, (99, 0), 0);
        self.tcp(at + 1, (server, client), Flags::SYN | Flags::ACK, (499, 100), 0);
        self.tcp(at + 2, (client, server), Flags::ACK, (100, 500), 0);
    }

    /// An ICMP message from a router about a segment.
    fn icmp(&mut self, at: u64, code: u8, mtu: u16, quoted: &[u8]) {
        let [high, low] = mtu.to_be_bytes();
        let message = [&[UNREACHABLE, code, 0, 0, 0, 0, high, low][..], &quoted[..28]].concat();
        let length = u8::try_from(20 + message.len()).unwrap();
        let header = [0x45, 0, 0, length, 0, 0, 0, 0, 64, 1, 0, 0, 10, 9, 9, 9, 10, 0, 0, 1];
        self.packet(at, &[&header[..], &message].concat());
    }

    /// Returns the reports by client.
    fn end(mut self) -> Vec<FlowReport> {
        self.diagnosis.end();
        std::iter::from_fn(|| self.diagnosis.poll()).collect()
    }
}

/// A segment from one end to the other, with its sequence and acknowledgement numbers.
fn segment(ends: (&str, &str), flags: Flags, (seq, ack): (u32, u32), length: usize) -> Vec<u8> {
    let (source, destination): (SocketAddr, SocketAddr) = (ends.0.parse().unwrap(), ends.1.parse().unwrap());
    let mut bytes = Vec::new();
    let options = [TcpOption::Mss(1_460)];
    let options = if flags.contains(Flags::SYN) { &options[..] } else { &[] };
    TcpBuilder { source, destination, seq, ack, flags, window: u16::MAX, options }
        .write(&vec![b'x'; length], &mut bytes)
        .unwrap();
    bytes
}

/// Returns the only finding of a cause, with its connection.
fn only(reports: &[FlowReport], cause: Cause) -> (&FlowReport, &Finding) {
    let all = reports.iter().flat_map(|report| report.findings.iter().map(move |found| (report, found)));
    let found: Vec<_> = all.filter(|(_, found)| found.cause == cause).collect();
    let [one] = found[..] else { panic!("{reports:#?}") };
    one
}

/// Returns the evidence of the connection whose SYNs got no reply.
fn unanswered(capture: Capture) -> String {
    only(&capture.end(), Cause::SynUnanswered).1.evidence.clone()
}

const LADDER: [u64; 4] = [0, 1_000, 3_000, 7_000];

#[test]
fn same_syn_after_the_fin_of_its_host_begins_another_connection() {
    let mut capture = Capture::new();
    for start in [0, 79_000] {
        capture.handle_syn(start, CLIENT, SERVER);
        capture.tcp(start + 3, (CLIENT, SERVER), Flags::ACK, (100, 500), 50);
        capture.tcp(start + 4, (SERVER, CLIENT), Flags::ACK, (500, 150), 50);
        capture.tcp(start + 5, (CLIENT, SERVER), Flags::FIN | Flags::ACK, (150, 550), 0);
    }
    let reports = capture.end();
    let findings = reports.iter().flat_map(|report| &report.findings);
    let retransmitted = findings.filter(|finding| finding.cause == Cause::RetransmissionTimeout);
    assert_eq!((reports.len(), retransmitted.count()), (2, 0));
}

#[test]
fn advice_for_a_syn_on_loopback_is_about_the_backlog_alone() {
    let (client, server) = ("127.0.0.1:40000", "127.0.0.1:8000");
    // Accepted after its first retransmission, and never.
    for is_accepted in [true, false] {
        let mut capture = Capture::new();
        capture.syns(client, server, if is_accepted { &[0] } else { &LADDER });
        if is_accepted {
            capture.handle_syn(1_000, client, server);
        }
        let reports = capture.end();
        let (report, found) = only(&reports, Cause::SynUnanswered);
        assert!(found.evidence.contains("listen backlog was full"), "{}", found.evidence);
        for finding in &report.findings {
            let fixes = report.fixes(finding.cause);
            let is_of_losses = |text: &str| {
                ["Wi-Fi", "acknowledgements", "sack", "rto_min"].iter().any(|word| text.contains(word))
            };
            assert!(fixes.iter().all(|fix| !is_of_losses(fix.change)), "{:?}", finding.cause);
        }
        assert!(report.fixes(found.cause)[0].change.contains("somaxconn"));
        assert!(report.counts.iter().all(|count| count.cause != Cause::RetransmissionTimeout));
    }
}

#[test]
fn full_backlog_firewall_and_dead_host_are_told_apart() {
    let evidence = |other: Option<&str>| {
        let mut capture = Capture::new();
        if let Some(other) = other {
            capture.handle_syn(0, "10.0.0.1:50000", other);
        }
        capture.syns(CLIENT, SERVER, &LADDER.map(|at| at + 100));
        unanswered(capture)
    };
    let [backlog, firewall, dead] = [Some(SERVER), Some("10.0.0.2:22"), None].map(evidence);
    assert!(backlog.contains("sent 4 times (packets 4 to 7)"), "{backlog}");
    assert!(
        backlog.contains("other connections to this port were accepted: its listen backlog"),
        "{backlog}"
    );
    assert!(firewall.contains("replied on other ports: a firewall"), "{firewall}");
    assert!(dead.contains("nothing was heard from this host: it is down"), "{dead}");
}

#[test]
fn icmp_names_the_reason_for_a_syn_without_a_reply() {
    let report = |code: u8| {
        let mut capture = Capture::new();
        capture.syns(CLIENT, SERVER, &[0]);
        capture.icmp(5, code, 0, &segment((CLIENT, SERVER), Flags::SYN, (99, 0), 0));
        capture.end()
    };
    let (host, filter, port) = (report(1), report(13), report(3));
    let evidence = &only(&host, Cause::SynUnanswered).1.evidence;
    assert!(
        evidence.contains("10.9.9.9 reports that the host cannot be reached (ICMP, packet 2)"),
        "{evidence}"
    );
    let evidence = &only(&filter, Cause::SynUnanswered).1.evidence;
    assert!(evidence.contains("a filter forbids it (ICMP, packet 2)"), "{evidence}");
    let evidence = &only(&port, Cause::ConnectionRefused).1.evidence;
    assert!(evidence.contains("\"port unreachable\" (packet 2)"), "{evidence}");
}

/// Returns a transfer by the client whose full segment is too large: three transmissions, then halves of it if `shrinks`.
fn too_large(mtu: Option<u16>, shrinks: bool) -> Vec<FlowReport> {
    let mut capture = Capture::new();
    capture.handle_syn(0, CLIENT, SERVER);
    let times: &[u64] = if shrinks { &[10] } else { &[10, 400, 1_200, 2_800] };
    for at in times {
        capture.tcp(*at, (CLIENT, SERVER), Flags::ACK, (100, 500), 1_460);
        if let Some(mtu) = mtu {
            let quoted = segment((CLIENT, SERVER), Flags::ACK, (100, 500), 1_460);
            capture.icmp(at + 1, 4, mtu, &quoted);
        }
        // The server is there: it repeats its last acknowledgement.
        capture.tcp(at + 20, (SERVER, CLIENT), Flags::ACK, (500, 100), 0);
    }
    if shrinks {
        capture.tcp(300, (CLIENT, SERVER), Flags::ACK, (100, 500), 730);
        capture.tcp(301, (SERVER, CLIENT), Flags::ACK, (500, 830), 0);
        capture.tcp(302, (CLIENT, SERVER), Flags::ACK, (830, 500), 730);
        capture.tcp(303, (SERVER, CLIENT), Flags::ACK, (500, 1_560), 0);
    }
    capture.end()
}

#[test]
fn fragmentation_needed_is_evidence_of_the_path_mtu() {
    // Ignored: the black hole lasts to the end. Obeyed: smaller segments arrive.
    for shrinks in [false, true] {
        let reports = too_large(Some(1_300), shrinks);
        let (_, found) = only(&reports, Cause::PathMtu);
        let reported = "10.9.9.9 reported an MTU of 1300 bytes (ICMP \"fragmentation needed\", packet 5)";
        assert!(found.evidence.contains(reported), "{}", found.evidence);
        assert!(found.severity.is_worth_fixing(), "{shrinks}: {found:?}");
    }
    let silent = too_large(None, false);
    assert!(!only(&silent, Cause::PathMtu).1.evidence.contains("ICMP"));
}

#[test]
fn small_mtu_that_delays_nothing_fails_no_build() {
    let mut capture = Capture::new();
    capture.handle_syn(0, CLIENT, SERVER);
    capture.tcp(10, (CLIENT, SERVER), Flags::ACK, (100, 500), 1_000);
    capture.icmp(11, 4, 900, &segment((CLIENT, SERVER), Flags::ACK, (100, 500), 1_000));
    capture.tcp(12, (SERVER, CLIENT), Flags::ACK, (500, 1_100), 0);
    let reports = capture.end();
    let (report, found) = only(&reports, Cause::PathMtu);
    assert!(found.evidence.contains("too big for the path, and it went on; 10.9.9.9"), "{}", found.evidence);
    assert!(!report.is_worth_fixing(), "{report:#?}");
}

/// Captured at the client, in the middle of a download of which the capture never shows the client's requests.
#[test]
fn distance_of_a_connection_captured_in_the_middle_is_that_of_another_between_the_same_hosts() {
    let other_client = "10.0.0.9:50000";
    for (opens, expected) in [(Some(CLIENT), Some(31)), (Some(other_client), None), (None, None)] {
        let mut capture = Capture::new();
        let middle = ("10.0.0.1:45000", "10.0.0.2:443");
        let send = |capture: &mut Capture, at: u64, number: u32| {
            capture.tcp(at, (middle.1, middle.0), Flags::ACK, (7_000 + number * 1_000, 900), 1_000);
            capture.tcp(at + 1, (middle.0, middle.1), Flags::ACK, (900, 8_000 + number * 1_000), 0);
        };
        send(&mut capture, 0, 0);
        if let Some(client) = opens {
            capture.tcp(10, (client, SERVER), Flags::SYN, (99, 0), 0);
            capture.tcp(40, (SERVER, client), Flags::SYN | Flags::ACK, (499, 100), 0);
            capture.tcp(41, (client, SERVER), Flags::ACK, (100, 500), 0);
        }
        send(&mut capture, 200, 1);
        let reports = capture.end();
        let download = reports.iter().find(|report| report.server.port() == 443).unwrap();
        assert_eq!(download.round_trip, expected.map(Duration::from_millis), "{opens:?}");
    }
}

#[test]
fn reset_instead_of_syn_ack_is_a_refusal() {
    let script = Script { one_way_ms: 15.0, lines: "0 C syn\n15 S rst" };
    for vantage_point in [VantagePoint::Client, VantagePoint::Server, VantagePoint::Between] {
        let report = script.diagnose(vantage_point);
        let found: Vec<Cause> = report.findings.iter().map(|finding| finding.cause).collect();
        assert_eq!(found, [Cause::ConnectionRefused], "{vantage_point:?}");
        assert!(report.is_worth_fixing());
    }
}

#[test]
fn reset_after_the_handshake_is_no_refusal() {
    let script = Script { one_way_ms: 15.0, lines: "0 C syn\n15 S syn\n30 C\n31 C fin\n46 S rst" };
    assert_eq!(script.faults_everywhere(), []);
}

#[test]
fn port_of_smb_that_was_only_tried_beside_the_other_is_low() {
    let severity = |accepting: &str| {
        let mut capture = Capture::new();
        capture.handle_syn(0, "10.0.0.1:40000", accepting);
        let (client, server) = ("10.0.0.1:40001", "10.0.0.2:139");
        capture.syns(client, server, &[5]);
        capture.tcp(6, (server, client), Flags::RST | Flags::ACK, (0, 100), 0);
        let reports = capture.end();
        let mut refusals = reports.iter().flat_map(|report| &report.findings);
        let refusal = refusals.find(|finding| finding.cause == Cause::ConnectionRefused);
        refusal.map(|refusal| refusal.severity)
    };
    assert_eq!(severity("10.0.0.2:445"), Some(Severity::Low));
    assert_eq!(severity("10.0.0.2:80"), Some(Severity::High));
}

/// Happy Eyeballs: an IPv6 address that drops SYNs, and the IPv4 address of the same server.
#[test]
fn address_without_a_response_costs_the_time_until_the_client_tries_another() {
    let found = |delay: u64, port: u16, other: Option<&str>, is_scan: bool| {
        let mut capture = Capture::new();
        capture.syns("[2001:db8::1]:40000", &format!("[2001:db8::2]:{port}"), &[0]);
        if is_scan {
            capture.syns("[2001:db8::1]:40001", &format!("[2001:db8::3]:{port}"), &[1]);
        }
        capture.handle_syn(delay, CLIENT, SERVER);
        if let Some(other) = other {
            capture.handle_syn(delay + 10, other, SERVER);
        }
        capture.diagnosis.end();
        let mut flows: Vec<FlowReport> = std::iter::from_fn(|| capture.diagnosis.poll()).collect();
        diagnose::find_alternatives(&mut flows);
        let found =
            flows.iter().flat_map(|flow| &flow.findings).find(|found| found.cause == Cause::SynUnanswered);
        found.map(|found| (found.severity, found.lost))
    };
    assert_eq!(found(200, 80, None, false), Some((Severity::High, Duration::from_millis(200))));
    assert_eq!(found(30, 80, None, false), None, "tried at once");
    assert_eq!(found(5_000, 80, None, false), None, "not for this");
    assert_eq!(found(200, 81, None, false), None, "another service");
    assert_eq!(found(200, 80, Some("10.0.0.9:40000"), false), None, "one of two clients");
    assert_eq!(found(200, 80, None, true), None, "several at once");
}
