//! Cost of loss: a page over every network of the model paper, with 0.1%, 1% and 5% of the packets lost.
//!
//! One side is the page without loss. The added time is explained where the simulator's time account has at least as much
//! more in stalls; the largest cause is named. Many runs of few cases: `studies/loss` has two hundred of nine hundred.

use std::sync::LazyLock;
use std::thread;

use render::plot::bars::{Bar, Group, Panel, picture};
use render::plot::palette;
use render::plot::scale::Scale;
use scenario::{Network, Page, Protocol, Scenario, Stack};
use simulate::{Experiment, Hosts};
use wire::Probability;
use wire::link::Loss;

use super::Study;
use super::run_means::{MIN_STALL_SHARE, RunMeans, explain};
use crate::published::{Cell, Table};

/// Loss rates in thousandths; each packet independently, in both directions.
const PER_MILLE: [u32; 3] = [1, 10, 50];
const STACKS: [&str; 2] = ["period", "linux"];
const PROTOCOLS: [Protocol; 5] =
    [Protocol::Http10, Protocol::Http10KeepAlive, Protocol::Http11Pipelined, Protocol::Ttcp, Protocol::Ardp];
/// Enough runs for the mean of an event that occurs in one run of ten.
const RUNS: u32 = 60;
/// A network, a protocol and a stack: without loss, then with each rate.
struct TableRow {
    network: String,
    protocol: Protocol,
    found: [[RunMeans; 1 + PER_MILLE.len()]; STACKS.len()],
}

/// Computed once, for the table and the picture.
static LINES: LazyLock<Result<Vec<TableRow>, String>> = LazyLock::new(lines);

/// Every network and protocol, each loss rate compared with none.
///
/// # Errors
/// When the simulator refuses a scenario.
pub fn study(mut table: Table) -> Result<Study, String> {
    let lines = LINES.as_ref().map_err(String::clone)?;
    let mut found = Vec::new();
    for TableRow { network, protocol, found: stacks } in lines {
        let labels = [network.clone(), protocol.name().to_owned()];
        let mut row = labels.to_vec();
        for [without, with @ ..] in stacks {
            for lossy in with {
                let column = &table.columns[row.len() - labels.len()];
                row.push(column.digits.print(without.elapsed));
                found.push((without, lossy));
            }
        }
        table.rows.push(row);
    }
    let mut found = found.into_iter();
    let study = Study::of(table, Some(1.0 - MIN_STALL_SHARE), |cell: &Cell| {
        let (without, lossy) =
            found.next().ok_or_else(|| format!("nothing was computed for {}", cell.name()))?;
        let (verdict, note) = explain(without, lossy);
        Ok((lossy.elapsed, verdict, note))
    })?;
    Ok(Study { says: Some(reported(lines)), ..study })
}

/// Conclusion of the study.
fn reported(lines: &[TableRow]) -> String {
    let slower = |stack: usize, loss: usize| {
        let ratios = lines.iter().map(|line| {
            let [without, with @ ..] = &line.found[stack];
            (with[loss].elapsed / without.elapsed).ln()
        });
        (ratios.sum::<f64>() / lines.len() as f64).exp()
    };
    let of = |stack: usize| {
        let [low, medium, high] = [0, 1, 2].map(|loss| slower(stack, loss));
        format!("{low:.2}, {medium:.2} and {high:.2} times on {}", STACKS[stack])
    };
    format!(
        "0.1%, 1% and 5% of loss make the mean page {} and {} (geometric means over networks and protocols).",
        of(0),
        of(1)
    )
}

fn lines() -> Result<Vec<TableRow>, String> {
    let networks = Network::ten();
    let requested: Vec<(Network, Protocol)> = networks
        .into_iter()
        .flat_map(|network| PROTOCOLS.map(|protocol| (network.clone(), protocol)))
        .collect();
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let share = requested.len().div_ceil(workers).max(1);
    thread::scope(|scope| {
        let working: Vec<_> = requested
            .chunks(share)
            .map(|share| scope.spawn(|| share.iter().map(line).collect::<Result<Vec<_>, _>>()))
            .collect();
        let done = working.into_iter().map(|worker| worker.join().expect("no line panics"));
        done.collect::<Result<Vec<_>, _>>().map(|lines| lines.into_iter().flatten().collect())
    })
}

fn line((network, protocol): &(Network, Protocol)) -> Result<TableRow, String> {
    let mut found: [[RunMeans; 1 + PER_MILLE.len()]; STACKS.len()] = Default::default();
    for (stack, found) in STACKS.iter().zip(&mut found) {
        for (per_mille, found) in [0].iter().chain(&PER_MILLE).zip(found) {
            *found = fetch(network.clone(), *protocol, stack, *per_mille)?;
        }
    }
    Ok(TableRow { network: network.name.clone(), protocol: *protocol, found })
}

fn fetch(mut network: Network, protocol: Protocol, stack: &str, per_mille: u32) -> Result<RunMeans, String> {
    if let Some(share) = Probability::new(f64::from(per_mille) / 1_000.0).filter(|_| per_mille > 0) {
        network.up.loss = Loss::Independent(share);
        network.down.loss = Loss::Independent(share);
    }
    let stack = Stack::named(stack).map_err(|unknown| unknown.to_string())?;
    let page = Page::named("small-cluster").map_err(|unknown| unknown.to_string())?;
    let scenario = Scenario::new(network, page, protocol, stack);
    let experiment = Experiment::new(&scenario, Hosts::default()).map_err(|error| error.to_string())?;
    RunMeans::of(&experiment, RUNS)
}

/// Slowdown by network, with a panel for each stack.
pub fn draw() -> String {
    let lines = LINES.as_deref().unwrap_or_default();
    let protocol = Protocol::Http10KeepAlive;
    let retained: Vec<&TableRow> = lines.iter().filter(|line| line.protocol == protocol).collect();
    let losses = [("0.1%", palette::BLUE), ("1%", palette::ORANGE), ("5%", palette::ACCENT)];
    let panel = |stack: usize| Panel {
        title: [
            "period: SunOS 4.1.3, times the mean without loss",
            "linux: Linux 6, times the mean without loss",
        ][stack],
        unit: "",
        scale: Scale::logarithmic(1.0, 1_000.0),
        ticks: vec![1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1_000.0],
        groups: retained
            .iter()
            .map(|line| {
                let [without, with @ ..] = &line.found[stack];
                let bar = |(lossy, (name, colour)): (&RunMeans, (&'static str, &'static str))| Bar {
                    name,
                    colour,
                    value: lossy.elapsed / without.elapsed,
                    interval: lossy.interval / without.elapsed,
                    parts: Vec::new(),
                };
                Group { name: line.network.clone(), bars: with.iter().zip(losses).map(bar).collect() }
            })
            .collect(),
        reference: None,
    };
    picture(
        &[panel(0), panel(1)],
        "What loss costs: the small cluster over one persistent connection",
        [
            "Mean of 60 runs over the mean without loss; whiskers: 95% interval of the mean",
            "Packets are lost independently, in both directions",
        ],
        "roundtrip reproduce roundtrip/loss",
    )
}
