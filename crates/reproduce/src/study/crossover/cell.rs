//! A client's requests by one protocol over one network: a cell of the crossover map, as a scenario.
//!
//! `benches/crossover` runs all of them; nothing runs here.

use scenario::{Network, Page, Protocol, Scenario, Stack};
use wire::link::Loss;
use wire::{Bytes, Duration, Probability, Rate};

/// Rate of the bottleneck, in bits per second: more than any of these windows needs.
const RATE: u64 = 100_000_000;

/// A client without state from earlier requests.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    /// Bytes of each response.
    pub bytes: u64,
    /// Number of requests.
    pub requests: usize,
    /// Round-trip time without loss and queues, in milliseconds.
    pub rtt_ms: u64,
    /// Percentage of packets lost, independently, in both directions.
    pub loss_percent: u32,
    /// Protocol of the requests.
    pub protocol: Protocol,
}

impl Cell {
    /// The scenario, with `runs` repetitions.
    ///
    /// # Errors
    /// The error in the scenario, in a sentence.
    pub fn scenario(&self, runs: u32) -> Result<Scenario, String> {
        let Self { bytes, requests, rtt_ms, loss_percent, protocol } = *self;
        let rate = Rate::from_bits_per_second(RATE).expect("above zero");
        let name = format!("{rtt_ms}ms");
        let mut network = Network::new(name, Duration::from_millis(rtt_ms), rate, Bytes::new(1_460));
        if let Some(share) = Probability::new(f64::from(loss_percent) / 1e2).filter(|_| loss_percent > 0) {
            network.up.loss = Loss::Independent(share);
            network.down.loss = Loss::Independent(share);
        }
        let page = Page::from_sizes("answers", vec![Bytes::new(bytes); requests])
            .map_err(|error| error.to_string())?;
        let stack = Stack::named("linux").map_err(|unknown| unknown.to_string())?;
        Ok(Scenario { runs, ..Scenario::new(network, page, protocol, stack) })
    }
}

/// HTTP's three variants, of which the fastest counts, and DHTTP.
pub const PROTOCOLS: [Protocol; 4] =
    [Protocol::Http10, Protocol::Http11, Protocol::Http11Pipelined, Protocol::Dhttp];
