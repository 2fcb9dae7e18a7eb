//! Duration of the whole grid: the ten networks, the six pages, every protocol that has a formula for them.
//!
//! Prints the median of 101 passes; timings never fail a test.

extern crate roundtrip_model as model;

use std::hint::black_box;
use std::time::Instant;

use model::{Assumptions, predict};
use scenario::{Client, Network, Page, Protocol, Requests, Scenario, Stack};

const PASSES: usize = 101;

fn main() {
    let scenarios = grid();
    let mut times: Vec<_> = (0..PASSES).map(|_| time(|| pass(&scenarios))).collect();
    times.sort();
    let median = times[PASSES / 2];
    let per_prediction = median / u32::try_from(scenarios.len()).expect("a small grid");
    println!(
        "model grid: {} predictions in {median:?}, {per_prediction:?} each (median of {PASSES})",
        scenarios.len()
    );
}

fn grid() -> Vec<Scenario> {
    let mut scenarios = Vec::new();
    for network in Network::ten() {
        for page in Page::six() {
            for protocol in Protocol::OF_THE_PAPERS {
                scenarios.push(Scenario {
                    client: Client { requests: Requests::Independent, ..Client::default() },
                    ..Scenario::new(
                        network.clone(),
                        page.clone(),
                        protocol,
                        Stack::named("period").expect("a profile of that name"),
                    )
                });
            }
        }
    }
    scenarios
}

fn pass(scenarios: &[Scenario]) {
    for scenario in scenarios {
        // None of the six pages has deflated sizes, so one protocol in nine is refused.
        let _ = black_box(predict(scenario, &Assumptions::paper()).map(|prediction| prediction.metrics()));
    }
}

#[expect(clippy::disallowed_methods, reason = "a benchmark's one place that reads the clock")]
fn time(work: impl FnOnce()) -> std::time::Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}
