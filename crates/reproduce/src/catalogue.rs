//! Every key: its data, the code that computes ours, the code that draws it.
//!
//! A table is added here with one line, its data in the `papers` directory, and a function in its paper's module.

use quantity::names::UnknownName;

use super::laboratory::{BenchmarkResults, CountedLogs, Laboratory};
use super::published::{Cell, Table};
use super::{drawn_traces, figures, heidemann, p_http, rabinovich, slow_start, w3c};
use crate::study::{Study, buffer_tuning, crossover, loss, model_against_simulator, restart};

/// A table or a figure of a paper.
#[derive(Debug)]
pub struct Entry {
    /// `paper/table-or-figure`.
    pub key: &'static str,
    /// Published values, as TOML.
    published: &'static str,
    /// Computation of ours.
    pub ours: Computation,
    /// The picture, for a figure.
    pub draw: Option<Draw>,
}

/// Source of a figure's picture.
#[derive(Clone, Copy, Debug)]
pub enum Draw {
    /// Formulas and packets.
    Alone(fn() -> String),
    /// Log counts; `None` where there are no logs.
    Counted(fn(&CountedLogs) -> Option<String>),
    /// Server benchmark runs; `None` where there were none.
    Measured(fn(&BenchmarkResults) -> Option<String>),
}

