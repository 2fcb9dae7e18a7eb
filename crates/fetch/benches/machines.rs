//! Speed of the state machines by themselves: medians of several rounds, on one thread, without sockets or
//! kernel. A server's throughput is lower: the kernel's share of a small response is nine tenths.
//!
//! `cargo bench -p roundtrip-fetch`

use std::collections::VecDeque;
use std::hint::black_box;
use std::time::{Duration, Instant};

use http1::message::{Event, Limits, Method, RequestHead, RequestReader, ResponseReader, WritePolicy};
use http1::server::{Input, Output, ServerConfig, ServerConnection};
use http1::site::Site;
use page::html::Discovery;
use roundtrip_fetch as fetch;
use roundtrip_fetch::{ConnectionId, Fetcher, FromWire, Pipelining, Plan, PlannedObject, Shape, Wire};
use wire::{Bytes, Seed, Time};

const ROUNDS: usize = 9;
const REQUESTS: usize = 100_000;

fn main() {
    println!("medians of {ROUNDS} rounds of {REQUESTS}");
    per_second("heads of requests read", read_requests);
    per_second("1 KB responses, one request at a time", || serve(1));
    per_second("1 KB responses, 16 pipelined requests", || serve(16));
    per_second("1 KB objects fetched, one request at a time, robot and server", || fetch(Shape::Http11));
    let pipelined = Shape::Http11Pipelined(Pipelining::default());
    per_second("1 KB objects fetched, pipelined, robot and server", || fetch(pipelined));
    let html = "<p>some words of text <img src=a.gif alt=\"a picture\"></p>\n".repeat(100_000);
    let seconds = median(|| discover(&html)).as_secs_f64();
    println!("{:>12.1} Gbit/s of HTML, an image in every 60 bytes", html.len() as f64 * 8e-9 / seconds);
    let body = 1_u64 << 30;
    let seconds = median(|| read_body(body)).as_secs_f64();
    println!("{:>12.1} Gbit/s of a body, in arrivals of 64 KiB", body as f64 * 8e-9 / seconds);
}

/// A request of the papers' size, 256 bytes.
fn request() -> Vec<u8> {
    let mut request = b"GET /0 HTTP/1.1\r\nHost: server\r\nAccept: */*\r\nUser-Agent: ".to_vec();
    request.resize(252, b'.');
    request.extend_from_slice(b"\r\n\r\n");
    request
}

fn read_requests() {
    let request = request();
    let mut reader = RequestReader::new(Limits::default());
    for _ in 0..REQUESTS {
        let mut input = &request[..];
        while !matches!(reader.read(&mut input), Ok(Some(Event::End))) {}
    }
}

fn serve(depth: usize) {
    let site = Site::new(&[Bytes::new(1_024)], Seed::default()).expect("a kilobyte fits");
    let now = Time::ZERO;
    let mut server = ServerConnection::new(now, ServerConfig::default());
    let (requests, mut requested) = (request().repeat(depth), None);
    for _ in 0..REQUESTS / depth {
        server.handle(now, Input::Received(&requests));
        loop {
            match server.poll(now) {
                Output::Request(_, head) => requested = Some(head),
                Output::RequestEnd(id) => {
                    let head = requested.take().expect("its head came before");
                    server.respond(now, id, site.respond(&head)).expect("it is awaited");
                }
                Output::Send(write) => drop(black_box(write)),
                Output::Timeout(_) => break,
                other @ (Output::RequestBody(..)
                | Output::RequestAborted(_)
                | Output::HalfClose
                | Output::Close
                | Output::Abort
                | Output::Fault(_)) => panic!("{other:?}"),
            }
        }
    }
}

/// Fetches a page of identical objects.
fn fetch(shape: Shape) {
    let now = Time::ZERO;
    let site = Site::new(&[Bytes::new(1_024)], Seed::default()).expect("a kilobyte fits");
    let objects = vec![PlannedObject::get("/0", Some(Bytes::new(1_024))); REQUESTS];
    let mut robot =
        Fetcher::http1(now, Plan::new("server", objects, shape)).expect("a plan that can be carried out");
    let config = ServerConfig { writes: WritePolicy::gathering(), ..ServerConfig::default() };
    let mut server = ServerConnection::new(now, config);
    let (mut requested, mut up) = (None, VecDeque::new());
    while !robot.is_done() {
        match robot.poll(now) {
            fetch::Output::Wire(Wire::Open(id, _)) => connect(&mut robot, now, id),
            fetch::Output::Wire(Wire::Send(_, write)) => up.push_back(write),
            fetch::Output::Report(report) => drop(black_box(report)),
            fetch::Output::Wire(_) => {}
            fetch::Output::Timeout(_) => {
                let write = up.pop_front().expect("it waits for data in flight");
                server.handle(now, Input::Received(&write));
                respond(&mut server, &site, &mut requested, &mut robot);
            }
        }
    }
}

fn connect(robot: &mut Fetcher, now: Time, id: ConnectionId) {
    while !matches!(robot.poll(now), fetch::Output::Timeout(_)) {}
    robot.handle(now, FromWire::Connected(id));
}

/// Passes the server's responses to the robot, which receives several writes before it is polled.
fn respond(
    server: &mut ServerConnection,
    site: &Site,
    requested: &mut Option<RequestHead>,
    robot: &mut Fetcher,
) {
    let now = Time::ZERO;
    loop {
        match server.poll(now) {
            Output::Request(_, head) => *requested = Some(head),
            Output::RequestEnd(id) => {
                let head = requested.take().expect("its head came before");
                server.respond(now, id, site.respond(&head)).expect("it is awaited");
            }
            Output::Send(write) => robot.handle(now, FromWire::Received(ConnectionId(0), &write)),
            Output::Timeout(_) => return,
            other @ (Output::RequestBody(..)
            | Output::RequestAborted(_)
            | Output::HalfClose
            | Output::Close
            | Output::Abort
            | Output::Fault(_)) => panic!("{other:?}"),
        }
    }
}

fn discover(html: &str) {
    let mut discovery = Discovery::new("server", "/");
    html.as_bytes().chunks(1_460).for_each(|piece| discovery.take(piece, |path| drop(black_box(path))));
}

fn read_body(length: u64) {
    let mut reader = ResponseReader::new(Limits::default());
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
    let arrival = vec![0; 65_536];
    assert!(matches!(reader.read(&mut head.as_bytes(), &Method::Get), Ok(Some(Event::Head(..)))));
    loop {
        let mut input = &arrival[..];
        while let Some(event) = reader.read(&mut input, &Method::Get).expect("it is well formed") {
            match event {
                Event::Body(part) => drop(black_box(part.iter().map(|byte| u64::from(*byte)).sum::<u64>())),
                Event::End => return,
                Event::Head(..) => panic!("one head is enough"),
            }
        }
    }
}

fn per_second(name: &str, round: impl Fn()) {
    let rate = REQUESTS as f64 / median(round).as_secs_f64();
    println!("{rate:>12.0} {name}, per second");
}

fn median(round: impl Fn()) -> Duration {
    let mut times: Vec<Duration> = (0..ROUNDS).map(|_| time(&round)).collect();
    times.sort_unstable();
    times[ROUNDS / 2]
}

#[expect(clippy::disallowed_methods, reason = "a benchmark is a driver, and this is its one place")]
fn time(round: impl Fn()) -> Duration {
    let started = Instant::now();
    round();
    started.elapsed()
}
