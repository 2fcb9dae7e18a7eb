//! Time to parse and to build a packet: `cargo bench -p roundtrip-wire --bench packet`.
//!
//! The emulator parses every packet it relays (the target is 250 k packets/s), a diagnosis every packet of a capture.
//! Prints medians; timings never fail a test.

extern crate roundtrip_wire as wire;

use std::hint::black_box;
use std::time::Instant;

use wire::packet::{Flags, Packet, TcpBuilder, TcpOption};

const PACKETS: u32 = 1_000_000;
const ROUNDS: usize = 9;

fn main() {
    let timestamps = [TcpOption::Timestamps { value: 1, echo: 2 }];
    let segment = TcpBuilder {
        source: ([10, 0, 0, 1], 80).into(),
        destination: ([10, 0, 0, 2], 50_000).into(),
        seq: 1,
        ack: 2,
        flags: Flags::ACK,
        window: 512,
        options: &timestamps,
    };
    let payload = [0; 1_448];
    let mut bytes = Vec::new();
    segment.write(&payload, &mut bytes).expect("1,500 bytes fit a packet");

    print("read a full segment's headers", || {
        black_box(Packet::read(black_box(&bytes)).expect("it was just built"));
    });
    print("and its options", || {
        let packet = Packet::read(black_box(&bytes)).expect("it was just built");
        black_box(packet.tcp().map(|segment| segment.options.iter().count()));
    });
    let mut buffer = Vec::new();
    print("build a full segment, checksums included", || {
        buffer.clear();
        black_box(segment.write(black_box(&payload), &mut buffer)).expect("1,500 bytes fit a packet");
    });
}

#[expect(clippy::disallowed_methods, reason = "a benchmark's one place that reads the clock")]
fn print(name: &str, mut work: impl FnMut()) {
    let mut nanos: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let started = Instant::now();
            (0..PACKETS).for_each(|_| work());
            started.elapsed().as_nanos() as f64 / f64::from(PACKETS)
        })
        .collect();
    nanos.sort_by(f64::total_cmp);
    println!("{name:42} {:>8.1} ns", nanos[ROUNDS / 2]);
}
