//! Results of one load run, or of several side by side, as one self-contained HTML page.
//!
//! The table has the same figures, except curves: latency by percentile and over time, responses and
//! connections over time, the bottleneck of each second, and responses by channel. Not a live view: that is
//! [`super::view`].

use render::output::grid::{Column, Grid};
use render::output::number;
use render::plot::scale::{multiples, round_step};
use render::provenance::{Provenance, RunFacts};
use render::report::lines::{Axis, Chart, Series};
use render::report::{self, html::escaped};
use wire::{Duration, calendar};

pub use super::named_run::NamedRun;
use super::named_run::shown;
use super::{bottlenecks, result};
use crate::log::{Log, RunParameters};
use crate::record::{Channel, Latencies, Record};
use crate::second::Second;
use crate::verdict::verdict;

/// The page.
pub fn page(runs: &[NamedRun]) -> String {
    let title = match runs {
        [only] => format!("Load by {}", only.log.parameters.protocol),
        several => format!("{} loads", several.len()),
    };
    let reported = |run: &NamedRun| {
        let interruption =
            result::interruption(&run.log.record).map(|sentence| format!(". {sentence}")).unwrap_or_default();
        match runs {
            [_] => format!("{}{interruption}", verdict(&run.log.record)),
            _ => format!("{}: {}{interruption}", run.name, verdict(&run.log.record)),
        }
    };
    let lead: Vec<String> = runs.iter().map(reported).collect();
    let sections = [
        section("In figures", &[], &tables(runs)),
        section("Latency", LATENCY, &(by_percentile(runs) + &latency_over_time(runs))),
        section(
            "Over time",
            &[],
            &(responses_over_time(runs)
                + &connections_over_time(runs)
                + &bottlenecks::strips(runs, &bottom(runs))),
        ),
    ];
    report::page(&title, &lead, &sections.concat(), &provenance(runs))
}

const LATENCY: &[&str] = &[
    "Response time counts from when a request was due by the schedule, service time from when it was sent. \
                            Waiting for a connection is part of the response time.",
];

fn section(title: &str, words: &[&str], inside: &str) -> String {
    let words: String = words.iter().map(|words| format!("<p>{}</p>\n", escaped(words))).collect();
    format!("<section>\n<h2>{}</h2>\n{words}{inside}</section>\n", escaped(title))
}

fn tables(runs: &[NamedRun]) -> String {
    let columns = vec![
        Column::name(["", "run"]),
        Column::number(["responses", "a second"], 2),
        Column::number(["", "failed"], 1),
        Column::number(["50%,", "ms"], 0),
        Column::number(["99%,", "ms"], 0),
        Column::number(["99.9%,", "ms"], 0),
        Column::number(["maximum,", "ms"], 1),
        Column::number(["connections", "opened"], 2),
        Column::number(["open at", "once"], 2),
    ];
    let row = |NamedRun { name, log: Log { parameters: _, record } }: &NamedRun| {
        let millis = |share: f64| number::significant(record.intended.value_at_quantile(share) as f64 / 1e6);
        let most_open = record.seconds.iter().map(|second| second.open).max().unwrap_or(0);
        vec![
            name.clone(),
            number::significant(record.responses_per_second()),
            number::count(record.failures() as f64),
            millis(0.5),
            millis(0.99),
            millis(0.999),
            millis(1.0),
            number::count(record.connections as f64),
            number::count(most_open as f64),
        ]
    };
    let figures = Grid { columns, rows: runs.iter().map(row).collect() };
    let used_channels: Vec<Channel> = Channel::ALL
        .into_iter()
        .filter(|channel| runs.iter().any(|run| run.log.record.channels.contains_key(channel)))
        .collect();
    let heading = |channel: &Channel| match channel {
        Channel::Udp => ["in a", "datagram"],
        Channel::TcpOpened => ["the server's", "connections"],
        Channel::TcpClient => ["the client's", "connections"],
        Channel::Quic => ["", "QUIC"],
        Channel::QuicEarly => ["QUIC,", "0-RTT"],
    };
    let headings = used_channels.iter().map(|channel| Column::number(heading(channel), 2));
    let columns = [Column::name(["", "run"])].into_iter().chain(headings).collect();
    let row = |NamedRun { name, log: Log { parameters: _, record } }: &NamedRun| {
        let share = |channel: &Channel| {
            let count = record.channels.get(channel).copied().unwrap_or(0);
            format!("{:.1}%", 100.0 * count as f64 / record.responses().max(1) as f64)
        };
        [name.clone()].into_iter().chain(used_channels.iter().map(share)).collect()
    };
    let used_channels = Grid { columns, rows: runs.iter().map(row).collect() };
    format!(
        "<div class=\"scroll\">\n{}</div>\n<h3>Responses by channel</h3>\n<div class=\"scroll\">\n{}</div>\n",
        report::table_of(&figures),
        report::table_of(&used_channels)
    )
}

