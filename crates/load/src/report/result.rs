//! Results of a load run, as a table, as JSON, and as CSV: a row for each second.
//!
//! The first line states the bottleneck; the server is not judged.

use std::collections::BTreeMap;

use render::output::grid::{Column, Grid, wrap, wrap_lines};
use render::output::{csv, number};
use render::terminal::Terminal;
use serde::Serialize;

use crate::attribution::{self, Attribution};
use crate::evidence::Evidence;
use crate::log::RunParameters;
use crate::record::{Latencies, Record, RequestStats};
use crate::second::{Second, limit};
use crate::thresholds::{self, CheckedThreshold};
use crate::verdict::verdict_of;

/// A run, as JSON shows it.
#[derive(Serialize)]
pub struct Run<'a> {
    #[serde(flatten)]
    parameters: &'a RunParameters,
    /// Failures, or the bottleneck, in a sentence.
    verdict: String,
    /// Bottleneck of the run: `name`, `sentence`, `evidence`, and the `next` command if there is one.
    bottleneck: Attribution,
    /// Seconds after which the run was interrupted; absent if it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    cut_after_s: Option<f64>,
    #[serde(skip)]
    cut: Option<String>,
    /// Number of responses.
    #[serde(rename = "answered")]
    responses: u64,
    /// Number of failed requests.
    failed: u64,
    /// Bytes of the responses' bodies.
    bytes: u64,
    /// Seconds from the start to the last response.
    elapsed_s: f64,
    /// Responses per elapsed second.
    #[serde(rename = "answers_per_second")]
    responses_per_second: f64,
    /// Share of failed requests.
    failed_share: f64,
    /// Connections that users opened, and that servers opened to them.
    connections: u64,
    /// Maximum number of open connections.
    most_open: u64,
    /// Requests retried after a persistent connection turned out to be closed.
    asked_again: u64,
    /// Responses by channel.
    channels: BTreeMap<&'static str, u64>,
    /// Failed requests by reason.
    failures: BTreeMap<&'static str, u64>,
    /// Responses by status.
    statuses: BTreeMap<u16, u64>,
    /// Thresholds with their figures: `name`, `unit`, `limit`, `value`, `passed`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    thresholds: Vec<CheckedThreshold>,
    /// Sentences on what was left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    /// Results for each request of a list.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    requests: Vec<RequestRow>,
    #[serde(skip)]
    stats: Vec<RequestStats>,
    /// Latency from sending.
    experienced_ms: Latency,
    /// Latency from the scheduled time.
    intended_ms: Latency,
    /// Lateness of the generator.
    generator_late_ms: Latency,
    /// Figures behind the bottleneck: ramp, times of connections, sockets, CPUs, counters of this host.
    evidence: &'a Evidence,
    /// Results for each second.
    seconds: Vec<SecondRow>,
}

/// The responses to one request of a list.
#[derive(Clone, Debug, Serialize)]
struct RequestRow {
    /// Method and path.
    request: String,
    /// Number of responses.
    #[serde(rename = "answered")]
    responses: u64,
    /// Number of failed requests.
    failed: u64,
    /// Median latency from the scheduled time.
    p50_ms: f64,
    /// 99th percentile of it.
    p99_ms: f64,
    /// Maximum of it.
    max_ms: f64,
}

/// Statistics of a histogram, in milliseconds.
#[derive(Clone, Copy, Serialize)]
struct Latency {
    /// Mean.
    mean: f64,
    /// Median.
    p50: f64,
    /// 90th percentile.
    p90: f64,
    /// 99th percentile.
    p99: f64,
    /// 99.9th percentile.
    p999: f64,
    /// Maximum.
    max: f64,
}

/// One second of a run.
#[derive(Serialize)]
struct SecondRow {
    /// Requests scheduled for this second.
    due: u64,
    /// Requests sent more than 1 ms late.
    late: u64,
    /// Number of responses.
    #[serde(rename = "answered")]
    responses: u64,
    /// Number of failed requests.
    failed: u64,
    /// Bytes of the responses' bodies.
    bytes: u64,
    /// Median latency from the scheduled time.
    intended_p50_ms: f64,
    /// 99th percentile of it.
    intended_p99_ms: f64,
    /// Maximum of it.
    intended_max_ms: f64,
    /// Connections opened.
    opened: u64,
    /// Maximum number of open connections.
    open: u64,
    /// Share of a CPU that the busiest thread used.
    generator_share: f64,
    /// Datagrams that the kernel dropped.
    dropped: u64,
    /// Bottleneck: `generator`, `network`, `server` or `nothing`.
    limit: &'static str,
}

