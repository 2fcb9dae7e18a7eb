//! Slow responses pass the gateway as they arrive, by any channel.
//!
//! No time is measured: the server sends its second half once the program has the first.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use dhttp::client::{KnownServers, Note};
use dhttp::{ClientConfig, Request, Response, Server, ServerConfig};
use roundtrip_dhttp_proxy::{Gateway, GatewayConfig};

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\nCache-Control: no-store\r\n\r\n";
const HALVES: [&[u8]; 2] = [b"first", b"other"];

/// A DHTTP server: it responds to the only request on a connection that it opens, with the second half on a signal.
fn slow_dhttp_server(go_on: Receiver<()>) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    thread::spawn(move || {
        let mut buffer = [0; 2_048];
        let (_, from) = socket.recv_from(&mut buffer).unwrap();
        let port = u16::from_be_bytes([buffer[8], buffer[9]]);
        let mut stream = TcpStream::connect((from.ip(), port)).unwrap();
        stream.write_all(&buffer[..8]).unwrap();
        halves(&mut stream, &go_on);
        // Until the client has closed.
        let _ = stream.read(&mut buffer);
    });
    address
}

/// The same for plain HTTP.
fn slow_http_server(go_on: Receiver<()>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut buffer = [0; 2_048];
        let _ = stream.read(&mut buffer).unwrap();
        halves(&mut stream, &go_on);
        let _ = stream.read(&mut buffer);
    });
    address
}

fn halves(stream: &mut TcpStream, go_on: &Receiver<()>) {
    stream.write_all(HEAD).unwrap();
    stream.write_all(HALVES[0]).unwrap();
    go_on.recv().unwrap();
    stream.write_all(HALVES[1]).unwrap();
}

#[test]
fn regress_received_part_of_a_response_is_forwarded_before_the_rest() {
    for (server, path) in [
        (slow_dhttp_server as fn(Receiver<()>) -> SocketAddr, "/_dhttp_/page"),
        (slow_http_server as fn(Receiver<()>) -> SocketAddr, "/page"),
    ] {
        let (go, go_on) = channel();
        let at = server(go_on);
        let config = GatewayConfig::new(ClientConfig::internet());
        let listen = "127.0.0.1:0".parse().unwrap();
        let gateway = Gateway::start(listen, config, KnownServers::default(), None, None).unwrap();
        let mut program = TcpStream::connect(gateway.address()).unwrap();
        program.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        write!(program, "GET http://{at}{path} HTTP/1.1\r\nHost: {at}\r\n\r\n").unwrap();
        let mut received = Vec::new();
        while !received.ends_with(HALVES[0]) {
            let mut byte = [0];
            program.read_exact(&mut byte).unwrap_or_else(|error| panic!("{path}, {received:?}: {error}"));
            received.extend(byte);
        }
        go.send(()).unwrap();
        let mut second_half = [0; 5];
        program.read_exact(&mut second_half).unwrap();
        assert_eq!(second_half, HALVES[1]);
    }
}

/// Length of a response that no socket buffers hold.
const HUGE: usize = 48 << 20;

#[test]
fn a_program_that_does_not_read_delays_no_response_by_dhttp_to_another() {
    let bodies: [Arc<[u8]>; 3] = [5, 100_000, HUGE].map(|length| vec![b'b'; length].into());
    let respond = move |request: &Request<'_>| {
        let kind = request.target.as_bytes()["/_dhttp_/".len()] - b'0';
        Response::whole(200, "text/plain", Arc::clone(&bodies[usize::from(kind)]))
    };
    let config = ServerConfig { threads: 1, ..ServerConfig::internet().reaching_anywhere() };
    let server = Server::start("127.0.0.1:0".parse().unwrap(), config, respond, None).unwrap();
    let (sender, receiver) = channel();
    let watch = move |note: &Note| {
        if matches!(note, Note::Paused(_)) {
            let _ = sender.send(());
        }
    };
    let config = GatewayConfig::new(ClientConfig::internet());
    let listen = "127.0.0.1:0".parse().unwrap();
    let gateway =
        Gateway::start(listen, config, KnownServers::default(), Some(Arc::new(watch)), None).unwrap();
    let request = |kind: u8| {
        let mut program = TcpStream::connect(gateway.address()).unwrap();
        program.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let at = server.address();
        write!(program, "GET http://{at}/_dhttp_/{kind} HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n")
            .unwrap();
        program
    };
    let length = |mut program: TcpStream| {
        let mut response = Vec::new();
        program.read_to_end(&mut response).unwrap();
        let end = response.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
        assert!(response.starts_with(b"HTTP/1.1 200") && response[end..].iter().all(|byte| *byte == b'b'));
        response.len() - end
    };
    assert_eq!(length(request(0)), 5, "with the token for the next");
    let slow = request(2);
    receiver.recv_timeout(Duration::from_secs(30)).expect("the server's connection is not read");
    assert_eq!([0, 1].map(|kind| length(request(kind))), [5, 100_000]);
    let metrics = gateway.metrics()();
    assert!(metrics.contains("channel=\"tcp-opened\"} 1\n"), "{metrics}");
    assert_eq!(length(slow), HUGE);
}
