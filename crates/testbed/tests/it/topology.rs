//! Packets cross cables, routers and emulated links by both versions of IP. Contradictory topologies are refused.

use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;

use linux::card::Offload;
use linux::netlink::Subnet;
use testbed::emulator::Options;
use testbed::{Error, Interface, Namespace, Topology};
use wire::Duration;
use wire::link::Config;

fn subnet(text: &str) -> Subnet {
    text.parse().unwrap()
}

/// Address of the client as the server sees it, after a connection.
fn client_of(client: &Namespace, server: &Namespace, to: SocketAddr) -> IpAddr {
    let listener = server.start(move || TcpListener::bind(to).unwrap()).wait().unwrap();
    let connecting = client.start(move || TcpStream::connect(to).map(|mut stream| stream.read(&mut [0; 1])));
    let from = listener.accept().unwrap().1.ip();
    connecting.wait().unwrap().unwrap().unwrap();
    from
}

#[test]
fn hosts_reach_one_another_across_a_router_by_both_versions_of_ip() {
    if !test_fixture::has_laboratory() {
        return;
    }
    let default_routes = |end: Interface| end.reaches(Subnet::IPV4).reaches(Subnet::IPV6);
    let ([client, _router, server], []) = Topology::new()
        .host("client")
        .router("router")
        .host("server")
        .cable([
            default_routes(Interface::of("client", "eth0").address(subnet("10.0.0.2/24")))
                .address(subnet("2600:db8:2::2/64")),
            Interface::of("router", "lan").address(subnet("10.0.0.1/24")).address(subnet("2600:db8:2::1/64")),
        ])
        .cable([
            Interface::of("router", "wan")
                .address(Ipv4Addr::new(11, 0, 0, 1))
                .address(subnet("2600:db8:1::1/64")),
            default_routes(Interface::of("server", "eth0").address(Ipv4Addr::new(11, 0, 0, 2)))
                .address(subnet("2600:db8:1::2/64"))
                .offload(Offload::MergeSegments, true)
                .queue(),
        ])
        .build()
        .unwrap()
        .split()
        .unwrap();
    for (from, to) in [("10.0.0.2", "11.0.0.2:80"), ("2600:db8:2::2", "[2600:db8:1::2]:80")] {
        assert_eq!(client_of(&client, &server, to.parse().unwrap()), from.parse::<IpAddr>().unwrap());
    }
}

#[test]
fn packets_of_a_default_route_cross_the_emulated_link() {
    if !test_fixture::has_laboratory() {
        return;
    }
    let delay = Config { delay: Duration::from_millis(30), ..Config::default() };
    let (near, far) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
    let distant = Ipv4Addr::new(192, 0, 2, 1);
    let ([client, server], [link]) = Topology::new()
        .host("client")
        .host("server")
        .setting("net.ipv4.tcp_fastopen", "3")
        .emulated(
            [
                Interface::of("client", "eth0").address(near).reaches(Subnet::IPV4),
                Interface::of("server", "eth0").address(far).address(distant).reaches(Subnet::IPV4),
            ],
            [&delay, &delay],
            &Options::default(),
        )
        .build()
        .unwrap()
        .split()
        .unwrap();
    let start = link.clock().now();
    assert_eq!(client_of(&client, &server, (distant, 80).into()), IpAddr::from(near));
    assert!(link.clock().now().since(start) >= Duration::from_millis(60));
    let setting = || std::fs::read_to_string("/proc/sys/net/ipv4/tcp_fastopen").unwrap();
    assert_eq!(server.start(setting).wait().unwrap().trim(), "3");
    assert!(link.stop().unwrap().up.link.delivered.packets >= 2);
}

#[test]
fn stub_shows_its_other_end_every_packet() {
    if !test_fixture::has_laboratory() {
        return;
    }
    let (own, own6) = (Ipv4Addr::new(9, 9, 0, 1), "2600:db8::1".parse::<Ipv6Addr>().unwrap());
    let end = Interface::of("host", "stub0").address(own).address(own6);
    let end = end.reaches(Subnet::IPV4).reaches(Subnet::IPV6);
    let testbed = Topology::new().host("host").stub(end).build().unwrap();
    for to in ["8.8.8.8:9", "[2600:db8:9::9]:9"] {
        let sent = testbed.hosts[0].start(move || {
            let to: SocketAddr = to.parse().unwrap();
            let any: IpAddr = if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { own6.into() };
            std::net::UdpSocket::bind((any, 0)).unwrap().send_to(b"x", to).unwrap()
        });
        assert_eq!(sent.wait().unwrap(), 1);
    }
    let mut versions = Vec::new();
    let mut buffer = [0; 100];
    while versions.len() < 2 {
        match testbed.stubs[0].read(&mut buffer).unwrap() {
            // Anything but UDP is the kernel's own.
            Some(_) if buffer[0] >> 4 == 4 && buffer[9] == 17 => versions.push(4),
            Some(_) if buffer[0] >> 4 == 6 && buffer[6] == 17 => versions.push(6),
            Some(_) => {}
            None => thread::yield_now(),
        }
    }
    assert_eq!(versions, [4, 6]);
}

#[test]
fn contradictory_topologies_are_refused() {
    if !test_fixture::has_laboratory() {
        return;
    }
    let duplicate = Topology::new().host("client").host("client").build().unwrap_err().to_string();
    assert!(duplicate.contains("two hosts are called client"), "{duplicate}");
    let unknown = Topology::new().stub(Interface::of("server", "eth0")).build().unwrap_err().to_string();
    assert!(unknown.contains("an unknown host"), "{unknown}");
    let mismatch = Topology::new().host("client").build().unwrap().split::<2, 0>();
    assert!(matches!(mismatch, Err(Error::Topology(_))));
}
