//! The result as a page: conclusions, the paper's Figures 6 to 9 for this log, connections over time, tables.
//!
//! Figure 6 shows the maximum of simultaneous connections and the connections opened, with three connections per
//! client; Figure 7 the bytes of each. Figures 8 and 9 show the same with one (`papers/dhttp#figure-6` to
//! `papers/dhttp#figure-9`).

use accesslog::connections::{ConnectionLoads, Counts, Curve, Stream, TimeoutCounts};
use wire::calendar;

use render::provenance::Provenance;
use render::report::lines::{Axis, Chart, Series};
use render::report::{self, html::escaped};

use super::{distribution, labels, sentence, table};

/// The page.
pub fn page(counts: &Counts, loads: Option<&ConnectionLoads>, name: &str, provenance: &Provenance) -> String {
    let limits = labels::limits(counts);
    let time = limits.len().checked_sub(1).map_or_else(String::new, |index| over_time(counts, index));
    let sections: String =
        (0..limits.len()).rev().map(|index| section(counts, loads, index, limits[index])).collect();
    let sentences = sentence::sentences(counts);
    report::page(&format!("Connections of {name}"), &sentences, &(time + &sections), provenance)
}

fn section(counts: &Counts, loads: Option<&ConnectionLoads>, index: usize, limit: usize) -> String {
    // The paper's figures include DHTTP.
    let figures = match if counts.streams.len() > 1 { limit } else { 0 } {
        3 => [
            "Maximum of open connections (Figure 6a)",
            "Connections opened (Figure 6b)",
            "Kilobytes per connection (Figure 7)",
        ],
        1 => [
            "Maximum of open connections (Figure 8a)",
            "Connections opened (Figure 8b)",
            "Kilobytes per connection (Figure 9)",
        ],
        _ => ["Maximum of open connections", "Connections opened", "Kilobytes per connection"],
    };
    let values: [fn(&Stream, &TimeoutCounts) -> Option<f64>; 3] = [
        |_, opened| Some(opened.peak.connections as f64),
        |_, opened| Some(opened.total as f64),
        |stream, opened| (opened.total > 0).then(|| stream.bytes.as_f64() / opened.total as f64 / 1e3),
    ];
    let charts: String =
        figures.iter().zip(values).map(|(title, value)| by_timeout(counts, index, title, value)).collect();
    let spread = loads.map_or_else(String::new, |loads| {
        format!(
            "{}<div class=\"scroll\">\n{}</div>\n",
            spread(counts, loads, index),
            report::table_of(&distribution::grid(counts, loads, index))
        )
    });
    let facts: String =
        table::shares(counts).iter().map(|fact| format!("<li>{}</li>", escaped(fact))).collect();
    format!(
        "<section>\n<h2>{title}</h2>\n<ul class=\"about\">{facts}</ul>\n{charts}<div class=\"scroll\">\n{table}</div>\n{spread}</section>\n",
        title = escaped(&labels::title(counts, index)),
        table = report::table_of(&table::grid(counts, index)),
    )
}

/// A chart over the time-outs.
fn by_timeout(
    counts: &Counts,
    index: usize,
    title: &str,
    value: fn(&Stream, &TimeoutCounts) -> Option<f64>,
) -> String {
    let line = |stream: &Stream| {
        let point = |opened: &TimeoutCounts| Some((opened.timeout.as_secs_f64(), value(stream, opened)?));
        Series {
            name: labels::protocol(stream),
            points: stream.lines[index].opened.iter().filter_map(point).collect(),
        }
    };
    let longest =
        counts.streams[0].lines[index].opened.last().map_or(1.0, |opened| opened.timeout.as_secs_f64());
    let step =
        [0.1, 1.0, 5.0, 10.0, 60.0, 600.0].into_iter().find(|step| longest / step <= 12.0).unwrap_or(3_600.0);
    let ticks = render::plot::scale::multiples(0.0, longest, step);
    let bottom = Axis {
        title: "timeout (s)",
        range: (0.0, longest),
        ticks: ticks.into_iter().map(|tick| (tick, format!("{}", (tick * 10.0).round() / 10.0))).collect(),
    };
    let lines = counts.streams.iter().map(line).collect();
    Chart { title, bottom, side: "", lines, dots: true }.draw()
}