/// Shares of requests that are faster, as percentiles: the position on the axis is the number of nines.
const NINES: [(f64, &str); 5] = [(0.0, "0%"), (1.0, "90%"), (2.0, "99%"), (3.0, "99.9%"), (4.0, "99.99%")];
/// Points for each nine.
const POINTS: u32 = 20;

fn by_percentile(runs: &[NamedRun]) -> String {
    let max = runs.iter().map(|run| run.log.record.intended.len()).max().unwrap_or(0);
    // With a thousand requests the slowest one is the 99.9th percentile.
    let last = (max.max(10) as f64).log10().floor().clamp(1.0, 4.0);
    let line = |name: &str, of: &Latencies| {
        let point = |step: u32| {
            let nines = f64::from(step) / f64::from(POINTS);
            (nines, of.value_at_quantile(1.0 - 10_f64.powf(-nines)) as f64 / 1e6)
        };
        let points = (0..).map(point).take_while(|(nines, _)| *nines <= last).collect();
        Series { name: name.to_owned(), points }
    };
    let lines = match runs {
        [NamedRun { name: _, log: Log { parameters: _, record } }] => {
            vec![line("service time", &record.experienced), line("response time", &record.intended)]
        }
        several => several.iter().map(|run| line(&run.name, &run.log.record.intended)).collect(),
    };
    let ticks = NINES.iter().filter(|(nines, _)| *nines <= last);
    let bottom = Axis {
        title: "share of requests that were faster",
        range: (0.0, last),
        ticks: ticks.map(|(nines, words)| (*nines, (*words).to_owned())).collect(),
    };
    Chart { title: "Latency by percentile", bottom, side: "ms", lines, dots: false }.draw()
}

fn latency_over_time(runs: &[NamedRun]) -> String {
    let at = |share: f64| {
        move |second: &Second| {
            // Without responses the latency is unknown; 0 would be the best of all.
            let of = &second.intended;
            (!of.is_empty()).then(|| of.value_at_quantile(share) as f64 / 1e6)
        }
    };
    let lines = match runs {
        [NamedRun { name: _, log: Log { parameters: _, record } }] => {
            let shares = [("maximum", 1.0), ("99%", 0.99), ("50%", 0.5)];
            shares.iter().map(|(name, share)| over_time(name, record, at(*share))).collect()
        }
        several => several.iter().map(|run| over_time(&run.name, &run.log.record, at(0.99))).collect(),
    };
    let title = match runs {
        [_] => "Response time, by second",
        _ => "Response time, by second: 99th percentile",
    };
    chart(title, "ms", runs, lines)
}

fn responses_over_time(runs: &[NamedRun]) -> String {
    let responses = |second: &Second| Some(second.responses as f64);
    let mut lines: Vec<Series> =
        runs.iter().map(|run| over_time(&run.name, &run.log.record, responses)).collect();
    if let [NamedRun { name: _, log: Log { parameters: _, record } }] = runs {
        lines = vec![
            over_time("due", record, |second| Some(second.due as f64)),
            over_time("responses", record, responses),
        ];
        if record.failures() > 0 {
            lines.push(over_time("failed", record, |second| Some(second.failed as f64)));
        }
    }
    chart("Responses", "a second", runs, lines)
}

