//! Plots per second of `roundtrip diagnose --svg`: `cargo bench -p roundtrip --bench plots`.
//!
//! The program reads a capture of a thousand connections, each with forty stalls, with plots and without. The bench
//! prints plots per second of the difference, which is the time of plotting, and of the whole run. Both are medians in
//! elapsed and CPU time, with the peak memory of the whole run. It asserts nothing.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use wire::packet::{Flags, TcpBuilder};

const CONNECTIONS: u32 = 1_000;
const ROUNDS: usize = 5;

fn main() {
    let directory = std::env::temp_dir().join(format!("roundtrip-bench-plots-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("the disk has space for the benchmark");
    let capture = directory.join("capture.pcap");
    std::fs::write(&capture, pcap()).expect("the disk has space for the benchmark");
    let plots = directory.join("plots");
    let read = |flags: &[&str]| {
        let arguments = ["diagnose", capture.to_str().expect("a plain name"), "--format", "csv"];
        run(&[&arguments[..], flags].concat())
    };
    let svg_flags = ["--svg", plots.to_str().expect("a plain name")];
    let (mut plotting_times, mut total_times) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (without, with) = (read(&[]), read(&svg_flags));
        plotting_times.push((with.0.saturating_sub(without.0), with.1.saturating_sub(without.1)));
        total_times.push(with);
    }
    let plots_written = std::fs::read_dir(&plots).map_or(0, Iterator::count);
    let each =
        std::fs::read_dir(&plots).into_iter().flatten().flatten().filter_map(|plot| plot.metadata().ok());
    let bytes: u64 = each.map(|plot| plot.len()).sum();
    println!("  {plots_written} plots, {:.1} MB", bytes as f64 / 1e6);
    for (name, times) in [("plotting", plotting_times), ("reading, diagnosing and plotting", total_times)] {
        let (elapsed, spent): (Vec<Duration>, Vec<Duration>) = times.into_iter().unzip();
        let (elapsed, spent) = (median(elapsed), median(spent));
        println!(
            "  {name:<32} {elapsed:.2} s, {spent:.2} s of CPU: {:.0} plots/s, {:.0} plots per CPU second",
            f64::from(CONNECTIONS) / elapsed,
            f64::from(CONNECTIONS) / spent
        );
    }
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("getrusage does not fail");
    println!("  {} MB at the peak", usage.max_rss() / 1_024);
    let _ = std::fs::remove_dir_all(directory);
}

/// Elapsed time and CPU time of one run of the program.
#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn run(arguments: &[&str]) -> (Duration, Duration) {
    let (started, before) = (Instant::now(), spent_by_children());
    let status = Command::new(env!("CARGO_BIN_EXE_roundtrip")).args(arguments).stdout(Stdio::null()).status();
    // Exit status 1: there are findings.
    assert_eq!(status.ok().and_then(|status| status.code()), Some(1), "{arguments:?}");
    (started.elapsed(), spent_by_children().saturating_sub(before))
}

fn spent_by_children() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("getrusage does not fail");
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
                .expect("writing to memory does not fail");
            file.write_all(&packet).expect("writing to memory does not fail");
        };
        add(0, true, Flags::SYN, (0, 0), 0);
        add(100, false, Flags::SYN | Flags::ACK, (0, 1), 0);
        add(100, true, Flags::ACK, (1, 1), 0);
        for exchange in 0..40 {
            let (requested, responded) = (1 + exchange * 50, 1 + exchange * 105);
            add(1_000, true, Flags::ACK, (requested, responded), 50);
            add(1_000, false, Flags::ACK, (responded, requested + 50), 100);
            add(45_000, true, Flags::ACK, (requested + 50, responded + 100), 0);
            add(100, false, Flags::ACK, (responded + 100, requested + 50), 5);
        }
    }
    file
}
