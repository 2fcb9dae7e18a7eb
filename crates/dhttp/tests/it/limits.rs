//! A greedy client and another that must not be affected: connections, bodies, slow reading.
//!
//! Both clients are this process, at two loopback addresses; the limits are per address.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use roundtrip_dhttp::server::ClientLimits;
use roundtrip_dhttp::{Request, Response, Server, ServerConfig};
use socket2::{Domain, Socket, Type};

const GREEDY: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const OTHER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 3);

/// Responds to `/large` with 1 MB.
fn respond(request: &Request<'_>) -> Response {
    let length = if request.target == "/large" { 1 << 20 } else { 5 };
    Response::whole(200, "text/plain", vec![b'a'; length])
}

fn server(config: ServerConfig) -> Server<fn(&Request<'_>) -> Response> {
    let config = ServerConfig { threads: 2, ..config };
    Server::start("127.0.0.1:0".parse().unwrap(), config, respond as fn(&Request<'_>) -> Response, None)
        .unwrap()
}

fn connect(from: Ipv4Addr, to: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::new(from.into(), 0).into()).unwrap();
    socket.connect(&to.into()).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    socket.set_write_timeout(Some(Duration::from_secs(10))).unwrap();
    socket.into()
}

#[expect(clippy::disallowed_methods, reason = "what is waited for is the server's threads")]
fn pause(milliseconds: u64) {
    std::thread::sleep(Duration::from_millis(milliseconds));
}

#[expect(clippy::disallowed_methods, reason = "a test that would wait for ever ends")]
fn now() -> Instant {
    Instant::now()
}

/// Checks twenty requests of the other client, each on a connection of its own: every one is served within ten seconds.
fn check_other_client_is_served(server: SocketAddr) {
    for _ in 0..20 {
        let mut stream = connect(OTHER, server);
        stream.write_all(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("HTTP/1.1 200") && text.ends_with("aaaaa"), "{text}");
    }
}

/// Returns the value of a counter, once it is at least `min`.
fn counted(server: &Server<fn(&Request<'_>) -> Response>, name: &str, min: u64) -> u64 {
    let until = now() + Duration::from_secs(20);
    loop {
        let text = server.metrics();
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        let value: u64 = value.unwrap_or_else(|| panic!("{name}: {text}")).parse().unwrap();
        if value >= min || now() > until {
            return value;
        }
        pause(50);
    }
}

#[test]
fn twelve_thousand_idle_connections_of_one_client_exclude_no_other() {
    let server = server(ServerConfig::internet());
    let mut idle = Vec::new();
    for number in 0..12_000 {
        idle.push(connect(GREEDY, server.address()));
        if number % 3_000 == 2_999 {
            check_other_client_is_served(server.address());
        }
        // The client's own descriptors are limited, too: the server has closed the oldest connections.
        if idle.len() == 4_000 {
            idle.drain(..3_000);
        }
    }
    let closed = counted(&server, "roundtrip_dhttp_connections_closed_total{reason=\"idle\"}", 11_000)
        + counted(&server, "roundtrip_dhttp_connections_refused_total{reason=\"client\"}", 0);
    assert!(closed >= 11_000, "{closed}");
    let open = counted(&server, "roundtrip_dhttp_connections_open{side=\"client\"}", 1);
    assert!(open <= 256 + 20, "{open}");
}

#[test]
fn at_the_connection_limit_the_longest_idle_is_closed() {
    let clients = ClientLimits { connections: 1_000, ..ClientLimits::default() };
    let server = server(ServerConfig { accepted: 100, clients, ..ServerConfig::internet() });
    let idle: Vec<_> = (0..300).map(|_| connect(GREEDY, server.address())).collect();
    check_other_client_is_served(server.address());
    assert!(counted(&server, "roundtrip_dhttp_connections_closed_total{reason=\"idle\"}", 200) >= 200);
    drop(idle);
}

#[test]
fn bodies_of_one_client_take_no_more_than_its_share() {
    let clients = ClientLimits { body_bytes: 4 << 20, ..ClientLimits::default() };
    let server = server(ServerConfig { clients, ..ServerConfig::internet() });
    let part = vec![b'x'; 256 << 10];
    let head = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n";
    let mut streams = Vec::new();
    for _ in 0..200 {
        let mut stream = connect(GREEDY, server.address());
        // Refused connections may be closed in the middle of their bodies.
        let sent = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&part));
        assert!(
            sent.is_ok()
                || matches!(sent.unwrap_err().kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
        );
        streams.push(stream);
    }
    assert!(counted(&server, "roundtrip_dhttp_bodies_refused_total{reason=\"buffer\"}", 150) >= 150);
    let buffered = counted(&server, "roundtrip_dhttp_body_bytes", 1 << 20);
    assert!((1 << 20..=4 << 20).contains(&buffered), "{buffered}");
    // The other client's share is unaffected.
    let mut stream = connect(OTHER, server.address());
    let body = vec![b'y'; 1_000_000];
    stream.write_all(&[head.as_bytes(), &body].concat()).unwrap();
    let mut first = [0; 12];
    stream.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    check_other_client_is_served(server.address());
    drop(streams);
    let until = now() + Duration::from_secs(10);
    while counted(&server, "roundtrip_dhttp_body_bytes", 0) > 0 {
        assert!(now() < until, "what was buffered for connections that have ended is given back");
        pause(50);
    }
}

#[test]
fn a_body_that_is_too_long_is_refused_before_its_end() {
    let server = server(ServerConfig { body_bytes: 1_000, ..ServerConfig::internet() });
    let mut stream = connect(OTHER, server.address());
    stream.write_all(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n").unwrap();
    stream.write_all(&[b'x'; 1_001]).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 413") && text.contains("Connection: close"), "{text}");
}

#[test]
fn slow_readers_are_closed_and_do_not_block_others() {
    let stall = wire::Duration::from_secs(3);
    let clients = ClientLimits { connections: 300, ..ClientLimits::default() };
    let server = server(ServerConfig { stall, clients, ..ServerConfig::internet() });
    let mut slow: Vec<_> = (0..300)
        .map(|_| {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            socket.set_recv_buffer_size(2_048).unwrap();
            socket.bind(&SocketAddr::new(GREEDY.into(), 0).into()).unwrap();
            socket.connect(&server.address().into()).unwrap();
            let mut stream = TcpStream::from(socket);
            stream.write_all(b"GET /large HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
            stream.set_nonblocking(true).unwrap();
            stream
        })
        .collect();
    // 90 bytes/s each: continuous progress, but far below the minimum rate.
    let until = now() + Duration::from_secs(12);
    while now() < until
        && counted(&server, "roundtrip_dhttp_connections_closed_total{reason=\"slow\"}", 0) < 300
    {
        for stream in &mut slow {
            let _ = stream.read(&mut [0; 90]);
        }
        check_other_client_is_served(server.address());
        pause(500);
    }
    assert_eq!(counted(&server, "roundtrip_dhttp_connections_closed_total{reason=\"slow\"}", 300), 300);
}
