//! The measured cells of the crossover map, over Linux and an emulated link, compared with the same cells simulated.
//!
//! Not the measurement: `benches/crossover --measure`, as root, writes the file that this module reads. Two thousand
//! runs of a single request with loss determine a 99.9th percentile; four hundred of ten requests, which take seconds,
//! a 99th.

use render::plot::palette;
use render::plot::svg::{Anchor, Font, Svg};

use super::{CELL, CellKey, Column, EVEN, ratio, ratio_in, table};

const MEASURED: &str = include_str!("../../../../../studies/crossover/measured.csv");

const BYTES: [&str; 2] = ["1000", "2000"];
const REQUESTS: [&str; 2] = ["1", "10"];
const RTT_MS: [&str; 2] = ["5", "50"];
const LOSS: [&str; 2] = ["0", "1"];

/// Height of the panels, in pixels.
pub const HEIGHT: f64 = 4.0 * CELL.1 + 126.0;
/// Width of the rows' names before each panel, in pixels.
const NAMES: f64 = 104.0;

/// Panels for each loss and number of requests, below the existing picture.
pub fn draw(svg: &mut Svg, top: f64) {
    let bold = Font { bold: true, ..Font::new(14.0, palette::INK, Anchor::Start) };
    svg.text((24.0, top), "Kernels over an emulated link, and the same cells simulated", bold);
    let words = "Above the median, below (where there is loss) the 99.9th percentile of one request and the 99th of ten.";
    svg.text((24.0, top + 17.0), words, Font::new(12.0, palette::GREY, Anchor::Start));
    let mut x = NAMES;
    for loss in LOSS {
        for requests in REQUESTS {
            let (mut names, mut cells) = (Vec::new(), Vec::new());
            for rtt in RTT_MS {
                let columns = [Column::Median, tail(requests)];
                names.extend([format!("kernel {rtt} ms"), format!("simul. {rtt} ms")]);
                let cell = |bytes| [bytes, requests, rtt, loss];
                cells.push(BYTES.map(|bytes| columns.map(|column| measured(cell(bytes), column))).to_vec());
                cells.push(BYTES.map(|bytes| columns.map(|column| ratio(cell(bytes), column))).to_vec());
            }
            let title = format!("{}, {loss}% lost", super::counted(requests));
            table(svg, (x, top + 50.0), &title, &names, &BYTES, &cells);
            x += BYTES.len() as f64 * CELL.0 + NAMES;
        }
    }
}

/// The highest percentile that the runs of a cell with loss determine.
fn tail(requests: &str) -> Column {
    if requests == "1" { Column::P999 } else { Column::P99 }
}

fn measured(cell: CellKey<'_>, column: Column) -> Option<f64> {
    ratio_in(MEASURED, cell, column)
}

/// Number of cells in which both agree, in a sentence.
pub fn reported() -> String {
    let count = |column: Column| {
        let both: Vec<_> =
            cell_keys().filter_map(|cell| measured(cell, column).zip(ratio(cell, column))).collect();
        let same = both.iter().filter(|(kernel, simulated)| is_same(*kernel, *simulated)).count();
        format!("{same} of {}", both.len())
    };
    format!(
        "A kernel says the same of the median in {} cells, of the 99th percentile in {}, and of the 99.9th in {}.",
        count(Column::Median),
        count(Column::P99),
        count(Column::P999)
    )
}

/// Whether the same protocol is faster in both, or the difference is negligible.
fn is_same(kernel: f64, simulated: f64) -> bool {
    let side = |ratio: f64| (ratio > 1.0 + EVEN, ratio < 1.0 - EVEN);
    side(kernel) == side(simulated) || (kernel / simulated - 1.0).abs() <= NEAR
}

const NEAR: f64 = 0.1;

fn cell_keys() -> impl Iterator<Item = CellKey<'static>> {
    let cells = BYTES.into_iter().flat_map(|bytes| REQUESTS.map(|requests| (bytes, requests)));
    let cells = cells.flat_map(|cell| RTT_MS.map(|rtt| (cell, rtt)));
    cells.flat_map(|((bytes, requests), rtt)| LOSS.map(|loss| [bytes, requests, rtt, loss]))
}
