//! Figures 6 to 9 of `papers/dhttp#section-vi-a` for the available logs: connections over time-outs.
//!
//! The paper's own curves have no numbers in print, and are not drawn.

use accesslog::connections::{Counts, LimitCounts, Stream, TimeoutCounts};
use render::plot::curves::{Curve, Curves, Panel};
use render::plot::palette;
use render::plot::svg::{Point, Stroke};

use super::logs::{Log, THRESHOLDS};
use crate::laboratory::CountedLogs;

/// A quantity of a stream at a time-out.
type Value = fn(&Stream, &TimeoutCounts) -> f64;

/// Connections with three per client.
pub fn figure_6(counted: &CountedLogs) -> Option<String> {
    draw(
        counted,
        "Connections at a server with three per client",
        3,
        &[("most at once", peak), ("opened", opened)],
        "After Rabinovich, Wang 2004, Fig. 6.",
    )
}

/// Bytes of each connection, with three per client.
pub fn figure_7(counted: &CountedLogs) -> Option<String> {
    draw(
        counted,
        "What a connection carries, with three per client",
        3,
        &[("kB a connection", carried)],
        "After Rabinovich, Wang 2004, Fig. 7.",
    )
}

/// Connections with one per client.
pub fn figure_8(counted: &CountedLogs) -> Option<String> {
    draw(
        counted,
        "Connections at a server with one per client",
        1,
        &[("most at once", peak), ("opened", opened)],
        "After Rabinovich, Wang 2004, Fig. 8.",
    )
}

/// Bytes of each connection, with one per client.
pub fn figure_9(counted: &CountedLogs) -> Option<String> {
    draw(
        counted,
        "What a connection carries, with one per client",
        1,
        &[("kB a connection", carried)],
        "After Rabinovich, Wang 2004, Fig. 9.",
    )
}

fn peak(_: &Stream, opened: &TimeoutCounts) -> f64 {
    opened.peak.connections as f64
}

fn opened(_: &Stream, opened: &TimeoutCounts) -> f64 {
    opened.total as f64
}

fn carried(stream: &Stream, opened: &TimeoutCounts) -> f64 {
    stream.bytes.as_f64() / opened.total.max(1) as f64 / 1e3
}

/// A row of panels for each quantity, a column for each log.
fn draw(
    counted: &CountedLogs,
    title: &str,
    limit: usize,
    quantities: &[(&str, Value)],
    source: &str,
) -> Option<String> {
    let mut rows = Vec::new();
    for (quantity, value) in quantities {
        let mut row = Vec::new();
        for (log, counted) in Log::ALL.into_iter().filter_map(|log| Some((log, counted.of(log)?))) {
            let mut curves = curves(&counted.least_recently_used, limit, *value, "");
            // With one connection per client both readings of "oldest" are the same.
            if limit > 1 {
                curves.extend(self::curves(&counted.first_created, limit, *value, DASHES));
            }
            row.push(Panel { title: format!("{}: {quantity}", called(log)), curves });
        }
        rows.push(row);
    }
    if rows.iter().all(Vec::is_empty) {
        return None;
    }
    let mut key = THRESHOLDS.map(|threshold| drawn(threshold, "")).to_vec();
    if limit > 1 {
        let dashed = Stroke { colour: palette::GREY, width: WIDTH, dashes: DASHES };
        key.push((
            "\"the oldest\" read as the first created; rings where three time-outs were counted",
            dashed,
        ));
    }
    let picture = Curves {
        title,
        subtitle: [
            "Answers below 1460 or 4096 bytes, heads included, go by UDP with DHTTP; HTTP sends all by TCP.",
            "A synthetic day of 300 thousand requests; where there are logs, NASA's of 1995-08-01, and 3 million in WorldCup98's 88 days.",
        ],
        key,
        bottom: "time-out (s)",
        ticks: vec![0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0],
        rows,
        source,
    };
    Some(picture.draw())
}

fn called(log: Log) -> &'static str {
    match log {
        Log::BuiltIn => "a synthetic day",
        Log::Nasa => "NASA's day",
        Log::MadeUp => "made up",
    }
}

/// One curve for each threshold.
fn curves<'a>(counts: &Counts, limit: usize, value: Value, dashes: &'a str) -> Vec<Curve<'a>> {
    let curve = |stream: &Stream| {
        let line: &LimitCounts = stream.lines.iter().find(|line| line.limit == limit)?;
        let point = |opened: &TimeoutCounts| (opened.timeout.as_secs_f64(), value(stream, opened));
        let (name, stroke) = drawn(stream.threshold.get(), dashes);
        let points: Vec<Point> = line.opened.iter().map(point).collect();
        Some(Curve { name, stroke, is_joined: points.len() >= MANY, points })
    };
    counts.streams.iter().filter_map(curve).collect()
}

/// Minimum number of time-outs for curves whose points are joined.
const MANY: usize = 10;

/// Name and line style of a threshold.
fn drawn(threshold: u64, dashes: &str) -> (&'static str, Stroke<'_>) {
    let (name, colour) = match threshold {
        0 => ("HTTP", palette::INK),
        1_460 => ("DHTTP, 1460 bytes", palette::BLUE),
        _ => ("DHTTP, 4096 bytes", palette::ACCENT),
    };
    (name, Stroke { colour, width: WIDTH, dashes })
}

/// Width of a curve, in pixels.
const WIDTH: f64 = 1.8;
const DASHES: &str = "5 4";
