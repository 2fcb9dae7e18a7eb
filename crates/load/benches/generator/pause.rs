//! A server that stops for a second: what this generator says of it, and what wrk does.
//!
//! wrk measures from the sending, and while a connection waits nothing is sent on it: of the whole pause it has one latency for
//! each connection. Gil Tene's correction, which wrk2 was made to do without, adds for each latency those that requests at even
//! distances would have had meanwhile.

use load::Protocol;
use wire::Duration;

use super::servers::{Kind, PAUSE, Server};
use super::{USERS, even, run, wrk};

/// A run, with the pause in it.
const SECONDS: u64 = 6;
const RATE: u64 = 1_000;
/// Which shares are compared: of requests that took longer, in seconds.
const LONGER: [f64; 3] = [0.1, 0.5, 0.9];

pub(crate) fn compare() {
    println!(
        "pause: of {SECONDS} s the server stops for {} s; the share of requests that took longer",
        PAUSE.1.as_secs()
    );
    let expected = LONGER.map(|longer| (PAUSE.1.as_secs_f64() - longer) / SECONDS as f64);
    say("expected", expected, PAUSE.1.as_secs_f64());
    if let Some(server) = Server::start(Kind::Pausing) {
        let record = run(&even(RATE, SECONDS), server.address, Protocol::KeepAlive, 1);
        for (name, of) in [("as intended", &record.intended), ("as sent", &record.experienced)] {
            let above = |longer: f64| {
                let longer = Duration::from_secs_f64(longer).unwrap_or_default().as_nanos();
                1.0 - of.count_between(0, longer) as f64 / of.len() as f64
            };
            say(name, LONGER.map(above), of.max() as f64 / 1e9);
        }
    }
    let Some(server) = Server::start(Kind::Pausing) else { return };
    let Some(seen) = wrk::latencies(server.address, SECONDS, USERS) else { return };
    let most = seen.iter().map(|(latency, _)| *latency).fold(0.0, f64::max);
    say("wrk", shares(&seen), most);
    let all: u64 = seen.iter().map(|(_, count)| count).sum();
    let interval = (SECONDS as f64 - PAUSE.1.as_secs_f64()) * f64::from(USERS) / all as f64;
    let corrected: Vec<(f64, u64)> = seen
        .iter()
        .flat_map(|(latency, count)| {
            let missing = (1..).map(move |step| latency - f64::from(step) * interval);
            [*latency]
                .into_iter()
                .chain(missing.take_while(|latency| *latency > 0.0))
                .map(|latency| (latency, *count))
        })
        .collect();
    say("wrk, corrected", shares(&corrected), most);
}

fn shares(seen: &[(f64, u64)]) -> [f64; 3] {
    let all: u64 = seen.iter().map(|(_, count)| count).sum();
    LONGER.map(|longer| {
        let above: u64 = seen.iter().filter(|(latency, _)| *latency > longer).map(|(_, count)| count).sum();
        above as f64 / all as f64
    })
}

fn say(name: &str, shares: [f64; 3], most: f64) {
    let [tenth, half, nine] = shares.map(|share| 100.0 * share);
    println!("  {name:<15} 0.1 s {tenth:>6.2}%, 0.5 s {half:>6.2}%, 0.9 s {nine:>6.2}%, most {most:.3} s");
}
