//! Accuracy and speed of the emulated link: `cargo bench -p roundtrip-testbed --bench emulator`, as root, in two
//! minutes; `-- TCP` for the sections with that word in their title.
//!
//! The figures depend on the host as much as on the emulator. Each is the median of several
//! tries, with minimum and maximum. Before each try it waits for other load on the host to end, up to a
//! minute in all. The table shows the number of CPUs that were busy nevertheless.

extern crate roundtrip_testbed as testbed;

#[path = "../tests/it/two_hosts.rs"]
mod two_hosts;

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use linux::clock::Clock;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use testbed::Error;
use testbed::emulator::{Options, Report};
use testbed::probe::{self, Stream, StreamResult};
use two_hosts::{PORT, SERVER, TwoHosts};
use wire::link::{Config, QueueLimit};
use wire::{Duration, Rate};

const DELAY: Duration = Duration::from_millis(15);

fn main() -> Result<(), Error> {
    if let Err(missing) = testbed::available() {
        eprintln!("nothing was benchmarked: {missing}");
        return Ok(());
    }
    println!("{:<34} {:>8} {:>8} {:>19}   target", "", "", "median", "min to max");
    let mut timeout = Duration::from_secs(60);
    section(&mut timeout, "the host itself", 5, FLOOR, floor)?;
    for packets_per_second in [1_000, 5_000, 20_000] {
        let title = format!("{packets_per_second} packets/s, 15 ms");
        section(&mut timeout, &title, 5, PACED, || paced(packets_per_second))?;
    }
    section(&mut timeout, "150,000 packets/s, 15 ms", 5, FLOOD, flood)?;
    section(&mut timeout, "maximum rate, no delay", 5, RELAY, relay)?;
    section(&mut timeout, "TCP over an unlimited link", 5, TCP, tcp)?;
    section(&mut timeout, "10^6 packets at 50 Mbit/s", 1, RATE, exact_rate)?;
    println!("other emulators, on a shared host of 2 CPUs, Linux 6.18:");
    ANCHORS.iter().for_each(|line| println!("  {line}"));
    Ok(())
}

/// Figures of other emulators (published by them, or measured next to a prototype of this one).
const ANCHORS: [&str; 4] = [
    "rattan     one-way error p50 38-67 us, p99 95-123 us real-time, p99 1.8-4.3 ms otherwise; TCP 0.54-0.78 Gb/s",
    "mahimahi   1 ms quantum, one-way error p99 1.1-2 ms; TCP 0.3-0.7 Gb/s (its issue #144)",
    "ns-3       in real time: 220 Mb/s of a configured 1 Gb/s (quic-network-simulator #95)",
    "prototype  of this one: one-way error p50 13-20, p99 56-59 us; TCP 2.4 Gb/s; 266-300 k packets/s per core",
];

