//! Engines side by side: the time of each protocol by each engine, and the ratios between them.
//!
//! Reasons for a ratio are in the engines' notes; the conclusions in words are in [`crate::conclusion`]. Every column names
//! the engine whose figures it has.

use render::output::grid::{Column, Grid};
use render::output::number;
use scenario::{Engine, Scenario};

use crate::Outcome;
use crate::grid::{Footnotes, cell, differs, longest_wait, setting_columns};
use crate::setting;

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
        let index = lines.iter().position(|line| line.is_for(outcome)).unwrap_or_else(|| {
            lines.push(ComparisonRow::default());
            lines.len() - 1
        });
        let line = &mut lines[index];
        match outcome.engine {
            Engine::Model => line.predicted = Some(outcome),
            Engine::Simulate => line.simulated = Some(outcome),
            Engine::Measure => line.measured = Some(outcome),
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

    /// Notes of the engines; one of several is listed once.
    fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = Vec::new();
        for note in self.outcomes().flat_map(Outcome::own_notes) {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        notes
    }

    fn is_for(&self, outcome: &Outcome) -> bool {
        // One network and page: the rest of the scenario.
        let is_same = |existing: &Outcome| {
            let (a, b) = (&existing.scenario, &outcome.scenario);
            let of = |scenario: &Scenario| (scenario.protocol, scenario.tls, scenario.runs, scenario.seed);
            of(a) == of(b)
                && (a.client, a.server) == (b.client, b.server)
                && a.programs == b.programs
                && a.stack == b.stack
        };
        self.outcomes().any(is_same)
    }

    /// The outcome nearest to a real network: measured, else simulated, else predicted.
    pub fn best(&self) -> Option<&'a Outcome> {
        let Self { predicted, simulated, measured } = *self;
        let existing = [measured, simulated, predicted].into_iter().flatten();
        existing.into_iter().find(|outcome| outcome.metrics.elapsed_ms.is_some())
    }
}

/// One engine's time divided by another's, where both are known.
pub fn ratio(time: Option<&Outcome>, divisor: Option<&Outcome>) -> Option<f64> {
    let divisor = divisor?.metrics.elapsed_ms?;
    (divisor > 0.0).then_some(time?.metrics.elapsed_ms? / divisor)
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
            let outcomes = lines.iter().filter_map(|line| detail.outcome(line));
            outcomes.into_iter().any(|outcome| outcome.metrics.elapsed_ms.is_some())
        };
        [Self::Measured, Self::Simulated].into_iter().find(is_known).unwrap_or(Self::Predicted)
    }

    fn outcome<'a>(self, line: &ComparisonRow<'a>) -> Option<&'a Outcome> {
        let ComparisonRow { predicted, simulated, measured } = *line;
        match self {
            Self::Predicted => predicted,
            Self::Simulated => simulated,
            Self::Measured => measured,
        }
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
    let varied = setting::varied(group);
    let mut columns = vec![
        Column::name(["protocol", ""]),
        Column::text(["tls", ""], 1),
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
        Column::text(["critical", "path"], 4),
        Column::number(connections, 7),
        Column::number(packets, 8),
        Column::number(["runs", ""], 9),
        Column::text(["", ""], 1),
    ];
    columns.splice(1..1, setting_columns(&varied));
    let tls = differs(group, |outcome| outcome.scenario.tls.name());
    let stacks = differs(group, |outcome| outcome.scenario.stack.name);
    let rows = lines.iter().map(|line| {
        let ComparisonRow { predicted, simulated, measured } = *line;
        let elapsed = |outcome: Option<&Outcome>| outcome.map(Outcome::elapsed).unwrap_or_default();
        let interval = |outcome: Option<&Outcome>| {
            cell(outcome.and_then(|outcome| outcome.interval95_ms), number::significant)
        };
        let detail = |of: fn(&Outcome) -> Option<f64>, print: fn(f64) -> String| {
            cell(detail.outcome(line).and_then(of), print)
        };
        let first = line.outcomes().next().map(|outcome| &outcome.scenario);
        let runs = line.outcomes().map(|outcome| outcome.metrics.runs).max().unwrap_or_default();
        let mut row = vec![
            first.map(|scenario| scenario.protocol.name().to_owned()).unwrap_or_default(),
            first.filter(|_| tls).map(|first| first.tls.name().to_owned()).unwrap_or_default(),
            first.filter(|_| stacks).map(|first| first.stack.name.to_owned()).unwrap_or_default(),
            elapsed(predicted),
            elapsed(simulated),
            interval(simulated),
            elapsed(measured),
            interval(measured),
            cell(ratio(simulated, measured), number::ratio),
            cell(ratio(simulated, predicted), number::ratio),
            cell(ratio(measured, predicted), number::ratio),
            detail(|outcome| outcome.overhead, number::ratio),
            longest_wait(simulated),
            detail(|outcome| outcome.metrics.connections, number::count),
            detail(
                |outcome| Some(outcome.metrics.packets_up? + outcome.metrics.packets_down?),
                number::count,
            ),
            if runs > 1 { runs.to_string() } else { String::new() },
            footnotes.marks(&line.notes()),
        ];
        let texts = first.into_iter().flat_map(|first| varied.iter().map(|setting| setting.text(first)));
        row.splice(1..1, texts);
        row
    });
    Grid { columns, rows: rows.collect() }
}

#[cfg(test)]
mod tests {
    use scenario::Spec;
    use scenario::spec::{Defaults, Key};
    use trace::Metrics;

    use super::*;
    use crate::{Missing, test_outcomes};

    /// A result of one protocol by an engine, with its deviation and interval.
    fn outcome(engine: Engine, elapsed_ms: f64, interval95_ms: Option<f64>) -> Outcome {
        let mut spec = Spec::default();
        spec.set(Key::Protocol, "http11").unwrap();
        spec.set(Key::Network, "modem").unwrap();
        let predicted = test_outcomes::outcomes(&spec.plan(&Defaults::compare()).unwrap()).remove(0);
        Outcome {
            engine,
            metrics: Metrics { elapsed_ms: Some(elapsed_ms), ..predicted.metrics },
            remarks: Vec::new(),
            interval95_ms,
            ..predicted
        }
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
    fn rows_with_and_without_tls_say_so_and_a_security_that_all_share_is_in_the_heading() {
        let mut spec = Spec::default();
        spec.set(Key::Protocol, "http11").unwrap();
        spec.add(Key::Protocol, "http2").unwrap();
        spec.set(Key::Network, "4g").unwrap();
        let outcomes = test_outcomes::outcomes(&spec.plan(&Defaults::compare()).unwrap());
        let grid = grid(&outcomes, &mut Footnotes::default());
        let index = grid.columns.iter().position(|column| column.title() == "tls").unwrap();
        let rows: Vec<(&str, &str)> =
            grid.rows.iter().map(|row| (row[0].as_str(), row[index].as_str())).collect();
        assert_eq!(rows, [("http11", "none"), ("http2", "1.3")]);
        let about = |outcomes: &[Outcome]| {
            crate::description::about(outcomes.iter().map(|outcome| &outcome.scenario)).join(", ")
        };
        let secure: Vec<Outcome> =
            outcomes.iter().filter(|outcome| outcome.scenario.tls != scenario::Tls::None).cloned().collect();
        assert!(
            about(&secure).contains("TLS 1.3") && !about(&outcomes).contains("TLS"),
            "{}",
            about(&secure)
        );
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
