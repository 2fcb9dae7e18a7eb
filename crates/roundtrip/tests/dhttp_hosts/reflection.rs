//! A server as a reflector: the bytes that reach a victim for each byte sent with its address as the source.
//!
//! Bytes are those of IP packets. That none of them are SYNs is in [`super::bounce`].

use std::collections::BTreeMap;
use std::net::IpAddr;

use wire::Seed;

use super::host::{Host, SentPacket, allowed};
use super::{PORT, SERVER, SOON, address, fill, request, resend, serve, serve_at, token};

/// A SYN, if there were one, would be retransmitted after a second.
const SYNS_ARE_OVER: u16 = 1_500;

#[test]
fn victims_get_at_most_three_bytes_per_spoofed_byte() {
    if !allowed() {
        return;
    }
    let host = Host::new("mirror", SERVER);
    let server = serve(&host);
    let attacker = address([23, 0, 0, 1], 40_000);
    let stolen = token(&host, attacker, 40_001);
    let kinds = [
        ("fresh", request(0, 0, 100, ""), false),
        ("asking for much", request(0, 40_001, 100_000, ""), false),
        ("filled up", request(0, 0, 900, &fill(300)), false),
        ("filled up and asking for much", request(0, 40_001, 100_000, &fill(1_000)), false),
        ("sent again", request(0, 40_001, 100, ""), true),
        ("filled up and sent again", request(0, 40_001, 900, &fill(300)), true),
        ("requesting a token", request(0, 40_001, 100_000, "DHTTP-Token:?\r\n"), false),
        ("with another's token", request(0, 40_001, 100_000, &stolen), false),
        ("with another's token, sent again", request(0, 40_001, 1_000, &stolen), true),
        ("what only plain HTTP does", request(0, 40_001, 10, "Cookie: a=b\r\n"), false),
    ];
    let mut spent: BTreeMap<IpAddr, u64> = BTreeMap::new();
    for (number, (_, datagram, is_resend)) in (0_u8..).zip(&kinds) {
        let victim = address([number + 60, 1, 1, 1], 40_000);
        for id in 0..20_u64 {
            let mut datagram = if *is_resend { resend(datagram.clone()) } else { datagram.clone() };
            datagram[..8].copy_from_slice(&id.to_be_bytes());
            *spent.entry(victim.ip()).or_default() += host.receives_datagram(victim, PORT, &datagram);
        }
    }
    let got = by_victim(&host.until_silent(SYNS_ARE_OVER));
    for (number, (kind, ..)) in (0_u8..).zip(&kinds) {
        let victim = address([number + 60, 1, 1, 1], 0).ip();
        let [got, spent] = [&got, &spent].map(|bytes| bytes.get(&victim).copied().unwrap_or(0));
        assert!(got <= 3 * spent, "{kind}: {got} bytes for {spent}");
    }
    assert!(got.len() >= kinds.len(), "an honest client would have had some answer each time");
    drop(server);
}

#[test]
fn mutated_spoofed_requests_stay_within_the_budget() {
    mutated(20_000);
}

/// Takes half a minute; the figure is in docs/security.md.
#[test]
#[ignore = "long evidence: cargo test --release -p roundtrip --test dhttp_hosts -- --ignored --nocapture a_million"]
fn a_million_mutated_requests_in_a_victims_name_come_back_within_the_budget() {
    mutated(1_000_000);
}

fn mutated(number: u32) {
    if !allowed() {
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
    let mut draw = |below: usize| usize::try_from(random.up_to(below as u64 - 1)).unwrap();
    let (mut spent, mut got) = (BTreeMap::<IpAddr, u64>::new(), BTreeMap::<IpAddr, u64>::new());
    for turn in 0..number {
        let mut datagram = seeds[draw(seeds.len())].clone();
        for _ in 0..draw(3) {
            let place = draw(datagram.len());
            match draw(4) {
                0 => datagram[place] ^= 1 << draw(8),
                1 => datagram.truncate(place.max(1)),
                2 => datagram.insert(place, u8::try_from(draw(256)).unwrap()),
                _ => datagram[place] = b"\r\n: \0/"[draw(6)],
            }
        }
        // A new victim for every hundred, so that the limiter does not hide excesses of the budget.
        let [_, a, b, c] = (turn / 100).to_be_bytes();
        let victim = address([60 + a, b, c, 1], 40_000);
        *spent.entry(victim.ip()).or_default() += host.receives_datagram(victim, PORT, &datagram);
        if turn % 64 == 63 {
            add(&mut got, host.until_silent(0));
        }
    }
    add(&mut got, host.until_silent(SYNS_ARE_OVER));
    for (victim, got) in &got {
        let spent = spent[victim];
        assert!(*got <= 3 * spent, "{victim}: {got} bytes for {spent}");
    }
    let [got, spent] = [&got, &spent].map(|bytes| bytes.values().sum::<u64>());
    println!("{number} mutated requests: {got} bytes for {spent}");
    assert!(got > 0, "some of them are requests still");
    drop(server);
}

#[test]
fn two_servers_aimed_at_each_other_do_not_loop() {
    if !allowed() {
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
            left.receives_datagram(right.socket(port), port, &datagram);
        }
    }
    let mut passed = 0;
    loop {
        let (from_left, from_right) = (left.until_silent(SOON), right.until_silent(SOON));
        if from_left.is_empty() && from_right.is_empty() {
            break;
        }
        passed += from_left.len() + from_right.len();
        assert!(passed < 1_000, "they talk on and on");
        from_left.iter().for_each(|sent| right.receives(&sent.0));
        from_right.iter().for_each(|sent| left.receives(&sent.0));
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

fn add(to: &mut BTreeMap<IpAddr, u64>, sent: Vec<SentPacket>) {
    for (victim, bytes) in by_victim(&sent) {
        *to.entry(victim).or_default() += bytes;
    }
}
