//! How many packets are diagnosed in a second, and how much memory that takes: `cargo bench -p diagnose`.
//!
//! A million packets in pcap form, in memory: downloads over kept-alive HTTP, many connections at once. Prints medians;
//! not an assertion: timings never fail a test. With tshark installed, compare
//! `tshark -q -z conv,tcp -r /tmp/roundtrip-bench.pcap`: `ROUNDTRIP_BENCH_FILE` names where to write the capture.

use std::hint::black_box;
use std::time::Instant;

use diagnose::{Diagnosis, Options, Seen};
use trace::capture::Reader;
use wire::packet::{Flags, Packet, TcpBuilder, TcpOption};

const PACKETS: u32 = 1_000_000;
const ROUNDS: usize = 5;

fn main() {
    for connections in [1, 100, 10_000] {
        let capture = capture(connections);
        if let Some(path) = std::env::var_os("ROUNDTRIP_BENCH_FILE") {
            std::fs::write(path, &capture).expect("the file of the benchmark can be written");
        }
        let mut rates: Vec<f64> = (0..ROUNDS).map(|_| rate(&capture)).collect();
        rates.sort_by(f64::total_cmp);
        println!("{connections:>6} connections at once: {:>6.2} M packets/s", rates[ROUNDS / 2] / 1e6);
    }
    println!("most memory used, the capture included: {} MB", peak_kib() / 1_024);
}

#[expect(clippy::disallowed_methods, reason = "a benchmark's one place that reads the clock")]
fn rate(capture: &[u8]) -> f64 {
    let started = Instant::now();
    let mut reader = Reader::new(capture).expect("it was just written");
    let mut diagnosis = Diagnosis::new(Options::default());
    let mut packets = 0;
    while let Some(frame) = reader.read().expect("it is whole") {
        packets += 1;
        if let Some(Ok(packet)) = frame.ip().map(Packet::read) {
            diagnosis.handle(frame.at, Seen { frame: frame.number, interface: 0 }, &packet);
        }
        while let Some(report) = diagnosis.poll() {
            black_box(report);
        }
    }
    diagnosis.end();
    while let Some(report) = diagnosis.poll() {
        black_box(report);
    }
    f64::from(packets) / started.elapsed().as_secs_f64()
}

/// What the kernel says this process needed at most.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}

/// Answers of 30 segments, every second one acknowledged, over and over; connections take turns.
fn capture(connections: u32) -> Vec<u8> {
    let head = [0xa1b2_3c4d_u32, 0x0002_0004, 0, 0, 0xffff, 101];
    let mut capture: Vec<u8> = head.iter().flat_map(|word| word.to_be_bytes()).collect();
    let mut places = vec![(1_u32, 1_u32, 0_u32); connections as usize];
    let request = b"GET /object HTTP/1.1\r\nHost: server\r\n\r\n";
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 43758\r\n\r\n";
    let mut packet = Vec::new();
    for number in 0..PACKETS {
        let index = number % connections;
        let (sent, answered, step) = &mut places[index as usize];
        let [_, b, c, d] = index.to_be_bytes();
        let (client, server) = (([10, b, c, d], 40_000).into(), ([192, 168, 0, 1], 80).into());
        let mut write = |from_client: bool, flags: Flags, seq: u32, ack: u32, payload: &[u8]| {
            let (source, destination) = if from_client { (client, server) } else { (server, client) };
            let mss = [TcpOption::Mss(1_460)];
            let options: &[TcpOption<'_>] = if flags.contains(Flags::SYN) { &mss } else { &[] };
            packet.clear();
            TcpBuilder { source, destination, seq, ack, flags, window: u16::MAX, options }
                .write(payload, &mut packet)
                .expect("a segment fits a packet");
            let id = u16::try_from(number & 0xffff).expect("16 bits");
            packet[4..6].copy_from_slice(&id.max(1).to_be_bytes());
        };
        match *step % 47 {
            _ if *step == 0 => write(true, Flags::SYN, 0, 0, &[]),
            _ if *step == 1 => write(false, Flags::SYN | Flags::ACK, 0, 1, &[]),
            2 => {
                write(true, Flags::ACK, *sent, *answered, request);
                *sent += u32::try_from(request.len()).expect("it is short");
            }
            place if place > 2 && place % 3 == 2 => write(true, Flags::ACK, *sent, *answered, &[]),
            place => {
                let mut payload = [b'x'; 1_460];
                if place == 3 {
                    payload[..answer.len()].copy_from_slice(answer);
                }
                write(false, Flags::ACK, *answered, *sent, &payload);
                *answered += 1_460;
            }
        }
        *step += 1;
        let (seconds, nanos) = (number / 100_000, number % 100_000 * 10_000);
        let length = u32::try_from(packet.len()).expect("a packet is short");
        capture.extend([seconds, nanos, length, length].iter().flat_map(|word| word.to_be_bytes()));
        capture.extend(&packet);
    }
    capture
}
