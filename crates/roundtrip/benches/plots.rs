//! Plots per second of `roundtrip diagnose --svg`: `cargo bench -p roundtrip --bench plots`.
//!
//! A capture of a thousand connections, each with forty stalls; the program reads it with and without drawing. The
//! bench prints plots per second of the difference, which is the drawing's time. It prints the same of the whole,
//! from the capture's first byte to the last plot's name in its directory. Both are in elapsed and CPU time, with the
//! peak memory of the whole. It prints medians and asserts nothing.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use wire::packet::{Flags, TcpBuilder};

const CONNECTIONS: u32 = 1_000;
const ROUNDS: usize = 5;

fn main() {
    let directory = std::env::temp_dir().join(format!("roundtrip-bench-plots-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("there is room for the benchmark");
    let capture = directory.join("capture.pcap");
    std::fs::write(&capture, pcap()).expect("there is room for the benchmark");
    let plots = directory.join("plots");
    let read = |drawn: &[&str]| {
        let words = ["diagnose", capture.to_str().expect("a plain name"), "--format", "csv"];
        run(&[&words[..], drawn].concat())
    };
    let drawing = ["--svg", plots.to_str().expect("a plain name")];
    let (mut drawn_in, mut all_in) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (without, with) = (read(&[]), read(&drawing));
        drawn_in.push((with.0.saturating_sub(without.0), with.1.saturating_sub(without.1)));
        all_in.push(with);
    }
    let drawn = std::fs::read_dir(&plots).map_or(0, Iterator::count);
    let each =
        std::fs::read_dir(&plots).into_iter().flatten().flatten().filter_map(|plot| plot.metadata().ok());
    let bytes: u64 = each.map(|plot| plot.len()).sum();
    println!("  {drawn} plots, {:.1} MB", bytes as f64 / 1e6);
    for (name, times) in [("drawing", drawn_in), ("reading, diagnosing and drawing", all_in)] {
        let (elapsed, spent): (Vec<Duration>, Vec<Duration>) = times.into_iter().unzip();
        let (elapsed, spent) = (median(elapsed), median(spent));
        println!(
            "  {name:<32} {elapsed:.2} s, {spent:.2} s of a processor: {:.0} plots/s, {:.0} plots/s of a processor",
            f64::from(CONNECTIONS) / elapsed,
            f64::from(CONNECTIONS) / spent
        );
    }
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("the kernel counts for everybody");
    println!("  {} MB at most", usage.max_rss() / 1_024);
    let _ = std::fs::remove_dir_all(directory);
}

/// Elapsed time and CPU time of one run of the program.
#[expect(clippy::disallowed_methods, reason = "a benchmark's one place that reads the clock")]
fn run(words: &[&str]) -> (Duration, Duration) {
    let (started, before) = (Instant::now(), spent_by_children());
    let status = Command::new(env!("CARGO_BIN_EXE_roundtrip")).args(words).stdout(Stdio::null()).status();
    // Exit status 1: there are findings.
    assert_eq!(status.ok().and_then(|status| status.code()), Some(1), "{words:?}");
    (started.elapsed(), spent_by_children().saturating_sub(before))
}

fn spent_by_children() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("the kernel counts for everybody");
    let micros = |time: nix::sys::time::TimeVal| {
        Duration::from_secs(u64::try_from(time.tv_sec()).unwrap_or_default())
            + Duration::from_micros(u64::try_from(time.tv_usec()).unwrap_or_default())
    };
    micros(usage.user_time()) + micros(usage.system_time())
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64()
}

/// Consecutive connections: a response in two pieces, the second delayed by 45 ms, forty times.
fn pcap() -> Vec<u8> {
    let mut file = [0xa1b2_c3d4_u32, 0x0002_0004, 0, 0, 0xffff, 101].map(u32::to_be_bytes).concat();
    let mut packet = Vec::new();
    for index in 0..CONNECTIONS {
        let [_, b, c, d] = index.to_be_bytes();
        let (client, server) = (([10, b, c, d], 40_000).into(), ([192, 168, 0, 1], 80).into());
        let mut at = u64::from(index) * 1_000;
        let mut add = |wait: u64, is_up: bool, flags: Flags, (seq, ack): (u32, u32), length: usize| {
            at += wait;
            let (source, destination) = if is_up { (client, server) } else { (server, client) };
            packet.clear();
            TcpBuilder { source, destination, seq, ack, flags, window: 60_000, options: &[] }
                .write(&vec![b'x'; length], &mut packet)
                .expect("a segment fits a packet");
            let length = u32::try_from(packet.len()).expect("a packet is short");
            let (seconds, micros) = (at / 1_000_000, at % 1_000_000);
            let words = [seconds, micros].map(|word| u32::try_from(word).expect("the capture is short"));
            file.write_all(&[words[0], words[1], length, length].map(u32::to_be_bytes).concat())
                .expect("memory is no disk");
            file.write_all(&packet).expect("memory is no disk");
        };
        add(0, true, Flags::SYN, (0, 0), 0);
        add(100, false, Flags::SYN | Flags::ACK, (0, 1), 0);
        add(100, true, Flags::ACK, (1, 1), 0);
        for place in 0..40 {
            let (requested, answered) = (1 + place * 50, 1 + place * 105);
            add(1_000, true, Flags::ACK, (requested, answered), 50);
            add(1_000, false, Flags::ACK, (answered, requested + 50), 100);
            add(45_000, true, Flags::ACK, (requested + 50, answered + 100), 0);
            add(100, false, Flags::ACK, (answered + 100, requested + 50), 5);
        }
    }
    file
}
