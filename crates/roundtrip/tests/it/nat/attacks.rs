//! Attacks on a router with the helper (notes of the paper's section IV-C): each must fail.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, poll};
use testbed::Namespace;

use super::lab::{CLIENT, Lab, OTHER, ROUTER, RunningProgram, SERVER, available, inside, sh};
use super::translation;

const TIMEOUT: Duration = Duration::from_millis(300);

/// The client's end, controlled by the test: its request socket and its listener.
struct Victim {
    udp: UdpSocket,
    listener: TcpListener,
    /// The same port of another host.
    neighbour: TcpListener,
}

/// A server controlled by the test.
struct Attacker(UdpSocket);

fn setting(flags: &[&str]) -> (Lab, RunningProgram, Victim, Attacker) {
    let lab = Lab::new();
    lab.rules(&translation("port-restricted"));
    let nat = lab.nat(flags);
    let victim = inside(&lab.client, || {
        let listener = TcpListener::bind((CLIENT, 50_000)).unwrap();
        let neighbour = TcpListener::bind(("10.0.0.3", 50_000)).unwrap();
        listener.set_nonblocking(true).unwrap();
        neighbour.set_nonblocking(true).unwrap();
        Victim { udp: UdpSocket::bind((CLIENT, 40_000)).unwrap(), listener, neighbour }
    });
    let attacker = inside(&lab.world, || UdpSocket::bind((SERVER, 80)).unwrap());
    attacker.set_read_timeout(Some(TIMEOUT)).unwrap();
    victim.udp.set_read_timeout(Some(TIMEOUT)).unwrap();
    (lab, nat, victim, Attacker(attacker))
}

fn request(id: u64, port: u16) -> Vec<u8> {
    let head = [&id.to_be_bytes()[..], &port.to_be_bytes(), &[0]].concat();
    [&head[..], b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"].concat()
}

impl Victim {
    fn send_request(&self, id: u64, port: u16) {
        self.udp.send_to(&request(id, port), (SERVER, 80)).unwrap();
    }

    /// Accepts a connection, if there is one.
    fn accept_connection(&self) -> Option<TcpStream> {
        let mut events = [PollFd::new(self.listener.as_fd(), PollFlags::POLLIN)];
        poll(&mut events, 300_u16).unwrap();
        let (stream, _) = self.listener.accept().ok()?;
        stream.set_nonblocking(false).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        Some(stream)
    }
}

impl Attacker {
    /// Returns the source address of a request, and the port that it names.
    fn receive_request(&self) -> Option<(SocketAddr, u16)> {
        let mut buffer = [0; 2_048];
        let (length, from) = self.0.recv_from(&mut buffer).ok()?;
        assert!(length > 11);
        Some((from, u16::from_be_bytes([buffer[8], buffer[9]])))
    }
}

/// Connects to a port of the router from an outside address.
fn connect(world: &Namespace, from: &'static str, port: u16) -> std::io::Result<TcpStream> {
    connect_to(world, from, SocketAddr::new(ROUTER.parse().unwrap(), port))
}

fn connect_to(world: &Namespace, from: &'static str, to: SocketAddr) -> std::io::Result<TcpStream> {
    inside(world, move || {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)?;
        socket.bind(&SocketAddr::new(from.parse().unwrap(), 0).into())?;
        socket.connect_timeout(&to.into(), TIMEOUT)?;
        Ok(socket.into())
    })
}

#[test]
fn web_pages_open_no_pinhole_to_service_ports() {
    if !available() {
        return;
    }
    let (lab, nat, victim, attacker) = setting(&["--access-log", "-"]);
    let telnet = inside(&lab.client, || {
        [23, 6_000].map(|port| {
            let listener = TcpListener::bind((CLIENT, port)).unwrap();
            listener.set_nonblocking(true).unwrap();
            listener
        })
    });
    for port in [23, 6_000] {
        victim.send_request(1, port);
        assert_eq!(attacker.receive_request(), None, "the request does not even leave");
        assert!(connect(&lab.world, SERVER, port).is_err());
    }
    for listener in telnet {
        assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    }
    assert!(!sh(&lab.router, "nft list table ip roundtrip_nat").contains("elements"));
    drop(nat);
}

