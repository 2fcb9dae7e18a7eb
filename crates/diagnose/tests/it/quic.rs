//! QUIC without keys: openings, limits, packets without a response.

use wire::packet::{Packet, UdpBuilder};
use wire::{Duration, Time};

use crate::report::{FlowReport, Protocol};
use crate::{Cause, Diagnosis, Options, PacketPosition, Share};

/// Side, time in milliseconds, first byte and length of each datagram.
fn diagnosed(datagrams: &[(char, u64, u8, usize)]) -> Vec<FlowReport> {
    diagnosed_on(datagrams, &[0])
}

fn diagnosed_on(datagrams: &[(char, u64, u8, usize)], interfaces: &[u32]) -> Vec<FlowReport> {
    let (client, server) = (([192, 0, 2, 1], 50_000).into(), ([192, 0, 2, 2], 443).into());
    let mut diagnosis = Diagnosis::new(Options::default());
    for (frame, (side, ms, first, length)) in (1..).zip(datagrams.iter().copied()) {
        let mut payload = vec![first, 0, 0, 0, 1, 1, 7, 1, 9];
        payload.extend((first & 0x30 == 0).then_some(0));
        payload.extend((0x4000 | u16::try_from(length - payload.len() - 2).unwrap()).to_be_bytes());
        payload.resize(length, 0);
        let (source, destination) = if side == 'C' { (client, server) } else { (server, client) };
        let mut bytes = Vec::new();
        UdpBuilder { source, destination }.write(&payload, &mut bytes).unwrap();
        let now = Time::ZERO + Duration::from_millis(ms);
        for interface in interfaces.iter().copied() {
            diagnosis.handle(now, PacketPosition { frame, interface }, &Packet::read(&bytes).unwrap());
        }
    }
    diagnosis.end();
    let reports: Vec<FlowReport> = std::iter::from_fn(|| diagnosis.poll()).collect();
    for report in &reports {
        assert_eq!(report.account.total(), report.elapsed);
        assert_eq!(report.doubts.total(), report.account.of(Share::Unknown));
    }
    reports
}

fn causes(datagrams: &[(char, u64, u8, usize)]) -> Vec<(Cause, u64, bool)> {
    let found = diagnosed(datagrams).into_iter().flat_map(|report| report.findings);
    found
        .map(|finding| {
            (finding.cause, finding.lost.as_nanos() / 1_000_000, finding.severity.is_worth_fixing())
        })
        .collect()
}

#[test]
fn client_without_response_is_a_failure_until_its_last_attempt() {
    let initials = [0, 300, 900, 2_100].map(|ms| ('C', ms, 0xc0, 1_200));
    assert_eq!(causes(&initials), [(Cause::QuicUnanswered, 2_100, true)]);
    assert_eq!(causes(&initials[..1]), [], "it may still come");
}

/// The end of the handshake, a request at 100 ms that is sent again after timeouts, and the server's next packet.
#[test]
fn server_that_does_not_even_acknowledge_is_silent_also_after_the_handshake() {
    let found = |until: &[(char, u64, u8, usize)]| {
        let opening = [
            ('C', 0, 0xc0, 1_200),
            ('S', 30, 0xc0, 1_200),
            ('C', 31, 0xe0, 80),
            ('C', 32, 0x40, 60),
            ('S', 62, 0x40, 80),
        ];
        let probes = [100, 180, 340, 660, 1_300].map(|ms| ('C', ms, 0x40, 60));
        let found = causes(&[&opening[..], &probes[..], until].concat());
        found.into_iter().filter(|(cause, ..)| *cause != Cause::QuicHandshake).collect::<Vec<_>>()
    };
    assert_eq!(found(&[]), [(Cause::PeerVanished, 1_200, true)]);
    assert_eq!(found(&[('S', 1_500, 0x40, 90)]), [(Cause::RetransmissionTimeout, 1_400, true)]);
}

#[test]
fn handshake_is_a_note() {
    let datagrams = [
        ('C', 0, 0xc0, 1_200),
        ('S', 30, 0xc0, 1_200),
        ('C', 31, 0xe0, 1_200),
        ('C', 31, 0x40, 80),
        ('S', 500, 0x40, 900),
    ];
    assert_eq!(causes(&datagrams), [(Cause::QuicHandshake, 31, false)]);
    assert!(
        diagnosed(&datagrams).iter().all(|report| report.protocol == Protocol::Quic && report.packets == 5)
    );
}

#[test]
fn server_at_its_limit_waits_for_the_client() {
    let server = |ms| ('S', ms, 0xe0, 1_200);
    let datagrams = [
        ('C', 0, 0xc0, 1_200),
        server(30),
        server(30),
        server(30),
        ('C', 60, 0xc0, 1_200),
        server(90),
        ('C', 91, 0x40, 80),
    ];
    assert!(
        causes(&datagrams).contains(&(Cause::QuicAmplificationLimit, 60, true)),
        "{:?}",
        causes(&datagrams)
    );
    // Captured on two interfaces, each datagram counts once.
    let report = &diagnosed_on(&datagrams, &[0, 1])[0];
    assert!(report.findings.iter().any(|finding| finding.cause == Cause::QuicAmplificationLimit));
    assert_eq!((report.packets, report.oddities.captured_twice), (7, 7));
}

#[test]
fn handshake_whose_server_falls_silent_is_a_failure() {
    let begun = [('C', 0, 0xc0, 1_200), ('S', 30, 0xc0, 1_200), ('C', 31, 0xc0, 1_200)];
    let probes = [330, 930, 2_130].map(|ms| ('C', ms, 0xc0, 1_200));
    assert_eq!(causes(&[&begun[..], &probes].concat()), [(Cause::PeerVanished, 2_100, true)]);
    assert_eq!(causes(&[&begun[..], &probes[..1]].concat()), [], "it may still come");
    let completed = [('S', 2_150, 0xe0, 1_200), ('C', 2_151, 0x40, 80)];
    let found = causes(&[&begun[..], &probes, &completed].concat());
    assert!(found.iter().all(|(cause, ..)| *cause != Cause::PeerVanished), "{found:?}");
}

#[test]
fn handshake_that_both_sides_repeat_to_the_end_waits_for_lost_packets() {
    let both = |round: u64| [('C', round * 500, 0xc0, 1_200), ('S', round * 500 + 30, 0xc0, 1_200)];
    let datagrams: Vec<_> = (0..7).flat_map(both).collect();
    assert!(
        causes(&datagrams).contains(&(Cause::RetransmissionTimeout, 3_000, true)),
        "{:?}",
        causes(&datagrams)
    );
}