/// Distribution of bytes over connections, under one time-out: bytes on a logarithmic horizontal axis.
fn spread(counts: &Counts, loads: &ConnectionLoads, index: usize) -> String {
    let curve = counts.streams[0].lines[index].curve.timeout;
    let timeouts = &counts.streams[0].lines[index].opened;
    let timeout = timeouts.iter().position(|opened| opened.timeout == curve).unwrap_or(0);
    let line = |(threshold, stream): (usize, &Stream)| {
        let bytes = &loads.of(threshold, index, timeout)?.bytes;
        let all = bytes.connections() as f64;
        let share =
            |(bytes, connections): (u64, u64)| (bytes.max(1) as f64, connections as f64 / all * 100.0);
        Some(Series { name: labels::protocol(stream), points: bytes.up_to().map(share).collect() })
    };
    let mut lines: Vec<Series> = counts.streams.iter().enumerate().filter_map(line).collect();
    let values = || lines.iter().flat_map(|line| &line.points).map(|(bytes, _)| bytes.log10());
    let (from, to) = (values().fold(f64::MAX, f64::min).floor(), values().fold(0.0, f64::max).ceil());
    if from >= to {
        return String::new();
    }
    for (bytes, _) in lines.iter_mut().flat_map(|line| &mut line.points) {
        *bytes = bytes.log10();
    }
    let ticks = render::plot::scale::multiples(from, to, 1.0).into_iter();
    let bottom = Axis {
        title: "bytes, headers included",
        range: (from, to),
        ticks: ticks.map(|decade| (decade, power_of_ten(decade))).collect(),
    };
    let title = format!(
        "With a {} s timeout, % of connections that carry at most this many bytes",
        labels::seconds(curve)
    );
    Chart { title: &title, bottom, side: "", lines, dots: false }.draw()
}

/// `100`, `1 k`, `10 M`.
fn power_of_ten(decade: f64) -> String {
    let (scale, letter) = match decade {
        9.0.. => (9.0, " G"),
        6.0.. => (6.0, " M"),
        3.0.. => (3.0, " k"),
        _ => (0.0, ""),
    };
    format!("{:.0}{letter}", 10_f64.powf(decade - scale))
}

/// Connections over time, under one time-out.
fn over_time(counts: &Counts, index: usize) -> String {
    let curves: Vec<(&Stream, &Curve)> =
        counts.streams.iter().map(|stream| (stream, &stream.lines[index].curve)).collect();
    let ends = curves.iter().flat_map(|(_, curve)| [curve.minutes.first(), curve.minutes.last()]).flatten();
    let minutes: Vec<u64> = ends.map(|(minute, _)| *minute).collect();
    let (Some(first), Some(last)) = (minutes.iter().min(), minutes.iter().max()) else {
        return String::new();
    };
    let stretch = STRETCHES.into_iter().find(|stretch| (last - first) / stretch < POINTS).unwrap_or(1_440);
    let line = |(stream, curve): &(&Stream, &Curve)| Series {
        name: labels::protocol(stream),
        points: thinned(curve, *first, *last, stretch),
    };
    let timeout = curves[0].1.timeout;
    let title = format!(
        "With a {} s timeout, the maximum of each {}",
        labels::seconds(timeout),
        stretch_name(stretch)
    );
    let bottom = Axis { title: "UTC", range: (*first as f64, *last as f64), ticks: ticks(*first, *last) };
    let chart =
        Chart { title: &title, bottom, side: "", lines: curves.iter().map(line).collect(), dots: false }
            .draw();
    format!(
        "<section>\n<h2>Connections over time, {}</h2>\n{chart}</section>\n",
        escaped(&labels::title(counts, index).to_lowercase())
    )
}

/// Maximum number of points: more than a screen can show.
const POINTS: u64 = 600;
/// Round interval lengths, in minutes.
const STRETCHES: [u64; 11] = [1, 2, 5, 10, 15, 30, 60, 120, 180, 240, 720];

fn stretch_name(minutes: u64) -> String {
    match minutes {
        1 => "minute".to_owned(),
        60 => "hour".to_owned(),
        1_440 => "day".to_owned(),
        minutes if minutes.is_multiple_of(60) => format!("{} hours", minutes / 60),
        minutes => format!("{minutes} minutes"),
    }
}

/// The maximum in each interval of `stretch` minutes; zero where there was no request.
fn thinned(curve: &Curve, first: u64, last: u64, stretch: u64) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> =
        (0..=(last - first) / stretch).map(|number| ((first + number * stretch) as f64, 0.0)).collect();
    for (minute, connections) in &curve.minutes {
        let index = usize::try_from((minute - first) / stretch).unwrap_or(usize::MAX);
        if let Some((_, max)) = points.get_mut(index) {
            *max = max.max(*connections as f64);
        }
    }
    points
}

/// Ticks at round times: minutes, hours or days apart.
fn ticks(first: u64, last: u64) -> Vec<(f64, String)> {
    let length = last - first;
    let steps =
        [1, 5, 15, 30, 60, 120, 180, 360, 720, 1_440, 2_880, 7 * 1_440, 14 * 1_440, 30 * 1_440, 90 * 1_440];
    let step = steps.into_iter().find(|step| length / step <= 8).unwrap_or(365 * 1_440);
    let mut at = first.next_multiple_of(step);
    let mut ticks = Vec::new();
    while at <= last {
        let (_, month, day) = calendar::date(at / 1_440);
        let text = match step {
            1_440.. => format!("{month:02}-{day:02}"),
            _ => format!("{:02}:{:02}", at / 60 % 24, at % 60),
        };
        ticks.push((at as f64, text));
        at += step;
    }
    ticks
}