#[test]
fn only_requests_from_inside_to_the_server_port_open_pinholes() {
    if !available() {
        return;
    }
    let (lab, _nat, victim, attacker) = setting(&[]);
    // From outside, to the router and through it, as if a client were there.
    sh(&lab.world, "ip route add 10.0.0.0/24 via 11.0.100.1");
    for to in [(ROUTER, 80), (CLIENT, 80)] {
        attacker.0.send_to(&request(1, 50_000), to).unwrap();
    }
    // To another port, or invalid: it passes unchanged.
    let other = inside(&lab.world, || UdpSocket::bind((SERVER, 8_080)).unwrap());
    other.set_read_timeout(Some(TIMEOUT)).unwrap();
    victim.udp.send_to(&request(2, 50_000), (SERVER, 8_080)).unwrap();
    let mut buffer = [0; 2_048];
    let length = other.recv(&mut buffer).unwrap();
    assert_eq!(buffer[..length], request(2, 50_000));
    let broken = &request(3, 50_000)[..20];
    victim.udp.send_to(broken, (SERVER, 80)).unwrap();
    let length = attacker.0.recv(&mut buffer).unwrap();
    assert_eq!(&buffer[..length], broken);
    let listed = sh(&lab.router, "nft list table ip roundtrip_nat");
    assert!(!listed.contains("expires"), "{listed}");
}

