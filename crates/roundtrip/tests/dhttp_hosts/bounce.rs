//! A server as a weapon: connections to hosts that requested nothing (RFC 2577), and what they reveal to an attacker.
//!
//! The victim is the test: it sees each SYN. The number of bytes is in [`super::reflection`].

use std::collections::BTreeSet;
use std::net::SocketAddr;

use measure::clock::Clock;
use wire::Time;
use wire::packet::Flags;

use super::host::{Host, Sent, allowed};
use super::{AT_LAST, PORT, SERVER, SOON, address, fill, request, serve, token};

/// Sends a request with a forged source for a response that only fits a connection, and for that connection to this port.
fn aim(host: &Host, victim: SocketAddr, id: u64, port: u16, more: &str) {
    host.receives_datagram(victim, PORT, &request(id, port, 100_000, more));
}

fn is_syn(sent: &Sent) -> bool {
    sent.packet().tcp().is_some_and(|segment| segment.flags.contains(Flags::SYN))
}

#[test]
fn services_that_never_asked_are_not_connected_to() {
    if !allowed() {
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
    // Their own clients cannot have it done either.
    let own = address([23, 0, 0, 1], 40_000);
    let proved = token(&host, own);
    for (id, (_, port)) in (0_u8..).zip(services) {
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
fn networks_behind_the_server_are_not_connected_to() {
    if !allowed() {
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
    for (id, octets) in (0..).zip(inside) {
        aim(&host, address(octets, 40_000), id, 40_001, &fill(1_000));
    }
    let sent = host.until_silent(SOON);
    assert!(!sent.iter().any(Sent::is_tcp));
    assert!(server.metrics().contains("dhttp_connections_total{side=\"server\"} 0\n"));
}

#[test]
fn who_never_asked_is_tried_nine_times_and_a_network_forty_five() {
    if !allowed() {
        return;
    }
    let host = Host::new("tries", SERVER);
    let server = serve(&host);
    let mut id = 0;
    let mut scan = |victims: &[[u8; 4]]| {
        let clock = Clock::start();
        for port in 40_000..40_100 {
            for victim in victims {
                id += 1;
                aim(&host, address(*victim, 40_000), id, port, &fill(1_000));
            }
        }
        // A second SYN comes after a second, and is in the budget of `reflection`.
        let sent = host.until_silent(SOON);
        let syns = sent.iter().filter_map(|sent| sent.packet().tcp().filter(|_| is_syn(sent)));
        let attempts: BTreeSet<_> =
            syns.map(|syn| (syn.source_port, syn.destination_port, syn.seq)).collect();
        (attempts.len() as f64, clock.now().since(Time::ZERO).as_secs_f64())
    };
    // A request weighs 1 and an attempt 10, of 100 and 500, which halve in a second.
    let (attempts, took) = scan(&[[60, 0, 0, 1]]);
    assert!((9.0..=9.0 + 8.0 * took).contains(&attempts), "{attempts} to one address in {took} seconds");
    let network: Vec<_> = (1..=50).map(|last| [60, 1, 0, last]).collect();
    let (attempts, took) = scan(&network);
    assert!(attempts <= 46.0 + 40.0 * took, "{attempts} to a /24 in {took} seconds");
    drop(server);
}

#[test]
fn who_refuses_is_not_asked_again_and_the_attacker_is_not_told() {
    if !allowed() {
        return;
    }
    let host = Host::new("refusing", SERVER);
    let server = serve(&host);
    let (refusing, silent) = (address([60, 0, 0, 1], 40_000), address([60, 0, 1, 1], 40_000));
    let seen = [refusing, silent].map(|victim| {
        aim(&host, victim, 1, 40_001, &fill(1_000));
        let syn = host.next(AT_LAST).expect("the one attempt");
        assert!(is_syn(&syn));
        if victim == refusing {
            let (packet, reset) = (syn.packet(), Flags::RST | Flags::ACK);
            let segment = packet.tcp().unwrap();
            let from = SocketAddr::new(victim.ip(), 40_001);
            host.receives_segment((from, segment.source_port), (0, segment.seq + 1), reset, b"");
        }
        // The attacker sends requests of its own meanwhile: the responses reveal nothing about the victim.
        host.receives_datagram(address([23, 0, 0, 1], 40_000), PORT, &request(2, 0, 10, &fill(200)));
        let sent = host.until_silent(SOON);
        let (own, others): (Vec<_>, Vec<_>) =
            sent.iter().map(|sent| (sent.to().ip(), sent.bytes())).partition(|(to, _)| *to != victim.ip());
        // The host that refused gets the fallback message for plain HTTP, within the budget: eight bytes, which the
        // attacker never sees.
        assert!(others.iter().all(|(_, bytes)| *bytes == 20 + 8 + 8) && others.len() <= 1, "{others:?}");
        own
    });
    assert_eq!(seen[0], seen[1], "the same whether the port is open, closed or nobody's");
    assert_eq!(seen[0].len(), 1, "only his own answer");
    drop(server);
}
