//! The papers' tables with the protocols of today: the W3C's Tables 4 to 9, the model paper's Table VI and DHTTP's Fig. 1, each with
//! rows for TLS 1.3, HTTP/2 and HTTP/3.
//!
//! `all FILE.csv` simulates and predicts every row, and prints the tables of `studies/tables`; `sample` computes part of them
//! again and compares it with the stored rows, byte by byte; `kernel FILE.csv` measures, as root, the W3C's rows with hosts of today.

mod dhttp;
mod heidemann;
mod kernel;
mod w3c;

use std::path::Path;
use std::process::ExitCode;

use model::{Assumptions, predict};
use roundtrip_studies::{exit_code, in_parallel, usage};
use scenario::{Client, Protocol, Requests, Scenario, Tls};
use simulate::Hosts;

const HEADING: &str =
    "table,network,page,visit,hosts,protocol,tls,packets,bytes,overhead_percent,ms,predicted_ms,minimum_ms\n";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let reported = match words.as_slice() {
        ["all", file] => all(Path::new(file)),
        ["sample"] => sample(),
        ["kernel", file] => kernel::measured(Path::new(file)),
        _ => Err(usage("kernel FILE.csv")),
    };
    exit_code("tables", reported)
}

/// A row of a table: a scenario, and its place.
pub(crate) struct Row {
    pub(crate) table: &'static str,
    pub(crate) network: &'static str,
    pub(crate) page: String,
    /// Visit, or what is left of an earlier one.
    pub(crate) visit: &'static str,
    pub(crate) hosts: &'static str,
    pub(crate) scenario: Scenario,
    /// Behaviour of the simulated hosts.
    pub(crate) behaviour: Hosts,
    /// The formulas' scenario, where it differs.
    pub(crate) predicted: Option<Scenario>,
}

/// Values of a row. Empty where an engine refuses it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Values {
    pub(crate) packets: Option<f64>,
    pub(crate) bytes: Option<f64>,
    pub(crate) overhead_percent: Option<f64>,
    pub(crate) ms: Option<f64>,
    pub(crate) predicted_ms: Option<f64>,
    pub(crate) minimum_ms: Option<f64>,
}

impl Row {
    /// Simulates and predicts it.
    fn values(&self) -> Values {
        let mut values = Values::default();
        if let Ok(simulated) = simulate::simulate(&self.scenario, self.behaviour.clone()) {
            let metrics = simulated.metrics;
            values.packets = metrics.packets_up.zip(metrics.packets_down).map(|(up, down)| up + down);
            values.bytes = metrics.payload_bytes;
            values.overhead_percent = metrics.overhead_percent();
            values.ms = metrics.elapsed_ms;
        }
        if let Ok(predicted) =
            predict(self.predicted.as_ref().unwrap_or(&self.scenario), &Assumptions::default())
        {
            values.predicted_ms = Some(predicted.elapsed.as_millis_f64());
            values.minimum_ms = Some(predicted.minimum.as_millis_f64());
        }
        values
    }

    fn line(&self, values: &Values) -> String {
        let Self { table, network, page, visit, hosts, scenario, .. } = self;
        let Values { packets, bytes, overhead_percent, ms, predicted_ms, minimum_ms } = values;
        let cells =
            [(packets, 1), (bytes, 0), (overhead_percent, 1), (ms, 1), (predicted_ms, 1), (minimum_ms, 1)];
        let cells = cells
            .map(|(value, decimals)| value.map_or_else(String::new, |value| format!("{value:.decimals$}")));
        format!(
            "{table},{network},{page},{visit},{hosts},{},{},{}\n",
            scenario.protocol.name(),
            scenario.tls.name(),
            cells.join(",")
        )
    }

    /// Protocol and version of TLS, for people.
    fn name(&self) -> String {
        match self.scenario.tls {
            Tls::None => self.scenario.protocol.name().to_owned(),
            tls => format!("{}, TLS {}", self.scenario.protocol.name(), tls.name()),
        }
    }
}

fn rows() -> Result<Vec<Row>, String> {
    Ok([w3c::rows(), heidemann::rows()?, dhttp::rows()?].into_iter().flatten().collect())
}

fn all(file: &Path) -> Result<(), String> {
    let rows = rows()?;
    let values = in_parallel(&rows, Row::values);
    let lines: String = rows.iter().zip(&values).map(|(row, values)| row.line(values)).collect();
    std::fs::write(file, HEADING.to_owned() + &lines)
        .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    let of = |table: &str| -> Vec<(&Row, &Values)> {
        rows.iter().zip(&values).filter(|(row, _)| row.table.starts_with(table)).collect()
    };
    print!(
        "{}\n{}\n{}",
        w3c::tables(&of("w3c")),
        heidemann::tables(&of("heidemann")),
        dhttp::table(&of("dhttp"))
    );
    Ok(())
}

/// Computes the rows over a LAN and those of small pages again.
fn sample() -> Result<(), String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies/tables/tables.csv");
    let stored =
        std::fs::read_to_string(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let is_in_sample = |row: &Row| {
        row.table == "dhttp/figure-1"
            || row.page == "small-cluster"
            || (row.table, row.hosts) == ("w3c/table-5", "apache")
    };
    for row in rows()?.iter().filter(|row| is_in_sample(row)) {
        let line = row.line(&row.values());
        if !stored.contains(&line) {
            return Err(format!(
                "{} lacks {line}; run everything again, and state the reason in CHANGELOG.md",
                path.display()
            ));
        }
    }
    Ok(())
}

/// A client with connections as this protocol has them, and these requests.
pub(crate) fn client(protocol: Protocol, requests: Requests) -> Client {
    Client { requests, parallel: protocol.connections(), ..Client::default() }
}

/// A row of a table in Markdown.
pub(crate) fn markdown(cells: impl IntoIterator<Item = String>) -> String {
    let cells: Vec<String> = cells.into_iter().collect();
    format!("| {} |\n", cells.join(" | "))
}

/// A heading of a table in Markdown, with numbers on the right after the first column.
pub(crate) fn heading(titles: &[String]) -> String {
    let line = titles.iter().enumerate().map(|(index, _)| if index == 0 { "---" } else { "---:" }.to_owned());
    markdown(titles.iter().cloned()) + &markdown(line)
}
