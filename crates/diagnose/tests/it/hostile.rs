//! Hostile captures: every packet by itself is well-formed, but together they are more numerous, later or earlier than
//! on any network. Not about run time: `cargo bench -p roundtrip-diagnose --bench hostile` measures that.

use diagnose::{Diagnosis, FlowReport, Options, PacketPosition};
use wire::packet::{Flags, Packet, TcpBuilder};
use wire::{Duration, Time};

/// Feeds packets into a diagnosis.
struct Capture {
    diagnosis: Diagnosis,
    frame: u64,
    reports: Vec<FlowReport>,
}

impl Capture {
    fn new() -> Self {
        Self { diagnosis: Diagnosis::new(Options::default()), frame: 0, reports: Vec::new() }
    }

    /// Adds a segment of the client with this number, or of its server.
    fn segment(&mut self, at: Time, client: u32, is_up: bool, flags: Flags, seq: u32, payload: &[u8]) {
        let [a, b, c, d] = client.to_be_bytes();
        let (here, there) = (([10, a, b, c], 1_024 + u16::from(d)).into(), ([192, 168, 0, 1], 80).into());
        let (source, destination) = if is_up { (here, there) } else { (there, here) };
        let mut bytes = Vec::new();
        TcpBuilder { source, destination, seq, ack: 1, flags, window: u16::MAX, options: &[] }
            .write(payload, &mut bytes)
            .unwrap();
        self.frame += 1;
        let seen = PacketPosition { frame: self.frame, interface: 0 };
        self.diagnosis.handle(at, seen, &Packet::read(&bytes).unwrap());
        self.reports.extend(std::iter::from_fn(|| self.diagnosis.poll()));
    }

    fn end(mut self) -> Vec<FlowReport> {
        self.diagnosis.end();
        self.reports.extend(std::iter::from_fn(|| self.diagnosis.poll()));
        for report in &self.reports {
            assert_eq!(report.account.total(), report.elapsed);
        }
        self.reports
    }
}

fn millis(count: u64) -> Time {
    Time::ZERO + Duration::from_millis(count)
}

#[test]
fn segments_in_the_worst_order_are_one_connection() {
    const COUNT: u32 = 10_000;
    let orders: [fn(u32) -> u32; 3] = [
        // Backwards; every other one missing until the end; pseudo-random.
        |index| COUNT - 1 - index,
        |index| if index < COUNT / 2 { 2 * index + 1 } else { 2 * (index - COUNT / 2) },
        |index| index * 7_919 % COUNT,
    ];
    for order in orders {
        let mut capture = Capture::new();
        for index in 0..COUNT {
            let seq = 1 + order(index) * 100;
            capture.segment(millis(u64::from(index)), 0, true, Flags::ACK, seq, &[b'x'; 100]);
        }
        let reports = capture.end();
        assert_eq!((reports.len(), reports[0].packets), (1, u64::from(COUNT)));
        assert!(reports[0].findings.len() < 1_000, "{} findings", reports[0].findings.len());
    }
}

#[test]
fn endless_handshakes_are_dropped_before_they_fill_the_memory() {
    const OPENINGS: u32 = 40_000;
    let mut capture = Capture::new();
    let (mut waiting, mut most) = (0_usize, 0);
    for client in 0..OPENINGS {
        let known = capture.reports.len();
        capture.segment(millis(0), client, true, Flags::SYN, 7, &[]);
        waiting = waiting + 1 - (capture.reports.len() - known);
        most = most.max(waiting);
    }
    assert!(most <= 1 << 14, "{most} were kept at once");
    assert_eq!(capture.end().len(), OPENINGS as usize);
}

#[test]
fn clock_jumps_are_counted_and_add_no_lost_time() {
    let times = [0, 10, u64::MAX / 2_000_000, 20, 30, 5, 40].map(millis);
    let mut capture = Capture::new();
    for (index, at) in (0_u32..).zip(times.into_iter().chain([Time::MAX])) {
        capture.segment(at, 0, index % 2 == 0, Flags::ACK, 1 + index * 100, &[b'x'; 100]);
    }
    let reports = capture.end();
    // One step back, after which times continue, and one packet out of order.
    assert_eq!((reports.len(), reports[0].oddities.backwards), (1, 2));
}

#[test]
fn connections_beyond_those_followed_are_counted_until_others_are_idle() {
    const FOLLOWED: u32 = 1 << 14;
    let mut capture = Capture::new();
    for client in 0..FOLLOWED + 100 {
        capture.segment(millis(0), client, true, Flags::ACK, 1, b"x");
    }
    let totals = capture.diagnosis.totals();
    assert_eq!((totals.beyond, totals.evicted, capture.reports.len()), (100, 0, 0), "all are active");
    // All connections but the first are idle: the next one evicts some, and is followed itself.
    capture.segment(millis(11_000), 0, true, Flags::ACK, 2, b"x");
    capture.segment(millis(11_000), FOLLOWED, true, Flags::ACK, 2, b"x");
    capture.segment(millis(11_000), FOLLOWED, true, Flags::ACK, 3, b"x");
    let totals = capture.diagnosis.totals();
    assert_eq!((totals.beyond, totals.evicted), (100, u64::from(FOLLOWED / 8)));
    let reports = capture.end();
    let packets = |client: u32| {
        let port = 1_024 + u16::from(client.to_be_bytes()[3]);
        let [a, b, c, _] = client.to_be_bytes();
        let socket = std::net::SocketAddr::from(([10, a, b, c], port));
        reports.iter().filter(|report| report.client == socket).map(|report| report.packets).sum::<u64>()
    };
    assert_eq!((packets(0), packets(FOLLOWED), packets(FOLLOWED + 1)), (2, 2, 0));
}

/// The capture's clock advances by two minutes before the response, the server's by as much, or by 100 ms.
#[test]
fn minutes_that_the_sender_did_not_see_are_no_wait() {
    let waits = |stamp: u32| {
        let lines = format!(
            "0 C syn ts=0:0\n15 S syn ts=7015:0\n30 C ts=30:7015\n31 C hex=474554202f20485454502f312e310d0a0d0a ts=31:7015\n\
             46 S ts=7046:31\n120146 S hex=485454502f312e3120323030204f4b0d0a436f6e74656e742d4c656e6774683a20320d0a0d0a6f6b ts={stamp}:31\n120161 C ts=120161:{stamp}"
        );
        let script = super::script::Script { one_way_ms: 15.0, lines: &lines };
        script.diagnose(diagnose::report::VantagePoint::Client).is_worth_fixing()
    };
    assert_eq!((waits(7_146), waits(127_146)), (false, true));
}
