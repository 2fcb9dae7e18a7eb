//! Round trips to the last byte: DHTTP compared with HTTP/1.1, Transaction TCP and its modern successor
//! (`papers/dhttp#figure-1`, section VI-B.3). Nothing else on the path takes time.
//!
//! Not the capacity of servers: section VI-B.3 measured throughput, and here hosts take no time.

use dhttp_proto::ServerConfig;
use scenario::dhttp::Dhttp;
use scenario::{Connection, Network, Page, Protocol, Scenario, Stack};
use simulate::{Experiment, Hosts, PageResult};
use wire::{Bytes, Duration, Rate};

use crate::laboratory::Laboratory;
use crate::published::Cell;

/// Round-trip time.
const RTT: Duration = Duration::from_millis(50);
/// A body that fits a datagram and a SYN, in bytes.
const SMALL: u64 = 1_000;
/// A body that fits neither, and any initial window, in bytes.
const LARGE: u64 = 3_000;
/// Longer than a server's idle timeout: a returning client without a connection.
const THINK: Duration = Duration::from_secs(60);

/// Protocol, size of the response, and state from an earlier one: nothing, a connection, or cached state.
pub fn figure_1(cell: &Cell, measured: &mut Laboratory<'_>) -> Result<Option<f64>, String> {
    let (scenario, hosts) = requested(cell)?;
    match cell.column.name.as_str() {
        "measured" => {
            let Some(found) = measured.found(&scenario)? else { return Ok(None) };
            Ok(found.metrics.elapsed_ms.map(|elapsed| elapsed / RTT.as_millis_f64()))
        }
        column => {
            let experiment = Experiment::new(&scenario, hosts).map_err(|error| error.to_string())?;
            let fetched = experiment.run(0, false).map_err(|error| error.to_string())?;
            let PageResult { elapsed, up, down, .. } = fetched;
            Ok(match column {
                "packets" => Some((up.packets + down.packets) as f64),
                _ => elapsed.map(|elapsed| elapsed.as_secs_f64() / RTT.as_secs_f64()),
            })
        }
    }
}

/// Scenario of a row.
fn requested(cell: &Cell) -> Result<(Scenario, Hosts), String> {
    let [protocol, response, before] = [0, 1, 2].map(|index| cell.label(index));
    let mut hosts = Hosts::default();
    let protocol = match protocol {
        "http10-fast-open" => {
            hosts.fast_open = true;
            Protocol::Http10
        }
        "dhttp-fast-open" => {
            hosts.fast_open = true;
            // Some bodies that fit a SYN do not fit one of today's datagrams.
            let paper = Dhttp::paper();
            let server = ServerConfig { threshold: SMALL, ..paper.server };
            hosts.dhttp = Some(Dhttp { server, ..paper });
            Protocol::Dhttp
        }
        name => Protocol::named(name).map_err(|unknown| unknown.to_string())?,
    };
    let size = Bytes::new(if response == "small" { SMALL } else { LARGE });
    let page = Page::from_sizes(response, [size]).map_err(|error| error.to_string())?;
    let rate = Rate::from_bits_per_second(1_000_000_000).expect("above zero");
    let network = Network::new("50ms".to_owned(), RTT, rate, Bytes::new(1_460));
    // No current system has T/TCP.
    let stack = if protocol == Protocol::Ttcp { "period" } else { "linux" };
    let stack = Stack::named(stack).map_err(|unknown| unknown.to_string())?;
    let mut scenario = Scenario { runs: 5, ..Scenario::new(network, page, protocol, stack) };
    match before {
        "cold" => {}
        "warm" => scenario.client.connection = Connection::Warm,
        _ => {
            scenario.client.connection = Connection::Warm;
            hosts.think = THINK;
        }
    }
    Ok((scenario, hosts))
}
