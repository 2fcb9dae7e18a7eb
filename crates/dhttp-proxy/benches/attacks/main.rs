//! Latency of one host while another attacks the same service: idle connections, uploads, slow readers.
//!
//! `cargo bench -p roundtrip-dhttp-proxy --bench attacks [-- [--rounds N] [serve|cache|gateway...]]`, as root. Three network
//! namespaces (`two_clients`); phases without and with the attack alternate. Each request of the measured host has a connection
//! of its own. The services, the attacker and the measured host share this computer's CPUs. As a control, the same attack runs
//! against another instance of the service in other namespaces: what it costs then is the computer's, not the service's.

#[path = "../../tests/it/two_clients.rs"]
mod two_clients;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dhttp::server::ClientLimits;
use socket2::{Domain, Socket, Type};
use two_clients::{Hosts, Service, cache, connect, gateway, is_served, serve, service_address};

/// Starts a service, for IPv6 or not, with limits of clients.
type Start = fn(bool, ClientLimits) -> Service;

/// An attack of one host.
struct Attack {
    name: &'static str,
    connections: usize,
    /// Bytes that each connection sends first.
    first: fn(prefix: &str) -> String,
    /// Bytes that each connection sends, and reads, every second.
    rates: (usize, usize),
}

const ATTACKS: [Attack; 3] = [
    Attack { name: "12,000 idle connections", connections: 12_000, first: |_| String::new(), rates: (0, 0) },
    Attack {
        name: "2,000 POSTs of 1 MB, 600 B/s each",
        connections: 2_000,
        first: |prefix| format!("POST {prefix}/ HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n"),
        rates: (600, 0),
    },
    Attack {
        name: "300 readers of 1 MiB, 90 B/s each",
        connections: 300,
        first: |prefix| format!("GET {prefix}/large HTTP/1.1\r\nHost: h\r\n\r\n"),
        rates: (0, 90),
    },
];

/// Connections that an attacker opens in a second.
const CONNECTIONS_PER_SECOND: usize = 3_000;
/// Interval of its work.
const TICK: Duration = Duration::from_millis(10);
/// Length of a phase with the attack, in which most of the time all connections are open.
const PHASE: Duration = Duration::from_secs(6);
/// Pause of the measured host between two requests.
const PAUSE: Duration = Duration::from_millis(5);

/// Latencies of one host, and the number of its requests that failed.
#[derive(Default)]
struct Latencies {
    all: Vec<Duration>,
    failed: usize,
}

impl Latencies {
    fn add(&mut self, other: Self) {
        self.all.extend(other.all);
        self.failed += other.failed;
    }

    fn quantile(&self, of_hundred: usize) -> f64 {
        let mut all = self.all.clone();
        all.sort_unstable();
        let index = (all.len() * of_hundred / 100).min(all.len().saturating_sub(1));
        all.get(index).map_or(f64::NAN, |latency| latency.as_secs_f64() * 1e3)
    }
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "an attack has a rate")]
fn pause(span: Duration) {
    std::thread::sleep(span);
}

/// Sends requests sequentially for this duration.
fn measure(to: SocketAddr, prefix: &str, span: Duration) -> Latencies {
    let (end, mut latencies) = (now() + span, Latencies::default());
    while now() < end {
        let begun = now();
        let is_served = is_served(&mut connect(to), prefix);
        latencies.all.push(begun.elapsed());
        latencies.failed += usize::from(!is_served);
        pause(PAUSE);
    }
    latencies
}

/// A connection with a small receive buffer, so that the kernel reads little for a slow reader.
fn open(to: SocketAddr, first: &[u8]) -> Option<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).ok()?;
    socket.set_recv_buffer_size(4_096).ok()?;
    socket.connect(&to.into()).ok()?;
    let mut stream = TcpStream::from(socket);
    stream.set_nonblocking(true).ok()?;
    // A service may refuse the connection already.
    let _ = stream.write_all(first);
    Some(stream)
}