/// Computation of our values; each kind may fail, as measurements can.
#[derive(Clone, Copy, Debug)]
pub enum Computation {
    /// Our value for a cell; `None` where there is nothing to test it with.
    Cells(fn(&Cell, &mut Laboratory<'_>) -> Result<Option<f64>, String>),
    /// Claims of the text, which the data evaluates from cells, quantities and runs.
    Claims,
    /// Both sides: neither is published.
    Study(fn(Table) -> Result<Study, String>),
}

impl Entry {
    /// The published table.
    pub fn table(&self) -> Table {
        Table::compiled(self.published)
    }
}

macro_rules! published {
    ($key:literal) => {
        include_str!(concat!("../../../papers/", $key, "/published.toml"))
    };
}

macro_rules! table {
    ($key:literal, $ours:path) => {
        Entry { key: $key, published: published!($key), ours: Computation::Cells($ours), draw: None }
    };
}

macro_rules! claims {
    ($key:literal) => {
        Entry { key: $key, published: published!($key), ours: Computation::Claims, draw: None }
    };
}

macro_rules! figure {
    ($key:literal, $ours:path, $draw:path) => {
        Entry {
            key: $key,
            published: published!($key),
            ours: Computation::Cells($ours),
            draw: Some(Draw::Alone($draw)),
        }
    };
}

macro_rules! counted {
    ($key:literal, $ours:path, $draw:path) => {
        Entry {
            key: $key,
            published: published!($key),
            ours: Computation::Cells($ours),
            draw: Some(Draw::Counted($draw)),
        }
    };
}

macro_rules! measured {
    ($key:literal, $ours:path, $draw:path) => {
        Entry {
            key: $key,
            published: published!($key),
            ours: Computation::Cells($ours),
            draw: Some(Draw::Measured($draw)),
        }
    };
}

macro_rules! study {
    ($name:literal, $study:path, $draw:expr) => {
        Entry {
            key: concat!("roundtrip/", $name),
            published: include_str!(concat!("../../../studies/", $name, "/study.toml")),
            ours: Computation::Study($study),
            draw: $draw,
        }
    };
}

/// Every entry, in the order of the papers, tables before figures; then our own studies.
pub static ENTRIES: [Entry; 56] = [
    table!("heidemann-model/table-2", heidemann::table_2),
    table!("heidemann-model/table-3", heidemann::table_3),
    table!("heidemann-model/table-4", heidemann::table_4),
    table!("heidemann-model/table-5", heidemann::table_5),
    // The same table again, counted in packets.
    Entry {
        key: "heidemann-model/table-5-packets",
        published: published!("heidemann-model/table-5"),
        ours: Computation::Cells(slow_start::table_5),
        draw: None,
    },
    table!("heidemann-model/table-6", heidemann::table_6),
    table!("heidemann-model/table-7", heidemann::table_7),
    table!("heidemann-model/table-8", heidemann::table_8),
    figure!("heidemann-model/figure-1", slow_start::figure_1, drawn_traces::heidemann_figure_1),
    figure!("heidemann-model/figure-2", heidemann::figure_2, figures::figure_2),
    figure!("heidemann-model/figure-3", slow_start::figure_3, drawn_traces::heidemann_figure_3),
    figure!("heidemann-model/figure-4", heidemann::figure_4, figures::figure_4),
    figure!("heidemann-model/figure-5", heidemann::figure_5, figures::figure_5),
    claims!("heidemann-model/claims"),
    table!("p-http/table-1", p_http::table_1),
    figure!("p-http/figure-1", p_http::figure_1, drawn_traces::p_http_figure_1),
    table!("p-http/figure-2", p_http::figure_2),
    figure!("p-http/figure-3", p_http::figure_3, drawn_traces::p_http_figure_3),
    table!("p-http/figure-4", p_http::figure_4),
    claims!("p-http/claims"),
    table!("w3c/table-3", w3c::initial::table_3),
    table!("w3c/table-4", w3c::table_4),
    table!("w3c/table-5", w3c::table_5),
    table!("w3c/table-6", w3c::table_6),
    table!("w3c/table-7", w3c::table_7),
    table!("w3c/table-8", w3c::table_8),
    table!("w3c/table-9", w3c::table_9),
    table!("w3c/table-10", w3c::browsers::table_10),
    table!("w3c/table-11", w3c::browsers::table_11),
    table!("w3c/compression", w3c::content::compression),
    table!("w3c/images", w3c::content::images),
    table!("w3c/style-sheet", w3c::content::style_sheet),
    table!("w3c/modem-compression", w3c::modem_compression),
    claims!("w3c/claims"),
    table!("dhttp/table-1", rabinovich::congestion::table_1),
    table!("dhttp/figure-1", rabinovich::round_trips::figure_1),
    table!("dhttp/figure-3", rabinovich::drawings::figure_3),
    table!("dhttp/figure-4", rabinovich::drawings::figure_4),
    table!("dhttp/figure-5", rabinovich::drawings::figure_5),
    table!("dhttp/section-vi-a", rabinovich::shares),
    counted!("dhttp/figure-6", rabinovich::figure_6, rabinovich::connection_figures::figure_6),
    counted!("dhttp/figure-7", rabinovich::figure_7, rabinovich::connection_figures::figure_7),
    counted!("dhttp/figure-8", rabinovich::figure_8, rabinovich::connection_figures::figure_8),
    counted!("dhttp/figure-9", rabinovich::figure_9, rabinovich::connection_figures::figure_9),
    measured!("dhttp/figure-10", rabinovich::servers::figure_10, rabinovich::servers::draw_10),
    measured!("dhttp/figure-11", rabinovich::servers::figure_11, rabinovich::servers::draw_11),
    measured!("dhttp/figure-12", rabinovich::servers::figure_12, rabinovich::servers::draw_12),
    measured!("dhttp/figure-13", rabinovich::congestion::figure_13, rabinovich::congestion::draw_13),
    measured!("dhttp/figure-14", rabinovich::early::figure_14, rabinovich::early::draw_14),
    claims!("dhttp/claims"),
    claims!("today/claims"),
    study!("model-against-simulator", model_against_simulator::study, None),
    study!("slow-start-restart", restart::study, Some(Draw::Alone(restart::draw))),
    study!("loss", loss::study, Some(Draw::Alone(loss::draw))),
    study!("buffer-tuning", buffer_tuning::study, Some(Draw::Alone(buffer_tuning::draw))),
    study!("crossover", crossover::study, Some(Draw::Alone(crossover::draw))),
];

/// The data of a key of the catalogue.
pub fn table(key: &str) -> Table {
    ENTRIES.iter().find(|entry| entry.key == key).expect("a key of the catalogue").table()
}

/// A selected entry.
#[derive(Clone, Debug)]
pub struct SelectedEntry {
    /// The entry.
    pub entry: &'static Entry,
    /// Labels of the selected rows, with slashes between; `None`: all rows.
    pub row: Option<String>,
}

/// The entries of the keys, in the order of the catalogue, each once; all entries if there are no keys. A key may be
/// followed by the labels of a row, or the first of them: `w3c/table-4/http11`.
///
/// # Errors
/// The first key that names neither a table, a figure, a row nor a paper.
pub fn select(keys: &[String]) -> Result<Vec<SelectedEntry>, UnknownName> {
    let mut selected: Vec<SelectedEntry> = Vec::new();
    for key in keys {
        let whole =
            ENTRIES.iter().filter(|entry| entry.key == key || paper(entry) == key.trim_end_matches('/'));
        let whole: Vec<SelectedEntry> = whole.map(|entry| SelectedEntry { entry, row: None }).collect();
        let found = if whole.is_empty() { row_of(key).into_iter().collect() } else { whole };
        if found.is_empty() {
            return Err(UnknownName::new("key", key, known(key)));
        }
        selected.extend(found);
    }
    if keys.is_empty() {
        selected = ENTRIES.iter().map(|entry| SelectedEntry { entry, row: None }).collect();
    }
    let position =
        |requested: &SelectedEntry| ENTRIES.iter().position(|entry| entry.key == requested.entry.key);
    selected.sort_by(|one, other| position(one).cmp(&position(other)).then_with(|| one.row.cmp(&other.row)));
    // A whole table comes before its rows, and includes them.
    selected
        .dedup_by(|next, one| next.entry.key == one.entry.key && (one.row.is_none() || one.row == next.row));
    Ok(selected)
}

/// Names for an unknown key: those of its paper, or the papers.
fn known(key: &str) -> Vec<&'static str> {
    let of_paper = |entry: &&Entry| key.split_once('/').is_some_and(|(name, _)| paper(entry) == name);
    let keys: Vec<&str> = ENTRIES.iter().filter(of_paper).map(|entry| entry.key).collect();
    let mut papers: Vec<&str> = ENTRIES.iter().map(paper).collect();
    papers.dedup();
    if keys.is_empty() { papers } else { keys }
}

/// The row of a key that continues behind a table's key.
fn row_of(key: &str) -> Option<SelectedEntry> {
    let behind = |entry: &&Entry| key.strip_prefix(entry.key).is_some_and(|rest| rest.starts_with('/'));
    let entry = ENTRIES.iter().filter(behind).max_by_key(|entry| entry.key.len())?;
    let row = key.get(entry.key.len() + 1..)?.to_owned();
    let is_there = !entry.table().narrowed(&row).cells().is_empty();
    is_there.then_some(SelectedEntry { entry, row: Some(row) })
}

/// The part of a key before the slash.
fn paper(entry: &Entry) -> &'static str {
    entry.key.split_once('/').map_or(entry.key, |(paper, _)| paper)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_that_is_compiled_in_can_be_read() {
        for entry in &ENTRIES {
            if let Err(sentence) = Table::read(entry.published) {
                panic!("{}: {sentence}", entry.key);
            }
        }
    }

