//! Shared fixtures of the tests of DHTTP: addresses, requests, responses, and state machines polled until they wait.
//! Not a test of its own.

use core::net::SocketAddr;

use http1::message::{Fields, Method, RequestHead};
use roundtrip_dhttp_proto::client::{Client, Output};
use roundtrip_dhttp_proto::message::{RequestHeader, write_request};
use roundtrip_dhttp_proto::server::{Secrets, Server, Ticket, Verdict};
use roundtrip_dhttp_proto::{ClientConfig, Id, Key, ServerConfig};
use wire::{Duration, Time};

pub(crate) const CLIENT_PORT: u16 = 40_001;

/// A client on the Internet, by its UDP port.
pub(crate) fn client_at(port: u16) -> SocketAddr {
    SocketAddr::from(([8, 8, 4, 4], port))
}

pub(crate) fn server_at() -> SocketAddr {
    SocketAddr::from(([9, 9, 9, 9], 80))
}

pub(crate) fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

pub(crate) fn head(method: Method, target: &str, fields: &[(&str, &str)]) -> RequestHead {
    let mut head = RequestHead {
        method,
        target: target.to_owned(),
        version: http1::message::Version::Http11,
        fields: Fields::new(),
    };
    for (name, value) in [("Host", "server")].iter().chain(fields) {
        head.fields.push(name, value).expect("a field that can be sent");
    }
    head
}

/// A request's datagram.
pub(crate) fn datagram(id: u64, is_resend: bool, head: &RequestHead) -> Vec<u8> {
    let mut datagram = Vec::new();
    let header = RequestHeader { id: Id(id), port: CLIENT_PORT, is_resend };
    write_request(header, head, &mut datagram);
    datagram
}

pub(crate) fn get(id: u64, is_resend: bool) -> Vec<u8> {
    datagram(id, is_resend, &head(Method::Get, "/", &[]))
}

/// A response: its id, a header section with these field lines, and a body of `body` bytes.
pub(crate) fn respond(id: u64, fields: &str, body: usize) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: {body}\r\n\r\n");
    [&Id(id).to_bytes()[..], head.as_bytes(), &vec![b'.'; body]].concat()
}

pub(crate) fn server(config: ServerConfig) -> Server {
    let token = Key { generation: 1, secret: [1; 16] };
    Server::new(config, Secrets { token, tables: [2; 16] })
}

pub(crate) fn client(config: ClientConfig) -> Client {
    Client::new(config, CLIENT_PORT, [3; 16])
}

/// The ticket of a request that is served.
pub(crate) fn ticket(verdict: Verdict<'_>) -> Ticket {
    match verdict {
        Verdict::Serve(ticket, _) => ticket,
        Verdict::Refer(_) | Verdict::Ignore(_) => panic!("{verdict:?}"),
    }
}

/// All outputs of a client up to its timeout, and that timeout.
pub(crate) fn drain(client: &mut Client, now: Time) -> (Vec<Output>, Option<Time>) {
    let mut outputs = Vec::new();
    loop {
        match client.poll(now) {
            Output::Timeout(wake) => return (outputs, wake),
            output => outputs.push(output),
        }
        assert!(outputs.len() < 10_000, "it goes on for ever");
    }
}
