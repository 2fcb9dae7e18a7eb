//! The generator's own figures: lateness, requests per second of CPU time, and whether it sees a pause of the server.
//!
//! `cargo bench -p roundtrip-load --bench generator [-- SECTION...]`, sections `late` (on a busy machine, under `chrt -f 1`),
//! `rate` and `pause`. Rates are per second of the client's CPU time (this program, or wrk), in turns, with the median,
//! the minimum and the maximum of several rounds. Over loopback the sender's CPU time includes the kernel's work until
//! the other end has the data, for both programs. Servers have two CPUs of their own, where there are three. Not a
//! measurement of a server: nginx is the same for wrk and this program.

extern crate roundtrip_load as load;

mod pause;
mod servers;
mod wrk;

use std::net::SocketAddr;
use std::time::Instant;

use load::config::PORTS;
use load::{Config, Protocol, Record, Shard, Target};
use wire::{Duration, Time};
use workload::plan::{ObjectRequest, Page, PageStart, Plan, PlanSpec};
use workload::schedule::{Arrivals, Leg, Schedule};

use servers::{Server, ServerKind};

const ROUNDS: usize = 7;
/// Seconds of a run in a round.
const SECONDS: u64 = 2;
/// Milliseconds of a run for lateness: at real-time priority (`chrt -f 1`), Linux throttles this program after a second.
const LATE_MILLIS: u64 = 800;
/// Users of a run for lateness.
const LATE_USERS: u32 = 16;
/// Concurrent users, or connections.
const USERS: u32 = 64;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if let [role, kind, address] = arguments.as_slice()
        && role == servers::ROLE
    {
        return servers::run(kind, address.parse().expect("an address"));
    }
    let is_wanted = |section: &str| arguments.is_empty() || arguments.iter().any(|wanted| wanted == section);
    if is_wanted("late") {
        measure_lateness();
    }
    if is_wanted("rate") {
        rate();
    }
    if is_wanted("pause") {
        pause::compare();
    }
}

/// Lateness of requests at 50,000 a second.
fn measure_lateness() {
    const RATE: u64 = 50_000;
    servers::pin_to_cpus(servers::cpu_ranges().0);
    println!("late: {RATE} requests a second for {LATE_MILLIS} ms, {LATE_USERS} users, one thread or two");
    for (kind, protocol) in [(ServerKind::Dhttp, Protocol::Dhttp), (ServerKind::Nginx, Protocol::KeepAlive)] {
        let Some(server) = Server::start(kind) else { continue };
        let (mut lateness, mut clock_latenesses) = ([Vec::new(), Vec::new()], Vec::new());
        for _ in 0..ROUNDS {
            for (threads, lateness) in (1..).zip(&mut lateness) {
                // The kernel throttles a program that runs at real-time priority for longer.
                servers::yield_cpus();
                let plan = warmed_up(RATE, LATE_MILLIS, LATE_USERS.into());
                let record = run(&plan, server.address, protocol, LATE_USERS, threads);
                let at = |share| record.lateness.value_at_quantile(share) as f64 / 1e3;
                println!(
                    "  {:<6} by {threads}: p50 {:>8.1} us, p99 {:>8.1} us, p99.9 {:>8.1} us; {} responses, failures {:?}",
                    protocol.name(),
                    at(0.5),
                    at(0.99),
                    at(0.999),
                    record.responses(),
                    record.failure_counts
                );
                lateness.push(at(0.999));
            }
            servers::yield_cpus();
            clock_latenesses.push(clock_lateness(RATE, LATE_MILLIS));
        }
        for (threads, lateness) in (1..).zip(lateness) {
            println!("  {:<6} by {threads}: p99.9 {} us", protocol.name(), spread(lateness));
        }
        println!("  a thread that only reads the clock: {} us", spread(clock_latenesses));
    }
}

/// Lateness of a thread that only reads the clock, for events at this rate: the 99.9th percentile in microseconds. It is the
/// host's, not the generator's.
#[expect(clippy::disallowed_methods, reason = "it is about the clock")]
fn clock_lateness(rate: u64, millis: u64) -> f64 {
    let began = Instant::now();
    let due = (0..rate * millis / 1_000)
        .map(|number| std::time::Duration::from_nanos(number * 1_000_000_000 / rate));
    let mut lateness: Vec<f64> = due
        .map(|due| {
            loop {
                let now = began.elapsed();
                if now >= due {
                    return (now - due).as_secs_f64() * 1e6;
                }
            }
        })
        .collect();
    lateness.sort_by(f64::total_cmp);
    lateness[lateness.len() * 999 / 1_000]
}

