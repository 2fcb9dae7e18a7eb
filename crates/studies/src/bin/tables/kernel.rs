//! The W3C's rows between hosts of today, on this kernel over emulated links.

use std::path::Path;

use measure::{Options, measure};

use scenario::Scenario;

use crate::w3c::{self, TODAY};

const HEADING: &str = "table,network,visit,protocol,tls,packets,ms,simulated_ms\n";

/// Measures the rows that the kernel has, and writes them; a row whose link was late is left out with its reason.
pub(crate) fn measured(file: &Path) -> Result<(), String> {
    if let Err(missing) = testbed::prepare().and_then(|()| testbed::available()) {
        return Err(missing.to_string());
    }
    let mut lines = HEADING.to_owned();
    for row in w3c::rows().iter().filter(|row| row.hosts == TODAY) {
        let Scenario { protocol, tls, runs, .. } = &row.scenario;
        let place = format!("{},{},{},{},{}", row.table, row.network, row.visit, protocol.name(), tls.name());
        // A page takes a minute over the modem.
        let runs = if row.network == "ppp" { 1 } else { *runs };
        let scenario = Scenario { runs, ..row.scenario.clone() };
        let found = match measure(&scenario, &Options::default(), |_| ()) {
            Ok(found) => found,
            Err(reason) => {
                eprintln!("tables: left out: {place}: {reason}");
                continue;
            }
        };
        let mean = |value: &dyn Fn(&measure::run::Run) -> f64| {
            found.runs.iter().map(value).sum::<f64>() / found.runs.len() as f64
        };
        let packets = mean(&|run| (run.packets_up + run.packets_down) as f64);
        let ms = mean(&|run| run.elapsed.as_millis_f64());
        let simulated = row.values().ms.map_or_else(String::new, |ms| format!("{ms:.1}"));
        lines += &format!("{place},{packets:.1},{ms:.1},{simulated}\n");
        println!("{place}: {ms:.1} ms, simulated {simulated}");
    }
    std::fs::write(file, lines).map_err(|error| format!("cannot write {}: {error}", file.display()))
}
