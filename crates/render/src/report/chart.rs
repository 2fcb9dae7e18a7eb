//! Bar chart: the time of each protocol, by each engine, with the time lost to stalls distinguished.
//!
//! Positions along a bar are percentages, so that the chart is as wide as the screen while its text keeps its size. Not
//! a plot of packets in time.

use std::collections::BTreeSet;

use trace::Row;

use super::html::escaped;
use crate::output::comparison::{ComparisonRow, lines};
use crate::output::table::StallCosts;
use crate::output::{Outcome, number};

/// The chart of one network and page; empty if no time is known.
pub fn bars(group: &[Outcome]) -> String {
    let lines = lines(group);
    let longest = lines.iter().flat_map(ComparisonRow::rows).filter_map(upper_end).fold(0.0, f64::max);
    if longest <= 0.0 {
        return String::new();
    }
    let mut drawing = Drawing { longest, y: 0.0, svg: String::new(), shown: BTreeSet::new() };
    // Named only where the names distinguish bars.
    let differ = |value: fn(&Row) -> &str| {
        lines.iter().flat_map(ComparisonRow::rows).map(value).collect::<BTreeSet<_>>().len() > 1
    };
    let (stacks_differ, visits_differ) = (differ(|row| &row.stack), differ(|row| &row.visit));
    for line in &lines {
        let Some(row) = line.rows().find(|row| row.elapsed_ms.is_some()) else { continue };
        let mut name = row.protocol.clone();
        for (_, word) in
            [(stacks_differ, &row.stack), (visits_differ, &row.visit)].iter().filter(|(differs, _)| *differs)
        {
            name += &format!(", {word}");
        }
        drawing.protocol(line, &name);
    }
    if let Some(minimum_ms) = minimum(&lines) {
        drawing.minimum(minimum_ms);
    }
    drawing.finish()
}

/// Pixels from the top of one bar to the top of the next.
const BAR_PITCH: f64 = 24.0;
/// Height of a bar, in pixels.
const BAR: f64 = 18.0;
/// Height of the line that names the protocol.
const NAME: f64 = 24.0;
/// Gap between one protocol and the next.
const GAP: f64 = 8.0;
/// Width of the longest bar, in percent of the chart; the rest is for its value.
const MAX_BAR_PERCENT: f64 = 72.0;

/// A chart being drawn.
struct Drawing {
    /// Milliseconds of the longest bar.
    longest: f64,
    /// Top of the next element.
    y: f64,
    svg: String,
    /// Marks that the legend must explain.
    shown: BTreeSet<Mark>,
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
    /// The class in the style sheet, and the meaning.
    const fn legend(self) -> (&'static str, &'static str) {
        match self {
            Self::Predicted => ("predicted", "predicted"),
            Self::Simulated => ("simulated", "simulated"),
            Self::Measured => ("measured", "measured"),
            Self::Setup => ("setup", "lost to connection set-up"),
            Self::SlowStart => ("slow-start", "lost to slow start"),
            Self::Otherwise => ("otherwise", "lost to other stalls"),
            Self::Deviation => ("deviation", "one standard deviation"),
            Self::Minimum => ("minimum", "what no protocol can beat"),
        }
    }
}

impl Drawing {
    fn protocol(&mut self, line: &ComparisonRow<'_>, name: &str) {
        let name = escaped(name);
        self.y += NAME;
        self.svg += &format!("<text class=\"name\" x=\"0\" y=\"{:.1}\">{name}</text>\n", self.y - 7.0);
        let ComparisonRow { predicted, simulated, measured } = *line;
        for (outcome, engine) in
            [(predicted, Mark::Predicted), (simulated, Mark::Simulated), (measured, Mark::Measured)]
        {
            if let Some(Outcome { row, .. }) = outcome
                && let Some(elapsed_ms) = row.elapsed_ms
            {
                self.bar(row, engine, elapsed_ms);
            }
        }
        self.y += GAP;
    }

