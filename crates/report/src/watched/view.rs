//! A watch's report as lines of a terminal, text, JSON and Prometheus metrics.

use diagnose::cause::Describe as _;
use render::output::grid::{Column, Grid, wrap_lines};
use render::terminal::Terminal;
use serde_json::{Value, json};
use trace::text::counted;

use super::{Row, WatchReport};
use crate::advice::party_name;
use crate::command::CommandExit;
use crate::span::shown;

/// Returns lines of at most `width` columns and `height` rows, for a terminal that is redrawn repeatedly.
pub fn lines(report: &WatchReport, width: usize, height: usize) -> Vec<String> {
    let stalls = match report.rows.is_empty() {
        true => "no stalls\n".to_owned(),
        false => grid(report).render(Terminal { width: Some(width), colour: false }),
    };
    let text = format!("{}\n\n{stalls}", summary(report));
    text.lines().take(height).map(|line| line.chars().take(width).collect()).collect()
}

fn grid(report: &WatchReport) -> Grid {
    let columns = vec![
        Column::name(["cause", ""]),
        Column::number(["lost", ""], 0),
        Column::number(["longest", ""], 2),
        Column::number(["times", ""], 1),
        Column::name(["at", ""]),
        Column::name(["program", ""]),
    ];
    let cells = |row: &Row| {
        vec![
            row.cause.name().to_owned(),
            shown(row.lost),
            shown(row.longest),
            row.times.to_string(),
            format!("{} {}", row.side, row.server),
            program(row),
        ]
    };
    Grid { columns, rows: report.rows.iter().map(cells).collect() }
}

/// Formats the known parts of the owner: `python3 (pid 7, container 0123456789ab)`.
pub(crate) fn program(row: &Row) -> String {
    let Some(owner) = &row.owner else { return "unknown program".to_owned() };
    let container = owner.container.as_ref().map(|id| format!(", container {id}")).unwrap_or_default();
    format!("{} (pid {}{container})", owner.name, owner.pid)
}

fn summary(report: &WatchReport) -> String {
    format!(
        "{} open, {} in {}, {:.1}% of a CPU",
        counted(report.open as u64, "socket"),
        counted(report.samples, "sample"),
        shown(report.elapsed),
        report.load() * 100.0
    )
}

/// Returns what was watched, in one line.
pub fn facts(report: &WatchReport) -> String {
    let command = report.command.map(|ended| format!("; the command {ended}")).unwrap_or_default();
    summary(report) + &command
}

/// Returns the final report, in lines of this width: each stall with its evidence and fixes.
pub fn text(report: &WatchReport, width: usize) -> String {
    let mut text = facts(report) + "\n";
    if report.left_out > 0 {
        text += &format!("not watched, beyond the limit: {}\n", counted(report.left_out, "socket"));
    }
    text += &match (report.rows.is_empty(), report.unjudged(false)) {
        (true, Some(reason)) => format!("\nNothing could be judged: {reason}.\n"),
        (true, None) => "\nNo stalls were found.\n".to_owned(),
        (false, _) => rows(report),
    };
    wrap_lines(&text, width)
}

/// Returns each stall with its evidence and fixes.
pub fn rows(report: &WatchReport) -> String {
    let mut text = String::new();
    for (number, row) in (1..).zip(&report.rows) {
        let longest =
            if row.times > 1 { format!(", the longest {}", shown(row.longest)) } else { String::new() };
        text += &format!(
            "\n{number}. {}: {} lost in {} of {}{longest}\n   {}, {} of {}\n   {}\n   {}.\n",
            row.cause.name(),
            shown(row.lost),
            counted(row.times, "stall"),
            counted(row.connections, "connection"),
            program(row),
            row.side,
            row.server,
            row.cause.about().description,
            row.evidence
        );
        for fix in row.cause.about().fixes {
            text += &format!("   - {}: {}\n", party_name(row.side, fix.party), fix.change);
        }
    }
    text
}

