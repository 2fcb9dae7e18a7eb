//! Ours for the tables of `papers/w3c`: its robot, its two servers and its page, packet by packet.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`hosts`] | the hosts, with fitted times |
//! | [`microscape`] | the page |
//! | [`initial`] | Table 3: before tuning |
//! | [`browsers`] | Tables 10 and 11, measured |
//! | [`content`] | other forms of the document and the images |
//!
//! Each cell is a mean of five runs, as in the note. The runs differ in the phase of the delayed-acknowledgement
//! clocks. Nothing is tuned for a cell but the times that [`hosts`] names.

pub mod browsers;
pub mod content;
pub mod hosts;
pub mod initial;
pub mod microscape;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Mutex;

use scenario::programs::Validation;
use scenario::{Client, Programs, Protocol, Requests, Scenario, Visit};
use simulate::{Experiment, Hosts};
use wire::{Duration, modem};

use super::measured::Measured;
use super::published::Cell;
use hosts::{Place, Software, Stacks};
use microscape::Real;

/// Our value, or why it is not available.
type Ours = Result<Option<f64>, String>;

/// One half of a table's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Setting {
    software: Software,
    place: Place,
    protocol: Protocol,
    visit: Visit,
}

/// Values of the tables for a setting.
#[derive(Clone, Copy, Debug)]
struct Found {
    packets: f64,
    bytes: f64,
    seconds: f64,
}

/// "Each run was repeated 5 times."
const RUNS: u32 = 5;

/// Jigsaw, LAN.
pub fn table_4(cell: &Cell, _: &mut Measured<'_>) -> Ours {
    of(Software::Jigsaw, Place::Lan, cell)
}

/// Apache, LAN.
pub fn table_5(cell: &Cell, _: &mut Measured<'_>) -> Ours {
    of(Software::Apache, Place::Lan, cell)
}

/// Jigsaw, WAN.
pub fn table_6(cell: &Cell, _: &mut Measured<'_>) -> Ours {
    of(Software::Jigsaw, Place::Wan, cell)
}

/// Apache, WAN.
pub fn table_7(cell: &Cell, _: &mut Measured<'_>) -> Ours {
    of(Software::Apache, Place::Wan, cell)
}

/// Jigsaw, PPP.
pub fn table_8(cell: &Cell, _: &mut Measured<'_>) -> Ours {
    of(Software::Jigsaw, Place::Ppp, cell)
}

/// Apache, PPP.
pub fn table_9(cell: &Cell, _: &mut Measured<'_>) -> Ours {
    of(Software::Apache, Place::Ppp, cell)
}

/// The document alone over the modem, as it is and deflated; as it is, once with a modem that only corrects errors and once
/// with one that compresses.
pub fn modem_compression(cell: &Cell, _: &mut Measured<'_>) -> Ours {
    let Some((software, what)) = cell.column.name.split_once('.') else { return Ok(None) };
    let software = if software == "jigsaw" { Software::Jigsaw } else { Software::Apache };
    let (real, modem) = match cell.label(0) {
        "as it is, v42" => (microscape::plain(), hosts::MODEM),
        "as it is, v42bis" => (microscape::plain(), modem::Config::default()),
        "deflated" => (microscape::deflated(), hosts::MODEM),
        _ => return Ok(None),
    };
    let document = microscape::document(real);
    let (mut scenario, hosts) = tuned(software, Place::Ppp, Protocol::Http11, Visit::First, &document);
    scenario.network.modem = Some(modem);
    let experiment = Experiment::new(&scenario, hosts).map_err(|error| error.to_string())?;
    let Found { packets, bytes: _, seconds } = run(&experiment)?;
    Ok(match what {
        "packets" => Some(packets),
        "seconds" => Some(seconds),
        _ => None,
    })
}

/// A cell of Tables 4 to 9: its row is a protocol, its column `first.packets` or the like.
fn of(software: Software, place: Place, cell: &Cell) -> Ours {
    let protocol = Protocol::named(cell.label(0)).map_err(|unknown| unknown.to_string())?;
    let Some((visit, what)) = cell.column.name.split_once('.') else { return Ok(None) };
    let visit = Visit::named(visit).map_err(|unknown| unknown.to_string())?;
    let Found { packets, bytes, seconds } = found(Setting { software, place, protocol, visit })?;
    Ok(match what {
        "packets" => Some(packets),
        "bytes" => Some(bytes),
        "seconds" => Some(seconds),
        "overhead" => Some(overhead(packets, bytes)),
        _ => None,
    })
}

/// "The percentage of overhead bytes due to TCP/IP packet headers."
fn overhead(packets: f64, bytes: f64) -> f64 {
    100.0 * 40.0 * packets / (bytes + 40.0 * packets)
}

/// Each setting is run once, whatever the number of cells it fills.
fn found(setting: Setting) -> Result<Found, String> {
    static KNOWN: Mutex<BTreeMap<Setting, Found>> = Mutex::new(BTreeMap::new());
    if let Some(found) = KNOWN.lock().ok().and_then(|known| known.get(&setting).copied()) {
        return Ok(found);
    }
    let found = run(&experiment(setting)?)?;
    if let Ok(mut known) = KNOWN.lock() {
        known.insert(setting, found);
    }
    Ok(found)
}

