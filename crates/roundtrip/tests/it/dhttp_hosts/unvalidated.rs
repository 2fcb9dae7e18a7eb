//! Addresses without a token: packets that reach a victim at its interface, and state that a server has open for it, over IPv4
//! and IPv6.
//!
//! The figures are those of studies/attacks.

use std::collections::BTreeSet;
use std::net::{Ipv6Addr, SocketAddr};

use linux::clock::Clock;
use wire::Time;

use super::flood::start_server;
use test_fixture::has_laboratory;

use super::host::{Host, SentPacket};
use super::{MAX_WAIT_MS, PORT, SERVER, SOON, address, fill, request, resend, serve_at_address, token};
use test_fixture::KilledOnDrop;

/// Addresses of the whole Internet.
const SERVER6: Ipv6Addr = Ipv6Addr::new(0x2600, 0, 0, 0, 0, 0, 0, 1);

fn victim(number: u8, is_six: bool) -> SocketAddr {
    match is_six {
        true => SocketAddr::from(([0x2600, u16::from(number) + 60, 0, 0, 0, 0, 0, 7], 40_000)),
        false => address([number + 60, 1, 1, 1], 40_000),
    }
}

#[test]
fn victims_get_at_most_three_bytes_per_byte_and_no_tcp_by_ipv4_and_ipv6() {
    if !has_laboratory() {
        return;
    }
    // Both families wait for retransmissions that must not come: concurrently.
    std::thread::scope(|scope| {
        scope.spawn(|| check_victims("victims", false));
        scope.spawn(|| check_victims("victims6", true));
    });
}

fn check_victims(name: &'static str, is_six: bool) {
    let host = Host::dual_stack(name, SERVER, SERVER6);
    let at = if is_six { SocketAddr::from((SERVER6, PORT)) } else { SocketAddr::from((SERVER, PORT)) };
    let server = serve_at_address(&host, at);
    let kinds = [
        ("10 MB", request(0, 20_000, 10_000_000, "")),
        ("10 MB, resent", resend(request(0, 20_000, 10_000_000, ""))),
        ("10 MB, filled up", request(0, 20_000, 10_000_000, &fill(1_000))),
        ("10 MB, requesting a token", request(0, 20_000, 10_000_000, "DHTTP-Token:?\r\n")),
        ("100 bytes", request(0, 20_000, 100, "")),
        ("all that fits", request(0, 20_000, 1_000, &fill(330))),
        ("in parts", request(0, 20_000, 3_000, &format!("DHTTP-Parts: 10\r\n{}", fill(1_000)))),
    ];
    let (mut sent_bytes, mut sent) = ([0; 7], Vec::new());
    for (number, (_, datagram)) in (0_u8..).zip(&kinds) {
        for id in 0..40_u64 {
            let mut datagram = datagram.clone();
            datagram[..8].copy_from_slice(&id.to_be_bytes());
            sent_bytes[usize::from(number)] +=
                host.deliver_datagram_at(at, victim(number, is_six), &datagram);
        }
        sent.extend(host.next(MAX_WAIT_MS));
        sent.extend(host.until_silent(50));
    }
    // A SYN, if there were one, would be retransmitted after a second.
    sent.extend(host.until_silent(1_200));
    for (number, ((kind, _), sent_bytes)) in (0_u8..).zip(kinds.iter().zip(sent_bytes)) {
        let victim = victim(number, is_six).ip();
        let sent: Vec<&SentPacket> = sent.iter().filter(|sent| sent.to().ip() == victim).collect();
        assert!(!sent.is_empty(), "{kind}: no response");
        assert!(!sent.iter().any(|sent| sent.is_tcp()), "{kind}: a segment");
        let received_bytes: u64 = sent.iter().map(|sent| sent.bytes()).sum();
        println!("IPv{}, {kind}: {received_bytes} bytes for {sent_bytes}", if is_six { 6 } else { 4 });
        assert!(received_bytes <= 3 * sent_bytes, "{kind}: {received_bytes} bytes for {sent_bytes}");
    }
    assert!(server.metrics().contains("roundtrip_dhttp_connections_total{side=\"server\"} 0\n"));
}

