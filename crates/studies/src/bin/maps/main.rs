//! Maps of today's questions: where one way to load a page beats another, by round trip and a second quantity.
//!
//! `all FILE.csv` simulates every cell, and draws each map beside the file; `sample` computes one column of two maps again
//! and compares it with the one in `studies/maps`, byte by byte.

mod questions;

use std::path::Path;
use std::process::ExitCode;

use questions::{QUESTIONS, Question, RTTS_MS};
use render::plot::heat_map::{HeatMap, Panel};
use roundtrip_studies::{exit_code, in_parallel, usage};

const HEADING: &str = "map,panel,rtt_ms,column,first_ms,second_ms,ratio\n";
const SOURCE: &str = "roundtrip-studies, maps; simulated";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let reported = match words.as_slice() {
        ["all", file] => all(Path::new(file)),
        ["sample"] => sample(),
        _ => Err(usage("")),
    };
    exit_code("maps", reported)
}

/// A cell of a map.
#[derive(Clone, Copy)]
struct Cell {
    question: usize,
    panel: usize,
    rtt_ms: u64,
    column: f64,
}

impl Cell {
    fn times(self) -> Result<[f64; 2], String> {
        let Self { question, panel, rtt_ms, column } = self;
        QUESTIONS[question].times(panel, rtt_ms, column)
    }

    fn line(self, [first, second]: [f64; 2]) -> String {
        let Self { question, panel, rtt_ms, column } = self;
        let Question { name, panels, .. } = &QUESTIONS[question];
        let panel = panels[panel].replace(',', "");
        format!("{name},{panel},{rtt_ms},{column},{first:.1},{second:.1},{:.3}\n", first / second)
    }
}

fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for (question, Question { panels, columns, .. }) in QUESTIONS.iter().enumerate() {
        for panel in 0..panels.len() {
            for rtt_ms in RTTS_MS {
                cells.extend(columns.1.iter().map(|&column| Cell { question, panel, rtt_ms, column }));
            }
        }
    }
    cells
}

fn all(file: &Path) -> Result<(), String> {
    let cells = cells();
    let times = in_parallel(&cells, |cell| cell.times()).into_iter().collect::<Result<Vec<_>, _>>()?;
    let lines: String = cells.iter().zip(&times).map(|(cell, times)| cell.line(*times)).collect();
    let write = |path: &Path, text: &str| {
        std::fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
    };
    write(file, &(HEADING.to_owned() + &lines))?;
    for (index, question) in QUESTIONS.iter().enumerate() {
        let of: Vec<(&Cell, f64)> = cells
            .iter()
            .zip(&times)
            .filter(|(cell, _)| cell.question == index)
            .map(|(cell, [first, second])| (cell, first / second))
            .collect();
        write(&file.with_file_name(format!("{}.svg", question.name)), &picture(question, &of))?;
        let ratios: Vec<f64> = of.iter().map(|(_, ratio)| *ratio).collect();
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        println!("{}: {least:.2} to {:.2}", question.name, ratios.iter().copied().fold(0.0, f64::max));
    }
    Ok(())
}

fn picture(question: &Question, cells: &[(&Cell, f64)]) -> String {
    let values = |panel: usize| {
        let row = |rtt_ms: &u64| {
            let of_row = cells.iter().filter(|(cell, _)| cell.panel == panel && cell.rtt_ms == *rtt_ms);
            of_row.map(|(_, ratio)| *ratio).collect()
        };
        RTTS_MS.iter().map(row).collect()
    };
    let panels = question.panels.iter().enumerate();
    HeatMap {
        title: question.title,
        subtitle: [question.subtitle, "below 1 the first is faster"],
        rows: ("round trip (ms)", RTTS_MS.iter().map(ToString::to_string).collect()),
        columns: (question.columns.0, question.columns.1.iter().map(ToString::to_string).collect()),
        panels: panels.map(|(panel, title)| Panel { title, values: values(panel), decimals: 2 }).collect(),
        source: SOURCE,
    }
    .draw()
}

/// Computes the first column of the first map, and the last of the fifth, again.
fn sample() -> Result<(), String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies/maps/maps.csv");
    let stored =
        std::fs::read_to_string(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let is_in_sample = |cell: &Cell| {
        let columns = QUESTIONS[cell.question].columns.1;
        (cell.question == 0 && cell.column == columns[0])
            || (cell.question == 4 && cell.column == columns[columns.len() - 1])
    };
    for cell in cells().into_iter().filter(is_in_sample) {
        let line = cell.line(cell.times()?);
        if !stored.contains(&line) {
            return Err(format!(
                "{} lacks {line}; run everything again, and state the reason in CHANGELOG.md",
                path.display()
            ));
        }
    }
    Ok(())
}
