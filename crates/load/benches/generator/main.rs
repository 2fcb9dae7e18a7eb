//! The generator's own figures: how late it is, how much it asks for in a second of a processor, and whether it sees a pause.
//!
//! `cargo bench -p load --bench generator [-- SECTION...]`, sections `late` (where others are busy, under `chrt -f 1`), `rate` and
//! `pause`. Rates are per second of processor
//! time of whoever asks (this program, or wrk), in turns, with the median, the least and the most of several rounds; over
//! loopback whoever sends pays for what the kernel does until the other end has it, here as there. Servers have two processors of
//! their own, where there are three. Not a measurement of a server: nginx is there for wrk and us alike.

mod pause;
mod servers;
mod wrk;

use std::net::SocketAddr;
use std::time::Instant;

use load::config::PORTS;
use load::{Config, Protocol, Record, Shard, Target};
use wire::{Duration, Time};
use workload::plan::{Ask, Begins, Page, Plan, Wanted};
use workload::schedule::{Arrivals, Leg, Schedule};

use servers::{Kind, Server};

const ROUNDS: usize = 7;
/// A run of a round.
const SECONDS: u64 = 2;
/// A run for lateness: where this program runs at real-time priority (`chrt -f 1`), Linux has others wait no longer than a second.
const LATE_MILLIS: u64 = 800;
/// Users who are late or not.
const LATE_USERS: u32 = 16;
/// Users at once, or connections.
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
        late();
    }
    if is_wanted("rate") {
        rate();
    }
    if is_wanted("pause") {
        pause::compare();
    }
}

/// How late requests leave at 50,000 a second.
fn late() {
    const RATE: u64 = 50_000;
    servers::keep(servers::processors().0);
    println!("late: {RATE} requests a second for {LATE_MILLIS} ms, {LATE_USERS} users, one thread or two");
    for (kind, protocol) in [(Kind::Ours, Protocol::Dhttp), (Kind::Nginx, Protocol::KeepAlive)] {
        let Some(server) = Server::start(kind) else { continue };
        let (mut lateness, mut floors) = ([Vec::new(), Vec::new()], Vec::new());
        for _ in 0..ROUNDS {
            for (threads, lateness) in (1..).zip(&mut lateness) {
                // Whoever runs at real-time priority for longer is stopped.
                servers::rest();
                let plan = warmed(RATE, LATE_MILLIS, LATE_USERS.into());
                let record = run(&plan, server.address, protocol, LATE_USERS, threads);
                let at = |share| record.lateness.value_at_quantile(share) as f64 / 1e3;
                println!(
                    "  {:<6} by {threads}: p50 {:>8.1} us, p99 {:>8.1} us, p99.9 {:>8.1} us; {} answers, failures {:?}",
                    protocol.name(),
                    at(0.5),
                    at(0.99),
                    at(0.999),
                    record.answers(),
                    record.troubles
                );
                lateness.push(at(0.999));
            }
            servers::rest();
            floors.push(floor(RATE, LATE_MILLIS));
        }
        for (threads, lateness) in (1..).zip(lateness) {
            println!("  {:<6} by {threads}: p99.9 {} us", protocol.name(), spread(lateness));
        }
        println!("  who only looks at the clock: {} us", spread(floors));
    }
}

/// How late who does nothing but look at the clock is for what is due so often a second, in microseconds, 99.9%: what is this
/// machine's, not the generator's.
#[expect(clippy::disallowed_methods, reason = "it is about the clock")]
fn floor(rate: u64, millis: u64) -> f64 {
    let began = Instant::now();
    let due = (0..rate * millis / 1_000)
        .map(|number| std::time::Duration::from_nanos(number * 1_000_000_000 / rate));
    let mut late: Vec<f64> = due
        .map(|due| {
            loop {
                let now = began.elapsed();
                if now >= due {
                    return (now - due).as_secs_f64() * 1e6;
                }
            }
        })
        .collect();
    late.sort_by(f64::total_cmp);
    late[late.len() * 999 / 1_000]
}