/// Attacks until `stop` is set.
fn attack(attack: &Attack, to: SocketAddr, prefix: &str, stop: &AtomicBool) {
    let first = (attack.first)(prefix);
    let (send, read) = attack.rates;
    let (body, mut buffer) = (vec![b'x'; send], vec![0; read]);
    let mut streams = Vec::with_capacity(attack.connections);
    let (mut opened, mut turn) = (0, 0);
    let a_tick = CONNECTIONS_PER_SECOND / 100;
    while !stop.load(Ordering::Acquire) {
        for _ in 0..a_tick.min(attack.connections - opened) {
            streams.extend(open(to, first.as_bytes()));
            opened += 1;
        }
        // Each connection has its turn once a second.
        for stream in streams.iter_mut().skip(turn).step_by(100).filter(|_| send + read > 0) {
            let _ = (stream.write(&body), stream.read(&mut buffer));
        }
        turn = (turn + 1) % 100;
        pause(TICK);
    }
}

/// Returns the number of connections that a service closed early or refused.
fn closed(metrics: &str) -> u64 {
    let is_about = |name: &str| {
        name.contains("_connections_closed_total") || name.contains("_connections_refused_total")
    };
    let values =
        metrics.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.rsplit_once(' '));
    values.filter(|(name, _)| is_about(name)).filter_map(|(_, value)| value.parse::<u64>().ok()).sum()
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let (mut rounds, mut names) = (3, Vec::new());
    while let Some(argument) = arguments.next() {
        if argument == "--rounds" {
            rounds = arguments.next().and_then(|rounds| rounds.parse().ok()).unwrap_or(rounds);
        } else {
            names.push(argument);
        }
    }
    if let Err(missing) = testbed::available() {
        eprintln!("{missing}");
        return ExitCode::FAILURE;
    }
    dhttp::descriptors::grow_table();
    println!(
        "| service | attack by another host | median alone, ms | control | attacked | ratio | p99 alone, ms | control | attacked | ratio | failed | closed |"
    );
    println!("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    let services: [(&str, Start); 3] = [("serve", serve), ("cache", cache), ("gateway", gateway)];
    for (name, start) in services {
        if names.is_empty() || names.iter().any(|selected| selected == name) {
            compare(name, start, rounds);
        }
    }
    ExitCode::SUCCESS
}

/// A service, its namespaces, and the attack on it.
struct Target {
    hosts: Hosts,
    service: Service,
    attack: &'static Attack,
}

impl Target {
    fn new(name: &str, start: Start, attack: &'static Attack) -> Self {
        let hosts = Hosts::new().expect("namespaces");
        // The gateway's default for one client is half of all its connections.
        let connections = if name == "gateway" { 512 } else { ClientLimits::default().connections };
        let limits = ClientLimits { connections, ..ClientLimits::default() };
        let service = hosts.server.start(move || start(false, limits)).wait().expect("a service");
        Self { hosts, service, attack }
    }

    /// Measures the other host of this service during a phase.
    fn measure(&self) -> Latencies {
        let (to, prefix) = (service_address(2, false), self.service.prefix.clone());
        self.hosts.other.start(move || measure(to, &prefix, PHASE)).wait().expect("latencies")
    }

    /// Attacks this service while `measured` runs.
    fn attack_during(&self, measured: impl FnOnce() -> Latencies) -> Latencies {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, prefix, each) = (Arc::clone(&stop), self.service.prefix.clone(), self.attack);
        let to = service_address(1, false);
        let attacking = self.hosts.attacker.start(move || attack(each, to, &prefix, &stopped));
        let latencies = measured();
        stop.store(true, Ordering::Release);
        attacking.wait().expect("an attack");
        pause(Duration::from_millis(500));
        latencies
    }
}

/// Prints the rows of a service.
fn compare(name: &str, start: Start, rounds: usize) {
    for each in &ATTACKS {
        let [mut alone, mut control, mut attacked] = [const { Latencies { all: Vec::new(), failed: 0 } }; 3];
        let [target, another] = [(); 2].map(|()| Target::new(name, start, each));
        for _ in 0..rounds {
            alone.add(target.measure());
            control.add(another.attack_during(|| target.measure()));
            attacked.add(target.attack_during(|| target.measure()));
        }
        let [median, p99] = [50, 99].map(|of_hundred| {
            let [alone, control, attacked] =
                [&alone, &control, &attacked].map(|latencies| latencies.quantile(of_hundred));
            format!("{alone:.2} | {control:.2} | {attacked:.2} | {:.2}", attacked / control)
        });
        let closed = closed(&(target.service.metrics)());
        println!("| `{name}` | {} | {median} | {p99} | {} | {closed} |", each.name, attacked.failed);
    }
}
