//! Each published table and figure compared with ours, with a verdict.
//!
//! The published values, their scenario and the criteria of agreement are data in the project's `papers` directory. The
//! code that computes ours has one module for each paper. Keys (`paper/table-or-figure`) flow in, a [`Report`] flows
//! out. Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`published`] | published values, as the data files have them |
//! | [`digits`] | numbers rounded as a paper prints them |
//! | [`verdict`] | the seven verdicts |
//! | [`judgement`] | the rules for them |
//! | [`record`] | the verdict on record of every cell |
//! | [`claim`] | sentences of a paper, evaluated from cells and runs |
//! | [`mechanism`] | reasons of differences, switched on |
//! | [`catalogue`] | every key: its data, the code that computes ours, the code that draws it |
//! | [`heidemann`] | ours for the model paper |
//! | [`rabinovich`] | ours for the DHTTP paper: its log simulation from two other logs, its packets simulated |
//! | [`figures`] | its figures as pictures |
//! | [`slow_start`] | its slow start again, in packets |
//! | [`p_http`], [`printed_trace`] | ours for the interactions of P-HTTP and TCP, and printed traces reproduced in packets |
//! | [`w3c`] | ours for the W3C note: robot, servers and page, in packets |
//! | [`drawn_traces`] | traces as plots |
//! | [`laboratory`] | a table's kernel measurements and log counts, each computed once |
//! | [`side_by_side`], [`mod@page`] | both, in the paper's own layout, for people: as text, and as an HTML page |
//! | [`study`] | our own comparisons, of one engine with another |
//! | [`server_benchmark`] | servers of today under the same users |
//!
//! ```
//! use roundtrip_reproduce::{Options, run};
//!
//! let keys = vec!["heidemann-model/table-6".to_owned()];
//! let report = run(Options { keys, ..Options::default() }).expect("a key that there is");
//! assert_eq!(report.worsened().count(), 0);
//! assert!(report.rows().iter().all(|row| row.key == "heidemann-model/table-6"));
//! ```
//!
//! It tunes nothing: a number that does not agree is explained in the data, or its verdict is `differs`.

pub mod catalogue;
pub mod claim;
pub mod digits;
pub mod drawn_traces;
pub mod figures;
pub mod heidemann;
pub mod judgement;
pub mod laboratory;
pub mod mechanism;
pub mod p_http;
pub mod page;
pub mod printed_trace;
pub mod published;
pub mod rabinovich;
pub mod record;
pub mod server_benchmark;
pub mod side_by_side;
pub mod slow_start;
pub mod study;
pub mod verdict;
pub mod w3c;

use std::path::PathBuf;

use quantity::names::UnknownName;
use serde::Serialize;

use catalogue::{Computation, Draw, Entry, SelectedEntry};
use claim::Claims;
use judgement::{Judgement, Values};
use laboratory::{BenchmarkResults, Benchmarks, CountedLogs, Laboratory, Measure};
use published::{Cell, Table};
use verdict::Verdict;

use crate::study::Study;

/// Tables to reproduce, and the engines for them.
#[derive(Default)]
pub struct Options<'a> {
    /// Keys, names of papers for all of their keys, or keys followed by the labels of some of their rows; empty for
    /// every key.
    pub keys: Vec<String>,
    /// Measurements for tables with measured cells; without it these are not testable here.
    pub measure: Option<&'a mut Measure<'a>>,
    /// Directory of access logs for tables that count one; without it these are not testable here.
    pub logs: Option<PathBuf>,
    /// Server benchmark for figures that need it; without it these are not testable here.
    pub contests: Option<Benchmarks<'a>>,
}

/// Both sides of every requested table.
#[derive(Debug)]
pub struct Report {
    /// In the order of the catalogue.
    pub tables: Vec<ReproducedTable>,
    /// Log counts of these tables.
    pub counted: CountedLogs,
    /// Server benchmark runs of these tables.
    pub benchmarks: BenchmarkResults,
}

/// One published table with our values.
#[derive(Debug)]
pub struct ReproducedTable {
    /// The table's key, with the code that draws it.
    pub entry: &'static Entry,
    /// The published table.
    pub table: Table,
    /// One for each printed cell, row by row.
    pub judgements: Vec<JudgedCell>,
    /// Conclusion of one of our own studies.
    pub says: Option<String>,
}

/// A cell with its verdict.
#[derive(Debug)]
pub struct JudgedCell {
    /// The cell.
    pub cell: Cell,
    /// Its judgement.
    pub judgement: Judgement,
}