    #[test]
    fn keys_select_in_the_catalogues_order_and_a_paper_selects_all_its_keys() {
        let keys = |words: &[&str]| -> Vec<_> {
            let words: Vec<_> = words.iter().map(|key| (*key).to_owned()).collect();
            select(&words).unwrap().iter().map(|requested| requested.entry.key).collect()
        };
        let both = ["heidemann-model/table-6", "heidemann-model/table-3", "heidemann-model/table-6"];
        assert_eq!(keys(&both), ["heidemann-model/table-3", "heidemann-model/table-6"]);
        assert_eq!(keys(&["heidemann-model"]).len(), 14);
        assert_eq!(keys(&[]).len(), ENTRIES.len());
    }

    #[test]
    fn a_key_that_goes_on_selects_rows() {
        let requested = |keys: &[&str]| {
            let keys: Vec<_> = keys.iter().map(|key| (*key).to_owned()).collect();
            select(&keys).map(|found| {
                found.into_iter().map(|requested| (requested.entry.key, requested.row)).collect::<Vec<_>>()
            })
        };
        let row = |row: &str| ("w3c/table-4", Some(row.to_owned()));
        assert_eq!(requested(&["w3c/table-4/http11"]), Ok(vec![row("http11")]));
        assert_eq!(
            requested(&["w3c/table-4/http11", "w3c/table-4/http10"]),
            Ok(vec![row("http10"), row("http11")])
        );
        assert_eq!(requested(&["w3c/table-4/http11", "w3c/table-4"]), Ok(vec![("w3c/table-4", None)]));
        assert!(requested(&["w3c/table-4/http"]).is_err() && requested(&["w3c/table-4/"]).is_err());
        let table = table("w3c/table-4").narrowed("http11");
        assert_eq!((table.rows.len(), table.cells().len()), (1, 8));
    }
}
