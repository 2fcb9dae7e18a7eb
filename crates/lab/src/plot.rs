//! Outcomes as one picture: a heat map of the times over two settings that vary, else a bar for each outcome.

use render::plot::bars::{self, Bar};
use render::plot::heat_map::{self, HeatMap};
use render::plot::palette;
use render::plot::scale::Scale;
use scenario::Engine;
use scenario::spec::Key;

use crate::setting::{Kind, Setting, Value, described, varied};
use crate::{Outcome, description, grid, report};

/// Maximum number of bars.
const MAX_BARS: usize = 60;
/// Maximum number of rows or columns of a heat map.
const MAX_CELLS: usize = 30;
/// Maximum number of panels of a heat map.
const MAX_PANELS: usize = 12;

/// The picture as SVG.
///
/// # Errors
/// The reason why there is none: no time is known, or the outcomes are too many.
pub fn picture(outcomes: &[Outcome], settings: &[Setting]) -> Result<String, String> {
    let known: Vec<&Outcome> =
        outcomes.iter().filter(|outcome| outcome.metrics.elapsed_ms.is_some()).collect();
    if known.is_empty() {
        return Err(
            crate::outcome::nothing(outcomes).unwrap_or_else(|| "there are no rows to plot".to_owned())
        );
    }
    let numbers: Vec<(&Setting, Vec<f64>)> =
        settings.iter().filter_map(|setting| axis(setting, &known)).collect();
    match numbers.as_slice() {
        [rows, columns, ..] => heat_map(&known, rows, columns),
        _ => bar_chart(outcomes, &known),
    }
}

/// The values of a setting as the axis of a heat map, ascending; `None` if it does not vary, or is a seed.
fn axis<'a>(setting: &'a Setting, outcomes: &[&Outcome]) -> Option<(&'a Setting, Vec<f64>)> {
    if setting.kind() == Kind::Text || setting.is_of(Key::Seed) || setting.name == "rate_up_mbps" {
        return None;
    }
    let mut values: Vec<f64> = outcomes.iter().filter_map(|outcome| number(setting, outcome)).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    (values.len() > 1).then_some((setting, values))
}

fn number(setting: &Setting, outcome: &Outcome) -> Option<f64> {
    match setting.value(&outcome.scenario) {
        Value::Number(number) => Some(number),
        Value::Whole(number) => Some(number as f64),
        Value::Text(_) | Value::Missing => None,
    }
}

type NumberAxis<'a> = (&'a Setting, Vec<f64>);

/// A panel for each engine and protocol; a cell is the mean of its outcomes.
fn heat_map(
    outcomes: &[&Outcome],
    rows: &NumberAxis<'_>,
    columns: &NumberAxis<'_>,
) -> Result<String, String> {
    let mut titles: Vec<String> = Vec::new();
    for outcome in outcomes {
        let title = series(outcome);
        if !titles.contains(&title) {
            titles.push(title);
        }
    }
    if titles.len() > MAX_PANELS || rows.1.len().max(columns.1.len()) > MAX_CELLS {
        return Err(format!(
            "{} panels of {} x {} cells are too many for a picture; at most {MAX_PANELS} of {MAX_CELLS} x {MAX_CELLS}",
            titles.len(),
            rows.1.len(),
            columns.1.len()
        ));
    }
    let cell = |title: &str, row: f64, column: f64| {
        let times = outcomes.iter().filter(|outcome| {
            series(outcome) == title
                && number(rows.0, outcome) == Some(row)
                && number(columns.0, outcome) == Some(column)
        });
        let times: Vec<f64> = times.filter_map(|outcome| outcome.metrics.elapsed_ms).collect();
        times.iter().sum::<f64>() / times.len() as f64
    };
    let panels = titles.iter().map(|title| heat_map::Panel {
        title,
        values: rows
            .1
            .iter()
            .map(|row| columns.1.iter().map(|column| cell(title, *row, *column)).collect())
            .collect(),
        decimals: 0,
    });
    let names =
        |axis: &NumberAxis<'_>| axis.1.iter().map(|value| Value::Number(*value).to_string()).collect();
    let title = report::title_of(outcomes.iter().map(|outcome| &outcome.scenario));
    let source = source();
    Ok(HeatMap {
        title: &title,
        subtitle: ["milliseconds; the mean where a cell has several rows", ""],
        rows: (&rows.0.name, names(rows)),
        columns: (&columns.0.name, names(columns)),
        panels: panels.collect(),
        source: &source,
    }
    .draw())
}

