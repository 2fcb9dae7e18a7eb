//! Results of a search for the rate that a server sustains: a table, JSON, CSV, and a page with the knee.

use render::output::grid::{Column, Grid, wrap};
use render::output::{csv, number};
use render::plot::scale::{multiples, round_step};
use render::provenance::{Provenance, RunFacts};
use render::report::lines::{Axis, Chart, Series};
use render::report::{self};
use render::terminal::Terminal;
use serde::Serialize;

use crate::limit_search::{LimitSearch, Step};

/// A search, as JSON shows it.
#[derive(Serialize)]
pub struct Limit<'a> {
    /// The URL.
    target: &'a str,
    /// The limit and its bottleneck in a sentence.
    verdict: String,
    /// Highest sustained rate, requests per second; null if none was.
    limit_per_second: Option<f64>,
    /// Runs in the order of their rates.
    steps: Vec<&'a Step>,
}

/// The values of a search.
pub fn values<'a>(target: &'a str, search: &'a LimitSearch) -> Limit<'a> {
    Limit { target, verdict: search.sentence(), limit_per_second: search.limit(), steps: search.by_rate() }
}

fn grid(search: &LimitSearch) -> Grid {
    let columns = vec![
        Column::number(["", "rate/s"], 0),
        Column::number(["responses", "/s"], 1),
        Column::number(["failed,", "%"], 3),
        Column::number(["50%,", "ms"], 2),
        Column::number(["99%,", "ms"], 0),
        Column::number(["in", "flight"], 2),
        Column::number(["server's", "CPUs"], 2),
        Column::name(["", "bottleneck"]),
    ];
    let row = |step: &&Step| {
        let bottleneck = if step.sustained { "" } else { step.bottleneck.kind.name() };
        vec![
            number::significant(step.rate),
            number::significant(step.responses_per_second),
            number::significant(100.0 * step.failed_share),
            number::significant(step.response_p50_ms),
            number::significant(step.response_p99_ms),
            number::significant(step.in_flight),
            step.server_cpus.map_or_else(String::new, |cpus| format!("{cpus:.2}")),
            // A missed threshold is a limit without a bottleneck.
            match bottleneck {
                "nothing" | "users" => "threshold".to_owned(),
                bottleneck => bottleneck.to_owned(),
            },
        ]
    };
    Grid { columns, rows: search.by_rate().iter().map(row).collect() }
}

/// The search as a table.
pub fn table(target: &str, search: &LimitSearch, terminal: Terminal) -> String {
    let next = search.above().and_then(|step| step.bottleneck.next.as_ref());
    let next = next.map(|next| format!("\nnext: {next}\n")).unwrap_or_default();
    let sentence = terminal.bold(&wrap("", &search.sentence(), terminal.prose_width()));
    format!("{sentence}\n{target}\n\n{}{next}", grid(search).render(terminal))
}

/// The search as CSV: a row for each step.
pub fn lines(search: &LimitSearch) -> String {
    let columns = [
        "rate",
        "responses_per_second",
        "failed_share",
        "response_p50_ms",
        "response_p99_ms",
        "in_flight",
        "server_cpus",
        "sustained",
        "bottleneck",
    ];
    let row = |step: &Step| {
        let Step {
            rate,
            responses_per_second,
            failed_share,
            response_p50_ms,
            response_p99_ms,
            in_flight,
            server_cpus,
            sustained,
            bottleneck,
        } = step;
        [
            rate.to_string(),
            responses_per_second.to_string(),
            failed_share.to_string(),
            response_p50_ms.to_string(),
            response_p99_ms.to_string(),
            in_flight.to_string(),
            server_cpus.map_or_else(String::new, |cpus| cpus.to_string()),
            sustained.to_string(),
            bottleneck.kind.name().to_owned(),
        ]
    };
    csv::table(columns, search.by_rate().into_iter().map(row))
}

/// The search as a page: the knee in throughput and latency.
pub fn page(target: &str, search: &LimitSearch) -> String {
    let steps = search.by_rate();
    let highest = steps.last().map_or(1.0, |step| step.rate);
    let series = |name: &str, value: fn(&Step) -> f64| Series {
        name: name.to_owned(),
        points: steps.iter().map(|step| (step.rate, value(step))).collect(),
    };
    let chart = |title: &str, side: &str, lines: Vec<Series>| {
        let ticks = multiples(0.0, highest, round_step(highest, 8.0)).into_iter();
        let ticks = ticks.map(|tick| (tick, number::count(tick))).collect();
        let bottom = Axis { title: "requests a second, as scheduled", range: (0.0, highest), ticks };
        Chart { title, bottom, side, lines, dots: true }.draw()
    };
    let throughput = chart(
        "Throughput",
        "responses a second",
        vec![series("scheduled", |step| step.rate), series("responses", |step| step.responses_per_second)],
    );
    let latency = chart(
        "Response time, from when requests were due",
        "ms",
        vec![series("99%", |step| step.response_p99_ms), series("50%", |step| step.response_p50_ms)],
    );
    let sections = format!(
        "<section>\n<h2>The knee</h2>\n{throughput}{latency}</section>\n<section>\n<h2>In figures</h2>\n<div \
         class=\"scroll\">\n{}</div>\n</section>\n",
        report::table_of(&grid(search))
    );
    let facts = RunFacts {
        title: "search".to_owned(),
        circumstances: vec![("Server".to_owned(), target.to_owned())],
        settings: vec![("Steps".to_owned(), steps.len().to_string())],
    };
    report::page("Limit of a server", &[search.sentence()], &sections, &Provenance::of(&[facts], "The load"))
}
