//! Attacks on a server and on a client, over the loopback interface.
//!
//! Attacks from spoofed addresses are tested on the state machines, in `dhttp-proto`; these tests use real sockets.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use dhttp::client::{KnownServers, Via};
use dhttp::{Client, ClientConfig, Request, Response, Server, ServerConfig};
use dhttp_proto::Id;
use linux::clock::Clock;
use wire::Time;

type Handler = fn(&Request<'_>) -> Response;

/// Starts a server whose responses have the number of bytes in the path.
fn server() -> Server<Handler> {
    server_with(1)
}

fn server_with(threads: usize) -> Server<Handler> {
    let handler: Handler = |request| {
        let length = request.target.trim_start_matches('/').parse().unwrap_or(10);
        Response::whole(200, "text/plain", vec![b'x'; length])
    };
    let config = ServerConfig { threads, ..ServerConfig::internet().reaching_anywhere() };
    Server::start("127.0.0.1:0".parse().unwrap(), config, handler, None).unwrap()
}

fn socket(server: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    socket.connect(server).unwrap();
    socket
}

fn request(id: u64, port: u16, http: &str) -> Vec<u8> {
    let mut bytes = id.to_be_bytes().to_vec();
    bytes.extend(port.to_be_bytes());
    bytes.push(0);
    bytes.extend(http.as_bytes());
    bytes
}

/// Returns the token for a client that accepts connections on this port.
fn token(socket: &UdpSocket, port: u16) -> String {
    let fill = "0".repeat(300);
    socket
        .send(&request(1, port, &format!("GET /10 HTTP/1.1\r\nHost: h\r\nDHTTP-Fill: {fill}\r\n\r\n")))
        .unwrap();
    let text = String::from_utf8(received(socket).unwrap()[8..].to_vec()).unwrap();
    text.lines().find_map(|line| line.strip_prefix("DHTTP-Token: ")).unwrap().to_owned()
}

fn received(socket: &UdpSocket) -> Option<Vec<u8>> {
    let mut buffer = [0; 2_048];
    let length = socket.recv(&mut buffer).ok()?;
    Some(buffer[..length].to_vec())
}

#[test]
fn an_unvalidated_client_gets_at_most_three_bytes_for_one() {
    let server = server();
    let socket = socket(server.address());
    for length in [1, 50, 100, 200, 400, 1_000, 10_000] {
        let requested = request(length, 0, &format!("GET /{length} HTTP/1.1\r\nHost: h\r\n\r\n"));
        socket.send(&requested).unwrap();
        let response = received(&socket).expect("a response, if only the fallback message");
        assert!(response.len() <= 3 * requested.len(), "{} for {}", response.len(), requested.len());
    }
}

#[test]
fn invalid_requests_get_no_response() {
    let server = server();
    let socket = socket(server.address());
    let head = "GET / HTTP/1.1\r\nHost: h\r\n";
    let mut flags = request(1, 0, &format!("{head}\r\n"));
    flags[10] = 0x80;
    let silent = [
        Vec::new(),
        vec![0; 8],
        vec![0; 11],
        flags,
        request(2, 0, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
        request(3, 0, "GET / HTTP/1.1\r\n\r\n"),
        request(4, 0, "GET / HTTP/1.0\r\nHost: h\r\n\r\n"),
        request(5, 0, &format!("{head}Host: i\r\n\r\n")),
        request(6, 0, &format!("{head}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n")),
        request(7, 0, &format!("{head}\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n")),
        request(8, 0, &format!("{head}Content-Length: 1\r\n\r\n")),
        request(9, 0, &format!("{head} folded: x\r\n\r\n")),
        request(10, 0, &format!("{head}A : b\r\n\r\n")),
        request(11, 0, &format!("{head}A: b\rc\r\n\r\n")),
        request(12, 0, &format!("{head}A: {}\r\n\r\n", "a".repeat(5_000))),
    ];
    for datagram in &silent {
        socket.send(datagram).unwrap();
    }
    socket.send(&request(99, 0, &format!("{head}\r\n"))).unwrap();
    let response = received(&socket).unwrap();
    assert_eq!(response[..8], 99_u64.to_be_bytes(), "only the last is a request");
    assert_eq!(received(&socket), None);
}

#[test]
fn requests_unsuitable_for_datagrams_fall_back_to_plain_http() {
    let server = server();
    let socket = socket(server.address());
    for line in [
        "POST / HTTP/1.1",
        "GET / HTTP/1.1\r\nCookie: a=b",
        "GET / HTTP/1.1\r\nAuthorization: x",
        "GET / HTTP/1.1\r\nExpect: y",
    ] {
        socket.send(&request(7, 0, &format!("{line}\r\nHost: h\r\n\r\n"))).unwrap();
        assert_eq!(received(&socket), Some(7_u64.to_be_bytes().to_vec()), "{line}");
    }
}

#[test]
fn no_connection_goes_to_a_port_of_other_services() {
    let server = server();
    let socket = socket(server.address());
    for port in [0, 22, 25, 80, 1_023] {
        let token = token(&socket, port);
        let id = Id::marked(port.into()).0;
        let requested =
            request(id, port, &format!("GET /50000 HTTP/1.1\r\nHost: h\r\nDHTTP-Token: {token}\r\n\r\n"));
        socket.send(&requested).unwrap();
        assert_eq!(received(&socket), Some(id.to_be_bytes().to_vec()));
    }
    assert!(server.metrics().contains("roundtrip_dhttp_connections_total{side=\"server\"} 0\n"));
}

#[test]
fn floods_without_tokens_are_limited() {
    let server = server();
    let socket = socket(server.address());
    let (mut sent, mut received_bytes, mut full) = (0, 0, 0);
    for id in 0..3_000_u64 {
        let requested = request(
            id,
            0,
            "GET /10 HTTP/1.1\r\nHost: h\r\nDHTTP-Fill: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\r\n\r\n",
        );
        sent += requested.len();
        socket.send(&requested).unwrap();
    }
    while let Some(response) = received(&socket) {
        received_bytes += response.len();
        full += usize::from(response.len() > 8);
    }
    assert!(full <= 300, "{full} full answers for one address");
    assert!(received_bytes < sent, "{received_bytes} bytes for {sent}");
    assert!(full > 0, "an honest client has its share");
}

#[test]
fn threads_share_the_limit_of_an_address() {
    let server = server_with(4);
    let clock = Clock::start();
    let http = "GET /10 HTTP/1.1\r\nHost: h\r\nDHTTP-Fill: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\r\n\r\n";
    // The kernel spreads the ports over the threads.
    for id in 0..1_000 {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.send_to(&request(id, 0, http), server.address()).unwrap();
    }
    let counted = |label: &str| -> u64 {
        let metrics = server.metrics();
        let value = metrics.lines().find_map(|line| line.strip_prefix(label));
        value.unwrap().trim().parse().unwrap()
    };
    let by_udp = || counted("roundtrip_dhttp_responses_total{channel=\"udp\"}");
    let limited = || {
        counted("roundtrip_dhttp_responses_total{channel=\"overload\"}")
            + counted("roundtrip_dhttp_ignored_total{reason=\"limited\"}")
    };
    while by_udp() + limited() < 1_000 {
        assert!(clock.now().since(Time::ZERO).as_secs_f64() < 60.0, "{}", server.metrics());
        std::thread::yield_now();
    }
    // A hundred halve every second, which allows 70 more.
    let max = 100.0 + 75.0 * clock.now().since(Time::ZERO).as_secs_f64();
    assert!(by_udp() > 0 && (by_udp() as f64) <= max, "{} of {max}", by_udp());
}

#[test]
fn responses_to_mutated_datagrams_stay_within_the_budget_and_the_server_lives() {
    let server = server();
    let socket = socket(server.address());
    socket.set_nonblocking(true).unwrap();
    let seed =
        request(0x0102_0304_0506_0708, 40_000, "GET /100 HTTP/1.1\r\nHost: h\r\nDHTTP-Token: 00\r\n\r\n");
    let (mut sent, mut received_bytes, mut state) = (0, 0, 0x9e37_79b9_7f4a_7c15_u64);
    let mut draw = move || {
        // xorshift64: any reproducible sequence will do.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 33).unwrap()
    };
    let mut buffer = [0; 2_048];
    for _ in 0..50_000 {
        let mut datagram = seed.clone();
        for _ in 0..1 + draw() % 3 {
            let index = draw() % datagram.len();
            match draw() % 4 {
                0 => datagram[index] ^= 1 << (draw() % 8),
                1 => datagram.truncate(index.max(1)),
                2 => datagram.insert(index, u8::try_from(draw() % 256).unwrap()),
                _ => datagram[index] = b"\r\n: \0/"[draw() % 6],
            }
        }
        sent += datagram.len();
        let _ = socket.send(&datagram);
        while let Ok(length) = socket.recv(&mut buffer) {
            received_bytes += length;
        }
    }
    assert!(received_bytes <= 3 * sent, "{received_bytes} bytes for {sent}");
    let client = Client::start(ClientConfig::internet(), KnownServers::default(), None).unwrap();
    let url = format!("http://{}/", server.address()).parse().unwrap();
    assert_eq!(client.get(&url).unwrap().whole().unwrap().1.status, 200, "it still serves");
}

#[test]
fn two_servers_aimed_at_each_other_do_not_loop() {
    let (left, right) = (server(), server());
    let socket = socket(left.address());
    let fill = "x".repeat(200);
    let requested = format!("GET /10 HTTP/1.1\r\nHost: h\r\nDHTTP-Fill: {fill}\r\n\r\n");
    socket.send(&request(1, 0, &requested)).unwrap();
    let response = received(&socket).unwrap();
    // The response of one server, sent to the other as if it were a request.
    let other = self::socket(right.address());
    other.send(&response).unwrap();
    other.send(&response[..8]).unwrap();
    assert_eq!(received(&other), None);
}

#[test]
fn smuggled_requests_end_the_connection() {
    let server = server();
    for request in [
        "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: +5\r\n\r\nhello",
        "GET / HTTP/1.1\r\nHost : h\r\n\r\n",
        "GET / HTTP/1.1\nHost: h\n\n",
        "GET / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5 \rX\r\nhello\r\n0\r\n\r\n",
    ] {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        stream.write_all(b"GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let _ = stream.read_to_string(&mut text);
        assert!(!text.contains("200 OK"), "{request:?} gave {text}");
    }
    let metrics = server.metrics();
    assert!(metrics.contains("\nroundtrip_dhttp_faults_total 6\n"), "{metrics}");
}

/// Starts a hostile server that runs `act` with the request's id and the address on which the client listens.
fn hostile(act: impl FnOnce(&UdpSocket, SocketAddr, u64, SocketAddr) + Send + 'static) -> SocketAddr {
    // Nothing listens on TCP, so a fallback to plain HTTP fails.
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 2_048];
        let (_, from) = socket.recv_from(&mut buffer).unwrap();
        let id = u64::from_be_bytes(buffer[..8].try_into().unwrap());
        let port = u16::from_be_bytes([buffer[8], buffer[9]]);
        act(&socket, from, id, SocketAddr::new(from.ip(), port));
        let _keep = socket.recv_from(&mut buffer);
    });
    address
}