/// How much is asked for in a second of a processor.
fn rate() {
    println!(
        "rate: thousand answers for a second of processor time, {USERS} connections or users, one thread"
    );
    if let Some(server) = Server::start(Kind::Nginx) {
        let (mut ours, mut wrks, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let mine = per_processor(server.address, Protocol::KeepAlive);
            ours.push(mine);
            if let Some(theirs) = wrk::per_processor(server.address) {
                wrks.push(theirs);
                ratios.push(mine / theirs);
            }
        }
        println!("  http11 {}", spread(ours));
        if !wrks.is_empty() {
            println!("  wrk    {}\n  http11 / wrk {}", spread(wrks), spread(ratios));
        }
    }
    if let Some(server) = Server::start(Kind::Ours) {
        for (name, protocol) in [("http11, our own server", Protocol::KeepAlive), ("dhttp ", Protocol::Dhttp)]
        {
            let of = |_| per_processor(server.address, protocol);
            println!("  {name} {}", spread((0..ROUNDS).map(of).collect()));
        }
    }
}

fn per_processor(server: SocketAddr, protocol: Protocol) -> f64 {
    // More than anyone answers; what is planned beyond that costs time to deal out.
    let plan = hasty(5_000 * SECONDS);
    let before = servers::own_time();
    let record = run(&plan, server, protocol, USERS, 1);
    let spent = servers::own_time() - before;
    assert!(record.failures() * 100 < record.answers(), "{:?}", record.troubles);
    record.answers() as f64 / spent / 1e3
}

/// The median, the least and the most.
fn spread(mut of: Vec<f64>) -> String {
    of.sort_by(f64::total_cmp);
    match of.as_slice() {
        [] => "nothing".to_owned(),
        [least, .., most] => format!("{:.2} ({least:.2} to {most:.2})", of[of.len() / 2]),
        [only] => format!("{only:.2}"),
    }
}

/// Each user's first request, which opens its connection, a millisecond after the one before; then one request after the other at
/// even distances.
fn warmed(rate: u64, millis: u64, users: u64) -> Plan {
    let mut plan = even(rate, millis);
    let first = Duration::from_millis(users);
    for page in &mut plan.pages {
        if let Begins::At(at) = &mut page.begins {
            *at += first;
        }
    }
    let firsts =
        (0..users).map(|number| page(number, Begins::At(Time::ZERO + Duration::from_millis(number))));
    plan.pages.splice(..0, firsts);
    plan.wanted.lasts += first;
    plan
}

/// One request after the other, at even distances.
fn even(rate: u64, millis: u64) -> Plan {
    let leg = Leg { lasts: Duration::from_millis(millis), from: rate as f64, to: rate as f64 };
    let at = |number: u64| Begins::At(Time::from_nanos(number * 1_000_000_000 / rate));
    let pages = (0..rate * millis / 1_000).map(|number| page(number, at(number))).collect();
    plan(Schedule::Rates(vec![leg], Arrivals::Constant), leg.lasts, pages)
}

/// Users who ask again as soon as they have an answer.
fn hasty(pages: u64) -> Plan {
    let pages =
        (0..pages * u64::from(USERS)).map(|number| page(number, Begins::After(Duration::ZERO))).collect();
    plan(Schedule::Users(USERS), Duration::from_secs(SECONDS), pages)
}

fn page(number: u64, begins: Begins) -> Page {
    let user = u32::try_from(number % u64::from(USERS)).unwrap_or(0);
    let ask = Ask { file: 0, after: Duration::ZERO, is_conditional: false };
    Page { user, begins, objects: vec![ask], ends_session: false }
}

fn plan(schedule: Schedule, lasts: Duration, pages: Vec<Page>) -> Plan {
    Plan { wanted: Wanted { schedule, lasts, ..Wanted::default() }, files: vec![servers::BODY_BYTES], pages }
}

fn run(plan: &Plan, server: SocketAddr, protocol: Protocol, users: u32, threads: usize) -> Record {
    let target = Target { address: server, host: server.to_string(), folder: "/".to_owned(), security: None };
    let config = Config {
        protocol,
        connections: 1,
        dhttp: dhttp_proto::ClientConfig::internet(),
        ports: PORTS,
        closes_early: false,
        fast_open: false,
        has_early: false,
        keeps: None,
        threads,
        shard: Shard::WHOLE,
        users,
        patience: Duration::from_secs(5),
        at: None,
    };
    load::run::run(plan, &target, &config, &mut |_| {}).expect("a few sockets")
}
