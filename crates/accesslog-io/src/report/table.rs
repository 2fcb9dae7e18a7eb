//! The result for readers: a table for each limit, a line for each time-out, thresholds side by side.
//!
//! Rounded; programs get [`super::row`].

use accesslog::connections::{ConnectionLoads, Counts, Stream};
use wire::{Bytes, Duration};

use render::output::grid::{Column, Grid, wrap};
use render::output::number;
use render::terminal::Terminal;

use super::distribution;
use super::labels::{limits, protocol, seconds, title, udp_share};
use super::sentence;

/// All tables, then the conclusions.
pub fn render(counts: &Counts, loads: Option<&ConnectionLoads>, terminal: Terminal) -> String {
    let tables = (0..limits(counts).len()).map(|index| {
        format!("{}\n{}", terminal.bold(&title(counts, index)), grid(counts, index).render(terminal))
    });
    let width = terminal.prose_width();
    let sentences = sentence::sentences(counts).iter().map(|sentence| wrap("", sentence, width)).collect();
    let spread = loads.map(|loads| {
        let tables = (0..limits(counts).len()).map(|index| {
            let title = format!("What each carries, {}", title(counts, index).to_lowercase());
            format!(
                "{}\n{}",
                terminal.bold(&title),
                distribution::grid(counts, loads, index).render(terminal)
            )
        });
        tables.collect::<Vec<String>>().join("\n")
    });
    tables.chain(spread).chain([sentences]).collect::<Vec<String>>().join("\n")
}

/// The table of one limit.
pub fn grid(counts: &Counts, index: usize) -> Grid {
    let mut columns = vec![Column::number(["timeout", "s"], 0)];
    let is_one = counts.streams.len() == 1;
    for (what, rank) in [("max open", 0), ("opened", 1), ("kB each", 2)] {
        let lower = |stream| if is_one { String::new() } else { protocol(stream) };
        columns
            .extend(counts.streams.iter().map(|stream| Column::of([what.to_owned(), lower(stream)], rank)));
    }
    let timeouts = counts.streams.first().map_or(0, |stream| stream.lines[index].opened.len());
    let rows = (0..timeouts).map(|timeout| {
        let opened = || counts.streams.iter().map(|stream| (stream, stream.lines[index].opened[timeout]));
        let first = opened().next().map_or(Duration::ZERO, |(_, opened)| opened.timeout);
        let peaks = opened().map(|(_, opened)| number::count(opened.peak.connections as f64));
        let totals = opened().map(|(_, opened)| number::count(opened.total as f64));
        let means = opened().map(|(stream, opened)| match opened.total {
            0 => String::new(),
            total => number::tenths(stream.bytes.as_f64() / total as f64 / 1e3),
        });
        [seconds(first)].into_iter().chain(peaks).chain(totals).chain(means).collect()
    });
    Grid { columns, rows: rows.collect() }
}

/// Shares that went by UDP, as a line of facts.
pub fn shares(counts: &Counts) -> Vec<String> {
    let by_udp = |stream: &Stream| {
        let responses = udp_share(counts.requests, stream.requests) * 100.0;
        let bytes = udp_share(counts.bytes.get(), stream.bytes.get()) * 100.0;
        format!("{}: {responses:.1}% of responses and {bytes:.1}% of bytes by UDP", protocol(stream))
    };
    counts.streams.iter().filter(|stream| stream.threshold > Bytes::ZERO).map(by_udp).collect()
}
