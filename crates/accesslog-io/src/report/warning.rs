//! Warnings about the logs: unreadable lines, records left out, records corrected.
//!
//! They go to stderr: none belongs to the result, and none is suppressed.

use accesslog::Tally;
use accesslog::connections::{Query, Rule};
use quantity::names::Quoted;

use render::output::number;

use crate::merged_logs::LogCounters;
use crate::pass::PassResult;

/// The sentences, most urgent first.
pub fn sentences(names: &[String], passed: &PassResult, query: &Query) -> Vec<String> {
    let PassResult { counts, loads: _, read, late } = passed;
    let mut reported = Vec::new();
    for (name, read) in names.iter().zip(read) {
        let LogCounters { tally, without_size, failed } = read;
        if let Some(error) = failed {
            reported
                .push(format!("{name} could not be read to its end ({error}); the lines before are counted"));
        }
        if tally.bad() > 0 {
            reported.push(bad_lines(name, tally));
        }
        if *without_size > 0 {
            reported.push(format!(
                "{name}: {} of {} responses have no size and are left out; --missing-size zero or large counts them",
                count(*without_size),
                count(tally.records)
            ));
        }
    }
    if *late > 0 {
        reported.push(format!(
            "{} requests are further out of order than --window, and are left out; sort the logs by time, or give a larger --window",
            count(*late)
        ));
    }
    let backwards: u64 = read.iter().map(|read| read.tally.backwards).sum();
    if backwards > 0 {
        reported.push(format!("{} lines were out of order, and were sorted", count(backwards)));
    }
    if query.rule() == Rule::IdleFirst && !query.durations() {
        reported.push("without durations every connection is idle, and idle-first gives a client one; --durations takes the log's".to_owned());
    }
    if counts.requests > 0 && read.iter().all(|read| read.tally.records == 0) {
        reported.push("no line could be read".to_owned());
    }
    reported
}

fn bad_lines(name: &str, tally: &Tally) -> String {
    let reasons: Vec<String> = tally
        .reasons()
        .map(|(reason, times, examples)| {
            let example = examples
                .first()
                .map(|example| format!(", as line {} {}", example.line, Quoted(&example.text)));
            format!("{} {reason}{}", count(times), example.unwrap_or_default())
        })
        .collect();
    format!(
        "{name}: {} of {} lines could not be read: {}",
        count(tally.bad()),
        count(tally.lines),
        reasons.join("; ")
    )
}

fn count(number: u64) -> String {
    number::count(number as f64)
}
