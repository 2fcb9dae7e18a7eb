//! Engines side by side: the time of each protocol by each engine, and the ratios between them.
//!
//! Reasons for a ratio are in the engines' notes; the conclusions in words are in [`super::conclusion`]. Every column names
//! the engine whose figures it has.

use trace::Row;

use super::grid::{Column, Grid};
use super::table::{Footnotes, cell};
use super::{Outcome, number};

/// One protocol and stack by every engine that ran.
#[derive(Clone, Copy, Debug, Default)]
pub struct ComparisonRow<'a> {
    /// By the formulas.
    pub predicted: Option<&'a Outcome>,
    /// By packets in virtual time.
    pub simulated: Option<&'a Outcome>,
    /// By the kernel.
    pub measured: Option<&'a Outcome>,
}

/// The lines of one network and page, in the order of their protocols.
pub fn lines(group: &[Outcome]) -> Vec<ComparisonRow<'_>> {
    let mut lines: Vec<ComparisonRow<'_>> = Vec::new();
    for outcome in group {
        let index = lines.iter().position(|line| line.is_for(&outcome.row)).unwrap_or_else(|| {
            lines.push(ComparisonRow::default());
            lines.len() - 1
        });
        let line = &mut lines[index];
        match outcome.row.engine.as_str() {
            "simulate" => line.simulated = Some(outcome),
            "measure" => line.measured = Some(outcome),
            // A row's engine is text, because rows are read back from JSON, too; the remaining engine is the model.
            _ => line.predicted = Some(outcome),
        }
    }
    lines
}

impl<'a> ComparisonRow<'a> {
    /// The results that exist.
    pub fn outcomes(&self) -> impl Iterator<Item = &'a Outcome> + use<'a> {
        let Self { predicted, simulated, measured } = *self;
        [predicted, simulated, measured].into_iter().flatten()
    }

    /// Their rows.
    pub fn rows(&self) -> impl Iterator<Item = &'a Row> + use<'a> {
        self.outcomes().map(|outcome| &outcome.row)
    }

    fn is_for(&self, row: &Row) -> bool {
        self.rows().any(|existing| existing.protocol == row.protocol && existing.stack == row.stack)
    }

    /// The row nearest to a real network: measured, else simulated, else predicted.
    pub fn best(&self) -> Option<&'a Row> {
        let Self { predicted, simulated, measured } = *self;
        let existing = [measured, simulated, predicted].into_iter().flatten().map(|outcome| &outcome.row);
        existing.into_iter().find(|row| row.elapsed_ms.is_some())
    }
}

/// One engine's time divided by another's, where both are known.
pub fn ratio(time: Option<&Outcome>, divisor: Option<&Outcome>) -> Option<f64> {
    let divisor = divisor?.row.elapsed_ms?;
    (divisor > 0.0).then_some(time?.row.elapsed_ms? / divisor)
}

/// The engine whose other figures a table shows: one for all its lines, so that a column never mixes two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Detail {
    Predicted,
    Simulated,
    Measured,
}

impl Detail {
    /// The engine nearest to a real network that has any time here.
    fn of(lines: &[ComparisonRow<'_>]) -> Self {
        let is_known = |detail: &Self| {
            lines.iter().filter_map(|line| detail.row(line)).any(|row| row.elapsed_ms.is_some())
        };
        [Self::Measured, Self::Simulated].into_iter().find(is_known).unwrap_or(Self::Predicted)
    }

    fn row<'a>(self, line: &ComparisonRow<'a>) -> Option<&'a Row> {
        let ComparisonRow { predicted, simulated, measured } = *line;
        let outcome = match self {
            Self::Predicted => predicted,
            Self::Simulated => simulated,
            Self::Measured => measured,
        };
        outcome.map(|outcome| &outcome.row)
    }

    /// Headings of the ratio to the minimum, connections and packets in both directions.
    const fn headings(self) -> [[&'static str; 2]; 3] {
        match self {
            Self::Predicted => {
                [["predicted/", "minimum"], ["predicted", "connections"], ["predicted", "packets"]]
            }
            Self::Simulated => {
                [["simulated/", "minimum"], ["simulated", "connections"], ["simulated", "packets"]]
            }
            Self::Measured => {
                [["measured/", "minimum"], ["measured", "connections"], ["measured", "packets"]]
            }
        }
    }
}