/// A row of the JSON and of the CSV.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VerdictRow {
    /// The table or figure.
    pub key: &'static str,
    /// The cell: the row's labels and the column's name.
    pub cell: String,
    /// The published value.
    pub published: f64,
    /// Our value in full precision; null where nothing here can test it.
    pub ours: Option<f64>,
    /// Unit of both values.
    pub unit: String,
    /// One of the seven verdicts.
    pub verdict: Verdict,
    /// Tolerance of the comparison, as a part of the published number or in points of it; null where rounding decides.
    pub bound: Option<f64>,
    /// Mechanism of the reason that was switched on; null where there is none.
    pub mechanism: Option<String>,
    /// Whether the published number is an input of ours, or something was fitted to it.
    pub fitted: bool,
    /// Explanation; null where none is needed.
    pub note: Option<String>,
}

/// Reasons for the absence of a report.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// An unknown table, figure or paper.
    #[error("{0}")]
    UnknownKey(UnknownName),
    /// A measurement failed.
    #[error("cannot measure for {key}: {sentence}")]
    Measure {
        /// The table that needed it.
        key: &'static str,
        /// The measurement's error.
        sentence: String,
    },
}

/// Regenerates the tables of the keys and judges every printed cell.
///
/// # Errors
/// [`Error`] for an unknown key, and when a requested measurement fails.
pub fn run(options: Options<'_>) -> Result<Report, Error> {
    let Options { keys, measure, logs, contests } = options;
    let mut measured = Laboratory::new(measure, logs, contests);
    let entries = catalogue::select(&keys).map_err(Error::UnknownKey)?;
    let tables =
        entries.into_iter().map(|requested| reproduce(requested, &mut measured)).collect::<Result<_, _>>()?;
    let (counted, benchmarks) = measured.into_results();
    Ok(Report { tables, counted, benchmarks })
}

fn reproduce(requested: SelectedEntry, measured: &mut Laboratory<'_>) -> Result<ReproducedTable, Error> {
    let SelectedEntry { entry, row } = requested;
    let failed = |sentence| Error::Measure { key: entry.key, sentence };
    let whole = entry.table();
    let table = match &row {
        Some(row) => whole.narrowed(row),
        None => whole,
    };
    let (table, judgements, says) = match entry.ours {
        Computation::Study(study) => {
            let Study { table, mut judgements, says } = study(table).map_err(failed)?;
            for (cell, judgement) in table.cells().iter().zip(&mut judgements) {
                if let Some(record) = record::of(entry.key, &cell.name()) {
                    judgement.expected = record.verdict;
                }
            }
            (table, judgements, says)
        }
        Computation::Cells(ours) => {
            let judge = |cell: &Cell| {
                let value = ours(cell, measured).map_err(failed)?;
                let named = table.exception(cell).and_then(|exception| exception.mechanism);
                let with_mechanism = match named {
                    Some(mechanism) => {
                        mechanism::our_value(entry.key, &table, mechanism, cell).map_err(failed)?
                    }
                    None => None,
                };
                let record = record::of(entry.key, &cell.name());
                Ok(judgement::judge(&table, cell, Values { ours: value, with_mechanism }, record))
            };
            let judgements = table.cells().iter().map(judge).collect::<Result<_, Error>>()?;
            (table, judgements, None)
        }
        Computation::Claims => (table.clone(), claims(entry.key, &table, measured).map_err(failed)?, None),
    };
    let judged = table.cells().into_iter().zip(judgements);
    let judgements = judged.map(|(cell, judgement)| JudgedCell { cell, judgement }).collect();
    Ok(ReproducedTable { entry, table, judgements, says })
}

fn claims(key: &str, table: &Table, measured: &mut Laboratory<'_>) -> Result<Vec<Judgement>, String> {
    let mut claims = Claims::new(table, measured);
    let judge = |claim: &published::Claim| {
        let ours = match &claim.ours {
            Some(expression) => {
                claims.our_value(expression).map_err(|error| format!("{}: {error}", claim.claim))?
            }
            None => None,
        };
        let cell = claim.cell();
        let record = record::of(key, &cell.name());
        let mut judgement = judgement::judge(table, &cell, Values::from(ours), record);
        judgement.note = claim::note(claim, &judgement);
        Ok(judgement)
    };
    table.claims.iter().map(judge).collect()
}

impl Report {
    /// Rows for programs.
    pub fn rows(&self) -> Vec<VerdictRow> {
        self.tables.iter().flat_map(ReproducedTable::rows).collect()
    }