#[test]
fn spoofed_requests_take_no_descriptor() {
    if !has_laboratory() {
        return;
    }
    let host = Host::new("descriptors", SERVER);
    let directory = std::env::temp_dir().join(format!("roundtrip-no-descriptor-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("large.bin"), vec![7; 20_000]).unwrap();
    let server = start_server(&host, &directory);
    let datagram =
        String::from_utf8(request(1, 40_001, 0, "")[11..].to_vec()).unwrap().replace("/0 ", "/large.bin ");
    let datagram = [&request(1, 40_001, 0, "")[..11], datagram.as_bytes()].concat();
    // The first request opens what is opened once: the served file itself.
    host.deliver_datagram(address([23, 0, 0, 1], 40_000), PORT, &datagram);
    host.until_silent(SOON);
    let before = descriptors(&server);
    let (mut max_descriptors, mut responses) = (before, 0);
    for number in 0..30_000_u32 {
        let [_, a, b, c] = number.wrapping_mul(0x9e37_79b1).to_be_bytes();
        host.deliver_datagram(address([60 + a % 70, b, c, 1], 40_000), PORT, &datagram);
        // No more packets in flight than the socket buffer holds: responses missing from a batch were rate-limited, or the host
        // is slow.
        if number % 32 == 31 {
            let sent: Vec<_> = (0..32).map_while(|_| host.next(20)).collect();
            assert!(sent.iter().all(|sent| sent.datagram().is_some_and(|datagram| datagram.len() == 8)));
            responses += sent.len();
            max_descriptors = max_descriptors.max(descriptors(&server));
        }
    }
    println!(
        "30,000 spoofed requests, {responses} of eight bytes: {before} descriptors before, at most {max_descriptors}"
    );
    drop(server);
    std::fs::remove_dir_all(&directory).unwrap();
    assert!(responses > 25_000 && max_descriptors <= before, "{responses} {before} {max_descriptors}");
}

fn descriptors(KilledOnDrop(child): &KilledOnDrop) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", child.id())).unwrap().count()
}

#[test]
fn a_token_from_the_same_nat_brings_a_victim_one_mebibyte_then_fallback_messages() {
    if !has_laboratory() {
        return;
    }
    let host = Host::new("translator", SERVER);
    let server = serve_at_address(&host, host.socket(PORT));
    let shared = address([60, 1, 1, 1], 40_000);
    let stolen = token(&host, shared, 40_001);
    let (clock, mut sent_bytes, mut received_bytes, mut whole) = (Clock::start(), 0, 0, 0);
    let (mut ids, mut limited) = (BTreeSet::new(), 0);
    for id in 0..40_000_u64 {
        sent_bytes += host.deliver_datagram(shared, PORT, &request(id, 40_001, 1_050, &stolen));
        if id % 32 == 31 {
            for sent in (0..32).map_while(|_| host.next(SOON)) {
                received_bytes += sent.bytes();
                let datagram = sent.datagram().expect("nothing by TCP");
                ids.insert(datagram[..8].to_vec());
                whole += u64::from(datagram.len() > 8) * sent.bytes();
                limited += u64::from(datagram.len() == 8);
            }
        }
    }
    let elapsed = clock.now().since(Time::ZERO).as_secs_f64();
    println!(
        "with a token: {received_bytes} bytes for {sent_bytes} in {elapsed:.1} s, {whole} of them whole responses"
    );
    let max_descriptors = 1_100_000.0 * (1.0 + 0.75 * elapsed);
    assert!((whole as f64) < max_descriptors, "{whole} bytes in {elapsed} s");
    assert_eq!(ids.len(), 40_000, "each has some response");
    host.until_silent(SOON);
    let metrics = server.metrics();
    assert!(
        metrics.contains(&format!("roundtrip_dhttp_rate_limited_total {limited}\n")),
        "{limited} {metrics}"
    );
    drop(server);
}
