//! The crossover map: the faster of DHTTP and HTTP over TCP, by response size, requests of a client, round trip and loss.
//!
//! Not the runs: `benches/crossover` writes all of them to the `studies` directory, and this module reads them; the
//! cells without loss are computed again. HTTP is the fastest of three variants in each cell: a connection for each
//! request, one kept alive, one with pipelined requests. Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`cell`] | a cell as a scenario |
//! | [`measured_cells`] | the cells measured on a kernel, compared with the same simulated |

pub mod cell;
pub mod measured_cells;

use cell::PROTOCOLS;
use render::plot::palette;
use render::plot::svg::{Anchor, Font, Heading, Point, Svg};
use scenario::Protocol;
use simulate::{Experiment, Hosts};

use super::Study;
use crate::published::{Cell, Table};
use crate::verdict::Verdict;

const STORED_CELLS: &str = include_str!("../../../../studies/crossover/cells.csv");

const BYTES: [&str; 5] = ["500", "1000", "2000", "8000", "32000"];
const REQUESTS: [&str; 3] = ["1", "3", "10"];
const RTT_MS: [&str; 3] = ["5", "50", "200"];
const LOSS: [&str; 3] = ["0", "1", "5"];

/// A column of the stored files.
#[derive(Clone, Copy, Debug)]
enum Column {
    Median = 6,
    P99 = 7,
    P999 = 8,
}

/// Coordinates of a cell: bytes, requests, round trip and loss, as the files have them.
type CellKey<'a> = [&'a str; 4];

/// Ratio of the time of the fastest HTTP to that of DHTTP; `None` where it is unknown.
fn ratio(cell: CellKey<'_>, column: Column) -> Option<f64> {
    ratio_in(STORED_CELLS, cell, column)
}

fn ratio_in(retained: &str, cell: CellKey<'_>, column: Column) -> Option<f64> {
    let (mut dhttp, mut http) = (None, f64::INFINITY);
    for line in retained.lines().skip(1) {
        let words: Vec<&str> = line.split(',').collect();
        if words.get(..4) != Some(&cell) {
            continue;
        }
        let value: f64 = words.get(column as usize)?.parse().ok()?;
        match words[4] {
            "dhttp" => dhttp = Some(value),
            _ => http = http.min(value),
        }
    }
    Some(http / dhttp?).filter(|ratio| ratio.is_finite())
}

/// Maximum difference of times that count as equal.
const EVEN: f64 = 0.03;

/// The stored cells without loss, compared with the same computed again.
///
/// # Errors
/// When the stored file lacks a cell, or the simulator refuses one.
pub fn study(mut table: Table) -> Result<Study, String> {
    let mut found = Vec::new();
    for bytes in BYTES {
        for requests in REQUESTS {
            let mut row = vec![bytes.to_owned(), requests.to_owned()];
            for (column, rtt) in table.columns.iter().zip(RTT_MS) {
                let retained = ratio([bytes, requests, rtt, "0"], Column::Median)
                    .ok_or_else(|| format!("{bytes},{requests},{rtt},0 is missing in studies/crossover"))?;
                row.push(column.digits.print(retained));
                found.push((retained, again(bytes, requests, rtt)?));
            }
            table.rows.push(row);
        }
    }
    let mut found = found.into_iter();
    let study = Study::of(table, None, |cell: &Cell| {
        let (retained, again) =
            found.next().ok_or_else(|| format!("no stored result for {}", cell.name()))?;
        // Times are stored in tenths of a millisecond.
        let is_same = (retained / again - 1.0).abs() <= 0.02;
        Ok((again, if is_same { Verdict::Exact } else { Verdict::Differs }, None))
    })?;
    Ok(Study { says: Some(reported()), ..study })
}

