//! Buffer tuning (`papers/w3c#buffer-tuning`): size and timeout of the robot's output buffer, and Nagle's algorithm.
//! The WAN, the robot, Apache and the page are the note's.
//!
//! Both sides are ours: Nagle's algorithm off, then on. Its cost is explained where the simulator's stalls account for
//! it. Not the note's own numbers: its only one is "1024 bytes is a good compromise".

use std::num::NonZeroUsize;
use std::sync::LazyLock;

use render::plot::heat_map::{HeatMap, Panel};
use scenario::Visit;
use wire::Duration;

use super::Study;
use super::run_means::{MIN_STALL_SHARE, RunMeans, explain};
use crate::published::{Cell, Table};
use crate::verdict::Verdict;
use crate::w3c;

const BUFFERS: [usize; 6] = [256, 512, 1_024, 2_048, 4_096, 8_192];
const TIMERS: [Duration; 5] = [
    Duration::from_millis(1),
    Duration::from_millis(10),
    Duration::from_millis(50),
    Duration::from_millis(200),
    Duration::from_secs(1),
];
const VISITS: [Visit; 2] = [Visit::First, Visit::Revalidate];
/// Runs differ in the phase of the hosts' clocks.
const RUNS: u32 = 10;

/// A visit and a buffer: for each timer, with Nagle's algorithm off and on.
type TableRow = [[RunMeans; 2]; TIMERS.len()];

static LINES: LazyLock<Result<Vec<TableRow>, String>> = LazyLock::new(lines);

fn lines() -> Result<Vec<TableRow>, String> {
    let settings = VISITS.iter().flat_map(|visit| BUFFERS.map(|buffer| (*visit, buffer)));
    settings
        .map(|(visit, buffer)| {
            let mut line = TableRow::default();
            for (timer, pair) in TIMERS.iter().zip(&mut line) {
                for (nagle, means) in [false, true].into_iter().zip(pair) {
                    let size = NonZeroUsize::new(buffer).ok_or("an empty buffer")?;
                    *means = RunMeans::of(&w3c::untuned(visit, size, *timer, nagle)?, RUNS)?;
                }
            }
            Ok(line)
        })
        .collect()
}

/// Every buffer and timer.
///
/// # Errors
/// When the simulator refuses a scenario.
pub fn study(mut table: Table) -> Result<Study, String> {
    let lines = LINES.as_ref().map_err(String::clone)?;
    let mut found = Vec::new();
    let settings = VISITS.iter().flat_map(|visit| BUFFERS.map(|buffer| (visit, buffer)));
    for ((visit, buffer), line) in settings.zip(lines) {
        let mut row = vec![visit.name().to_owned(), buffer.to_string()];
        for [off, on] in line {
            for value in [RunMeans::packets, RunMeans::seconds] {
                let column = &table.columns[row.len() - 2];
                row.push(column.digits.print(value(off)));
                found.push((value(off), value(on), off, on));
            }
        }
        table.rows.push(row);
    }
    let mut found = found.into_iter();
    let study = Study::of(table, Some(1.0 - MIN_STALL_SHARE), |cell: &Cell| {
        let (_, ours, off, on) =
            found.next().ok_or_else(|| format!("nothing was computed for {}", cell.name()))?;
        let (verdict, note) = if cell.column.unit == "s" { explain(off, on) } else { packets(off, on) };
        Ok((ours, verdict, note))
    })?;
    Ok(Study { says: Some(reported(lines)), ..study })
}

/// Nagle's algorithm exists to send fewer packets: it holds where there are fewer, and differs where there are more.
fn packets(off: &RunMeans, on: &RunMeans) -> (Verdict, Option<String>) {
    let (off, on) = (off.packets(), on.packets());
    if (on - off).abs() <= 0.05 * off {
        (Verdict::WithinTolerance, Some("within 5% of that without Nagle's algorithm".to_owned()))
    } else if on < off {
        (Verdict::Holds, Some("fewer packets with Nagle's algorithm".to_owned()))
    } else {
        (Verdict::Differs, Some("more packets with Nagle's algorithm".to_owned()))
    }
}

fn reported(lines: &[TableRow]) -> String {
    let best = |visit: usize| {
        let from = visit * BUFFERS.len();
        let cells = lines[from..from + BUFFERS.len()].iter().zip(BUFFERS).flat_map(|(line, buffer)| {
            line.iter().zip(TIMERS).map(move |(pair, timer)| (buffer, timer, &pair[0]))
        });
        cells.min_by(|one, other| one.2.seconds().total_cmp(&other.2.seconds()))
    };
    let chosen = |visit: usize| &lines[visit * BUFFERS.len() + 2][2][0];
    let sentence = |visit: usize, name: &str| {
        best(visit).map_or_else(String::new, |(buffer, timer, least)| {
            format!(
                "{name} is fastest with {buffer} bytes and {timer}: {:.2} s and {:.0} packets; with the note's choice, \
                 1024 bytes and 50 ms, it takes {:.2} s and {:.0} packets.",
                least.seconds(),
                least.packets(),
                chosen(visit).seconds(),
                chosen(visit).packets()
            )
        })
    };
    format!("{} {}", sentence(0, "A first visit"), sentence(1, "Revalidation"))
}

/// Packets and time of revalidation and of a first visit, with Nagle's algorithm off and on.
pub fn draw() -> String {
    let lines = LINES.as_deref().unwrap_or_default();
    let panel = |title, visit: usize, nagle: usize, value: fn(&RunMeans) -> f64, decimals| Panel {
        title,
        values: lines
            .iter()
            .skip(visit * BUFFERS.len())
            .take(BUFFERS.len())
            .map(|line| line.iter().map(|pair| value(&pair[nagle])).collect())
            .collect(),
        decimals,
    };
    HeatMap {
        title: "Buffer tuning: pipelined requests over the note's WAN",
        subtitle: [
            "microscape by the note's robot from its Apache, 90 ms away; the buffer is flushed behind the first request",
            "means of 10 runs; within a panel, dark is more",
        ],
        rows: ("output buffer (bytes)", BUFFERS.map(|buffer| buffer.to_string()).to_vec()),
        columns: ("flush timer", TIMERS.map(|timer| timer.to_string()).to_vec()),
        panels: vec![
            panel("first visit, seconds, Nagle off", 0, 0, RunMeans::seconds, 2),
            panel("first visit, seconds, Nagle on", 0, 1, RunMeans::seconds, 2),
            panel("first visit, packets, Nagle off", 0, 0, RunMeans::packets, 0),
            panel("first visit, packets, Nagle on", 0, 1, RunMeans::packets, 0),
            panel("revalidation, seconds, Nagle off", 1, 0, RunMeans::seconds, 2),
            panel("revalidation, seconds, Nagle on", 1, 1, RunMeans::seconds, 2),
            panel("revalidation, packets, Nagle off", 1, 0, RunMeans::packets, 0),
            panel("revalidation, packets, Nagle on", 1, 1, RunMeans::packets, 0),
        ],
        source: "roundtrip reproduce roundtrip/buffer-tuning; after Nielsen et al. 1997, \"Buffer Tuning\"",
    }
    .draw()
}
