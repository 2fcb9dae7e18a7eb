//! Lighthouse's simulated throttling (Lantern) on visits to the pages of a table, beside the simulator.

use std::path::{Path, PathBuf};
use std::process::Command;

use measure::peers::{ClientProgram, Peers};
use measure::{Options, measure};
use roundtrip_studies::quantile;
use scenario::{Network, Protocol};
use serde_json::{Value, json};

use crate::recordings;

/// Visits that are traced: the one whose event `load` is the median counts.
const VISITS: u32 = 3;
const SCRIPT: &str = "studies/chromium/lighthouse.mjs";

/// A cell of the table: times of the event `load`, in milliseconds.
struct Cell {
    network: String,
    measured: f64,
    simulated: f64,
    lantern: f64,
}

/// Predicts the cells of a table without loss from a visit by the same protocol on the fast network, writes them beside it, and
/// prints the errors.
pub(crate) fn compare(file: &str) -> Result<(), String> {
    let table = std::fs::read_to_string(file).map_err(|error| format!("cannot read {file}: {error}"))?;
    let directory = crate::directory(file);
    let mut text = "page,network,protocol,measured_load_ms,simulated_load_ms,lighthouse_load_ms\n".to_owned();
    let mut cells: Vec<Cell> = Vec::new();
    for line in table.lines().skip(1) {
        let values: Vec<&str> = line.split(',').collect();
        let [number, _, _, network, protocol, _, _, measured, _, simulated, ..] = values.as_slice() else {
            return Err(format!("{line}: too few values"));
        };
        if *network == crate::LOSSY {
            continue;
        }
        let time = |text: &str| text.parse::<f64>().map_err(|error| format!("{line}: {error}"));
        let visit = traced(number.parse().map_err(|_| format!("{line}: no page"))?, protocol, &directory)?;
        let lantern = lantern(&visit, network)?;
        text += &format!("{number},{network},{protocol},{measured},{simulated},{lantern:.1}\n");
        let (measured, simulated) = (time(measured)?, time(simulated)?);
        cells.push(Cell { network: (*network).to_owned(), measured, simulated, lantern });
    }
    let results = Path::new(file).with_extension("lighthouse.csv");
    std::fs::write(&results, text).map_err(|error| format!("cannot write {}: {error}", results.display()))?;
    print!("{}", summary(&cells));
    Ok(())
}

/// The file of a visit to this page on the fast network, which is made if it does not exist.
fn traced(number: u64, protocol: &str, directory: &Path) -> Result<PathBuf, String> {
    let file = directory.join(format!("page-{number}-{protocol}.trace.json"));
    if file.exists() {
        return Ok(file);
    }
    let page = crate::pages::page(number)?;
    let protocol = Protocol::named(protocol).map_err(|error| error.to_string())?;
    let scenario = crate::scenario(&page, recordings::fast_network()?, protocol, VISITS)?;
    let peers = Peers { client: ClientProgram::Chromium, ..Peers::default() };
    let options = Options { peers, has_trace: true, ..Options::default() };
    let measured = measure(&scenario, &options, |_| ()).map_err(|error| error.to_string())?;
    let mut visits: Vec<_> = measured.runs.iter().filter_map(|run| run.browser.as_ref()).collect();
    visits.sort_by_key(|visit| visit.load);
    let visit = visits.get(visits.len() / 2).ok_or("no visit")?;
    let trace = visit.trace.as_ref().ok_or("no trace")?;
    let url = visit.objects.first().map_or("", |object| &object.url);
    let text = json!({"url": url, "messages": trace.messages, "events": trace.events}).to_string();
    std::fs::create_dir_all(directory)
        .and_then(|()| std::fs::write(&file, text))
        .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    Ok(file)
}

/// Time of the event `load` by Lantern.
fn lantern(visit: &Path, network: &str) -> Result<f64, String> {
    let named = Network::named(network).map_err(|error| error.to_string())?;
    let kbits = named.rate.bits_per_second_f64() / 1e3;
    let setting = format!("{network}={},{kbits}", named.rtt.as_millis_f64());
    let run = Command::new("node").arg(SCRIPT).arg(visit).arg(setting).output();
    let output = run.map_err(|error| format!("cannot run node: {error}"))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{SCRIPT} {}: {}", visit.display(), errors.trim()));
    }
    let result: Value = serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    result["load_ms"].as_f64().ok_or_else(|| format!("{SCRIPT} prints {result}"))
}

/// Relative errors of both: median and 90th percentile, in all and by network.
fn summary(cells: &[Cell]) -> String {
    let networks = crate::NETWORKS.into_iter().map(Some);
    let of = |network: Option<&str>| {
        let own: Vec<&Cell> =
            cells.iter().filter(|cell| network.is_none_or(|name| cell.network == name)).collect();
        let error = |predicted: fn(&Cell) -> f64| {
            let errors: Vec<f64> =
                own.iter().map(|cell| (predicted(cell) / cell.measured - 1.0).abs() * 100.0).collect();
            format!("{:.1}% and {:.1}%", quantile(&errors, 5), quantile(&errors, 9))
        };
        let (simulated, lantern) = (error(|cell| cell.simulated), error(|cell| cell.lantern));
        let name = network.unwrap_or("all");
        format!("{name:16} {:3} cells; load: simulated {simulated}, by Lighthouse {lantern}\n", own.len())
    };
    std::iter::once(None).chain(networks).map(of).collect()
}