/// The statistics of the run.
pub fn run<'a>(parameters: &'a RunParameters, record: &'a Record) -> Run<'a> {
    of_request(parameters, record, &parameters.target)
}

/// The same, where `url` is one of its requests: the next command names it.
pub fn of_request<'a>(parameters: &'a RunParameters, record: &'a Record, url: &str) -> Run<'a> {
    let bottleneck = attribution::attribute(record, url);
    Run {
        parameters,
        verdict: verdict_of(record, &bottleneck),
        bottleneck,
        cut_after_s: record.cut.map(|cut| cut.as_secs_f64()),
        cut: interruption(record),
        responses: record.responses(),
        failed: record.failures(),
        bytes: record.seconds.iter().map(|second| second.bytes).sum(),
        elapsed_s: record.elapsed.as_secs_f64(),
        responses_per_second: record.responses_per_second(),
        failed_share: record.failure_share(),
        connections: record.connections,
        most_open: record.seconds.iter().map(|second| second.open).max().unwrap_or(0),
        asked_again: record.retries,
        channels: record.channels.iter().map(|(channel, count)| (channel.name(), *count)).collect(),
        failures: record.failure_counts.iter().map(|(reason, count)| (reason.name(), *count)).collect(),
        statuses: record.statuses.clone(),
        thresholds: Vec::new(),
        notes: Vec::new(),
        requests: Vec::new(),
        stats: record.requests.clone(),
        experienced_ms: latency(&record.experienced),
        intended_ms: latency(&record.intended),
        generator_late_ms: latency(&record.lateness),
        evidence: &record.evidence,
        seconds: record.seconds.iter().map(line).collect(),
    }
}

impl Run<'_> {
    /// The evidence for the bottleneck, and the next command, in lines; the command is not broken.
    fn bottleneck_lines(&self, width: usize) -> String {
        let Attribution { kind: _, sentence: _, evidence, next } = &self.bottleneck;
        let evidence = evidence.iter().map(|evidence| wrap("  ", evidence, width));
        let next = next.iter().map(|next| format!("  next: {next}\n"));
        evidence.chain(next).collect()
    }

    /// Thresholds with their figures.
    pub(super) fn thresholds(&self) -> &[CheckedThreshold] {
        &self.thresholds
    }

    /// The bottleneck, or failures.
    pub(super) fn verdict(&self) -> &str {
        &self.verdict
    }

    /// The server.
    pub(super) fn target(&self) -> &str {
        &self.parameters.target
    }

    /// Seconds from the start to the last response.
    pub(super) const fn seconds(&self) -> f64 {
        self.elapsed_s
    }

    /// The same with judged thresholds, sentences on what is left out, and the names of its requests.
    #[must_use]
    pub fn with(self, thresholds: Vec<CheckedThreshold>, notes: Vec<String>, names: &[String]) -> Self {
        let one = |(name, stats): (&String, &RequestStats)| {
            let at = |share: f64| stats.intended.value_at_quantile(share) as f64 / 1e6;
            RequestRow {
                request: name.clone(),
                responses: stats.responses,
                failed: stats.failed,
                p50_ms: at(0.5),
                p99_ms: at(0.99),
                max_ms: stats.intended.max() as f64 / 1e6,
            }
        };
        let requests = names.iter().zip(&self.stats).map(one).collect();
        Self { thresholds, notes, requests, ..self }
    }
}

fn latency(histogram: &Latencies) -> Latency {
    let at = |share: f64| histogram.value_at_quantile(share) as f64 / 1e6;
    // An empty histogram has zeros.
    let mean = if histogram.is_empty() { 0.0 } else { histogram.mean() / 1e6 };
    Latency {
        mean,
        p50: at(0.5),
        p90: at(0.9),
        p99: at(0.99),
        p999: at(0.999),
        max: histogram.max() as f64 / 1e6,
    }
}

fn line(second: &Second) -> SecondRow {
    let Second { due, late, responses, failed, bytes, intended, cpu_share, opened, open, dropped, worst: _ } =
        second;
    let at = |share: f64| intended.value_at_quantile(share) as f64 / 1e6;
    SecondRow {
        due: *due,
        late: *late,
        responses: *responses,
        failed: *failed,
        bytes: *bytes,
        intended_p50_ms: at(0.5),
        intended_p99_ms: at(0.99),
        intended_max_ms: intended.max() as f64 / 1e6,
        opened: *opened,
        open: *open,
        // To a millionth: the clock of a thread is no finer, and other digits are those of a quotient.
        generator_share: (cpu_share * 1e6).round() / 1e6,
        dropped: *dropped,
        limit: limit(second).name(),
    }
}

