//! Results for people: rows grouped by network and page, notes below.
//!
//! A line for each row is laid out here, engines side by side in [`crate::comparison`].

use render::output::grid::{Column, Grid, hidden as hidden_columns, wrap};
use render::output::number;
use render::terminal::Terminal;
use trace::{Cause, Stall};

use crate::description::{about, title};
use crate::grid::{Footnotes, cell, differs, groups, longest_wait, setting_columns};
use crate::setting;
use crate::{Outcome, comparison, conclusion};

/// Layout of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// A line for each row.
    Rows,
    /// A line for each protocol, its engines side by side, and conclusions below.
    Comparison,
}

impl Layout {
    /// The lines of one network and page.
    pub fn grid(self, group: &[Outcome], footnotes: &mut Footnotes) -> Grid {
        match self {
            Self::Rows => rows(group, footnotes),
            Self::Comparison => comparison::grid(group, footnotes),
        }
    }

    /// Conclusions in sentences.
    pub fn conclusions(self, outcomes: &[Outcome]) -> Vec<String> {
        match self {
            Self::Rows => Vec::new(),
            Self::Comparison => conclusion::sentences(outcomes),
        }
    }
}

/// The whole text: a table for each network and page, then the notes, then the conclusions.
pub fn render(outcomes: &[Outcome], layout: Layout, terminal: Terminal) -> String {
    let mut footnotes = Footnotes::default();
    let mut hidden: Vec<String> = Vec::new();
    let tables = groups(outcomes).map(|group| {
        let scenario = &group[0].scenario;
        let heading = heading(group, &footnotes.marks(&scenario.page.notes), terminal);
        let grid = layout.grid(group, &mut footnotes);
        let new = grid.hidden(terminal).into_iter().filter(|title| !hidden.contains(title));
        hidden.extend(new.collect::<Vec<_>>());
        heading + &grid.render(terminal)
    });
    let mut parts: Vec<String> = tables.collect();
    let width = terminal.prose_width();
    let numbered = footnotes.iter().map(|(number, note)| wrap(&format!("[{number}] "), note, width));
    parts.push(numbered.collect());
    parts.push(layout.conclusions(outcomes).iter().map(|sentence| wrap("", sentence, width)).collect());
    parts.retain(|part| !part.is_empty());
    parts.join("\n") + &hidden_columns(&hidden, "csv", terminal)
}

/// Two lines: page and network with the page's notes, and the numbers behind the names.
fn heading(group: &[Outcome], marks: &str, terminal: Terminal) -> String {
    let title = format!("{} {marks}", title(&group[0].scenario));
    let about = about(group.iter().map(|outcome| &outcome.scenario)).join(", ");
    let about = terminal.dim(&wrap("", &about, terminal.prose_width()));
    format!("{}\n{about}", terminal.bold(title.trim_end()))
}

fn rows(group: &[Outcome], footnotes: &mut Footnotes) -> Grid {
    let stacks = differs(group, |outcome| outcome.scenario.stack.name);
    let tls = differs(group, |outcome| outcome.scenario.tls.name());
    let engines = differs(group, |outcome| outcome.engine.name());
    let varied = setting::varied(group);
    let mut columns = vec![
        Column::name(["protocol", ""]),
        // Columns that identify a row stay as long as the elapsed time does.
        Column::text(["tls", ""], 1),
        Column::text(["stack", ""], 1),
        Column::text(["engine", ""], 1),
        Column::number(["elapsed", "ms"], 0),
        Column::number(["load", "ms"], 1),
        Column::number(["deviation", "ms"], 6),
        Column::number(["95%", "± ms"], 3),
        Column::number(["over", "minimum"], 2),
        Column::text(["critical", "path"], 3),
        Column::number(["round", "trips"], 5),
        Column::number(["set-up", "ms"], 4),
        Column::number(["slow start", "ms"], 3),
        Column::number(["stalls", "ms"], 3),
        Column::number(["connec-", "tions"], 4),
        Column::number(["packets", "up"], 5),
        Column::number(["packets", "down"], 5),
        Column::number(["payload", "bytes"], 7),
        Column::number(["headers", "%"], 8),
        Column::number(["runs", ""], 9),
        Column::text(["", ""], 1),
    ];
    columns.splice(1..1, setting_columns(&varied));
    let rows = group.iter().map(|outcome| {
        let metrics = &outcome.metrics;
        let lost = StallCosts::of(outcome);
        let shown = |is_shown, name: &str| if is_shown { name.to_owned() } else { String::new() };
        let mut row = vec![
            outcome.scenario.protocol.name().to_owned(),
            shown(tls, outcome.scenario.tls.name()),
            shown(stacks, outcome.scenario.stack.name),
            shown(engines, outcome.engine.name()),
            outcome.elapsed(),
            cell(metrics.load_ms, number::significant),
            cell(metrics.elapsed_ms_stddev, number::significant),
            cell(outcome.interval95_ms, number::significant),
            cell(outcome.overhead, number::ratio),
            longest_wait(Some(outcome)),
            cell(metrics.round_trips, number::tenths),
            cell(lost.setup_ms, number::significant),
            cell(lost.slow_start_ms, number::significant),
            cell(lost.otherwise_ms, number::significant),
            cell(metrics.connections, number::count),
            cell(metrics.packets_up, number::count),
            cell(metrics.packets_down, number::count),
            cell(metrics.payload_bytes, number::count),
            cell(metrics.overhead_percent(), number::tenths),
            if metrics.runs > 1 { metrics.runs.to_string() } else { String::new() },
            footnotes.marks(&outcome.own_notes()),
        ];
        row.splice(1..1, varied.iter().map(|setting| setting.text(&outcome.scenario)));
        row
    });
    let rows = rows.collect();
    Grid { columns, rows }
}

/// Total cost of an outcome's stalls, by cause; `None` without one of that cause.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StallCosts {
    /// Handshakes.
    pub setup_ms: Option<f64>,
    /// Waiting for a small window's acknowledgement.
    pub slow_start_ms: Option<f64>,
    /// Every other cause.
    pub otherwise_ms: Option<f64>,
}

impl StallCosts {
    /// The stalls of an outcome, added up.
    pub fn of(outcome: &Outcome) -> Self {
        let mut lost = Self::default();
        for Stall { cause, at_ms: _, lost_ms } in &outcome.stalls {
            let sum = match cause {
                Cause::ConnectionSetup | Cause::TlsHandshake | Cause::QuicHandshake => &mut lost.setup_ms,
                Cause::SlowStart => &mut lost.slow_start_ms,
                _ => &mut lost.otherwise_ms,
            };
            *sum = Some(sum.unwrap_or_default() + lost_ms);
        }
        lost
    }
}