fn connections_over_time(runs: &[NamedRun]) -> String {
    let lines =
        runs.iter().map(|run| over_time(&run.name, &run.log.record, |second| Some(second.open as f64)));
    chart("Open connections, maximum of each second", "open", runs, lines.collect())
}

fn over_time(name: &str, record: &Record, value: impl Fn(&Second) -> Option<f64>) -> Series {
    let points = shown(record).iter().zip(0_u32..);
    let points = points.filter_map(|(second, at)| Some((f64::from(at) + 0.5, value(second)?)));
    Series { name: name.to_owned(), points: points.collect() }
}

fn chart(title: &str, side: &str, runs: &[NamedRun], lines: Vec<Series>) -> String {
    Chart { title, bottom: bottom(runs), side, lines, dots: false }.draw()
}

/// The time axis, as long as the longest of the runs.
fn bottom(runs: &[NamedRun]) -> Axis<'static> {
    let lasted = runs.iter().map(|run| shown(&run.log.record).len()).max().unwrap_or(0) as f64;
    let ticks = multiples(0.0, lasted, round_step(lasted, 8.0)).into_iter();
    let ticks = ticks.map(|tick| (tick, number::count(tick))).collect();
    Axis { title: "seconds from the first request on", range: (0.0, lasted), ticks }
}

fn provenance(runs: &[NamedRun]) -> Provenance {
    let known = |NamedRun { name, log: Log { parameters, record: _ } }: &NamedRun| {
        let RunParameters {
            target,
            protocol,
            clients,
            distributions,
            workload,
            seed,
            plan,
            shards: _,
            shard_count,
            began,
        } = parameters;
        let began = calendar::http(Duration::from_secs_f64(began.0).unwrap_or_default());
        let fact = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let circumstances = vec![fact("Server", target), fact("Began", &began)];
        let mut settings = vec![
            fact("Protocol", protocol),
            if workload.is_empty() { fact("Laws", distributions) } else { fact("Workload", workload) },
            fact("Seed", &seed.to_string()),
            fact("Plan", plan),
            fact("Generators", &shard_count.to_string()),
        ];
        if !clients.is_empty() {
            settings.push(fact("Users", clients));
        }
        RunFacts { title: name.clone(), circumstances, settings }
    };
    Provenance::of(&runs.iter().map(known).collect::<Vec<_>>(), "The load")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(name: &str) -> NamedRun {
        let parameters = RunParameters {
            target: "http://127.0.0.1/".to_owned(),
            protocol: "http11".to_owned(),
            clients: String::new(),
            distributions: "surge-1998".to_owned(),
            workload: String::new(),
            seed: 1,
            plan: "00ff".to_owned(),
            shards: vec![1],
            shard_count: 1,
            began: (1_795_276_800.0, 1_795_276_800.0),
        };
        let record = Record { seconds: vec![Second::default(); 3], ..Record::default() };
        NamedRun { name: name.to_owned(), log: Log { parameters, record } }
    }

    #[test]
    fn every_second_until_the_end_has_a_bottleneck() {
        let mut run = run("a");
        let due = |late| Second { due: 100, late, responses: 100, ..Second::default() };
        run.log.record.seconds = vec![due(0), due(50), due(50), Second::default()];
        let page = page(&[run]);
        assert!(page.contains("nothing, 0 to 1 s") && page.contains("generator, 1 to 3 s"), "{page}");
        assert!(!page.contains("3 to 4 s"), "{page}");
    }

    #[test]
    fn a_page_without_results_has_no_nan_and_names_are_escaped() {
        for runs in [vec![run("a<b")], vec![run("a<b"), run("c")]] {
            let page = page(&runs);
            assert!(!page.contains("NaN") && !page.contains("inf") && !page.contains("a<b"), "{page}");
        }
    }
}