/// The run's seconds, numbered from 0; figures of the whole run are in the table and in JSON.
pub fn lines(run: &Run<'_>) -> String {
    let columns = [
        "second",
        "due",
        "late",
        "answered",
        "failed",
        "bytes",
        "intended_p50_ms",
        "intended_p99_ms",
        "intended_max_ms",
        "opened",
        "open",
        "generator_share",
        "dropped",
        "limit",
    ];
    let cells = |(second, line): (usize, &SecondRow)| {
        let SecondRow {
            due,
            late,
            responses,
            failed,
            bytes,
            intended_p50_ms,
            intended_p99_ms,
            intended_max_ms,
            opened,
            open,
            generator_share,
            dropped,
            limit,
        } = line;
        [
            second.to_string(),
            due.to_string(),
            late.to_string(),
            responses.to_string(),
            failed.to_string(),
            bytes.to_string(),
            intended_p50_ms.to_string(),
            intended_p99_ms.to_string(),
            intended_max_ms.to_string(),
            opened.to_string(),
            open.to_string(),
            generator_share.to_string(),
            dropped.to_string(),
            (*limit).to_owned(),
        ]
    };
    csv::table(columns, run.seconds.iter().enumerate().map(cells))
}

/// The run's first line, for formats that do not contain it, and the note on an interrupted run.
pub fn first_lines(run: &Run<'_>, terminal: Terminal) -> String {
    let width = terminal.prose_width();
    let sentences = run.cut.iter().chain(&run.notes).map(|sentence| wrap("", sentence, width));
    wrap("", &run.verdict, width)
        + &run.bottleneck_lines(width)
        + &sentences.collect::<String>()
        + thresholds::lines(&run.thresholds).trim_start_matches('\n')
}

/// A sentence if the run was interrupted.
pub fn interruption(record: &Record) -> Option<String> {
    let cut = record.cut?;
    let sum = |count: fn(&Second) -> u64| record.seconds.iter().map(count).sum::<u64>();
    let done = record.responses() + record.failures();
    let left = match sum(|second| second.due).saturating_sub(done) {
        0 => String::new(),
        left => {
            format!("; {} in flight count neither as responses nor as failures", number::count(left as f64))
        }
    };
    Some(format!("Interrupted after {:.1} s; no requests were sent after that{left}.", cut.as_secs_f64()))
}

/// The run in one line.
pub fn description(parameters: &RunParameters) -> String {
    let RunParameters {
        target,
        protocol,
        clients,
        distributions,
        workload,
        seed,
        plan: _,
        shards,
        shard_count,
        began: _,
    } = parameters;
    let mut text = match workload.as_str() {
        "" => format!("{target} by {protocol}, {distributions}, seed {seed}"),
        workload => format!("{target} by {protocol}, {workload}"),
    };
    if !clients.is_empty() {
        text += &format!(", {clients}");
    }
    if shards.len() < *shard_count as usize {
        let shards: Vec<String> = shards.iter().map(u32::to_string).collect();
        text += &format!(", part {} of {shard_count}", shards.join(", "));
    }
    text
}

