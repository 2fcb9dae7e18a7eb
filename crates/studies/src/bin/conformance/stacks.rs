//! Three stacks over six networks by four protocols, and a longer page over one: `compare`'s simulated and measured times.
//!
//! Every ratio beyond 1.05 must be refused or have its reason in the output. [`crate::outcome`] compares segments.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// Ratio of two times beyond which the output gives a reason.
const NEAR: f64 = 1.05;
const PROTOCOLS: &str = "http10,http11,http11-pipelined,dhttp";
const NETWORKS: [&str; 6] = ["fast-internet", "ethernet", "n-fast-internet", "adsl", "isdn", "direcpc"];

/// Name, and options of `compare`: page, network, stacks, runs.
type ComparePart = [&'static str; 5];

/// Compares every combination of the named parts (all, if none is named), prints a line for each, and stores them.
pub(crate) fn run(file: &str, names: &[&str]) -> Result<ExitCode, String> {
    let small = NETWORKS.map(|network| [network, "small-cluster", network, "sunos-4.1.3,period,linux", "5"]);
    let large = ["microscape", "microscape", "n-fast-internet", "period,linux", "3"];
    let is_selected = |[name, ..]: &ComparePart| names.is_empty() || names.contains(name);
    let mut lines = vec!["page,network,stack,protocol,simulated_ms,measured_ms,ratio,note".to_owned()];
    let mut unexplained = 0;
    for part in small.into_iter().chain([large]).filter(is_selected) {
        for combination in compare(part)? {
            println!("{}", combination.line());
            lines.push(combination.record());
            unexplained += u32::from(combination.is_unexplained());
        }
    }
    let text = lines.join("\n") + "\n";
    std::fs::write(file, text).map_err(|error| format!("cannot write {file}: {error}"))?;
    println!("{} combinations, {unexplained} beyond {NEAR} without a reason", lines.len() - 1);
    Ok(if unexplained == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The keys of a row that are compared.
#[derive(serde::Deserialize)]
struct Row {
    network: String,
    page: String,
    protocol: String,
    engine: String,
    stack: String,
    elapsed_ms: Option<f64>,
    notes: Vec<String>,
}

/// One stack, network, page and protocol in both engines.
struct Combination {
    simulated: Row,
    measured: Row,
}

fn compare([_, page, network, stacks, runs]: ComparePart) -> Result<Vec<Combination>, String> {
    let mut command = Command::new(roundtrip()?);
    command.args(["compare", "--engine", "simulate,measure", "--format", "json", "--runs", runs]);
    command.args(["--page", page, "--network", network, "--stack", stacks, "--protocol", PROTOCOLS]);
    let output = command.output().map_err(|error| error.to_string())?;
    let rows: Vec<Row> = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("{error}: {}", String::from_utf8_lossy(&output.stderr)))?;
    let (simulated, measured): (Vec<Row>, Vec<Row>) =
        rows.into_iter().partition(|row| row.engine == "simulate");
    Ok(simulated
        .into_iter()
        .zip(measured)
        .map(|(simulated, measured)| Combination { simulated, measured })
        .collect())
}

/// The program `roundtrip`, built beside this one.
fn roundtrip() -> Result<PathBuf, String> {
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let program = this.with_file_name("roundtrip");
    let built = program.is_file().then_some(program);
    built.ok_or_else(|| format!("no `roundtrip` beside {}; build it in the same profile", this.display()))
}

impl Combination {
    fn ratio(&self) -> Option<f64> {
        Some(self.simulated.elapsed_ms? / self.measured.elapsed_ms?)
    }

    /// The refusal, or the reason for a difference.
    fn note(&self) -> Option<&str> {
        let is_refused = self.measured.elapsed_ms.is_none();
        let mut notes = self.measured.notes.iter();
        notes.find(|note| is_refused || note.starts_with("simulated/measured")).map(String::as_str)
    }

    fn is_unexplained(&self) -> bool {
        let note = self.note().filter(|note| !note.contains("unexplained"));
        match self.ratio() {
            None => note.is_none(),
            Some(ratio) => !(1.0 / NEAR..=NEAR).contains(&ratio) && note.is_none(),
        }
    }

    fn line(&self) -> String {
        let Row { page, network, stack, protocol, elapsed_ms, engine: _, notes: _ } = &self.simulated;
        let number = |value: Option<f64>, decimals: usize| {
            value.map_or_else(|| "refused".to_owned(), |value| format!("{value:.decimals$}"))
        };
        format!(
            "{page:13} {network:15} {stack:11} {protocol:15} {:>9} {:>9} {:>7}  {}",
            number(*elapsed_ms, 1),
            number(self.measured.elapsed_ms, 1),
            number(self.ratio(), 3),
            self.note().unwrap_or_default()
        )
    }

    fn record(&self) -> String {
        let Row { page, network, stack, protocol, elapsed_ms, engine: _, notes: _ } = &self.simulated;
        let number = |value: Option<f64>| value.map(|value| format!("{value:.3}")).unwrap_or_default();
        let note = self.note().unwrap_or_default().replace('"', "'");
        let [simulated, measured, ratio] = [*elapsed_ms, self.measured.elapsed_ms, self.ratio()].map(number);
        format!("{page},{network},{stack},{protocol},{simulated},{measured},{ratio},\"{note}\"")
    }
}