/// A line for each protocol and stack.
pub fn grid(group: &[Outcome], footnotes: &mut Footnotes) -> Grid {
    let lines = lines(group);
    let detail = Detail::of(&lines);
    let [minimum, connections, packets] = detail.headings();
    let columns = vec![
        Column::name(["protocol", ""]),
        Column::text(["stack", ""], 1),
        Column::number(["predicted", "ms"], 1),
        Column::number(["simulated", "ms"], 1),
        Column::number(["simulated", "95% ± ms"], 5),
        Column::number(["measured", "ms"], 1),
        Column::number(["measured", "95% ± ms"], 4),
        Column::number(["simulated/", "measured"], 2),
        Column::number(["simulated/", "predicted"], 6),
        Column::number(["measured/", "predicted"], 6),
        Column::number(minimum, 3),
        Column::number(connections, 7),
        Column::number(packets, 8),
        Column::number(["runs", ""], 9),
        Column::text(["", ""], 1),
    ];
    let mut stacks: Vec<&str> =
        lines.iter().flat_map(ComparisonRow::rows).map(|row| row.stack.as_str()).collect();
    stacks.dedup();
    let rows = lines.iter().map(|line| {
        let ComparisonRow { predicted, simulated, measured } = *line;
        let elapsed = |outcome: Option<&Outcome>| outcome.map(Outcome::elapsed).unwrap_or_default();
        let interval = |outcome: Option<&Outcome>| {
            cell(outcome.and_then(|outcome| outcome.interval95_ms), number::significant)
        };
        let detail = |of: fn(&Row) -> Option<f64>, print: fn(f64) -> String| {
            cell(detail.row(line).and_then(of), print)
        };
        // A note of several engines is listed once.
        let mut notes: Vec<String> = Vec::new();
        for note in line.outcomes().flat_map(Outcome::own_notes) {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        let first_row = line.rows().next();
        let runs = line.rows().map(|row| row.runs).max().unwrap_or_default();
        vec![
            first_row.map(|row| row.protocol.clone()).unwrap_or_default(),
            first_row.filter(|_| stacks.len() > 1).map(|row| row.stack.clone()).unwrap_or_default(),
            elapsed(predicted),
            elapsed(simulated),
            interval(simulated),
            elapsed(measured),
            interval(measured),
            cell(ratio(simulated, measured), number::ratio),
            cell(ratio(simulated, predicted), number::ratio),
            cell(ratio(measured, predicted), number::ratio),
            detail(|row| row.overhead, number::ratio),
            detail(|row| row.connections, number::count),
            detail(|row| Some(row.packets_up? + row.packets_down?), number::count),
            if runs > 1 { runs.to_string() } else { String::new() },
            footnotes.marks(&notes),
        ]
    });
    let rows = rows.collect();
    Grid { columns, rows }
}

#[cfg(test)]
mod tests {
    use scenario::spec::{Defaults, Key};
    use scenario::{Engine, Spec};

    use super::super::Missing;
    use super::*;
    use crate::test_outcomes;

    /// A result of one protocol by an engine, with its deviation and interval.
    fn outcome(engine: Engine, elapsed_ms: f64, interval95_ms: Option<f64>) -> Outcome {
        let mut spec = Spec::default();
        spec.set(Key::Protocol, "http11").unwrap();
        spec.set(Key::Network, "modem").unwrap();
        let predicted = test_outcomes::outcomes(&spec.plan(&Defaults::compare()).unwrap()).remove(0);
        let row = Row {
            engine: engine.name().to_owned(),
            elapsed_ms: Some(elapsed_ms),
            notes: Vec::new(),
            ..predicted.row
        };
        Outcome::new(&predicted.scenario, row, interval95_ms)
    }

    fn cells(group: &[Outcome]) -> Vec<(String, String)> {
        let grid = grid(group, &mut Footnotes::default());
        let titles = grid.columns.iter().map(Column::title);
        titles.zip(grid.rows[0].clone()).filter(|(_, cell)| !cell.is_empty()).collect()
    }

    #[test]
    fn every_interval_is_in_the_column_of_its_engine() {
        let simulated = outcome(Engine::Simulate, 1_170.0, Some(81.6));
        let measured = outcome(Engine::Measure, 1_150.0, Some(2.31));
        let cells = cells(&[simulated, measured]);
        let of =
            |title: &str| cells.iter().find(|(existing, _)| existing == title).map(|(_, cell)| cell.as_str());
        assert_eq!(of("simulated 95% ± ms"), Some("81.6"));
        assert_eq!(of("measured 95% ± ms"), Some("2.31"));
        assert_eq!(of("simulated/measured"), Some("1.02"));
        assert!(of("measured/minimum").is_some());
    }

    #[test]
    fn a_refusal_is_shown_in_the_cell_and_its_reason_in_the_notes() {
        let simulated = outcome(Engine::Simulate, 1_170.0, None);
        let reason = "no kernel has this Nagle; use --stack linux".to_owned();
        let refused =
            Outcome::missing(&simulated.scenario, Engine::Measure, Missing::Refused, reason.clone());
        let mut footnotes = Footnotes::default();
        let grid = grid(&[simulated, refused], &mut footnotes);
        let index = grid.columns.iter().position(|column| column.title() == "measured ms").unwrap();
        assert_eq!(grid.rows[0][index], "refused");
        assert_eq!(footnotes.iter().next(), Some((1, reason.as_str())));
        assert!(grid.columns.iter().any(|column| column.title() == "simulated/minimum"));
    }
}
