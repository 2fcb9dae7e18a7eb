//! Client addresses reported to an origin: never a client's own claims, and its address only if it has proved it.
//!
//! Other changes of forwarded requests are tested in `hosted`.

use crate::origin_proxy;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use origin_proxy::in_front_of;
use roundtrip_dhttp_proxy::Origin;

/// An origin that responds with the header section that it got.
fn origin() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut buffer = [0; 4_096];
            let length = stream.read(&mut buffer).unwrap();
            let response =
                format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
            stream.write_all(&[response.as_bytes(), &buffer[..length]].concat()).unwrap();
        }
    });
    address
}

/// Forged fields of a client.
const LIES: &str = "forwarded: for=6.6.6.6\r\nX-Forwarded-For: 6.6.6.6\r\nX-FORWARDED-HOST: evil.example\r\n\
                    X-Real-IP: 6.6.6.6\r\nX-Forwarded-Proto: https\r\nX-Original-URL: /6.6.6.6\r\n\
                    X-Rewrite-URL: /6.6.6.6\r\nX-Forwarded-Scheme: 6.6.6.6\r\nX-Forwarded-Prefix: /6.6.6.6\r\n\
                    X-Host: evil.example\r\nClient-IP: 6.6.6.6\r\nTrue-Client-IP: 6.6.6.6\r\n\
                    Proxy: http://evil.example\r\nContent_Length: 6.6.6.6\r\n";

/// Sends a request in one datagram with these fields; returns the response as text.
fn by_datagram(server: SocketAddr, fields: &str) -> String {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let head = format!(
        "GET / HTTP/1.1\r\nHost: asked.example\r\n{LIES}{fields}DHTTP-Fill: {}\r\n\r\n",
        "x".repeat(300)
    );
    let datagram = [&[0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0][..], head.as_bytes()].concat();
    socket.send_to(&datagram, server).unwrap();
    let mut buffer = [0; 2_048];
    let length = socket.recv(&mut buffer).unwrap();
    String::from_utf8_lossy(&buffer[8..length]).into_owned()
}

/// Returns a token, from the fallback message.
fn token(server: SocketAddr) -> String {
    by_datagram(server, "DHTTP-Token: ?\r\n")
}

fn by_connection(server: SocketAddr, fields: &str) -> String {
    let mut stream = TcpStream::connect(server).unwrap();
    write!(stream, "GET / HTTP/1.1\r\nHost: asked.example\r\n{LIES}{fields}Connection: close\r\n\r\n")
        .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// Returns the lines of the origin's request that name the client; checks that none is forged.
fn reported(response: &str) -> Vec<String> {
    assert!(!response.contains("6.6.6.6") && !response.contains("evil.example"), "{response}");
    let lines = response.lines().map(str::to_ascii_lowercase);
    let mut lines: Vec<_> =
        lines.filter(|line| line.starts_with("forwarded") || line.starts_with("x-")).collect();
    lines.sort();
    lines
}

#[test]
fn origin_gets_proved_client_addresses_and_no_claims() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = in_front_of(&runtime, origin(), Origin::reporting_clients);
    let host = "x-forwarded-host: asked.example";
    assert_eq!(by_datagram(server.address(), ""), "", "a datagram may come from anywhere: eight bytes");
    let first = by_connection(server.address(), "DHTTP-Port: 0\r\n");
    assert!(!first.contains("DHTTP-Token"), "{first}");
    let token = token(server.address());
    let expected = ["forwarded: for=127.0.0.1", "x-forwarded-for: 127.0.0.1", host];
    assert_eq!(reported(&by_datagram(server.address(), &format!("DHTTP-Token: {token}\r\n"))), expected);
    assert_eq!(reported(&first), expected);
}

#[test]
fn by_default_origin_gets_only_the_requested_host() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = in_front_of(&runtime, origin(), |origin| origin);
    let host = ["x-forwarded-host: asked.example"];
    assert_eq!(reported(&by_connection(server.address(), "")), host);
}
