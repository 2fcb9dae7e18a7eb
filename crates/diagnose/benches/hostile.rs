//! Time and memory of hostile captures: `cargo bench -p roundtrip-diagnose --bench hostile`.
//!
//! Prints one run each; the shapes are those of `tests/it/hostile.rs`, and larger. Not an assertion.

extern crate roundtrip_diagnose as diagnose;

use std::hint::black_box;
use std::time::{Duration, Instant};

use diagnose::{Diagnosis, Options, PacketPosition};
use wire::packet::{Flags, Packet, TcpBuilder};
use wire::{Duration as Span, Time};

const SEGMENTS: u32 = 50_000;
const OPENINGS: u32 = 1_000_000;

/// Position of a segment in the stream, by its number.
type Order = fn(u32) -> u32;

fn main() {
    let orders: [(&str, Order); 3] = [
        ("backwards", |index| SEGMENTS - 1 - index),
        ("every other one missing until the end", |index| {
            if index < SEGMENTS / 2 { 2 * index + 1 } else { 2 * (index - SEGMENTS / 2) }
        }),
        ("in any order", |index| index * 7_919 % SEGMENTS),
    ];
    for (name, order) in orders {
        let packets = (0..SEGMENTS).map(|index| segment(0, Flags::ACK, 1 + order(index) * 100, 100));
        report(&format!("{SEGMENTS} segments, {name}"), packets.collect());
    }
    let packets = (0..OPENINGS).map(|client| segment(client, Flags::SYN, 7, 0));
    report(&format!("{OPENINGS} SYNs without a response"), packets.collect());
}

fn segment(client: u32, flags: Flags, seq: u32, length: usize) -> Vec<u8> {
    let [a, b, c, d] = client.to_be_bytes();
    let (source, destination) = (([10, a, b, c], 1_024 + u16::from(d)).into(), ([192, 168, 0, 1], 80).into());
    let mut bytes = Vec::with_capacity(140);
    TcpBuilder { source, destination, seq, ack: 1, flags, window: u16::MAX, options: &[] }
        .write(&vec![b'x'; length], &mut bytes)
        .expect("a segment fits a packet");
    bytes
}

fn report(name: &str, packets: Vec<Vec<u8>>) {
    let (before, spent) = (resident_kib(), spent());
    let elapsed = diagnose(&packets);
    let (grown, spent) = (resident_kib().saturating_sub(before) / 1_024, self::spent() - spent);
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    println!(
        "  {name:<60} {:>8.1} ms, {:>8.1} ms of a processor  {grown:>4} MB more",
        millis(elapsed),
        millis(spent)
    );
}

#[expect(clippy::disallowed_methods, reason = "a benchmark's one place that reads the clock")]
fn diagnose(packets: &[Vec<u8>]) -> Duration {
    let started = Instant::now();
    let mut diagnosis = Diagnosis::new(Options::default());
    for (frame, bytes) in (1..).zip(packets) {
        let packet = Packet::read(bytes).expect("it was just built");
        diagnosis.handle(
            Time::ZERO + Span::from_micros(frame),
            PacketPosition { frame, interface: 0 },
            &packet,
        );
        while let Some(report) = diagnosis.poll() {
            black_box(report);
        }
    }
    diagnosis.end();
    while let Some(report) = diagnosis.poll() {
        black_box(report);
    }
    started.elapsed()
}

/// Returns the CPU time of this process so far: other load on the host does not count.
fn spent() -> Duration {
    let reported = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    Duration::from_nanos(
        reported.split_whitespace().next().and_then(|nanos| nanos.parse().ok()).unwrap_or_default(),
    )
}

/// Returns the peak resident memory of this process, in KiB, as the kernel reports it.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}
