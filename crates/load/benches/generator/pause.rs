//! A server that pauses for a second: the results of this generator, and those of wrk.
//!
//! While a connection waits, nothing is sent on it, and wrk records one latency for the whole pause on each. It adds
//! those that requests at even intervals would have had (Gil Tene's correction, `stats_correct`), which wrk2 makes
//! unnecessary; wrk2 is not in Debian.

use load::Protocol;
use wire::Duration;

use super::servers::{PAUSE, Server, ServerKind};
use super::{USERS, constant_rate, run, wrk};

/// Seconds of a run, including the pause.
const SECONDS: u64 = 6;
const RATE: u64 = 1_000;
/// Thresholds in seconds for the compared shares of slower requests.
const LONGER: [f64; 3] = [0.1, 0.5, 0.9];

pub(crate) fn compare() {
    println!(
        "pause: of {SECONDS} s the server stops for {} s; the share of requests that took longer",
        PAUSE.1.as_secs()
    );
    let expected = LONGER.map(|longer| (PAUSE.1.as_secs_f64() - longer) / SECONDS as f64);
    print("expected", expected, PAUSE.1.as_secs_f64());
    if let Some(server) = Server::start(ServerKind::Pausing) {
        let record =
            run(&constant_rate(RATE, SECONDS * 1_000), server.address, Protocol::KeepAlive, USERS, 1);
        for (name, of) in [("as intended", &record.intended), ("as sent", &record.experienced)] {
            let above = |longer: f64| {
                let longer = Duration::from_secs_f64(longer).unwrap_or_default().as_nanos();
                1.0 - of.count_between(0, longer) as f64 / of.len() as f64
            };
            print(name, LONGER.map(above), of.max() as f64 / 1e9);
        }
    }
    let Some(server) = Server::start(ServerKind::Pausing) else { return };
    if let Some((shares, max)) = wrk::shares(server.address, SECONDS, USERS, LONGER) {
        print("wrk, corrected", shares, max);
    }
}

fn print(name: &str, shares: [f64; 3], max: f64) {
    let [tenth, half, nine] = shares.map(|share| 100.0 * share);
    println!("  {name:<15} 0.1 s {tenth:>6.2}%, 0.5 s {half:>6.2}%, 0.9 s {nine:>6.2}%, maximum {max:.3} s");
}