/// The ratio of a cell without loss, computed now.
fn again(bytes: &str, requests: &str, rtt_ms: &str) -> Result<f64, String> {
    let number = |text: &str| text.parse::<u64>().map_err(|error| error.to_string());
    let (bytes, rtt_ms) = (number(bytes)?, number(rtt_ms)?);
    let requests = usize::try_from(number(requests)?).unwrap_or(1);
    let (mut http, mut dhttp) = (f64::INFINITY, f64::INFINITY);
    for protocol in PROTOCOLS {
        let cell = cell::Cell { bytes, requests, rtt_ms, loss_percent: 0, protocol };
        let experiment =
            Experiment::new(&cell.scenario(1)?, Hosts::default()).map_err(|error| error.to_string())?;
        let fetched = experiment.run(0, false).map_err(|error| error.to_string())?;
        let elapsed = fetched.elapsed.ok_or("a page did not arrive".to_owned())?.as_millis_f64();
        match protocol {
            Protocol::Dhttp => dhttp = elapsed,
            _ => http = http.min(elapsed),
        }
    }
    Ok(http / dhttp)
}

/// Conclusion of the study.
fn reported() -> String {
    let count = |column: Column| {
        let ratios: Vec<f64> = cell_keys().filter_map(|cell| ratio(cell, column)).collect();
        let faster = ratios.iter().filter(|ratio| **ratio > 1.0 + EVEN).count();
        let slower = ratios.iter().filter(|ratio| **ratio < 1.0 - EVEN).count();
        format!(
            "faster in {faster}, slower in {slower} and even in {} of {}",
            ratios.len() - faster - slower,
            ratios.len()
        )
    };
    format!(
        "By the median DHTTP is {}; by the 99.9th percentile it is {} simulated cells. {}",
        count(Column::Median),
        count(Column::P999),
        measured_cells::reported()
    )
}

fn cell_keys() -> impl Iterator<Item = CellKey<'static>> {
    let cells = BYTES.into_iter().flat_map(|bytes| REQUESTS.map(|requests| (bytes, requests)));
    let cells = cells.flat_map(|cell| RTT_MS.map(|rtt| (cell, rtt)));
    cells.flat_map(|((bytes, requests), rtt)| LOSS.map(|loss| [bytes, requests, rtt, loss]))
}

const LEFT: f64 = 70.0;
const TOP: f64 = 132.0;
const CELL: (f64, f64) = (46.0, 38.0);
const GAP: (f64, f64) = (64.0, 76.0);

/// The map.
pub fn draw() -> String {
    let panel = (BYTES.len() as f64 * CELL.0, RTT_MS.len() as f64 * CELL.1);
    let width = LEFT + 3.0 * panel.0 + 2.0 * GAP.0 + 24.0;
    let below = TOP + 3.0 * (panel.1 + GAP.1);
    let height = below + measured_cells::HEIGHT;
    let mut svg = Svg::new(width, height);
    let lines = [
        "How many times DHTTP's time the fastest of HTTP/1.0, 1.1 and 1.1 pipelined takes, for all of a new client's requests.",
        "By round trip and response size; in each cell above the median, below the 99.9th percentile. Linux stacks, 100 Mbit/s, no server time.",
    ];
    svg.heading(24.0, Heading::SMALL, "The faster protocol: DHTTP or HTTP over TCP", &lines);
    key(&mut svg);
    for (row, loss) in LOSS.into_iter().enumerate() {
        for (column, requests) in REQUESTS.into_iter().enumerate() {
            let corner = (LEFT + column as f64 * (panel.0 + GAP.0), TOP + row as f64 * (panel.1 + GAP.1));
            let title = format!("{}, {loss}% lost", counted(requests));
            let cell = |rtt: &&str| BYTES.map(|bytes| both([bytes, requests, rtt, loss]));
            let cells: Vec<_> = RTT_MS.iter().map(|rtt| cell(rtt).to_vec()).collect();
            table(&mut svg, corner, &title, &RTT_MS.map(|rtt| format!("{rtt} ms")), &BYTES, &cells);
        }
    }
    measured_cells::draw(&mut svg, below);
    let font = Font::new(11.0, palette::GREY, Anchor::Start);
    let source = "Simulated: roundtrip reproduce roundtrip/crossover; studies/crossover has every number.";
    svg.text((24.0, height - 12.0), source, font);
    svg.finish(
        "The faster protocol: DHTTP or HTTP over TCP",
        "Maps over response size and round trip, for 1, 3 and 10 requests and 0, 1 and 5% of loss",
    )
}

