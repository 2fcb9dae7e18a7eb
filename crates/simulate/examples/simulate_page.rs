//! Simulates a page by every protocol as any program may that depends on `roundtrip-simulate` and `roundtrip-scenario`:
//! `cargo run -p roundtrip-simulate --example simulate_page`.
//!
//! Not the command line's `simulate`: no files, flags or plots.

use std::error::Error;

use roundtrip_simulate::{Hosts, simulate};
use scenario::{Network, Page, Protocol, Scenario, Stack};

fn main() -> Result<(), Box<dyn Error>> {
    let (network, page) = (Network::named("modem")?, Page::named("small-cluster")?);
    for protocol in [Protocol::Http10, Protocol::Http11, Protocol::Http11Pipelined, Protocol::Dhttp] {
        let scenario = Scenario::new(network.clone(), page.clone(), protocol, Stack::named("linux")?);
        let simulation = simulate(&scenario, Hosts::default())?;
        let lost: f64 = simulation.stalls.iter().map(|stall| stall.lost_ms).sum();
        let elapsed = simulation.metrics.elapsed_ms.ok_or("the page did not arrive")?;
        println!("{:<16} {elapsed:8.1} ms, {lost:.1} ms lost in stalls", protocol.name());
    }
    Ok(())
}
