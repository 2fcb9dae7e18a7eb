//! Ours for Tables 10 and 11: browsers over the modem (`papers/w3c#table-10`), simulated and measured.
//!
//! Simulated are the browsers of 1997: several persistent connections with one request at a time on each, between the
//! note's stacks. Measured is Chromium in the place of both, with nginx in the place of Jigsaw and current kernels.

use std::collections::BTreeMap;
use std::sync::Mutex;

use measure::Peers;
use measure::peers::{ClientProgram, ServerProgram};
use scenario::{Client, Connection, Page, Programs, Protocol, Requests, Scenario, Server, Stack, Tls, Visit};
use simulate::web::BrowserTimes;
use simulate::{Experiment, Hosts};
use wire::{Bytes, Duration, Seed};

use super::hosts::{ClientLocation, REQUEST, Software};
use super::{ReproducedValue, SettingValues, microscape, overhead, run, tuned};
use crate::laboratory::{KernelResult, Laboratory};
use crate::published::Cell;

/// A browser of 1997.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Browser {
    /// Netscape Communicator 4.0 beta 5.
    Navigator,
    /// Internet Explorer 4.0 beta 1.
    Explorer,
}

impl Browser {
    const fn connections(self) -> u16 {
        match self {
            // "Netscape Navigator's default (and hard wired maximum, it turns out)" (`papers/w3c`, on tuning), with
            // Keep-Alive, which both servers grant.
            Self::Navigator => 4,
            // RFC 2068 section 8.1.4: at most two to a server of HTTP/1.1.
            Self::Explorer => 2,
        }
    }

    /// Size of a request: fitted to the first visit's bytes from Jigsaw (Table 10), without the page and 43 response
    /// headers.
    const fn request(self) -> Bytes {
        match self {
            Self::Navigator => Bytes::new(422),
            Self::Explorer => Bytes::new(378),
        }
    }
}

/// Jigsaw, and nginx.
pub fn table_10(cell: &Cell, measured: &mut Laboratory<'_>) -> ReproducedValue {
    table_cell(Software::Jigsaw, ServerProgram::Nginx, cell, measured)
}

/// Apache, and Apache.
pub fn table_11(cell: &Cell, measured: &mut Laboratory<'_>) -> ReproducedValue {
    table_cell(Software::Apache, ServerProgram::Apache, cell, measured)
}

fn table_cell(
    software: Software,
    program: ServerProgram,
    cell: &Cell,
    measured: &mut Laboratory<'_>,
) -> ReproducedValue {
    let Some((visit, quantity_name)) = cell.column.name.split_once('.') else { return Ok(None) };
    let visit = Visit::named(visit).map_err(|unknown| unknown.to_string())?;
    let browser = if cell.label(0) == "netscape" { Browser::Navigator } else { Browser::Explorer };
    let values = match cell.label(1) {
        "simulated" => Some(simulated(browser, software, visit)?),
        _ => chromium(program, visit, measured)?,
    };
    Ok(values.and_then(|(packets, bytes, seconds)| match quantity_name {
        "packets" => Some(packets),
        "bytes" => Some(bytes),
        "seconds" => Some(seconds),
        "overhead" => Some(overhead(packets, bytes)),
        _ => None,
    }))
}

/// Packets, bytes and seconds of a browser of 1997; each visit is run once.
fn simulated(browser: Browser, software: Software, visit: Visit) -> Result<(f64, f64, f64), String> {
    type Key = (Browser, Software, Visit);
    static CACHE: Mutex<BTreeMap<Key, (f64, f64, f64)>> = Mutex::new(BTreeMap::new());
    let key = (browser, software, visit);
    if let Some(cached) = CACHE.lock().ok().and_then(|cached| cached.get(&key).copied()) {
        return Ok(cached);
    }
    let page = microscape::plain();
    let (scenario, hosts) = tuned(software, ClientLocation::Ppp, Protocol::Http11Parallel, visit, page);
    let (request, parallel) = (browser.request(), browser.connections());
    let client = Client { request, parallel, requests: Requests::Independent, ..scenario.client };
    // The robot's times are not the browsers', which nothing states.
    let hosts = Hosts { client: BrowserTimes::default(), ..hosts };
    let experiment = Experiment::new(&Scenario { client, ..scenario }, hosts);
    let SettingValues { packets, bytes, seconds, .. } = run(&experiment.map_err(|error| error.to_string())?)?;
    if let Ok(mut cached) = CACHE.lock() {
        cached.insert(key, (packets, bytes, seconds));
    }
    Ok((packets, bytes, seconds))
}

/// The same of Chromium; `None` without a laboratory.
fn chromium(
    program: ServerProgram,
    visit: Visit,
    measured: &mut Laboratory<'_>,
) -> Result<Option<(f64, f64, f64)>, String> {
    let peers = Peers { server: program, client: ClientProgram::Chromium };
    let Some(KernelResult { metrics, processing: _ }) =
        measured.found_by(peers, &measured_scenario(visit)?)?
    else {
        return Ok(None);
    };
    let packets = metrics.packets_up.zip(metrics.packets_down).map(|(up, down)| up + down);
    Ok(packets
        .zip(metrics.payload_bytes)
        .zip(metrics.elapsed_ms)
        .map(|((packets, bytes), elapsed_ms)| (packets, bytes, elapsed_ms / 1e3)))
}

/// Chromium chooses its requests and its number of connections.
fn measured_scenario(visit: Visit) -> Result<Scenario, String> {
    let reported = |unknown: quantity::names::UnknownName| unknown.to_string();
    Ok(Scenario {
        network: ClientLocation::Ppp.network(),
        page: Page::named("microscape").map_err(reported)?,
        visit,
        protocol: Protocol::Http11,
        tls: Tls::None,
        stack: Stack::named("linux").map_err(reported)?,
        client: Client {
            request: REQUEST,
            requests: Requests::Dependent,
            parallel: 1,
            connection: Connection::Cold,
        },
        server: Server { processing: Duration::ZERO },
        programs: Programs::default(),
        // "Table 10 and Table 11, which were repeated three times".
        runs: 3,
        seed: Seed::default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_use_their_number_of_persistent_connections() {
        for (browser, connections) in [(Browser::Navigator, 4.0), (Browser::Explorer, 2.0)] {
            let page = microscape::plain();
            let (scenario, hosts) = tuned(
                Software::Apache,
                ClientLocation::Ppp,
                Protocol::Http11Parallel,
                Visit::Revalidate,
                page,
            );
            let client = Client { parallel: browser.connections(), ..scenario.client };
            let experiment = Experiment::new(&Scenario { client, ..scenario }, hosts).unwrap();
            assert_eq!(run(&experiment).unwrap().connections, connections);
        }
    }
}