fn counted(requests: &str) -> String {
    if requests == "1" { "1 request".to_owned() } else { format!("{requests} requests") }
}

/// The ratios of the medians, and of the tail latencies.
type RatioPair = [Option<f64>; 2];

fn both(cell: CellKey<'_>) -> RatioPair {
    [Column::Median, Column::P999].map(|column| ratio(cell, column))
}

fn table(
    svg: &mut Svg,
    (left, top): Point,
    title: &str,
    rows: &[String],
    columns: &[&str],
    cells: &[Vec<RatioPair>],
) {
    let bold = Font { bold: true, ..Font::new(12.5, palette::INK, Anchor::Start) };
    svg.text((left, top - 9.0), title, bold);
    let half = CELL.1 / 2.0;
    for (row, (name, cells)) in rows.iter().zip(cells).enumerate() {
        let y = top + row as f64 * CELL.1;
        svg.text((left - 7.0, y + half + 4.0), name, Font::new(11.0, palette::INK, Anchor::End));
        for (column, halves) in cells.iter().enumerate() {
            let x = left + column as f64 * CELL.0;
            for (cell, ratio) in halves.iter().enumerate() {
                let y = y + cell as f64 * (half - 0.5);
                let (fill, ink) = colours(*ratio);
                svg.rectangle((x, y), (CELL.0 - 2.0, half - 1.0), fill);
                let text = ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
                svg.text((x + CELL.0 / 2.0 - 1.0, y + 13.0), &text, Font::new(10.5, ink, Anchor::Middle));
            }
        }
    }
    let bottom = top + rows.len() as f64 * CELL.1;
    for (column, name) in columns.iter().enumerate() {
        let x = left + (column as f64 + 0.5) * CELL.0;
        svg.text((x, bottom + 13.0), name, Font::new(11.0, palette::INK, Anchor::Middle));
    }
    let middle = left + columns.len() as f64 * CELL.0 / 2.0;
    svg.text((middle, bottom + 29.0), "response size, bytes", Font::new(11.0, palette::GREY, Anchor::Middle));
}

/// Ratios of the colour steps, with their names in the key.
const STEPS: [(&str, Option<f64>); 5] = [
    ("HTTP faster by half or more", Some(0.5)),
    ("HTTP faster", Some(0.9)),
    ("even (within 3%)", Some(1.0)),
    ("DHTTP faster", Some(1.2)),
    ("DHTTP faster by half or more", Some(2.0)),
];

fn colours(ratio: Option<f64>) -> (&'static str, &'static str) {
    match ratio {
        None => ("#f1f2f4", palette::GREY),
        Some(ratio) if ratio <= 1.0 / 1.5 => (palette::BLUE, "#ffffff"),
        Some(ratio) if ratio < 1.0 - EVEN => ("#a9cfe6", palette::INK),
        Some(ratio) if ratio <= 1.0 + EVEN => ("#e3e5e8", palette::INK),
        Some(ratio) if ratio < 1.5 => ("#f3c49c", palette::INK),
        Some(_) => (palette::ACCENT, "#ffffff"),
    }
}

fn key(svg: &mut Svg) {
    let mut x = 24.0;
    for (words, ratio) in STEPS {
        svg.rectangle((x, 80.0), (22.0, 13.0), colours(ratio).0);
        svg.text((x + 28.0, 91.0), words, Font::new(12.0, palette::INK, Anchor::Start));
        x += 28.0 + 6.4 * words.chars().count() as f64 + 20.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_map_is_complete_and_a_small_response_to_a_new_client_costs_half() {
        for cell in cell_keys() {
            assert!(ratio(cell, Column::Median).is_some(), "{cell:?}");
        }
        let small = ratio(["500", "1", "200", "0"], Column::Median).unwrap();
        assert!((small - 2.0).abs() < 0.01, "{small}");
    }
}
