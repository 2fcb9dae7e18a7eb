//! Invariants for any sequence of well-formed segments and datagrams, even a contradictory one: the flow table, HTTP in
//! streams and DHTTP. Not files: those are `capture`'s.
//!
//! Eight bytes are a packet: sender and connection, TCP flags, sequence number, acknowledgement number, payload (one of a
//! few), and time since the previous packet.

use diagnose::report::Protocol;
use diagnose::{Diagnosis, FlowReport, Options, PacketPosition};
use wire::packet::{Flags, Packet, TcpBuilder, UdpBuilder};
use wire::{Duration, Time};

/// Panics if these bytes violate an invariant.
pub(crate) fn check(bytes: &[u8]) {
    let packets = packets(bytes);
    let flows = diagnosed(&packets, Time::ZERO);
    for flow in &flows {
        assert_eq!(flow.account.total(), flow.elapsed);
        assert!(flow.packets > 0 && flow.packets <= packets.len() as u64);
        for finding in &flow.findings {
            assert!(finding.lost <= flow.elapsed && finding.at >= flow.started, "{finding:?}");
            assert!(finding.packets.iter().all(|packet| (1..=packets.len() as u64).contains(packet)));
        }
        for exchange in &flow.exchanges {
            assert!(
                exchange.elapsed <= flow.elapsed && exchange.account.total() <= flow.elapsed,
                "{exchange:?}"
            );
            if flow.protocol == Protocol::Dhttp {
                assert_eq!(exchange.account.total(), exchange.elapsed);
            }
        }
    }
    assert_eq!(format!("{flows:?}"), format!("{:?}", diagnosed(&packets, Time::ZERO)), "not the same again");
    let since = packets.get(packets.len() / 2).map_or(Time::ZERO, |(at, _)| *at);
    for flow in diagnosed(&packets, since) {
        let end = flow.started + flow.elapsed;
        assert_eq!(flow.account.total(), flow.elapsed.min(end.since(since)));
    }
}

fn diagnosed(packets: &[(Time, Vec<u8>)], since: Time) -> Vec<FlowReport> {
    let mut diagnosis = Diagnosis::new(Options { is_plotted: true, since });
    for (frame, (at, bytes)) in (1..).zip(packets) {
        let packet = Packet::read(bytes).expect("it was just built");
        diagnosis.handle(*at, PacketPosition { frame, interface: 0 }, &packet);
    }
    diagnosis.end();
    std::iter::from_fn(|| diagnosis.poll()).collect()
}

const PAYLOADS: [&[u8]; 16] = [
    b"",
    b"x",
    &[b'x'; 1_460],
    b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 1460\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/1.0 200 OK\r\n\r\n",
    b"\0\0\0\0\0\0\0\x01\xa0\0\0GET /a HTTP/1.1\r\nHost: a\r\n\r\n",
    b"\0\0\0\0\0\0\0\x01\xa0\0\x01GET /a HTTP/1.1\r\nHost: a\r\n\r\n",
    b"\0\0\0\0\0\0\0\x02\xa0\0\0HEAD /b HTTP/1.1\r\nHost: a\r\n\r\n",
    b"\0\0\0\0\0\0\0\x01HTTP/1.1 200 OK\r\n\r\nabc",
    b"\0\0\0\0\0\0\0\x01HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc\0\0\0\0\0\0\0\x02HTTP/1.1 304 Not\r\n\r\n",
    b"\0\0\0\0\0\0\0\x02",
    b"\r\n",
];

/// The packets that `bytes` stand for.
fn packets(bytes: &[u8]) -> Vec<(Time, Vec<u8>)> {
    let (records, _) = bytes.as_chunks::<8>();
    let mut at = Duration::from_secs(1_000_000);
    let mut packets = Vec::new();
    for [who, flags, seq_high, seq_low, ack_high, ack_low, payload, wait] in records {
        // From nothing to some seconds later; one of sixteen goes back.
        let step = Duration::from_micros(u64::from(wait & 0x0f) << (wait >> 4));
        at = if *wait >= 0xf0 { at - step } else { at + step };
        let number = |high: &u8, low: &u8| u32::from(u16::from_be_bytes([*high, *low]));
        let (client, server) =
            (([10, 0, 0, 1], 40_000 + u16::from(who >> 1 & 3)).into(), ([10, 0, 0, 2], 80).into());
        // What a DHTTP server opens goes to port 0xa000.
        let client = if who & 8 > 0 { ([10, 0, 0, 1], 0xa000).into() } else { client };
        let (source, destination) = if who & 1 == 0 { (client, server) } else { (server, client) };
        let payload = PAYLOADS[usize::from(payload & 15)];
        let mut bytes = Vec::new();
        let built = if who & 16 > 0 {
            UdpBuilder { source, destination }.write(payload, &mut bytes)
        } else {
            let window = u16::from(*who & 0xe0) << 5;
            let known = [Flags::SYN, Flags::ACK, Flags::FIN, Flags::RST];
            let set = known.into_iter().enumerate().filter(|(bit, _)| flags >> bit & 1 == 1);
            let flags = set.fold(Flags::default(), |all, (_, flag)| all | flag);
            let (seq, ack) = (number(seq_high, seq_low), number(ack_high, ack_low));
            TcpBuilder { source, destination, seq, ack, flags, window, options: &[] }
                .write(payload, &mut bytes)
        };
        if built.is_ok() {
            packets.push((Time::ZERO + at, bytes));
        }
    }
    packets
}