/// The run as a table.
pub fn table(run: &Run<'_>, terminal: Terminal) -> String {
    let count = |count: u64| number::count(count as f64);
    let list = |counts: &BTreeMap<&str, u64>| {
        let words = counts.iter().map(|(name, number)| format!("{} {name}", count(*number)));
        words.collect::<Vec<_>>().join(", ")
    };
    let width = terminal.prose_width();
    let verdict = terminal.bold(&wrap("", &run.verdict, width)) + &run.bottleneck_lines(width);
    let mut text = run.cut.as_ref().map(|cut| format!("{cut}\n")).unwrap_or_default();
    text += &format!("\n{}\n", description(run.parameters));
    let counted = |count: u64, what| number::counted(count as f64, what);
    text += &format!(
        "{} with {} in {:.2} s ({} a second)\nover {}, at most {} at once",
        counted(run.responses, "response"),
        counted(run.bytes, "byte"),
        run.elapsed_s,
        number::significant(run.responses_per_second),
        counted(run.connections, "connection"),
        count(run.most_open),
    );
    if !run.channels.is_empty() {
        text += &format!(": {}", list(&run.channels));
    }
    text += "\n";
    let is_plain = |statuses: &BTreeMap<u16, u64>| statuses.keys().all(|status| *status == 200);
    if !is_plain(&run.statuses) {
        let words = run.statuses.iter().map(|(status, number)| format!("{} with {status}", count(*number)));
        text += &format!("responses: {}\n", words.collect::<Vec<_>>().join(", "));
    }
    if run.failed > 0 {
        text += &format!("{} failed: {}\n", count(run.failed), list(&run.failures));
    }
    if run.asked_again > 0 {
        let retries = count(run.asked_again);
        text += &format!("{retries} retried: the server had closed their connection\n");
    }
    let columns = vec![
        Column::name(["", "ms"]),
        Column::number(["", "mean"], 1),
        Column::number(["", "50%"], 0),
        Column::number(["", "90%"], 2),
        Column::number(["", "99%"], 0),
        Column::number(["", "99.9%"], 0),
        Column::number(["", "max"], 0),
    ];
    let row = |name: &str, Latency { mean, p50, p90, p99, p999, max }: Latency| {
        let numbers = [mean, p50, p90, p99, p999, max].map(number::significant);
        [name.to_owned()].into_iter().chain(numbers).collect::<Vec<_>>()
    };
    let rows = vec![
        row("service time (from send)", run.experienced_ms),
        row("response time (from schedule)", run.intended_ms),
        row("lateness of the generator", run.generator_late_ms),
    ];
    text += "\n";
    let tables = Grid { columns, rows }.render(terminal)
        + &requests_table(run, terminal)
        + &thresholds::lines(&run.thresholds);
    let notes: String = run.notes.iter().map(|note| wrap("", note, width)).collect();
    let notes = if notes.is_empty() { notes } else { format!("\n{notes}") };
    verdict + &wrap_lines(&text, width) + &tables + &notes
}

/// Maximum number of requests in the table.
const SHOWN: usize = 10;

/// The requests of a list, those with failures first, then the slowest.
fn requests_table(run: &Run<'_>, terminal: Terminal) -> String {
    let mut requests: Vec<&RequestRow> = run.requests.iter().collect();
    if requests.is_empty() {
        return String::new();
    }
    requests.sort_by(|one, other| other.failed.cmp(&one.failed).then(other.p99_ms.total_cmp(&one.p99_ms)));
    let columns = vec![
        Column::number(["", "responses"], 1),
        Column::number(["", "failed"], 0),
        Column::number(["50%,", "ms"], 2),
        Column::number(["99%,", "ms"], 0),
        Column::number(["max,", "ms"], 2),
        Column::name(["", "request"]),
    ];
    // Width that the other columns and the spaces leave.
    let buffer = terminal.width.unwrap_or(100).saturating_sub(48).max(20);
    let row = |one: &&RequestRow| {
        let RequestRow { request, responses, failed, p50_ms, p99_ms, max_ms } = one;
        let name: String = match request.chars().count() > buffer {
            true => request.chars().take(buffer.saturating_sub(3)).chain("...".chars()).collect(),
            false => request.clone(),
        };
        let [responses, failed] = [*responses, *failed].map(|number| number::count(number as f64));
        let [p50, p99, max] = [*p50_ms, *p99_ms, *max_ms].map(number::significant);
        vec![responses, failed, p50, p99, max, name]
    };
    let rows = requests.iter().take(SHOWN).map(row).collect();
    let more = match requests.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!("  and {} more\n", number::count(more as f64)),
    };
    format!("\n{}{more}", Grid { columns, rows }.render(terminal))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Channel, FailureReason};

    #[test]
    fn sentences_of_a_run_fit_the_terminal_and_one_is_singular() {
        let parameters =
            RunParameters { target: "http://127.0.0.1:3000/api".to_owned(), ..RunParameters::default() };
        let mut record = Record { connections: 1, ..Record::default() };
        record.seconds = vec![Second { due: 40, failed: 39, responses: 1, bytes: 1, ..Second::default() }];
        record.channels.insert(Channel::TcpClient, 1);
        record.failure_counts = FailureReason::ALL.into_iter().map(|reason| (reason, 1_000)).collect();
        let notes = vec!["of 12 requests in the log 7 are left out: ".to_owned() + &"word ".repeat(40)];
        let run = run(&parameters, &record).with(Vec::new(), notes, &[]);
        let terminal = Terminal { width: Some(80), colour: false };
        for text in [table(&run, terminal), first_lines(&run, terminal)] {
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest.is_some_and(|widest| widest <= 80), "{text}");
        }
        let table = table(&run, terminal);
        assert!(
            table.contains("1 response with 1 byte in") && table.contains("over 1 connection,"),
            "{table}"
        );
    }
}