fn requested(address: SocketAddr) -> Result<(Via, u16, usize), String> {
    let client = Client::start(ClientConfig::internet(), KnownServers::default(), None).unwrap();
    let url = format!("dhttp://{address}/").parse().unwrap();
    client.get(&url).unwrap().whole().map(|(via, head, body)| (via, head.status, body.len()))
}

fn message(id: u64, http: &str) -> Vec<u8> {
    let mut bytes = id.to_be_bytes().to_vec();
    bytes.extend(http.as_bytes());
    bytes
}

#[test]
fn responses_with_another_id_or_source_are_ignored() {
    let address = hostile(|socket, client, id, _| {
        socket.send_to(&message(id ^ 1, "HTTP/1.1 200 OK\r\n\r\nforged"), client).unwrap();
        let other_socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        other_socket.send_to(&message(id, "HTTP/1.1 200 OK\r\n\r\nforged"), client).unwrap();
        socket.send_to(&message(id, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nlies"), client).unwrap();
        socket.send_to(&message(id, "HTTP/1.1 200 OK\r\n\r\ntrue"), client).unwrap();
    });
    assert_eq!(requested(address), Ok((Via::Udp, 200, 4)));
}

#[test]
fn malicious_or_silent_connections_do_not_block_the_response() {
    let address = hostile(|socket, client, id, listens| {
        let silent: Vec<_> = (0..80).filter_map(|_| TcpStream::connect(listens).ok()).collect();
        if let Ok(mut unknown) = TcpStream::connect(listens) {
            let _ = unknown.write_all(&message(id ^ 1, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
        }
        socket.send_to(&message(id, "HTTP/1.1 200 OK\r\n\r\ntrue"), client).unwrap();
        drop(silent);
    });
    assert_eq!(requested(address), Ok((Via::Udp, 200, 4)));
}

#[test]
fn endless_header_section_is_cut_off_and_reported() {
    let address = hostile(|_, _, id, listens| {
        let mut stream = TcpStream::connect(listens).unwrap();
        let mut bytes = message(id, "HTTP/1.1 200 OK\r\n");
        bytes.extend(b"A: b\r\n".repeat(100_000));
        let _ = stream.write_all(&bytes);
    });
    // The client resends its request without a response, and then fails over plain HTTP: nothing listens there.
    let started = std::thread::spawn(move || requested(address));
    assert!(started.join().unwrap().is_err());
}

#[test]
fn truncated_response_is_reported() {
    let address = hostile(|_, _, id, listens| {
        let mut stream = TcpStream::connect(listens).unwrap();
        stream.write_all(&message(id, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")).unwrap();
    });
    assert!(requested(address).unwrap_err().contains("; retry"));
}

#[test]
fn a_client_with_many_idle_connections_does_not_stop_others() {
    let server = server();
    let idle: Vec<_> = (0..200).map(|_| TcpStream::connect(server.address()).unwrap()).collect();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    assert_eq!(requested(server.address()).map(|(via, ..)| via), Ok(Via::Udp));
    drop((idle, listener));
}