/// Name, unit and target of a figure.
type Row = (&'static str, &'static str, &'static str);

/// Runs a section several times and prints a row for each of its figures.
fn section<const N: usize>(
    timeout: &mut Duration,
    title: &str,
    tries: usize,
    rows: [Row; N],
    mut measure: impl FnMut() -> Result<[f64; N], Error>,
) -> Result<(), Error> {
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    if !filter.is_none_or(|word| title.contains(&word)) {
        return Ok(());
    }
    let mut figures: [Vec<f64>; N] = std::array::from_fn(|_| Vec::new());
    let mut loads = Vec::new();
    for _ in 0..tries {
        wait_for_quiet(timeout);
        let before = CpuTimes::now();
        let results = measure()?;
        loads.push(CpuTimes::now().other_load_since(&before));
        figures.iter_mut().zip(results).for_each(|(figure, result)| figure.push(result));
    }
    println!("{title} (other load: {:.1} CPUs busy)", median(&mut loads));
    for ((name, unit, target), mut figure) in rows.into_iter().zip(figures) {
        let middle = median(&mut figure);
        let range = format!("{:.1} to {:.1}", figure[0], figure[tries - 1]);
        println!("  {name:<32} {unit:>8} {middle:>8.1} {range:>19}   {target}");
    }
    Ok(())
}

/// Waits until other load is below half a CPU, or `timeout` is used up.
fn wait_for_quiet(timeout: &mut Duration) {
    const INTERVAL: Duration = Duration::from_millis(200);
    while *timeout > Duration::ZERO {
        let before = CpuTimes::now();
        pause(INTERVAL);
        if CpuTimes::now().other_load_since(&before) < 0.5 {
            return;
        }
        *timeout = *timeout - INTERVAL;
    }
}

fn pause(span: Duration) {
    thread::park_timeout(std::time::Duration::from_nanos(span.as_nanos()));
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

const FLOOR: [Row; 2] =
    [("lateness p99, watching the clock", "us", "(the host's own lateness)"), ("the same, p99.9", "us", "")];

/// Lateness at the times at which 20,000 packets would be due.
fn floor() -> Result<[f64; 2], Error> {
    let lateness = probe::floor(Clock::start(), 20_000, Duration::from_micros(50))?;
    Ok([990, 999].map(|per_mille| micros(lateness.per_mille(per_mille))))
}

const PACED: [Row; 6] = [
    ("lateness p50", "us", "at most 2"),
    ("lateness p99", "us", "at most 10"),
    ("end-to-end error p50, raw", "us", ""),
    ("end-to-end error p99, raw", "us", ""),
    ("bias (p50 without delay)", "us", ""),
    ("end-to-end error p99, calibrated", "us", "at most 60"),
];

fn paced(packets_per_second: u32) -> Result<[f64; 6], Error> {
    let interval = Duration::from_secs(1) / u64::from(packets_per_second);
    let stream = Stream { datagrams: packets_per_second, interval, payload: 100 };
    let (_, bias) = measure_delay(Duration::ZERO, stream)?;
    let (report, result) = measure_delay(DELAY, stream)?;
    assert_eq!(result.early, 0, "a packet arrived before its time");
    let [bias, p50, p99] = [(&bias, 500), (&result, 500), (&result, 990)]
        .map(|(result, per_mille)| micros(result.excess.per_mille(per_mille)));
    let late = [500, 990].map(|per_mille| micros(report.lateness.per_mille(per_mille)));
    Ok([late[0], late[1], p50, p99, bias, p99 - bias])
}

const FLOOD: [Row; 3] = [
    ("delivered", "k/s", "150"),
    ("lateness p99", "us", "below 150"),
    ("lost before it could be read", "packets", "0"),
];

fn flood() -> Result<[f64; 3], Error> {
    let stream = Stream { datagrams: 150_000, interval: Duration::from_nanos(6_667), payload: 100 };
    let report = drive(&Config { delay: DELAY, ..Config::default() }, |sender, clock| {
        stream.send(sender, clock)?;
        // The last packets are still in flight.
        pause(DELAY * 2);
        Ok(())
    })?;
    let lost = report.up.lost_in_device as f64;
    Ok([per_second(&report) / 1e3, micros(report.lateness.per_mille(990)), lost])
}

/// Counters of a link while the client sent and the server read everything.
fn drive(up: &Config, send: impl FnOnce(&UdpSocket, Clock) -> Result<(), Error>) -> Result<Report, Error> {
    let (hosts, running) = TwoHosts::joined(up, &Config::default(), &Options::default())?;
    let [client, server] = hosts.sockets()?;
    let timeout = std::time::Duration::from_millis(50);
    server.set_read_timeout(Some(timeout)).expect("50 ms is a valid timeout");
    let is_over = AtomicBool::new(false);
    let receive = || {
        while !is_over.load(Ordering::Relaxed) {
            // A pause of 50 ms is no reason to stop.
            drop(server.recv(&mut [0; 200]));
        }
    };
    thread::scope(|scope| {
        scope.spawn(receive);
        let result = send(&client, running.clock());
        is_over.store(true, Ordering::Relaxed);
        result
    })?;
    running.stop()
}

fn measure_delay(delay: Duration, stream: Stream) -> Result<(Report, StreamResult), Error> {
    let up = Config { delay, ..Config::default() };
    let (hosts, running) = TwoHosts::joined(&up, &Config::default(), &Options::default())?;
    let [client, server] = hosts.sockets()?;
    let result = stream.run([&client, &server], running.clock(), delay)?;
    Ok((running.stop()?, result))
}

const RELAY: [Row; 2] = [("relayed", "k/s", ""), ("relayed per second of the thread", "k/s", "at least 250")];

fn relay() -> Result<[f64; 2], Error> {
    let report = drive(&Config::default(), |sender, clock| {
        let end = clock.now() + Duration::from_secs(1);
        let flood = || {
            while clock.now() < end {
                // The queue is expected to be full.
                drop(sender.send(&[0; 100]));
            }
        };
        thread::scope(|scope| {
            scope.spawn(flood);
            flood();
        });
        Ok(())
    })?;
    let packets = report.up.link.delivered.packets as f64;
    Ok([per_second(&report) / 1e3, packets / report.awake.as_secs_f64() / 1e3])
}

const TCP: [Row; 2] = [("payload", "Gb/s", "at least 2.5"), ("payload per second of the thread", "Gb/s", "")];

fn tcp() -> Result<[f64; 2], Error> {
    let (hosts, running) = TwoHosts::joined(&Config::default(), &Config::default(), &Options::default())?;
    let clock = running.clock();
    let listener =
        hosts.server.start(|| TcpListener::bind((SERVER, PORT)).expect("a fresh namespace")).wait()?;
    let receiver = thread::spawn(move || receive(&listener, clock));
    let mut stream =
        hosts.client.start(|| TcpStream::connect((SERVER, PORT)).expect("the server listens")).wait()?;
    let end = clock.now() + Duration::from_millis(1_500);
    let piece = vec![0; 1 << 18];
    while clock.now() < end {
        stream.write_all(&piece).expect("the server reads");
    }
    drop(stream);
    let (bytes, elapsed) = receiver.join().map_err(|_| Error::Died { thread: "receiver" })?;
    let report = running.stop()?;
    Ok([elapsed, report.awake].map(|span| bytes as f64 * 8.0 / 1e9 / span.as_secs_f64()))
}

fn receive(listener: &TcpListener, clock: Clock) -> (usize, Duration) {
    let (mut stream, _) = listener.accept().expect("the client connects");
    let start = clock.now();
    let mut buffer = vec![0; 1 << 18];
    let mut bytes = 0;
    loop {
        match stream.read(&mut buffer).expect("the client ends in order") {
            0 => return (bytes, clock.now().since(start)),
            length => bytes += length,
        }
    }
}

const RATE: [Row; 2] = [("packets", "k", "1,000"), ("rate wrong by", "ppm", "within 1")];

fn exact_rate() -> Result<[f64; 2], Error> {
    const BITS_PER_SECOND: u64 = 50_000_000;
    // 97 bytes with headers of 28 are 1,000 bits: 20 us each.
    const PAYLOAD: u16 = 97;
    const PACKET_BITS: f64 = 1_000.0;
    let up = Config {
        rate: Rate::from_bits_per_second(BITS_PER_SECOND),
        queue: QueueLimit { packets: Some(50_000), bytes: None },
        ..Config::default()
    };
    let stream = Stream { datagrams: 1_600_000, interval: Duration::from_nanos(12_500), payload: PAYLOAD };
    let report = drive(&up, |sender, clock| {
        // Fills the queue first, then exceeds the rate: the link is never idle, even if a thread is delayed.
        for _ in 0..20_000 {
            drop(sender.send(&[0; PAYLOAD as usize]));
        }
        stream.send(sender, clock)
    })?;
    let packets = report.up.link.delivered.packets as f64;
    let ideal = BITS_PER_SECOND as f64 / PACKET_BITS;
    Ok([packets / 1e3, (per_second(&report) / ideal - 1.0) * 1e6])
}

/// Packets per second, from the first delivered to the last.
fn per_second(report: &Report) -> f64 {
    let (first, last) = report.up.delivered.expect("packets were delivered");
    (report.up.link.delivered.packets - 1) as f64 / last.since(first).as_secs_f64()
}

fn micros(span: Duration) -> f64 {
    span.as_nanos() as f64 / 1e3
}

/// CPU time used by the host and by this process up to some time, in seconds.
struct CpuTimes {
    busy: f64,
    own_seconds: f64,
    passed: Clock,
}

impl CpuTimes {
    fn now() -> Self {
        /// The unit of /proc/stat on every architecture that Linux still runs on.
        const TICKS_PER_SECOND: f64 = 100.0;
        let table = fs::read_to_string("/proc/stat").unwrap_or_default();
        // user nice system idle iowait irq softirq steal: all but idle and iowait.
        let ticks = table.lines().next().unwrap_or_default().split_ascii_whitespace().skip(1).take(8);
        let busy = ticks.enumerate().filter(|(column, _)| ![3, 4].contains(column));
        let busy: f64 = busy.filter_map(|(_, ticks)| ticks.parse::<f64>().ok()).sum();
        let own_seconds = getrusage(UsageWho::RUSAGE_SELF)
            .map_or(0.0, |usage| (usage.user_time() + usage.system_time()).num_microseconds() as f64 / 1e6);
        Self { busy: busy / TICKS_PER_SECOND, own_seconds, passed: Clock::start() }
    }

    fn other_load_since(&self, before: &Self) -> f64 {
        let passed = before.passed.now().since(wire::Time::ZERO).as_secs_f64();
        (self.busy - before.busy - (self.own_seconds - before.own_seconds)).max(0.0) / passed
    }
}
