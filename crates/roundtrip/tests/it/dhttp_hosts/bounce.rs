//! Bounce attacks: connections of a server to hosts that requested nothing (RFC 2577).
//!
//! The test is the victim, and sees each SYN. [`super::reflection`] counts the bytes.

use std::net::SocketAddr;

use wire::packet::Flags;

use test_fixture::has_laboratory;

use super::host::{Host, SentPacket};
use super::{MAX_WAIT_MS, PORT, SERVER, SOON, address, fill, request, serve, token};

/// Sends a request with a forged source for a response that only fits a connection, and for that connection to this port.
fn aim(host: &Host, victim: SocketAddr, id: u64, port: u16, more: &str) {
    host.deliver_datagram(victim, PORT, &request(id, port, 100_000, more));
}

fn is_syn(sent: &SentPacket) -> bool {
    sent.packet().tcp().is_some_and(|segment| segment.flags.contains(Flags::SYN))
}

#[test]
fn no_connection_to_services_that_sent_no_request() {
    if !has_laboratory() {
        return;
    }
    let host = Host::new("services", SERVER);
    let server = serve(&host);
    let services = [
        ("nothing", 0),
        ("SSH", 22),
        ("SMTP", 25),
        ("HTTP", 80),
        ("the last below 1024", 1_023),
        ("NFS", 2_049),
        ("Docker", 2_375),
        ("PostgreSQL", 5_432),
        ("X11", 6_000),
        ("Redis", 6_379),
        ("IRC", 6_667),
        ("HTTP, too", 8_080),
        ("Elasticsearch", 9_200),
        ("Memcached", 11_211),
        ("MongoDB", 27_017),
    ];
    // Clients with a valid token cannot cause it either.
    let own = address([23, 0, 0, 1], 40_000);
    let tokens = services.map(|(_, port)| token(&host, own, port));
    for (id, ((_, port), proved)) in (0_u8..).zip(services.into_iter().zip(tokens)) {
        aim(&host, address([60, id, 0, 1], 40_000), id.into(), port, &fill(1_000));
        aim(&host, own, 100 + u64::from(id), port, &proved);
    }
    let sent = host.until_silent(SOON);
    for (name, port) in services {
        let aimed = sent.iter().find(|sent| sent.is_tcp() && sent.to().port() == port);
        assert!(aimed.is_none(), "a SYN to {name}");
    }
    assert_eq!(sent.len(), 2 * services.len(), "eight bytes for each");
    assert!(sent.iter().all(|sent| sent.datagram().is_some_and(|datagram| datagram.len() == 8)));
    drop(server);
}

#[test]
fn no_connection_to_networks_behind_the_server() {
    if !has_laboratory() {
        return;
    }
    let host = Host::new("inside", SERVER);
    let server = serve(&host);
    let inside = [
        SERVER,
        [127, 0, 0, 1],
        [10, 0, 0, 1],
        [172, 16, 0, 1],
        [192, 168, 0, 1],
        [169, 254, 169, 254],
        [100, 64, 0, 1],
        [224, 0, 0, 1],
        [255, 255, 255, 255],
        [0, 0, 0, 0],
    ];
    // A host inside may have a token, and gets no connection all the same.
    let proved = token(&host, address([10, 0, 0, 1], 40_000), 40_001);
    for (id, octets) in (0..).zip(inside) {
        aim(&host, address(octets, 40_000), id, 40_001, &fill(1_000));
    }
    aim(&host, address([10, 0, 0, 1], 40_000), 99, 40_001, &proved);
    let sent = host.until_silent(SOON);
    assert!(!sent.iter().any(SentPacket::is_tcp));
    assert!(server.metrics().contains("roundtrip_dhttp_connections_total{side=\"server\"} 0\n"));
}

#[test]
fn no_syn_to_addresses_without_a_token() {
    if !has_laboratory() {
        return;
    }
    let host = Host::new("tries", SERVER);
    let server = serve(&host);
    let client = address([23, 0, 0, 1], 40_000);
    let proved = token(&host, client, 40_001);
    let mut id = 0;
    let mut aimed = |from: SocketAddr, port: u16, more: &str| {
        id += 1;
        aim(&host, from, id, port, more);
        if id % 64 == 63 { host.until_silent(1) } else { Vec::new() }
    };
    let mut sent = Vec::new();
    for port in 40_000..40_100 {
        for last in 1..=20 {
            // Another client's token is invalid, and so is its own token for another port.
            let victim = address([60, 1, last, 1], 40_000);
            for more in [fill(1_000), proved.clone()] {
                sent.extend(aimed(victim, port, &more));
            }
        }
        if port != 40_001 {
            sent.extend(aimed(client, port, &proved));
        }
    }
    sent.extend(host.until_silent(SOON));
    assert!(!sent.iter().any(SentPacket::is_tcp), "a SYN");
    assert!(sent.iter().all(|sent| sent.datagram().is_some_and(|datagram| datagram.len() == 8)));
    assert!(server.metrics().contains("roundtrip_dhttp_connections_total{side=\"server\"} 0\n"));
    aim(&host, client, 0, 40_001, &proved);
    assert!(is_syn(&host.next(MAX_WAIT_MS).expect("the client's own connection")));
    // The connection exists now, and an attacker who knows its port and spoofs its address cannot have data sent on it.
    aim(&host, client, 1, 40_001, &fill(1_000));
    let sent = host.next(MAX_WAIT_MS).expect("the eight bytes");
    assert_eq!(sent.datagram().map(<[u8]>::len), Some(8));
    drop(server);
}

#[test]
fn a_client_that_refuses_is_told_to_use_plain_http() {
    if !has_laboratory() {
        return;
    }
    let host = Host::new("refusing", SERVER);
    let server = serve(&host);
    let client = address([60, 0, 0, 1], 40_000);
    let proved = token(&host, client, 40_001);
    aim(&host, client, 1, 40_001, &proved);
    let syn = host.next(MAX_WAIT_MS).expect("the one attempt");
    assert!(is_syn(&syn));
    let (packet, reset) = (syn.packet(), Flags::RST | Flags::ACK);
    let segment = packet.tcp().unwrap();
    let from = SocketAddr::new(client.ip(), 40_001);
    host.deliver_segment((from, segment.source_port), (0, segment.seq + 1), reset, b"");
    let sent = host.until_silent(SOON);
    let reported: Vec<_> = sent.iter().map(|sent| (sent.to(), sent.bytes())).collect();
    assert_eq!(reported, [(client, 20 + 8 + 8)]);
    drop(server);
}