/// Requests per second of CPU time.
fn rate() {
    println!("rate: thousand responses per second of CPU time, {USERS} connections or users, one thread");
    if let Some(server) = Server::start(ServerKind::Nginx) {
        let (mut own_rates, mut wrk_rates, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let own_rate = responses_per_cpu(server.address, Protocol::KeepAlive);
            own_rates.push(own_rate);
            if let Some(wrk_rate) = wrk::responses_per_cpu(server.address) {
                wrk_rates.push(wrk_rate);
                ratios.push(own_rate / wrk_rate);
            }
        }
        println!("  http11 {}", spread(own_rates));
        if !wrk_rates.is_empty() {
            println!("  wrk    {}\n  http11 / wrk {}", spread(wrk_rates), spread(ratios));
        }
    }
    if let Some(server) = Server::start(ServerKind::Dhttp) {
        for (name, protocol) in [("http11, our own server", Protocol::KeepAlive), ("dhttp ", Protocol::Dhttp)]
        {
            let of = |_| responses_per_cpu(server.address, protocol);
            println!("  {name} {}", spread((0..ROUNDS).map(of).collect()));
        }
    }
}

fn responses_per_cpu(server: SocketAddr, protocol: Protocol) -> f64 {
    // More than any server responds to; a longer plan would take time to distribute.
    let plan = closed_loop(5_000 * SECONDS);
    let before = servers::own_time();
    let record = run(&plan, server, protocol, USERS, 1);
    let spent = servers::own_time() - before;
    assert!(record.failures() * 100 < record.responses(), "{:?}", record.failure_counts);
    record.responses() as f64 / spent / 1e3
}

/// Median, minimum and maximum.
fn spread(mut of: Vec<f64>) -> String {
    of.sort_by(f64::total_cmp);
    match of.as_slice() {
        [] => "nothing".to_owned(),
        [min, .., max] => format!("{:.2} ({min:.2} to {max:.2})", of[of.len() / 2]),
        [only] => format!("{only:.2}"),
    }
}

/// Each user's first request, which opens its connection, a millisecond after the previous user's; then requests at
/// even intervals.
fn warmed_up(rate: u64, millis: u64, users: u64) -> Plan {
    let mut plan = constant_rate(rate, millis);
    let first = Duration::from_millis(users);
    for page in &mut plan.pages {
        if let PageStart::At(at) = &mut page.start {
            *at += first;
        }
    }
    let firsts =
        (0..users).map(|number| page(number, PageStart::At(Time::ZERO + Duration::from_millis(number))));
    plan.pages.splice(..0, firsts);
    plan.spec.duration += first;
    plan
}

/// Requests at even intervals.
fn constant_rate(rate: u64, millis: u64) -> Plan {
    let leg = Leg { duration: Duration::from_millis(millis), from: rate as f64, to: rate as f64 };
    let at = |number: u64| PageStart::At(Time::from_nanos(number * 1_000_000_000 / rate));
    let pages = (0..rate * millis / 1_000).map(|number| page(number, at(number))).collect();
    plan(Schedule::Rates(vec![leg], Arrivals::Constant), leg.duration, pages)
}

/// Users who send a request as soon as they have the previous response.
fn closed_loop(pages: u64) -> Plan {
    let pages =
        (0..pages * u64::from(USERS)).map(|number| page(number, PageStart::After(Duration::ZERO))).collect();
    plan(Schedule::Users(USERS), Duration::from_secs(SECONDS), pages)
}

fn page(number: u64, start: PageStart) -> Page {
    let user = u32::try_from(number % u64::from(USERS)).unwrap_or(0);
    let request = ObjectRequest { file: 0, after: Duration::ZERO, is_conditional: false };
    Page { user, start, objects: vec![request], ends_session: false }
}

fn plan(schedule: Schedule, duration: Duration, pages: Vec<Page>) -> Plan {
    Plan {
        spec: PlanSpec { schedule, duration, ..PlanSpec::default() },
        files: vec![servers::BODY_BYTES],
        pages,
    }
}

fn run(plan: &Plan, server: SocketAddr, protocol: Protocol, users: u32, threads: usize) -> Record {
    let target =
        Target { address: server, host: server.to_string(), directory: "/".to_owned(), security: None };
    let config = Config {
        protocol,
        connections: 1,
        dhttp: dhttp_proto::ClientConfig::internet(),
        ports: PORTS,
        closes_early: false,
        fast_open: false,
        has_early: false,
        idle_timeout: None,
        threads,
        shard: Shard::WHOLE,
        users,
        timeout: Duration::from_secs(5),
        at: None,
    };
    load::run::run(plan, &target, &config, &mut |_| {}).expect("a few sockets")
}