/// Returns a line of JSON for the beginning, for each row that is not in `before`, and for the end.
pub fn json_lines(report: &WatchReport, before: &[Row]) -> String {
    let new = report.rows.iter().filter(|row| !before.contains(row));
    let mut values = Vec::new();
    if report.is_first {
        values.push(json!({ "event": "begin", "sockets": report.open }));
    }
    values.extend(new.map(|row| json_row(report, row)));
    if report.is_last {
        values.push(json!({
            "event": "end",
            "at_ms": report.elapsed.as_millis_f64(),
            "sockets": report.open,
            "samples": report.samples,
            "not_watched": report.left_out,
            "cpu_share": report.load(),
            "command_status": report.command.and_then(CommandExit::status),
            "stalls": report.rows.len(),
            "fails": report.fails(),
            "judged": report.fails() || report.unjudged(false).is_none(),
        }));
    }
    values.iter().map(|value| format!("{value}\n")).collect()
}

pub(crate) fn json_row(report: &WatchReport, row: &Row) -> Value {
    let fixes = row.cause.about().fixes.iter();
    json!({
        "event": "stall",
        "at_ms": report.elapsed.as_millis_f64(),
        "cause": row.cause.name(),
        "severity": row.severity.name(),
        "side": row.side.to_string(),
        "server": row.server.to_string(),
        "pid": row.owner.as_ref().map(|owner| owner.pid),
        "program": row.owner.as_ref().map(|owner| &owner.name),
        "container": row.owner.as_ref().and_then(|owner| owner.container.as_ref()),
        "connections": row.connections,
        "times": row.times,
        "lost_ms": row.lost.as_millis_f64(),
        "longest_ms": row.longest.as_millis_f64(),
        "evidence": row.evidence,
        "fixes": fixes
            .map(|fix| json!({ "who": party_name(row.side, fix.party), "change": fix.change }))
            .collect::<Value>(),
    })
}

/// Returns metrics in Prometheus's text format, version 0.0.4.
pub fn metrics(report: &WatchReport) -> String {
    /// Maximum number of series, to limit the size of a scrape.
    const MAX_SERIES: usize = 1_000;
    let mut text = String::new();
    for (name, kind, help, value) in [
        ("sockets", "gauge", "Watched sockets that are open.", report.open as f64),
        ("samples_total", "counter", "Samples of single sockets.", report.samples as f64),
        ("cpu_seconds_total", "counter", "CPU time of the watch.", report.cpu.as_secs_f64()),
    ] {
        text += &heading(name, kind, help);
        text += &format!("roundtrip_watch_{name} {value}\n");
    }
    type Figure = fn(&Row) -> f64;
    let values: [(&str, &str, Figure); 2] = [
        ("lost_seconds_total", "Time lost in stalls.", |row| row.lost.as_secs_f64()),
        ("stalls_total", "Stalls.", |row| row.times as f64),
    ];
    for (name, help, value) in values {
        text += &heading(name, "counter", help);
        for row in report.rows.iter().take(MAX_SERIES) {
            text += &format!("roundtrip_watch_{name}{{{}}} {}\n", labels(row), value(row));
        }
    }
    text
}

fn heading(name: &str, kind: &str, help: &str) -> String {
    format!("# HELP roundtrip_watch_{name} {help}\n# TYPE roundtrip_watch_{name} {kind}\n")
}

fn labels(row: &Row) -> String {
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let owner = row.owner.as_ref();
    let program = owner.map_or_else(String::new, |owner| quoted(&owner.name));
    let pid = owner.map_or_else(String::new, |owner| owner.pid.to_string());
    let (cause, side, server) = (row.cause.name(), row.side, row.server);
    format!("cause=\"{cause}\",program=\"{program}\",pid=\"{pid}\",side=\"{side}\",server=\"{server}\"")
}