fn run(experiment: &Experiment) -> Result<Found, String> {
    let mut sums = Found { packets: 0.0, bytes: 0.0, seconds: 0.0 };
    for number in 0..RUNS {
        let fetched = experiment.run(number, false).map_err(|error| error.to_string())?;
        let elapsed = fetched.elapsed.ok_or("an object did not arrive")?;
        sums.packets += (fetched.up.packets + fetched.down.packets) as f64;
        sums.bytes += (fetched.up.payload_bytes + fetched.down.payload_bytes) as f64;
        sums.seconds += elapsed.as_secs_f64();
    }
    let count = f64::from(RUNS);
    let Found { packets, bytes, seconds } = sums;
    Ok(Found { packets: packets / count, bytes: bytes / count, seconds: seconds / count })
}

fn experiment(setting: Setting) -> Result<Experiment, String> {
    let Setting { software, place, protocol, visit } = setting;
    let is_deflated = protocol == Protocol::Http11PipelinedDeflate && visit == Visit::First;
    let real = if is_deflated { microscape::deflated() } else { microscape::plain() };
    let (scenario, hosts) = tuned(software, place, protocol, visit, real);
    Experiment::new(&scenario, hosts).map_err(|error| error.to_string())
}

/// The pipelined page from Apache over the WAN with another output buffer, and with Nagle's algorithm on or off at both ends.
///
/// # Errors
/// When the simulator refuses it.
pub fn untuned(
    visit: Visit,
    buffer: NonZeroUsize,
    flush_after: Duration,
    nagle: bool,
) -> Result<Experiment, String> {
    let (mut scenario, hosts) =
        tuned(Software::Apache, Place::Wan, Protocol::Http11Pipelined, visit, microscape::plain());
    scenario.programs = Programs {
        client_buffer: Some(buffer),
        client_flush: Some(flush_after),
        nagle: Some(nagle),
        ..Programs::default()
    };
    Experiment::new(&scenario, hosts).map_err(|error| error.to_string())
}

/// Configuration of Tables 4 to 9.
fn tuned(
    software: Software,
    place: Place,
    protocol: Protocol,
    visit: Visit,
    real: &Real,
) -> (Scenario, Hosts) {
    let Stacks { client, server } = place.stacks();
    let is_http10 = protocol == Protocol::Http10;
    let hosts = Hosts {
        client: software.client_times(),
        server: software.times(),
        writes: hosts::writes(),
        pipelining: hosts::tuned(),
        heads: software.heads(is_http10),
        contents: Some(real.contents.clone()),
        validation: is_http10.then_some(Validation::Heads),
        client_stack: Some(client),
        ..Hosts::default()
    };
    let scenario = Scenario {
        visit,
        client: Client {
            request: hosts::REQUEST,
            requests: if is_http10 { Requests::Independent } else { Requests::Dependent },
            parallel: if is_http10 { 4 } else { 1 },
            ..Client::default()
        },
        runs: RUNS,
        ..Scenario::new(place.network(), real.page.clone(), protocol, server)
    };
    (scenario, hosts)
}

#[cfg(test)]
mod tests {
    use wire::link::Loss;

    use super::*;

    /// The note's Apache over the WAN, with one of the server's packets lost in each run; means over the index of that packet.
    fn with_one_lost(protocol: Protocol, visit: Visit, real: &Real, among: std::ops::Range<u64>) -> Found {
        let step = usize::try_from(among.end / 12).unwrap_or(1);
        let losses: Vec<Found> = among
            .step_by(step.max(1))
            .map(|number| {
                let (mut scenario, hosts) = tuned(Software::Apache, Place::Wan, protocol, visit, real);
                scenario.network.down.loss = Loss::Exactly([number].into());
                run(&Experiment::new(&scenario, hosts).unwrap()).unwrap()
            })
            .collect();
        let mean = |of: fn(&Found) -> f64| losses.iter().map(of).sum::<f64>() / losses.len() as f64;
        Found {
            packets: mean(|found| found.packets),
            bytes: mean(|found| found.bytes),
            seconds: mean(|found| found.seconds),
        }
    }

    #[test]
    fn paper_one_lost_segment_a_run_accounts_for_the_packets_that_the_wan_has_more() {
        let cases = [
            (Protocol::Http11Pipelined, Visit::First, microscape::plain(), 1..120, 221.4),
            (Protocol::Http11PipelinedDeflate, Visit::First, microscape::deflated(), 1..100, 182.0),
            (Protocol::Http11Pipelined, Visit::Revalidate, microscape::plain(), 1..14, 29.8),
        ];
        for (protocol, visit, real, among, printed) in cases {
            let Found { packets, bytes: _, seconds: _ } = with_one_lost(protocol, visit, real, among);
            assert!((packets - printed).abs() < 0.05 * printed, "{protocol:?} {visit:?}: {packets}");
        }
    }
}