    fn bar(&mut self, row: &Row, engine: Mark, elapsed_ms: f64) {
        self.rect(engine, 0.0, elapsed_ms);
        self.lost(row, elapsed_ms);
        let end_ms = match row.elapsed_ms_stddev {
            Some(deviation_ms) => self.deviation(elapsed_ms, deviation_ms),
            None => elapsed_ms,
        };
        let (value, (_, engine)) = (number::significant(elapsed_ms), engine.legend());
        self.svg += &format!(
            "<text x=\"{:.3}%\" y=\"{:.1}\" dx=\"8\">{value} ms <tspan class=\"engine\">{engine}</tspan></text>\n",
            self.place(end_ms),
            self.y + BAR / 2.0 + 4.5,
        );
        self.y += BAR_PITCH;
    }

    /// The end of the bar, divided by the causes of lost time.
    fn lost(&mut self, row: &Row, elapsed_ms: f64) {
        let StallCosts { setup_ms, slow_start_ms, otherwise_ms } = StallCosts::of(row);
        let mut end_ms = elapsed_ms;
        for (mark, lost_ms) in
            [(Mark::Otherwise, otherwise_ms), (Mark::SlowStart, slow_start_ms), (Mark::Setup, setup_ms)]
        {
            if let Some(lost_ms) = lost_ms {
                end_ms -= lost_ms;
                self.rect(mark, end_ms.max(0.0), lost_ms);
            }
        }
    }

    fn rect(&mut self, mark: Mark, begin_ms: f64, length_ms: f64) {
        let (class, _) = mark.legend();
        let (x, width, y) = (self.place(begin_ms), self.place(length_ms), self.y);
        self.svg += &format!(
            "<rect class=\"{class}\" x=\"{x:.3}%\" y=\"{y:.1}\" width=\"{width:.3}%\" height=\"{BAR}\"/>\n"
        );
        self.shown.insert(mark);
    }

    /// An error bar; returns its far end.
    fn deviation(&mut self, elapsed_ms: f64, deviation_ms: f64) -> f64 {
        let (low_ms, high_ms) = ((elapsed_ms - deviation_ms).max(0.0), elapsed_ms + deviation_ms);
        let (low, high, y) = (self.place(low_ms), self.place(high_ms), self.y + BAR / 2.0);
        self.svg += &format!(
            "<line class=\"deviation\" x1=\"{low:.3}%\" x2=\"{high:.3}%\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\n"
        );
        self.shown.insert(Mark::Deviation);
        high_ms
    }

    /// A line down the chart, behind all else, at the minimum time.
    fn minimum(&mut self, minimum_ms: f64) {
        let (x, bottom) = (self.place(minimum_ms), self.y);
        let line = format!(
            "<line class=\"minimum\" x1=\"{x:.3}%\" x2=\"{x:.3}%\" y1=\"{NAME}\" y2=\"{bottom:.1}\"/>\n"
        );
        self.svg.insert_str(0, &line);
        self.shown.insert(Mark::Minimum);
    }

    fn place(&self, millis: f64) -> f64 {
        millis / self.longest * MAX_BAR_PERCENT
    }

    fn finish(self) -> String {
        let Self { longest: _, y, svg, shown } = self;
        let legend: String = shown
            .into_iter()
            .map(Mark::legend)
            .map(|(class, meaning)| format!("<li class=\"{class}\">{meaning}</li>"))
            .collect();
        format!(
            "<svg width=\"100%\" height=\"{y:.0}\" role=\"img\" aria-label=\"Time by protocol\">\n{svg}</svg>\n\
             <ul class=\"legend\">{legend}</ul>\n"
        )
    }
}

/// The far end of a bar and its error bar.
fn upper_end(row: &Row) -> Option<f64> {
    Some(row.elapsed_ms? + row.elapsed_ms_stddev.unwrap_or_default())
}

/// The time of the protocol `minimum`, which every row with an overhead knows; the lowest where some compress bodies.
fn minimum(lines: &[ComparisonRow<'_>]) -> Option<f64> {
    lines
        .iter()
        .flat_map(ComparisonRow::rows)
        .filter_map(|row| Some(row.elapsed_ms? / row.overhead.filter(|overhead| *overhead > 0.0)?))
        .min_by(f64::total_cmp)
}