/// Engine and protocol, with what else distinguishes a series.
fn series(outcome: &Outcome) -> String {
    let scenario = &outcome.scenario;
    let tls = match scenario.tls {
        scenario::Tls::None => String::new(),
        tls => format!(", TLS {}", tls.name()),
    };
    format!("{}{tls}, {}, {}", scenario.protocol.name(), scenario.stack.name, outcome.engine.name())
}

fn bar_chart(outcomes: &[Outcome], known: &[&Outcome]) -> Result<String, String> {
    if known.len() > MAX_BARS {
        return Err(format!("{} bars are too many for a picture; at most {MAX_BARS}", known.len()));
    }
    let longest = known.iter().filter_map(|outcome| outcome.metrics.elapsed_ms).fold(0.0, f64::max);
    let groups: Vec<&[Outcome]> = grid::groups(outcomes).collect();
    let panels: Vec<(String, Vec<bars::Group<'_>>)> =
        groups.iter().map(|group| (description::title(&group[0].scenario), bar_groups(group))).collect();
    let panels = panels.iter().map(|(title, groups)| bars::Panel {
        title,
        unit: " ms",
        scale: Scale::linear(0.0, longest),
        ticks: Vec::new(),
        groups: groups
            .iter()
            .map(|group| bars::Group { name: group.name.clone(), bars: group.bars.clone() })
            .collect(),
        reference: None,
    });
    let title = report::title_of(known.iter().map(|outcome| &outcome.scenario));
    let panels: Vec<bars::Panel<'_>> = panels.collect();
    Ok(bars::picture(&panels, &title, ["milliseconds", ""], &source()))
}

fn bar_groups(group: &[Outcome]) -> Vec<bars::Group<'static>> {
    let varied = varied(group);
    let bar = |outcome: &Outcome| {
        let (colour, name) = match outcome.engine {
            Engine::Model => (palette::BLUE, "predicted"),
            Engine::Simulate => (palette::GREEN, "simulated"),
            Engine::Measure => (palette::ORANGE, "measured"),
        };
        let interval = outcome.metrics.elapsed_ms_stddev.unwrap_or_default();
        Some(Bar { name, colour, value: outcome.metrics.elapsed_ms?, interval, parts: Vec::new() })
    };
    let lines = crate::comparison::lines(group).into_iter();
    let groups = lines.filter_map(|line| {
        let scenario = &line.outcomes().next()?.scenario;
        let others = described(&varied, scenario);
        let name = [scenario.protocol.name(), scenario.stack.name, &others];
        let name: Vec<&str> = name.into_iter().filter(|part| !part.is_empty()).collect();
        let bars: Vec<Bar<'static>> = line.outcomes().filter_map(bar).collect();
        (!bars.is_empty()).then(|| bars::Group { name: name.join(", "), bars })
    });
    groups.collect()
}

fn source() -> String {
    format!("roundtrip {}", env!("CARGO_PKG_VERSION"))
}

#[cfg(test)]
mod tests {
    use scenario::{Defaults, Spec};

    use super::*;

    fn drawn(file: &str) -> Result<String, String> {
        let plan = Spec::from_toml(file, "file").unwrap().plan(&Defaults::predict()).unwrap();
        picture(&crate::predict::outcomes(&plan), &crate::setting::settings(&plan.grid))
    }

    #[test]
    fn two_settings_that_vary_make_a_heat_map_and_everything_else_bars() {
        let grid =
            "rtt = ['20ms', '80ms']\nrate = '10Mbit'\nprotocol = ['http11', 'http10']\nseed = [1, 2]\n";
        let map = drawn(&format!("{grid}processing = ['0ms', '5ms']")).unwrap();
        assert!(
            map.contains("processing_ms") && map.contains("rtt_ms") && map.contains("http10, linux, model"),
            "{map}"
        );
        let bars = drawn(grid).unwrap();
        assert!(bars.contains("seed 2") && bars.contains("predicted"), "{bars}");
    }

    #[test]
    fn pictures_of_too_many_or_no_rows_are_refused() {
        let seeds: Vec<String> = (0..61).map(|seed| seed.to_string()).collect();
        let error = drawn(&format!("protocol = 'http11'\nseed = [{}]", seeds.join(","))).unwrap_err();
        assert!(error.contains("61 bars are too many"), "{error}");
        assert!(drawn("protocol = 'http11-pipelined-deflate'").unwrap_err().contains("cannot predict"));
    }
}