#[test]
fn a_pinhole_admits_one_connection_of_one_server_to_one_host_for_thirty_seconds() {
    if !available() {
        return;
    }
    let (lab, _nat, victim, attacker) = setting(&[]);
    assert!(connect(&lab.world, SERVER, 61_000).is_err(), "no pinhole is open before a request");
    victim.send_request(1, 50_000);
    let (from, port) = attacker.receive_request().unwrap();
    assert_eq!(from, SocketAddr::new(ROUTER.parse().unwrap(), port), "both channels appear at one port");
    let listed = sh(&lab.router, "nft list table ip roundtrip_nat");
    let expires = listed.split("expires ").nth(1).unwrap().split(['s', 'm']).next().unwrap().to_owned();
    assert!((20..=30).contains(&expires.parse::<u32>().unwrap()), "{listed}");
    assert!(connect(&lab.world, OTHER, port).is_err(), "not from another address");
    let mut first = connect(&lab.world, SERVER, port).unwrap();
    first.write_all(b"hello").unwrap();
    assert!(victim.accept_connection().is_some());
    assert!(connect(&lab.world, SERVER, port).is_err(), "not a second time");
    assert!(victim.accept_connection().is_none());
    assert_eq!(victim.neighbour.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    // A response in a datagram closes the hole.
    victim.send_request(2, 50_000);
    let (from, port) = attacker.receive_request().unwrap();
    attacker.0.send_to(&[&2_u64.to_be_bytes()[..], b"HTTP/1.1 200 OK\r\n\r\n"].concat(), from).unwrap();
    let (length, responder) = victim.udp.recv_from(&mut [0; 100]).unwrap();
    assert_eq!((length, responder), (27, SocketAddr::new(SERVER.parse().unwrap(), 80)));
    assert!(connect(&lab.world, SERVER, port).is_err(), "the response has arrived");
}

#[test]
fn forged_datagrams_are_not_forwarded() {
    if !available() {
        return;
    }
    let (lab, _nat, victim, attacker) = setting(&[]);
    victim.send_request(1, 50_000);
    let (outside, _) = attacker.receive_request().unwrap();
    let other = inside(&lab.world, || UdpSocket::bind((OTHER, 80)).unwrap());
    other.send_to(&1_u64.to_be_bytes(), outside).unwrap();
    attacker.0.send_to(&9_u64.to_be_bytes(), outside).unwrap();
    assert!(victim.udp.recv_from(&mut [0; 100]).is_err(), "neither from elsewhere nor with another id");
    attacker.0.send_to(&1_u64.to_be_bytes(), outside).unwrap();
    assert_eq!(victim.udp.recv_from(&mut [0; 100]).unwrap().0, 8);
}

#[test]
fn any_cache_is_admitted_only_by_flag_and_with_a_warning() {
    if !available() {
        return;
    }
    let (lab, nat, victim, attacker) = setting(&["--any-cache"]);
    assert!(nat.first.contains("WARNING") && nat.first.contains("any host"), "{}", nat.first);
    victim.send_request(1, 50_000);
    let (_, port) = attacker.receive_request().unwrap();
    let _cache = connect(&lab.world, OTHER, port).unwrap();
    assert!(victim.accept_connection().is_some());
    assert!(connect(&lab.world, OTHER, port).is_err(), "once, from anywhere");
}

#[test]
fn only_caches_of_allowed_networks_are_admitted() {
    if !available() {
        return;
    }
    let allowed = format!("{OTHER}/32");
    for flags in [&["--caches", &allowed][..], &["--caches", &allowed, "--firewall", "--closed"]] {
        let (lab, nat, victim, attacker) = setting(flags);
        sh(&lab.world, "ip addr add 11.0.100.4/24 dev eth0; ip route add 10.0.0.0/24 via 11.0.100.1");
        if flags.len() > 2 {
            // Without translation: only the helper filters.
            sh(&lab.router, "nft delete table ip nat; nft delete table inet filter");
        } else {
            // The router's owner must admit new datagrams to the helper's ports.
            sh(&lab.router, "nft add rule inet filter input udp dport 61000-65535 accept");
        }
        assert!(!nat.first.contains("WARNING"), "{}", nat.first);
        for (id, from, passes) in [(1, OTHER, true), (2, SERVER, true), (3, "11.0.100.4", false)] {
            victim.send_request(id, 50_000);
            let (outside, port) = attacker.receive_request().unwrap();
            let to = SocketAddr::new(outside.ip(), port);
            assert_eq!(connect_to(&lab.world, from, to).is_ok(), passes, "{flags:?} {from}");
            assert_eq!(victim.accept_connection().is_some(), passes, "{flags:?} {from}");
        }
        for (id, from, passes) in [(4, OTHER, true), (5, "11.0.100.4", false)] {
            victim.send_request(id, 50_000);
            let (outside, _) = attacker.receive_request().unwrap();
            let cache = inside(&lab.world, move || UdpSocket::bind((from, 80)).unwrap());
            cache.send_to(&id.to_be_bytes(), outside).unwrap();
            assert_eq!(victim.udp.recv_from(&mut [0; 100]).is_ok(), passes, "{flags:?} {from}");
        }
    }
}

#[test]
fn paper_section_iv_c_no_data_passes_before_the_id() {
    if !available() {
        return;
    }
    let (lab, _nat, victim, attacker) = setting(&["--by-id"]);
    for (id, first, passes) in [(1, 9_u64, false), (2, 2, true)] {
        victim.send_request(id, 50_000);
        let (_, port) = attacker.receive_request().unwrap();
        let mut stream = connect(&lab.world, SERVER, port).unwrap();
        let mut accepted = victim.accept_connection().unwrap();
        // Sending byte by byte does not help either.
        if !passes {
            stream.write_all(&[0]).unwrap();
            assert!(accepted.read(&mut [0; 1]).is_err());
        }
        stream.write_all(&first.to_be_bytes()).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\n").unwrap();
        let mut received = [0; 8];
        assert_eq!(accepted.read_exact(&mut received).is_ok(), passes, "id {id}");
        if passes {
            assert_eq!(received, id.to_be_bytes());
        }
    }
}

#[test]
fn paper_figure_4_induced_connections_reach_no_inside_host() {
    if !available() {
        return;
    }
    let (lab, _nat, victim, attacker) = setting(&[]);
    victim.send_request(1, 50_000);
    let (_, port) = attacker.receive_request().unwrap();
    // A server that trusts every address gets a request for something large in the router's name, with a port that
    // leads inside for another server.
    drop(attacker);
    let www = lab.directory.join("www").display().to_string();
    let listen = format!("{OTHER}:80");
    let flags = ["serve", &www, "--listen", &listen, "--profile", "paper", "--force", "--reach-private"];
    let deceived = RunningProgram::start(&lab.world, &flags);
    assert!(deceived.first.contains("serving"), "{}", deceived.first);
    lab.rules(&format!(
        "table ip seen {{ chain syns {{ type filter hook prerouting priority -300; ip saddr {OTHER} tcp flags syn counter\n}}\n}}"
    ));
    inside(&lab.world, move || {
        let forger = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None).unwrap();
        forger.set_ip_transparent_v4(true).unwrap();
        forger.bind(&SocketAddr::new(ROUTER.parse().unwrap(), 7_777).into()).unwrap();
        let mut forged = request(5, port);
        let at = forged.windows(6).position(|word| word == b"GET / ").unwrap();
        forged.splice(at..at + 6, *b"GET /large ");
        for id in 0..20_u8 {
            forged[7] = id;
            forger.send_to(&forged, &SocketAddr::new(OTHER.parse().unwrap(), 80).into()).unwrap();
        }
    });
    assert!(victim.accept_connection().is_none());
    let seen = sh(&lab.router, "nft list table ip seen");
    assert!(!seen.contains("packets 0 "), "the deceived server did try: {seen}");
}
