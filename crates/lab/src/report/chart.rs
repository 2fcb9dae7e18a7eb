//! Bar chart of a report: the time of each protocol, by each engine, with the time lost to stalls distinguished.
//!
//! [`render::plot::bars`] draws it.

use std::collections::BTreeSet;

use render::plot::bars::{self, Bar, Group, Panel};
use render::plot::scale::Scale;

use crate::Outcome;
use crate::comparison::{ComparisonRow, lines};
use crate::setting;
use crate::table::StallCosts;

/// The chart of one network and page; empty if no time is known.
pub fn bars(group: &[Outcome]) -> String {
    let lines = lines(group);
    let longest = lines.iter().flat_map(ComparisonRow::outcomes).filter_map(upper_end).fold(0.0, f64::max);
    if longest <= 0.0 {
        return String::new();
    }
    // Named only where the names distinguish bars.
    let differ = |value: fn(&Outcome) -> &str| {
        lines.iter().flat_map(ComparisonRow::outcomes).map(value).collect::<BTreeSet<_>>().len() > 1
    };
    let (stacks_differ, visits_differ) =
        (differ(|outcome| outcome.scenario.stack.name), differ(|outcome| outcome.scenario.visit.name()));
    let varied = setting::varied(group);
    let mut shown = BTreeSet::new();
    let mut groups = Vec::new();
    for line in &lines {
        let known = line.outcomes().find(|outcome| outcome.metrics.elapsed_ms.is_some());
        let Some(scenario) = known.map(|outcome| &outcome.scenario) else { continue };
        let mut name = scenario.protocol.name().to_owned();
        for (_, word) in [(stacks_differ, scenario.stack.name), (visits_differ, scenario.visit.name())]
            .iter()
            .filter(|(differs, _)| *differs)
        {
            name += &format!(", {word}");
        }
        if !varied.is_empty() {
            name += &format!(", {}", setting::described(&varied, scenario));
        }
        groups.push(Group { name, bars: line_bars(line, &mut shown) });
    }
    let reference = minimum(&lines);
    shown.extend(reference.map(|_| Mark::Minimum));
    let scale = Scale::linear(0.0, longest);
    let panel = Panel { title: "", unit: " ms", scale, ticks: Vec::new(), groups, reference };
    bars::element(&[panel], "Time by protocol") + &legend(&shown)
}

/// Mark with an entry in the legend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Mark {
    Predicted,
    Simulated,
    Measured,
    Setup,
    SlowStart,
    Otherwise,
    Deviation,
    Minimum,
}

impl Mark {
    /// The class of its entry in the legend.
    fn class(self) -> &'static str {
        let (style, _) = self.legend();
        style.strip_prefix("var(--").and_then(|rest| rest.strip_suffix(')')).unwrap_or(style)
    }

    /// The colour in the style sheet (or the class there of a mark that is a line), and the meaning.
    const fn legend(self) -> (&'static str, &'static str) {
        match self {
            Self::Predicted => ("var(--predicted)", "predicted"),
            Self::Simulated => ("var(--simulated)", "simulated"),
            Self::Measured => ("var(--measured)", "measured"),
            Self::Setup => ("var(--setup)", "lost to connection set-up"),
            Self::SlowStart => ("var(--slow-start)", "lost to slow start"),
            Self::Otherwise => ("var(--otherwise)", "lost to other stalls"),
            Self::Deviation => ("deviation", "one standard deviation"),
            Self::Minimum => ("minimum", "what no protocol can beat"),
        }
    }
}

/// The bars of a protocol, one for each engine.
fn line_bars(line: &ComparisonRow<'_>, shown: &mut BTreeSet<Mark>) -> Vec<Bar<'static>> {
    let ComparisonRow { predicted, simulated, measured } = *line;
    let engines = [(predicted, Mark::Predicted), (simulated, Mark::Simulated), (measured, Mark::Measured)];
    let bar = |(outcome, engine): (Option<&Outcome>, Mark)| {
        let outcome = outcome?;
        let value = outcome.metrics.elapsed_ms?;
        let deviation = outcome.metrics.elapsed_ms_stddev;
        let StallCosts { setup_ms, slow_start_ms, otherwise_ms } = StallCosts::of(outcome);
        let lost =
            [(Mark::Otherwise, otherwise_ms), (Mark::SlowStart, slow_start_ms), (Mark::Setup, setup_ms)];
        let lost: Vec<(Mark, f64)> =
            lost.into_iter().filter_map(|(mark, lost_ms)| Some((mark, lost_ms?))).collect();
        shown.insert(engine);
        shown.extend(lost.iter().map(|(mark, _)| *mark));
        shown.extend(deviation.map(|_| Mark::Deviation));
        let (colour, name) = engine.legend();
        let parts = lost.into_iter().map(|(mark, lost_ms)| (mark.legend().0, lost_ms)).collect();
        Some(Bar { name, colour, value, interval: deviation.unwrap_or_default(), parts })
    };
    engines.into_iter().filter_map(bar).collect()
}

/// The marks that occur, as a list of HTML.
fn legend(shown: &BTreeSet<Mark>) -> String {
    let item = |mark: &Mark| {
        let (class, meaning) = (mark.class(), mark.legend().1);
        format!("<li class=\"{class}\">{meaning}</li>")
    };
    format!("<ul class=\"legend\">{}</ul>\n", shown.iter().map(item).collect::<String>())
}

/// The far end of a bar and its error bar.
fn upper_end(outcome: &Outcome) -> Option<f64> {
    Some(outcome.metrics.elapsed_ms? + outcome.metrics.elapsed_ms_stddev.unwrap_or_default())
}

/// The time of the protocol `minimum`, which every outcome with an overhead knows; the lowest where some compress bodies.
fn minimum(lines: &[ComparisonRow<'_>]) -> Option<f64> {
    lines
        .iter()
        .flat_map(ComparisonRow::outcomes)
        .filter_map(|outcome| {
            Some(outcome.metrics.elapsed_ms? / outcome.overhead.filter(|overhead| *overhead > 0.0)?)
        })
        .min_by(f64::total_cmp)
}
