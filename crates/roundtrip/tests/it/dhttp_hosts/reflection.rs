//! A server as a reflector: the bytes that reach a victim for each byte sent with its address as the source.
//!
//! Bytes are those of IP packets. That none of them are SYNs is in [`super::bounce`].

use std::collections::BTreeMap;
use std::net::IpAddr;

use wire::Seed;

use test_fixture::has_laboratory;

use super::host::{Host, SentPacket};
use super::{PORT, SERVER, SOON, address, fill, request, resend, serve, serve_at, token};

/// Time in milliseconds after which a SYN would have been retransmitted.
const SYN_TIMEOUT_MS: u16 = 1_500;

#[test]
fn victims_get_at_most_three_bytes_per_spoofed_byte() {
    if !has_laboratory() {
        return;
    }
    let host = Host::new("mirror", SERVER);
    let server = serve(&host);
    let attacker = address([23, 0, 0, 1], 40_000);
    let stolen = token(&host, attacker, 40_001);
    let kinds = [
        ("fresh", request(0, 0, 100, ""), false),
        ("a large response", request(0, 40_001, 100_000, ""), false),
        ("filled up", request(0, 0, 900, &fill(300)), false),
        ("filled up, for a large response", request(0, 40_001, 100_000, &fill(1_000)), false),
        ("resent", request(0, 40_001, 100, ""), true),
        ("filled up and resent", request(0, 40_001, 900, &fill(300)), true),
        ("requesting a token", request(0, 40_001, 100_000, "DHTTP-Token:?\r\n"), false),
        ("with another's token", request(0, 40_001, 100_000, &stolen), false),
        ("with another's token, resent", request(0, 40_001, 1_000, &stolen), true),
        ("unsupported by DHTTP", request(0, 40_001, 10, "Cookie: a=b\r\n"), false),
    ];
    let mut sent_bytes: BTreeMap<IpAddr, u64> = BTreeMap::new();
    for (number, (_, datagram, is_resend)) in (0_u8..).zip(&kinds) {
        let victim = address([number + 60, 1, 1, 1], 40_000);
        for id in 0..20_u64 {
            let mut datagram = if *is_resend { resend(datagram.clone()) } else { datagram.clone() };
            datagram[..8].copy_from_slice(&id.to_be_bytes());
            *sent_bytes.entry(victim.ip()).or_default() += host.deliver_datagram(victim, PORT, &datagram);
        }
    }
    let received_bytes = by_victim(&host.until_silent(SYN_TIMEOUT_MS));
    for (number, (kind, ..)) in (0_u8..).zip(&kinds) {
        let victim = address([number + 60, 1, 1, 1], 0).ip();
        let [received_bytes, sent_bytes] =
            [&received_bytes, &sent_bytes].map(|bytes| bytes.get(&victim).copied().unwrap_or(0));
        assert!(received_bytes <= 3 * sent_bytes, "{kind}: {received_bytes} bytes for {sent_bytes}");
    }
    assert!(received_bytes.len() >= kinds.len(), "each kind of request gets a response");
    drop(server);
}

#[test]
fn mutated_spoofed_requests_stay_within_the_budget() {
    mutated(20_000);
}

/// Takes half a minute; the figure is in docs/security.md.
#[test]
#[ignore = "long evidence: cargo test --release -p roundtrip --test it -- --ignored --nocapture a_million"]
fn a_million_mutated_requests_in_a_victims_name_come_back_within_the_budget() {
    mutated(1_000_000);
}

fn mutated(number: u32) {
    if !has_laboratory() {
        return;
    }
    let host = Host::new("mutations", SERVER);
    let server = serve(&host);
    let seeds = [
        request(7, 40_001, 100, ""),
        request(7, 40_001, 100_000, &fill(500)),
        request(7, 40_001, 100_000, "DHTTP-Token:?\r\n"),
        resend(request(7, 40_001, 100, "")),
        request(7, 0, 900, &fill(300)),
    ];
    let mut random = Seed::new(5).stream("mutations", 0);
    let mut sample = |below: usize| usize::try_from(random.up_to(below as u64 - 1)).unwrap();
    let (mut sent_bytes, mut received_bytes) =
        (BTreeMap::<IpAddr, u64>::new(), BTreeMap::<IpAddr, u64>::new());
    for turn in 0..number {
        let mut datagram = seeds[sample(seeds.len())].clone();
        for _ in 0..sample(3) {
            let index = sample(datagram.len());
            match sample(4) {
                0 => datagram[index] ^= 1 << sample(8),
                1 => datagram.truncate(index.max(1)),
                2 => datagram.insert(index, u8::try_from(sample(256)).unwrap()),
                _ => datagram[index] = b"\r\n: \0/"[sample(6)],
            }
        }
        // A new victim for every hundred, so that the limiter does not hide excesses of the budget.
        let [_, a, b, c] = (turn / 100).to_be_bytes();
        let victim = address([60 + a, b, c, 1], 40_000);
        *sent_bytes.entry(victim.ip()).or_default() += host.deliver_datagram(victim, PORT, &datagram);
        if turn % 64 == 63 {
            add_bytes(&mut received_bytes, host.until_silent(0));
        }
    }
    add_bytes(&mut received_bytes, host.until_silent(SYN_TIMEOUT_MS));
    for (victim, received_bytes) in &received_bytes {
        let sent_bytes = sent_bytes[victim];
        assert!(*received_bytes <= 3 * sent_bytes, "{victim}: {received_bytes} bytes for {sent_bytes}");
    }
    let [received_bytes, sent_bytes] =
        [&received_bytes, &sent_bytes].map(|bytes| bytes.values().sum::<u64>());
    println!("{number} mutated requests: {received_bytes} bytes for {sent_bytes}");
    assert!(received_bytes > 0, "some of them are requests still");
    drop(server);
}

#[test]
fn two_servers_aimed_at_each_other_do_not_loop() {
    if !has_laboratory() {
        return;
    }
    // A port to which a connection is permitted: each may open one to the other.
    let port = 40_000;
    let [left, right] = [Host::new("left", SERVER), Host::new("right", [9, 9, 0, 2])];
    let servers = [serve_at(&left, port), serve_at(&right, port)];
    for (id, size) in [(1, 10), (2, 100_000)] {
        for is_resend in [false, true] {
            let datagram = request(id, port, size, &fill(1_000));
            let datagram = if is_resend { resend(datagram) } else { datagram };
            left.deliver_datagram(right.socket(port), port, &datagram);
        }
    }
    let mut passed = 0;
    loop {
        let (from_left, from_right) = (left.until_silent(SOON), right.until_silent(SOON));
        if from_left.is_empty() && from_right.is_empty() {
            break;
        }
        passed += from_left.len() + from_right.len();
        assert!(passed < 1_000, "the servers loop");
        from_left.iter().for_each(|sent| right.deliver(&sent.0));
        from_right.iter().for_each(|sent| left.deliver(&sent.0));
    }
    let text = servers.map(|server| server.metrics());
    assert!(
        passed > 0 && text[1].contains("roundtrip_dhttp_responses_total{channel=\"udp\"} 0\n"),
        "{}",
        text[1]
    );
}

fn by_victim(sent: &[SentPacket]) -> BTreeMap<IpAddr, u64> {
    let mut bytes = BTreeMap::new();
    for packet in sent {
        *bytes.entry(packet.to().ip()).or_default() += packet.bytes();
    }
    bytes
}

fn add_bytes(to: &mut BTreeMap<IpAddr, u64>, sent: Vec<SentPacket>) {
    for (victim, bytes) in by_victim(&sent) {
        *to.entry(victim).or_default() += bytes;
    }
}
