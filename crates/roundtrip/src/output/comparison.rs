//! Engines side by side: for each protocol what each engine says, and how far they agree.
//!
//! It compares; why they differ is in the notes, where an engine knows. What it comes to in words is in
//! [`super::conclusion`].

use trace::Row;

use super::grid::{Column, Grid};
use super::table::{Footnotes, cell};
use super::{Outcome, number};

/// One protocol and stack, by every engine that was asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Line<'a> {
    /// What the formulas say.
    pub predicted: Option<&'a Row>,
    /// What the packets do in virtual time.
    pub simulated: Option<&'a Row>,
    /// What the kernel does.
    pub measured: Option<&'a Row>,
    /// Half the width of the 95% confidence interval of what was measured.
    pub interval95_ms: Option<f64>,
}

/// The lines of one network and page, in the order in which their protocols come.
pub fn lines(group: &[Outcome]) -> Vec<Line<'_>> {
    let mut lines: Vec<Line<'_>> = Vec::new();
    for Outcome { scenario: _, row, interval95_ms } in group {
        let place = lines.iter().position(|line| line.is_of(row)).unwrap_or_else(|| {
            lines.push(Line::default());
            lines.len() - 1
        });
        let line = &mut lines[place];
        line.interval95_ms = line.interval95_ms.or(*interval95_ms);
        match row.engine.as_str() {
            "simulate" => line.simulated = Some(row),
            "measure" => line.measured = Some(row),
            // A row's engine is text, because rows are read back from JSON, too; the model is the one left.
            _ => line.predicted = Some(row),
        }
    }
    lines
}

impl<'a> Line<'a> {
    /// The rows there are.
    pub fn rows(&self) -> impl Iterator<Item = &'a Row> + use<'a> {
        let Self { predicted, simulated, measured, interval95_ms: _ } = *self;
        [predicted, simulated, measured].into_iter().flatten()
    }

    fn is_of(&self, row: &Row) -> bool {
        self.rows().any(|known| known.protocol == row.protocol && known.stack == row.stack)
    }

    /// The row nearest to what really happens: measured, else simulated, else predicted.
    pub fn best(&self) -> Option<&'a Row> {
        let Self { predicted, simulated, measured, interval95_ms: _ } = *self;
        let known = |row: &&Row| row.elapsed_ms.is_some();
        measured.filter(known).or(simulated.filter(known)).or(predicted.filter(known))
    }

    /// What a row says, over what the model says.
    pub fn over_predicted(&self, row: Option<&Row>) -> Option<f64> {
        let predicted = self.predicted?.elapsed_ms?;
        (predicted > 0.0).then_some(row?.elapsed_ms? / predicted)
    }
}

/// A line for each protocol and stack.
pub fn grid(group: &[Outcome], footnotes: &mut Footnotes) -> Grid {
    let lines = lines(group);
    let columns = vec![
        Column::name(["protocol", ""]),
        Column::text(["stack", ""], 9),
        Column::number(["predicted", "ms"], 1),
        Column::number(["simulated", "ms"], 1),
        Column::number(["measured", "ms"], 1),
        Column::number(["deviation", "ms"], 5),
        Column::number(["95%", "± ms"], 4),
        Column::number(["simulated/", "predicted"], 2),
        Column::number(["measured/", "predicted"], 2),
        Column::number(["over", "minimum"], 3),
        Column::number(["connec-", "tions"], 7),
        Column::number(["packets", "up"], 6),
        Column::number(["packets", "down"], 6),
        Column::number(["runs", ""], 8),
        Column::text(["", ""], 1),
    ];
    let mut stacks: Vec<&str> = lines.iter().flat_map(Line::rows).map(|row| row.stack.as_str()).collect();
    stacks.dedup();
    let rows = lines.iter().map(|line| {
        let elapsed = |row: Option<&Row>| cell(row.and_then(|row| row.elapsed_ms), number::significant);
        let best =
            |of: fn(&Row) -> Option<f64>, print: fn(f64) -> String| cell(line.best().and_then(of), print);
        // What several engines say of it is said once.
        let mut notes: Vec<String> = Vec::new();
        for note in line.rows().flat_map(|row| &row.notes) {
            if !notes.contains(note) {
                notes.push(note.clone());
            }
        }
        let any = line.rows().next();
        let runs = line.rows().map(|row| row.runs).max().unwrap_or_default();
        vec![
            any.map(|row| row.protocol.clone()).unwrap_or_default(),
            any.filter(|_| stacks.len() > 1).map(|row| row.stack.clone()).unwrap_or_default(),
            elapsed(line.predicted),
            elapsed(line.simulated),
            elapsed(line.measured),
            best(|row| row.elapsed_ms_stddev, number::significant),
            cell(line.interval95_ms, number::significant),
            cell(line.over_predicted(line.simulated), number::ratio),
            cell(line.over_predicted(line.measured), number::ratio),
            best(|row| row.overhead, number::ratio),
            best(|row| row.connections, number::count),
            best(|row| row.packets_up, number::count),
            best(|row| row.packets_down, number::count),
            if runs > 1 { runs.to_string() } else { String::new() },
            footnotes.marks(&notes),
        ]
    });
    let rows = rows.collect();
    Grid { columns, rows }
}