    /// The picture of a figure; `None` for a table, and where what it shows was not computed.
    pub fn picture(&self, entry: &Entry) -> Option<String> {
        match entry.draw? {
            Draw::Alone(draw) => Some(draw()),
            Draw::Counted(draw) => draw(&self.counted),
            Draw::Measured(draw) => draw(&self.benchmarks),
        }
    }

    /// Cells whose verdict is worse than the one recorded in the data, whose value is further from print than recorded, or
    /// whose comparison is reversed.
    pub fn worsened(&self) -> impl Iterator<Item = (&'static str, &JudgedCell)> {
        self.tables.iter().flat_map(|table| {
            let worse = table.judgements.iter().filter(|judged| judged.judgement.worsened());
            worse.map(|judged| (table.entry.key, judged))
        })
    }
}

impl ReproducedTable {
    fn rows(&self) -> impl Iterator<Item = VerdictRow> {
        self.judgements.iter().map(|JudgedCell { cell, judgement }| VerdictRow {
            key: self.entry.key,
            cell: cell.name(),
            published: cell.published,
            ours: judgement.ours,
            unit: cell.column.unit.clone(),
            verdict: judgement.verdict,
            bound: judgement.bound,
            mechanism: judgement.mechanism.as_ref().map(|(name, _)| name.clone()),
            fitted: judgement.is_fitted,
            note: judgement.note.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use ::measure::Peers;
    use scenario::{Protocol, Scenario};
    use trace::Metrics;

    use super::*;

    use super::catalogue::ENTRIES;
    use super::laboratory::KernelResult;
    use crate::server_benchmark::benchmark_run::{BenchmarkRun, Outcome};
    use crate::server_benchmark::population::Population;
    use crate::server_benchmark::server::ServerKind;

    /// A laboratory that measures what the paper measured.
    fn papers_laboratory(scenario: &Scenario) -> Result<Option<KernelResult>, String> {
        let elapsed_ms = match (scenario.protocol, scenario.network.rtt.as_millis_f64() > 1.0) {
            (Protocol::Http10, true) => 1716.0,
            (Protocol::Http10, false) => 27.0,
            (_, true) => 1103.0,
            (_, false) => 26.6,
        };
        let assumptions = model::Assumptions::default();
        let prediction = model::predict(scenario, &assumptions).map_err(|refusal| refusal.to_string())?;
        let metrics = prediction.metrics();
        let runs = scenario.runs;
        let elapsed_ms = Some(elapsed_ms);
        let metrics = Metrics { elapsed_ms, elapsed_ms_stddev: Some(101.0), runs, ..metrics };
        Ok(Some(KernelResult { metrics, processing: scenario.server.processing }))
    }

    #[test]
    fn each_scenario_is_measured_once_and_its_rows_are_judged() {
        let mut requested = Vec::new();
        let mut laboratory = |scenario: &Scenario, _: Peers| {
            requested.push((scenario.protocol, scenario.runs));
            papers_laboratory(scenario)
        };
        let keys = vec!["heidemann-model/table-7".to_owned()];
        let report = run(Options { keys, measure: Some(&mut laboratory), ..Options::default() }).unwrap();
        assert_eq!(requested.len(), 4);
        assert!(requested.iter().all(|(_, runs)| *runs == 100));
        assert_eq!(report.worsened().count(), 0);
        let verdict = |name: &str| report.rows().into_iter().find(|row| row.cell == name).unwrap().verdict;
        assert_eq!(verdict("http10/fast-internet/measured"), Verdict::Exact);
        assert_eq!(verdict("http10/fast-internet/ratio"), Verdict::Exact);
        assert_eq!(verdict("http10/fast-internet/sd"), Verdict::Exact);
        assert_eq!(verdict("http10/ethernet/measured"), Verdict::Differs);
    }

    #[test]
    fn each_server_is_benchmarked_once_and_failed_claims_differ() {
        let mut requested = Vec::new();
        let mut contest = |benchmarks: &[BenchmarkRun]| {
            requested.extend_from_slice(benchmarks);
            // A server that closes after each response, or is not Apache, is as fast as DHTTP.
            let slow =
                |benchmark: &BenchmarkRun| match (benchmark.kind, benchmark.idle_s, benchmark.closes_early) {
                    (ServerKind::Prefork, _, true) => Some((480.0, 3.0)),
                    (ServerKind::Prefork, 1, false) => Some((240.0, 2_000.0)),
                    (ServerKind::Prefork, 5 | 15, false) => Some((120.0, 5_000.0)),
                    (ServerKind::Event, 15, _) => Some((330.0, 100.0)),
                    _ => None,
                };
            let outcome = |benchmark: &BenchmarkRun| {
                let (per_second, mean_ms) =
                    slow(benchmark).unwrap_or((0.6 * f64::from(benchmark.users), 1.0));
                // One run whose generator could not send on time.
                let is_void = benchmark.kind == ServerKind::Hyper;
                let [latency_is_void, throughput_is_void] = [is_void; 2];
                let own_ms = if is_void { mean_ms } else { 0.0 };
                Outcome {
                    per_second,
                    mean_ms,
                    own_ms,
                    latency_is_void,
                    throughput_is_void,
                    ..Outcome::default()
                }
            };
            // One server is not installed.
            let is_installed = |benchmark: &BenchmarkRun| benchmark.kind != ServerKind::NginxFew;
            Ok(benchmarks.iter().map(|run| is_installed(run).then(|| outcome(run))).collect())
        };
        let mut gather = |_: &[Population]| Ok(None);
        let contests = Some(Benchmarks { run: &mut contest, gather: &mut gather, users: &[200, 1_000] });
        let keys = ["dhttp/figure-10", "dhttp/figure-11", "dhttp/figure-12"].map(str::to_owned).to_vec();
        let report = run(Options { keys, contests, ..Options::default() }).unwrap();
        assert_eq!(report.worsened().count(), 0);
        let verdict = |name: &str| report.rows().into_iter().find(|row| row.cell == name).unwrap().verdict;
        assert_eq!(verdict("throughput/1-s"), Verdict::Differs);
        assert_eq!(verdict("throughput/hyper"), Verdict::NotTestableHere);
        assert_eq!(verdict("closing-idle-ones-over-1-s/nginx"), Verdict::NotTestableHere);
        assert_eq!(verdict("lower-latency/15-s"), Verdict::Holds);
        assert_eq!(verdict("lower-latency/none"), Verdict::Differs);
        assert_eq!(verdict("throughput/nginx"), Verdict::Differs);
        let draw = |table: &ReproducedTable| match table.entry.draw {
            Some(Draw::Measured(draw)) => draw(&report.benchmarks).is_some(),
            Some(Draw::Alone(_) | Draw::Counted(_)) | None => false,
        };
        assert!(report.tables.iter().all(draw));
        let count = requested.len();
        requested.sort_unstable();
        requested.dedup();
        assert_eq!(requested.len(), count);
    }

    #[test]
    fn a_failed_measurement_is_an_error_and_not_a_verdict() {
        let mut broken = |_: &Scenario, _: Peers| Err("no TUN device".to_owned());
        let error = run(Options { measure: Some(&mut broken), ..Options::default() }).unwrap_err();
        assert_eq!(error.to_string(), "cannot measure for heidemann-model/table-7: no TUN device");
    }

    #[test]
    #[ignore = "counts three million requests by the slow rule: run it in a release build, with ROUNDTRIP_LOGS"]
    fn paper_logs_of_other_servers_get_the_recorded_verdicts() {
        let Some(logs) = std::env::var_os("ROUNDTRIP_LOGS") else { return };
        let report =
            run(Options { keys: vec!["dhttp".to_owned()], logs: Some(logs.into()), ..Options::default() })
                .unwrap();
        let worse: Vec<_> = report.worsened().map(|(key, judged)| (key, judged.cell.name())).collect();
        assert_eq!(worse, []);
        let counted = |row: &&VerdictRow| row.cell.starts_with("nasa/") || row.cell.starts_with("made-up/");
        assert_eq!(report.rows().iter().filter(counted).filter(|row| row.ours.is_some()).count(), 22);
        assert!(ENTRIES.iter().all(|entry| match entry.draw {
            Some(Draw::Counted(draw)) => draw(&report.counted).is_some(),
            Some(Draw::Alone(_) | Draw::Measured(_)) | None => true,
        }));
    }

    #[test]
    fn an_unknown_key_suggests_the_nearest_one() {
        let error = run(Options { keys: vec!["heidemann-model/tabel-6".to_owned()], ..Options::default() });
        let sentence = error.unwrap_err().to_string();
        assert!(
            sentence.starts_with(
                "unknown key `heidemann-model/tabel-6`; did you mean `heidemann-model/table-6`?"
            )
        );
    }
}
