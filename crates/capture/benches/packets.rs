//! Packets diagnosed per second, and peak memory: `cargo bench -p roundtrip-capture --bench packets`.
//!
//! A million packets in a pcap file: downloads over kept-alive HTTP, on few and on many concurrent connections. They are
//! read as the command line reads them, on one thread and on two. The floor is the same without diagnosis: packets read
//! and their headers parsed. Where they are installed, tcptrace and tshark read the same file. Each run is a process of
//! its own, so that the memory is its own. Prints medians, per second and per second of CPU time, which other load
//! disturbs less. Not an assertion: timings never fail a test. With `-- 10000`, only the shapes of that width; with
//! `-- large`, a capture of 3 GB in 1 GB of address space.

use std::fs::File;
use std::hint::black_box;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use packets::{Reader, tunnel};
use report::filter::Filter;
use wire::packet::{Flags, Packet, TcpBuilder, TcpOption};

const PACKETS: u32 = 1_000_000;
const ROUNDS: usize = 5;
/// Numbers of concurrent connections, and of consecutive packets of one connection. One packet is the worst case for
/// memory; a few are as on real networks.
const SHAPES: [(u32, u32); 7] =
    [(1, 1), (10, 1), (100, 1), (1_000, 1), (10_000, 1), (10_000, 8), (100_000, 1)];
/// The argument that makes this process the measured one.
const MEASURED: &str = "--measured";
/// The argument for a capture larger than memory, its packets, and the limit in KiB.
const LARGE: (&str, u32, &str) = ("large", 3_000_000, "1048576");

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if let [word, threads, file] = arguments.as_slice()
        && word == MEASURED
    {
        return measured(threads, Path::new(file));
    }
    println!("| connections (in turn) | program | M packets/CPU-s | M packets/s | peak memory |");
    println!("| --- | --- | --- | --- | --- |");
    if arguments.iter().any(|word| word == LARGE.0) {
        let limited = |threads| {
            ["sh", "-c", "ulimit -v $0; exec \"$@\"", LARGE.2]
                .map(PathBuf::from)
                .into_iter()
                .chain(own_command(threads))
        };
        let programs =
            [("1 thread, 1 GB of memory", limited("1")), ("2 threads, 1 GB of memory", limited("2"))];
        return row(
            (1_000, 1),
            LARGE.1,
            programs.map(|(name, command)| (name, 1, command.collect())).to_vec(),
        );
    }
    let requested: Vec<u32> = arguments.iter().filter_map(|word| word.parse().ok()).collect();
    let is_requested =
        |(connections, _): &(u32, u32)| requested.is_empty() || requested.contains(connections);
    for shape in SHAPES.into_iter().filter(is_requested) {
        row(shape, PACKETS, programs());
    }
}

fn row(shape: (u32, u32), packets: u32, programs: Vec<(&str, usize, Vec<PathBuf>)>) {
    let (connections, turn) = shape;
    let file = std::env::temp_dir().join(format!("roundtrip-bench-{}.pcap", std::process::id()));
    write(connections, turn, packets, &file).expect("the file of the benchmark can be written");
    for (name, rounds, mut command) in programs {
        command.push(file.clone());
        let mut runs: Vec<Run> = (0..rounds).map_while(|_| run(&command)).collect();
        runs.sort_by_key(|run| run.elapsed);
        let Some(median) = runs.get(runs.len() / 2).copied() else {
            println!("| {connections} ({turn}) | {name} | not installed | | |");
            continue;
        };
        let rate = |time: Duration| f64::from(packets) / time.as_secs_f64() / 1e6;
        let (elapsed, peak) = (rate(median.elapsed), median.peak_kib / 1_024);
        runs.sort_by_key(|run| run.spent);
        let spent = runs.get(runs.len() / 2).map_or(0.0, |run| rate(run.spent));
        println!("| {connections} ({turn}) | {name} | {spent:.2} | {elapsed:.2} | {peak} MB |");
    }
    let _ = std::fs::remove_file(file);
}

/// The command that measures this program on `threads` threads; 0: the floor.
fn own_command(threads: &str) -> Vec<PathBuf> {
    let own_command = std::env::current_exe().expect("a program knows its own file");
    vec![own_command, MEASURED.into(), threads.into()]
}

