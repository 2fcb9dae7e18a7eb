//! Latency of one host while another attacks the same service, from one address or from 10,000: idle connections, uploads, slow
//! readers, slow origins.
//!
//! `cargo bench -p roundtrip-dhttp-proxy --bench attacks [-- [--rounds N] [NAME...]]`, as root; a name selects a service, or the
//! attacks whose names contain it. Three network namespaces (`two_clients`); phases without and with the attack alternate. Each
//! request of the measured host has a connection of its own. The services, the attacker and the measured host share this computer's CPUs. As a control, the same attack runs
//! against another instance of the service in other namespaces: what it costs then is the computer's, not the service's.

mod attack;
#[path = "../../tests/it/two_clients.rs"]
mod two_clients;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use attack::{ATTACKER, ATTACKS, Attack, AttackProcess};
use dhttp::server::ClientLimits;
use two_clients::{
    Hosts, SLOW, Service, cache, connect, gateway, is_served, is_served_at, serve, service_address,
};

/// Starts a service, for IPv6 or not, with limits of clients.
type Start = fn(bool, ClientLimits) -> Service;

/// Length of a phase with the attack, in which most of the time all connections are open.
const PHASE: Duration = Duration::from_secs(6);
/// Length of an attack from many addresses before that.
const LEAD: Duration = Duration::from_secs(4);
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

/// Sends requests sequentially for this duration: for a response that a cache has, or each for another.
fn measure(to: SocketAddr, prefix: &str, span: Duration, are_misses: bool) -> Latencies {
    let (first, mut latencies) = (now(), Latencies::default());
    while first.elapsed() < span {
        let begun = now();
        let is_served = connect(to).is_ok_and(|mut stream| match are_misses {
            true => is_served_at(&mut stream, prefix, &format!("/{}", first.elapsed().as_nanos())),
            false => is_served(&mut stream, prefix),
        });
        latencies.all.push(begun.elapsed());
        latencies.failed += usize::from(!is_served);
        pause(PAUSE);
    }
    latencies
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
    if std::env::args().nth(1).is_some_and(|argument| argument == ATTACKER) {
        attack::run(arguments.skip(1));
        return ExitCode::SUCCESS;
    }
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
        "| service | attack by another host | median alone, ms | control | attacked | ratio | p99 alone, ms | control | attacked | ratio | requests | failed | closed |"
    );
    println!("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    let services: [(&str, Start); 3] = [("serve", serve), ("cache", cache), ("gateway", gateway)];
    let is_selected = |service: &str, attack: &str| {
        names.is_empty() || names.iter().any(|name| name == service || attack.contains(name.as_str()))
    };
    for (name, start) in services {
        for attack in ATTACKS.iter().filter(|attack| attack.services.contains(&name)) {
            if is_selected(name, attack.name) {
                compare(name, start, attack, rounds);
            }
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
        if attack.has_many_addresses {
            hosts.take_many_addresses();
        }
        // The gateway's default for one client is half of all its connections.
        let connections = if name == "gateway" { 512 } else { ClientLimits::default().connections };
        let limits = ClientLimits { connections, ..ClientLimits::default() };
        let service = hosts.server.start(move || start(false, limits)).wait().expect("a service");
        Self { hosts, service, attack }
    }

    /// Measures the other host of this service during a phase.
    fn measure(&self) -> Latencies {
        let (to, prefix) = (service_address(2, false), self.service.prefix.clone());
        let are_misses = self.attack.is_for_slow_responses;
        self.hosts.other.start(move || measure(to, &prefix, PHASE, are_misses)).wait().expect("latencies")
    }

    /// Attacks this service while `measured` runs.
    fn attack_during(&self, measured: impl FnOnce() -> Latencies) -> Latencies {
        let (prefix, each) = (self.service.prefix.clone(), self.attack);
        let attacking = self.hosts.attacker.start(move || AttackProcess::start(each, &prefix));
        let attacking = attacking.wait().expect("an attack");
        // Until all connections are open.
        pause(if each.has_many_addresses { LEAD } else { Duration::ZERO });
        let latencies = measured();
        attacking.stop();
        // Until the last slow response has ended.
        pause(if each.is_for_slow_responses { SLOW + SLOW / 10 } else { Duration::from_millis(500) });
        latencies
    }
}

/// Prints the row of a service and an attack.
fn compare(name: &str, start: Start, attack: &'static Attack, rounds: usize) {
    let [mut alone, mut control, mut attacked] = [const { Latencies { all: Vec::new(), failed: 0 } }; 3];
    let [target, another] = [(); 2].map(|()| Target::new(name, start, attack));
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
    let (requests, failed) = (attacked.all.len(), attacked.failed);
    println!("| `{name}` | {} | {median} | {p99} | {requests} | {failed} | {closed} |", attack.name);
}
