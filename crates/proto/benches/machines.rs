//! How fast the machines are by themselves: medians of several rounds, on one thread, with no socket and no
//! kernel. Not what a server achieves: the kernel's share of a small answer is nine tenths.
//!
//! `cargo bench -p proto`

use std::hint::black_box;
use std::time::{Duration, Instant};

use proto::http::{Event, Limits, Method, RequestReader, ResponseReader};
use proto::server::{Input, Output, ServerConfig, ServerConnection};
use proto::site::Site;
use wire::{Bytes, Seed, Time};

const ROUNDS: usize = 9;
const REQUESTS: usize = 100_000;

fn main() {
    println!("medians of {ROUNDS} rounds of {REQUESTS}");
    per_second("heads of requests read", read_requests);
    per_second("1 KB answers, one request at a time", || serve(1));
    per_second("1 KB answers, 16 requests sent ahead", || serve(16));
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

fn serve(ahead: usize) {
    let site = Site::new(&[Bytes::new(1_024)], Seed::default()).expect("a kilobyte fits");
    let now = Time::ZERO;
    let mut server = ServerConnection::new(now, ServerConfig::default());
    let (requests, mut asked) = (request().repeat(ahead), None);
    for _ in 0..REQUESTS / ahead {
        server.handle(now, Input::Received(&requests));
        loop {
            match server.poll(now) {
                Output::Request(_, head) => asked = Some(head),
                Output::RequestEnd(id) => {
                    let head = asked.take().expect("its head came before");
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

fn per_second(what: &str, round: impl Fn()) {
    let rate = REQUESTS as f64 / median(round).as_secs_f64();
    println!("{rate:>12.0} {what}, per second");
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
