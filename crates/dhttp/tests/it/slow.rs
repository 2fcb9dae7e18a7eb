//! Slow clients of plain HTTP, which hold a server's connections and memory: slow writing, and slow reading.
//!
//! The timeouts are shortened for the tests; the defaults are in `http1::server::ConnectionTimeouts` and `dhttp::ServerConfig`.
//! Only the order of events is checked: the server must close connections long before they would end by themselves.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration as Wait;

use dhttp::{Request, Response, Server, ServerConfig};
use socket2::{Domain, Socket, Type};
use wire::Duration;

type Handler = fn(&Request<'_>) -> Response;

/// Value of each of the server's timeouts.
const SHORT: Duration = Duration::from_millis(300);
/// Maximum wait for the server to close; a longer read did not end by its doing.
const LONG: Wait = Wait::from_secs(20);

fn server(accepted: usize) -> Server<Handler> {
    let handler: Handler = |request| {
        let length = request.target.trim_start_matches('/').parse().unwrap_or(10);
        Response::whole(200, "text/plain", vec![b'x'; length])
    };
    let mut config = ServerConfig { threads: 1, accepted, stall: SHORT, ..ServerConfig::internet() };
    config.http.timeout.request = SHORT;
    config.http.timeout.idle = SHORT;
    Server::start("127.0.0.1:0".parse().unwrap(), config, handler, None).unwrap()
}

fn connected(server: &Server<Handler>) -> TcpStream {
    let stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream
}

/// Writes `part` every 10 ms until the server closes, and returns what the server sent.
fn trickled(mut stream: TcpStream, begin: &str, part: &str) -> String {
    stream.write_all(begin.as_bytes()).unwrap();
    stream.set_read_timeout(Some(Wait::from_millis(10))).unwrap();
    let mut printed = Vec::new();
    for _ in 0..2_000 {
        if stream.write_all(part.as_bytes()).is_err() {
            break;
        }
        let mut buffer = [0; 1_024];
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => printed.extend_from_slice(&buffer[..length]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => break,
        }
    }
    String::from_utf8(printed).unwrap()
}

#[test]
fn a_slow_header_section_gets_no_extra_time() {
    let server = server(100);
    let printed = trickled(connected(&server), "GET / HTTP/1.1\r\nHost: h\r\n", "A: b\r\n");
    assert!(printed.starts_with("HTTP/1.1 408 "), "{printed}");
}

#[test]
fn a_slow_body_gets_little_extra_time() {
    let server = server(100);
    let head = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n";
    let printed = trickled(connected(&server), head, "x");
    assert!(printed.starts_with("HTTP/1.1 408 "), "{printed}");
}

#[test]
fn silent_connections_are_closed() {
    let server = server(100);
    assert_eq!(connected(&server).read(&mut [0]).unwrap(), 0);
}

#[test]
fn clients_that_do_not_read_are_reset() {
    let server = server(100);
    // A small receive window, so that socket buffers hold far less than the whole response.
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(65_536).unwrap();
    socket.connect(&server.address().into()).unwrap();
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream.write_all(b"GET /20000000 HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
    // Idle connections are opened and time out sequentially, which takes a while.
    for _ in 0..4 {
        assert_eq!(connected(&server).read(&mut [0]).unwrap(), 0);
    }
    let mut received = Vec::new();
    let ended = stream.read_to_end(&mut received);
    assert!(ended.is_err() && received.len() < 20_000_000, "{ended:?} after {} bytes", received.len());
}

#[test]
fn endless_pipelining_waits_for_its_own_responses() {
    let server = server(100);
    let mut stream = connected(&server);
    stream.set_write_timeout(Some(Wait::from_secs(2))).unwrap();
    let ahead = b"GET /100000 HTTP/1.1\r\nHost: h\r\n\r\n".repeat(10_000);
    let mut written = 0;
    for _ in 0..1_000 {
        match stream.write(&ahead) {
            Ok(length) => written += length,
            Err(_) => break,
        }
    }
    assert!(written < 1_000 * ahead.len(), "it read everything");
    let _ = stream.shutdown(Shutdown::Both);
}

#[test]
fn a_server_full_of_idle_connections_refuses_new_ones_immediately_and_recovers() {
    let server = server(20);
    let idlers: Vec<_> = (0..20).map(|_| connected(&server)).collect();
    // Connections are accepted in order of arrival.
    let mut newcomer = connected(&server);
    assert!(matches!(newcomer.read(&mut [0]), Ok(0) | Err(_)), "told at once");
    // The idle connections time out soon; then new ones are accepted, although the clients never close.
    let response = std::iter::repeat_with(|| {
        let mut stream = connected(&server);
        let _ = stream.write_all(b"GET /10 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        let mut text = String::new();
        let _ = stream.read_to_string(&mut text);
        text
    })
    .find(|text| !text.is_empty());
    assert!(response.unwrap().starts_with("HTTP/1.1 200 "));
    drop(idlers);
}
