//! Packets per second through one pipe: `cargo bench -p roundtrip-wire --bench link`.
//!
//! A closed loop as in a simulator: offers packets until the link holds its number of packets, then advances to the
//! next delivery, takes it, and offers another. Prints medians; the target is 30 M packets/s on a link that preserves
//! the order of packets. Timings never fail a test.

extern crate roundtrip_wire as wire;

use std::hint::black_box;
use std::time::Instant;

use wire::link::{Config, Jitter, Loss, OfferResult, Order, Output, Pipe, QueueLimit, Reordering};
use wire::{Bytes, Duration, Probability, Rate, Seed, Time};

const PACKETS: u64 = 5_000_000;
/// Packets in flight: enough to fill the 15 ms of the links below at their rate, plus some in the queue.
const IN_FLIGHT: usize = 200;
const ROUNDS: usize = 9;

fn main() {
    println!("{:42} {:>12} {:>10}", "link", "Mpackets/s", "ns/packet");
    for (name, config) in links() {
        let mut nanos: Vec<f64> = (0..ROUNDS).map(|_| nanos_per_packet(&config)).collect();
        nanos.sort_by(f64::total_cmp);
        let median = nanos[ROUNDS / 2];
        println!("{name:42} {:>12.1} {median:>10.1}", 1e3 / median);
    }
}

fn links() -> [(&'static str, Config); 8] {
    let percent = Probability::new(0.01).expect("1% is a probability");
    let plain = Config {
        rate: Rate::from_bits_per_second(100_000_000),
        delay: Duration::from_millis(15),
        queue: QueueLimit { bytes: Some(Bytes::new(1_000_000)), packets: Some(1_000) },
        ..Config::default()
    };
    let uneven = Rate::from_millibits_per_second(99_999_999_937);
    let jitter = |order| Some(Jitter { up_to: Duration::from_millis(2), order });
    let reordering = Some(Reordering { probability: percent, by: Duration::from_millis(1) });
    let bursts = Loss::GilbertElliott {
        to_bad: percent,
        to_good: Probability::new(0.3).expect("30% is a probability"),
        loss_in_good: Probability::NEVER,
        loss_in_bad: Probability::ALWAYS,
    };
    [
        ("no rate, no delay", Config::default()),
        ("100 Mb/s, 15 ms, queue limits", plain.clone()),
        ("99.999999937 Mb/s (carries every time)", Config { rate: uneven, ..plain.clone() }),
        ("and independent loss 1%", Config { loss: Loss::Independent(percent), ..plain.clone() }),
        ("and Gilbert-Elliott loss", Config { loss: bursts, ..plain.clone() }),
        ("and jitter, order kept", Config { jitter: jitter(Order::Preserved), ..plain.clone() }),
        ("and jitter, order free", Config { jitter: jitter(Order::Free), ..plain.clone() }),
        ("and 1% reordered", Config { reordering, ..plain }),
    ]
}

#[expect(clippy::disallowed_methods, reason = "a benchmark's one place that reads the clock")]
fn nanos_per_packet(config: &Config) -> f64 {
    let mut pipe = Pipe::new(config, Seed::default(), 0).expect("the links above are valid");
    let started = Instant::now();
    run(&mut pipe);
    let nanos = started.elapsed().as_nanos() as f64;
    nanos / PACKETS as f64
}

/// Runs the loop with packets of a simulator's segment header, 16 bytes, alternately full and bare
/// acknowledgements.
fn run(pipe: &mut Pipe<[u64; 2]>) {
    let mut now = Time::ZERO;
    let mut offered = 0;
    while offered < PACKETS {
        while offered < PACKETS && pipe.in_transit() < IN_FLIGHT {
            let size = if offered % 2 == 0 { 1_500 } else { 40 };
            offered += 1;
            if let OfferResult::Dropped(packet) | OfferResult::Lost(packet) =
                pipe.handle(now, [offered; 2], Bytes::new(size))
            {
                black_box(packet);
            }
        }
        loop {
            match pipe.poll(now) {
                Output::Deliver { packet, due } => {
                    black_box((packet, due));
                }
                Output::Discard(_) => {}
                Output::Timeout(next) => {
                    now = next.unwrap_or(now);
                    break;
                }
            }
        }
    }
    black_box(pipe.counters());
}
