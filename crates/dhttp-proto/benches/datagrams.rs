//! Cost of each datagram in DHTTP's server by itself: medians of several rounds, on one thread, with no socket and no
//! kernel. Not a server's throughput: the kernel's share of a small response is nine tenths.
//!
//! `cargo bench -p roundtrip-dhttp-proto`

use core::net::SocketAddr;
use std::hint::black_box;
use std::time::{Duration, Instant};

use http1::message::{Limits, Method};
use http1::server::Response;
use roundtrip_dhttp_proto::message::Request;
use roundtrip_dhttp_proto::server::{
    Channel, ConnectionId, Input, Outbox, Reply, Secrets, Verdict, WholeResponse,
};
use roundtrip_dhttp_proto::{Key, Server, ServerConfig};
use wire::Time;

const ROUNDS: usize = 9;
const REQUESTS: u32 = 200_000;

fn main() {
    println!("medians of {ROUNDS} rounds of {REQUESTS}");
    let plain = request("");
    per_second("requests read", || {
        for _ in 0..REQUESTS {
            black_box(Request::read(black_box(&plain), &Limits::default()).is_ok());
        }
    });
    let mut paper = server(ServerConfig::paper());
    per_second("small responses, paper's profile", || serve(&mut paper, &plain, |_| client(0)));
    let mut internet = server(ServerConfig::internet());
    let token = token(&mut internet, client(0));
    let shown = request(&format!("DHTTP-Token: {token}\r\n"));
    per_second("small responses, internet profile, valid token", || {
        serve(&mut internet, &shown, |_| client(0))
    });
    let response = Response::whole(200, "text/plain", [b'.'; 1_000].into()).expect("a type");
    per_second("the same, written into datagrams", || write(&mut internet, &shown, &response));
    let filled = request(&format!("DHTTP-Fill: {}\r\n", "0".repeat(300)));
    per_second("first requests, internet profile, each from another client", || {
        serve(&mut server(ServerConfig::internet()), &filled, client);
    });
    per_second("large responses, each on its own connection", || connect(&mut server(many())));
    let mut holder = server(many());
    let before = resident();
    for index in 0..100_000 {
        open(&mut holder, client(index));
    }
    println!("{:>12} bytes for each of 100,000 connections", (resident() - before) / 100_000);
}

fn server(config: ServerConfig) -> Server {
    let token = Key { generation: 0, secret: [1; 16] };
    Server::new(config, Secrets { token, tables: [2; 16] })
}

/// Capacity for as many connections as are opened, each to another client.
fn many() -> ServerConfig {
    ServerConfig { connections: 1 << 20, ..ServerConfig::paper() }
}

fn client(index: u32) -> SocketAddr {
    let [_, second, third, fourth] = index.to_be_bytes();
    SocketAddr::from(([30 + second, third, fourth, 1], 50_000))
}

/// A request of the papers' size, 256 bytes, and these field lines.
fn request(fields: &str) -> Vec<u8> {
    let mut request = b"\0\0\0\0\0\0\0\x01\x9c\x41\0GET /0 HTTP/1.1\r\nHost: server\r\n".to_vec();
    request.extend_from_slice(fields.as_bytes());
    request.extend_from_slice(b"User-Agent: ");
    request.resize(request.len().max(252), b'.');
    request.extend_from_slice(b"\r\n\r\n");
    request
}

fn token(server: &mut Server, from: SocketAddr) -> String {
    let request = request("");
    let Verdict::Serve(ticket, _) = server.receive(Time::ZERO, from, &request) else {
        panic!("the first request is served")
    };
    let token = server.token(Time::ZERO, &ticket, || 60).expect("who has none gets one");
    server.abandon(ticket);
    token.as_str().to_owned()
}

fn serve(server: &mut Server, request: &[u8], from: impl Fn(u32) -> SocketAddr) {
    for index in 0..REQUESTS {
        // Two milliseconds apart, so that one client stays within the limit of its token.
        let now = Time::ZERO + wire::Duration::from_millis(2 * u64::from(index));
        match server.receive(now, from(index), request) {
            Verdict::Serve(ticket, _) => drop(black_box(server.channel(now, ticket, 1_200))),
            Verdict::Refer(_) | Verdict::Ignore(_) => {}
        }
    }
}

/// Outbox of one datagram, as in a driver that sends each immediately.
struct Slot(Vec<u8>);

impl Outbox for Slot {
    fn begin(&mut self, _: SocketAddr) -> &mut Vec<u8> {
        self.0.clear();
        &mut self.0
    }

    fn discard(&mut self) {}
}

fn write(server: &mut Server, request: &[u8], response: &Response) {
    let whole = WholeResponse::new(response, &Method::Get).expect("a final status");
    let mut slot = Slot(Vec::with_capacity(2_000));
    for index in 0..REQUESTS {
        let now = Time::ZERO + wire::Duration::from_millis(2 * u64::from(index));
        match server.receive(now, client(0), request) {
            Verdict::Serve(ticket, _) => {
                black_box(server.respond(now, ticket, &whole, &mut slot) == Reply::Datagrams { parts: None });
                black_box(&slot.0);
            }
            Verdict::Refer(_) | Verdict::Ignore(_) => {}
        }
    }
}

/// Opens a connection for a large response, which is then written.
fn open(server: &mut Server, from: SocketAddr) -> ConnectionId {
    let request = request("");
    let Verdict::Serve(ticket, _) = server.receive(Time::ZERO, from, &request) else {
        panic!("it is served")
    };
    let Channel::Open { connection, client: _ } = server.channel(Time::ZERO, ticket, 9_000) else {
        panic!("it is large")
    };
    server.handle(Time::ZERO, Input::Opened(connection));
    server.handle(Time::ZERO, Input::Written(connection));
    connection
}

fn connect(server: &mut Server) {
    for index in 0..REQUESTS {
        let connection = open(server, client(index));
        server.handle(Time::ZERO, Input::Closed(connection));
    }
}

/// Resident memory of the process, in bytes.
fn resident() -> u64 {
    let statistics = std::fs::read_to_string("/proc/self/statm").expect("Linux says so");
    let pages = statistics.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.expect("the second number") * 4_096
}

fn per_second(name: &str, mut round: impl FnMut()) {
    let mut times: Vec<Duration> = (0..ROUNDS).map(|_| time(&mut round)).collect();
    times.sort_unstable();
    println!("{:>12.0} {name}, per second", f64::from(REQUESTS) / times[ROUNDS / 2].as_secs_f64());
}

#[expect(clippy::disallowed_methods, reason = "a benchmark is a driver, and this is its one place")]
fn time(round: &mut impl FnMut()) -> Duration {
    let started = Instant::now();
    round();
    started.elapsed()
}
