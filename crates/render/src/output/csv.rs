//! Rows as comma-separated values (RFC 4180), in full precision, with the columns of the JSON.
//!
//! Lists become text: a stall is `cause@at_ms+lost_ms`, stalls and notes are separated by `; `.

use trace::{Row, Stall};

/// A heading line and a line for each row, with CRLF as in the RFC.
pub fn rows(rows: &[&Row]) -> String {
    table(COLUMNS, rows.iter().map(|row| cells(row)))
}

const COLUMNS: [&str; 18] = [
    "network",
    "page",
    "visit",
    "protocol",
    "engine",
    "stack",
    "elapsed_ms",
    "overhead",
    "round_trips",
    "packets_up",
    "packets_down",
    "payload_bytes",
    "overhead_percent",
    "connections",
    "runs",
    "elapsed_ms_stddev",
    "stalls",
    "notes",
];

fn cells(row: &Row) -> [String; COLUMNS.len()] {
    let Row {
        network,
        page,
        visit,
        protocol,
        engine,
        stack,
        elapsed_ms,
        overhead,
        round_trips,
        packets_up,
        packets_down,
        payload_bytes,
        overhead_percent,
        connections,
        runs,
        elapsed_ms_stddev,
        stalls,
        notes,
    } = row;
    [
        network.clone(),
        page.clone(),
        visit.clone(),
        protocol.clone(),
        engine.clone(),
        stack.clone(),
        number(*elapsed_ms),
        number(*overhead),
        number(*round_trips),
        number(*packets_up),
        number(*packets_down),
        number(*payload_bytes),
        number(*overhead_percent),
        number(*connections),
        runs.to_string(),
        number(*elapsed_ms_stddev),
        stalls.iter().map(stall).collect::<Vec<_>>().join("; "),
        notes.join("; "),
    ]
}

fn number(value: Option<f64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn stall(stall: &Stall) -> String {
    let Stall { cause, at_ms, lost_ms } = stall;
    format!("{cause}@{at_ms}+{lost_ms}")
}

/// Any table: a heading line and a line for each row.
pub fn table<const N: usize>(columns: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    std::iter::once(columns.map(str::to_owned)).chain(rows).map(line).collect()
}

/// One line of a table whose number of columns varies.
pub fn line(cells: impl IntoIterator<Item = String>) -> String {
    cells.into_iter().map(|cell| quoted(&cell)).collect::<Vec<String>>().join(",") + "\r\n"
}

fn quoted(cell: &str) -> String {
    if cell.contains(['"', ',', '\r', '\n']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_and_line_breaks_are_quoted() {
        let cells = ["plain", "a,b", "say \"x\"", ""].map(str::to_owned);
        assert_eq!(line(cells), "plain,\"a,b\",\"say \"\"x\"\"\",\r\n");
    }
}