/// Programs to run: name, number of runs, and arguments.
fn programs() -> Vec<(&'static str, usize, Vec<PathBuf>)> {
    let words = |words: &[&str]| words.iter().map(PathBuf::from).collect::<Vec<_>>();
    vec![
        ("floor: read and parse", ROUNDS, own_command("0")),
        ("1 thread", ROUNDS, own_command("1")),
        ("2 threads", ROUNDS, own_command("2")),
        ("tcptrace -n -l", ROUNDS, words(&["tcptrace", "-n", "-l"])),
        // One run only, because it takes long.
        ("tshark -q -z conv,tcp", 1, words(&["tshark", "-q", "-z", "conv,tcp", "-r"])),
    ]
}

#[derive(Clone, Copy)]
struct Run {
    elapsed: Duration,
    /// CPU time, to a hundredth of a second.
    spent: Duration,
    peak_kib: u64,
}

/// Runs a program until it exits; `None` if it cannot be started.
#[expect(clippy::disallowed_methods, reason = "a benchmark's one place that reads the clock")]
fn run(command: &[PathBuf]) -> Option<Run> {
    let started = Instant::now();
    let (program, arguments) = command.split_first()?;
    let mut child =
        Command::new(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
    let (mut peak_kib, mut spent) = (0, Duration::ZERO);
    // The kernel drops a process's peak memory when it exits: read it while the process runs.
    while child.try_wait().ok()?.is_none() {
        peak_kib = peak_kib.max(self::peak_kib(child.id()));
        spent = spent.max(self::spent(child.id()));
        std::thread::sleep(Duration::from_millis(2));
    }
    Some(Run { elapsed: started.elapsed(), spent, peak_kib })
}

/// Returns the CPU time of a process: fields 14 and 15 of `/proc/PID/stat`, in hundredths of a second.
fn spent(process: u32) -> Duration {
    let state = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The second field is a name in brackets, which may consist of several words.
    let words = state.rsplit(") ").next().unwrap_or_default().split_whitespace();
    let ticks: u64 = words.skip(11).take(2).filter_map(|word| word.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

/// Returns the peak resident memory of a process, in KiB, as the kernel reports it.
fn peak_kib(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}

/// The measured work.
fn measured(threads: &str, file: &Path) {
    let threads = threads.parse().expect("a number of threads");
    if threads > 0 {
        let capture = roundtrip_capture::read_with_threads(file, &Filter::default(), false, threads);
        black_box(capture.expect("it was just written"));
        return;
    }
    let mut reader = Reader::new(File::open(file).expect("it was just written")).expect("it is a capture");
    while let Some(frame) = reader.read().expect("it is whole") {
        black_box(frame.ip().map(Packet::read).and_then(Result::ok).map(tunnel::innermost));
    }
}

/// Writes responses of 30 segments, every second one acknowledged, repeatedly; connections take turns.
fn write(connections: u32, turn: u32, packets: u32, file: &Path) -> std::io::Result<()> {
    let mut capture = BufWriter::new(File::create(file)?);
    let head = [0xa1b2_3c4d_u32, 0x0002_0004, 0, 0, 0xffff, 101];
    capture.write_all(&head.map(u32::to_be_bytes).concat())?;
    let mut positions = vec![(1_u32, 1_u32, 0_u32); connections as usize];
    let request = b"GET /object HTTP/1.1\r\nHost: server\r\n\r\n";
    let response = b"HTTP/1.1 200 OK\r\nContent-Length: 43758\r\n\r\n";
    let mut packet = Vec::new();
    for number in 0..packets {
        let index = number / turn % connections;
        let (sent, answered, step) = &mut positions[index as usize];
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
            index if index > 2 && index % 3 == 2 => write(true, Flags::ACK, *sent, *answered, &[]),
            index => {
                let mut payload = [b'x'; 1_460];
                if index == 3 {
                    payload[..response.len()].copy_from_slice(response);
                }
                write(false, Flags::ACK, *answered, *sent, &payload);
                *answered += 1_460;
            }
        }
        *step += 1;
        let (seconds, nanos) = (number / 100_000, number % 100_000 * 10_000);
        let length = u32::try_from(packet.len()).expect("a packet is short");
        capture.write_all(&[seconds, nanos, length, length].map(u32::to_be_bytes).concat())?;
        capture.write_all(&packet)?;
    }
    capture.flush()
}
