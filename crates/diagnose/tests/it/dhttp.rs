//! Handcrafted dialogues of DHTTP.

use diagnose::report::Protocol;
use diagnose::{Cause, Diagnosis, FlowReport, PacketPosition};
use wire::packet::{Flags, Packet, TcpBuilder, UdpBuilder};
use wire::{Duration, Time};

const CLIENT: ([u8; 4], u16) = ([10, 0, 0, 1], 40_000);
const SERVER: ([u8; 4], u16) = ([10, 0, 0, 2], 80);
const DOOR: u16 = 41_000;

/// Packets, each with its time in milliseconds.
#[derive(Default)]
struct Script(Vec<(u64, Vec<u8>)>);

impl Script {
    fn asks(mut self, at: u64, id: u8, is_retransmission: bool) -> Self {
        let [high, low] = DOOR.to_be_bytes();
        let head = [0, 0, 0, 0, 0, 0, 0, id, high, low, u8::from(is_retransmission)];
        let request = [&head[..], b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n"].concat();
        self.datagram(at, (CLIENT, SERVER), &request);
        self
    }

    fn responses(mut self, at: u64, id: u8, response: &str) -> Self {
        let reply = [&[0, 0, 0, 0, 0, 0, 0, id][..], response.as_bytes()].concat();
        self.datagram(at, (SERVER, CLIENT), &reply);
        self
    }

    /// A segment from the server's port 8080 to the client's TCP port.
    fn segment(mut self, at: u64, flags: Flags, seq: u32, payload: &[u8]) -> Self {
        let (source, destination) = ((SERVER.0, 8_080).into(), (CLIENT.0, DOOR).into());
        let mut bytes = Vec::new();
        TcpBuilder { source, destination, seq, ack: 1, flags, window: 9_000, options: &[] }
            .write(payload, &mut bytes)
            .unwrap();
        self.0.push((at, bytes));
        self
    }

    fn datagram(&mut self, at: u64, ends: (([u8; 4], u16), ([u8; 4], u16)), payload: &[u8]) {
        let (source, destination) = (ends.0.into(), ends.1.into());
        let mut bytes = Vec::new();
        UdpBuilder { source, destination }.write(payload, &mut bytes).unwrap();
        self.0.push((at, bytes));
    }

    fn dialogue(self) -> FlowReport {
        let report = self.reports().into_iter().find(|report| report.protocol == Protocol::Dhttp).unwrap();
        assert_eq!(report.account.total(), report.elapsed);
        report
    }

    fn reports(self) -> Vec<FlowReport> {
        let mut diagnosis = Diagnosis::default();
        for (frame, (at, bytes)) in (1..).zip(&self.0) {
            let at = Time::ZERO + Duration::from_millis(*at);
            diagnosis.handle(at, PacketPosition { frame, interface: 0 }, &Packet::read(bytes).unwrap());
        }
        diagnosis.end();
        std::iter::from_fn(|| diagnosis.poll()).collect()
    }
}

/// Returns the causes and their costs in milliseconds.
fn found(report: &FlowReport) -> Vec<(Cause, u64)> {
    report.findings.iter().map(|finding| (finding.cause, finding.lost.as_nanos() / 1_000_000)).collect()
}

const OK: &str = "HTTP/1.1 200 OK\r\n\r\nbody";

#[test]
fn response_slower_than_the_quickest_is_server_time() {
    let script = Script::default().asks(0, 1, false).responses(30, 1, OK);
    let report = script.asks(40, 2, false).responses(150, 2, OK).dialogue();
    assert_eq!(found(&report), [(Cause::ServerThink, 80)]);
    let seen: Vec<_> = report.exchanges.iter().map(|one| (one.request.as_str(), one.status)).collect();
    assert_eq!(seen, [("GET /a", Some(200)), ("GET /a", Some(200))]);
    assert_eq!(report.round_trip, Some(Duration::from_millis(30)));
}

#[test]
fn resent_request_waited_for_the_clients_timer() {
    let script = Script::default().asks(0, 1, false).asks(300, 1, true).asks(900, 1, true);
    let report = script.responses(930, 1, OK).dialogue();
    assert_eq!(found(&report), [(Cause::RetransmissionTimeout, 300), (Cause::RetransmissionTimeout, 600)]);
    assert_eq!(report.exchanges[0].packets, (1, 4));
    assert_eq!(report.requests, 1);
    let fixes = report.fixes(Cause::RetransmissionTimeout).iter().map(|fix| fix.change);
    assert!(fixes.into_iter().all(|change| !change.contains("tcp")), "datagrams have no timers of TCP's");
}

#[test]
fn duplicate_captures_are_not_resends_or_responses() {
    let script = Script::default().asks(0, 1, false).asks(0, 1, false).responses(30, 1, OK);
    let report = script.responses(30, 1, OK).dialogue();
    assert_eq!(found(&report), []);
    assert_eq!((report.oddities.captured_twice, report.exchanges.len()), (1, 1));
}

#[test]
fn server_opened_connection_is_paired_with_its_requests() {
    let first = b"\0\0\0\0\0\0\0\x01HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody\0\0\0\0";
    let second =
        b"\0\0\0\x02HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    let next = 101 + u32::try_from(first.len()).unwrap();
    let script = Script::default().asks(0, 1, false).asks(1, 2, false).segment(30, Flags::SYN, 100, &[]);
    let script = script.segment(90, Flags::ACK, 101, first);
    let report = script.segment(95, Flags::ACK, next, second).dialogue();
    assert_eq!(found(&report), [(Cause::ConnectionSetup, 60)]);
    let seen: Vec<_> = report.exchanges.iter().map(|one| (one.status, one.packets)).collect();
    assert_eq!(seen, [(Some(200), (1, 4)), (Some(404), (2, 5))]);
}

#[test]
fn server_opened_connection_is_marked_as_within_the_dialogue() {
    let response = b"\0\0\0\0\0\0\0\x01HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody";
    let script = Script::default().asks(0, 1, false).segment(30, Flags::SYN, 100, &[]);
    let reports = script.segment(90, Flags::ACK, 101, response).reports();
    let reported: Vec<_> =
        reports.iter().map(|report| (report.protocol, report.is_within_dialogue)).collect();
    assert_eq!(reported, [(Protocol::Dhttp, false), (Protocol::Tcp, true)]);
}

#[test]
fn bare_id_ends_the_exchange_without_a_response() {
    let report = Script::default().asks(0, 1, false).responses(30, 1, "").dialogue();
    assert_eq!((report.exchanges.len(), report.exchanges[0].status), (1, None));
}
