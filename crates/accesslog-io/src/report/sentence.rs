//! Conclusions in sentences: the effect of a shorter time-out, and of DHTTP.
//!
//! The baseline is the paper's server: Apache's 15 s (`papers/dhttp#section-vi-a`), with the largest requested number
//! of connections per client.

use accesslog::connections::{Counts, Stream, TimeoutCounts};
use wire::calendar;
use wire::{Bytes, Duration, Time};

use render::output::number;

use super::labels::{self, udp_share};

/// Apache's default, then and in the paper.
const USUAL: Duration = Duration::from_secs(15);

/// The sentences; none where nothing was counted.
pub fn sentences(counts: &Counts) -> Vec<String> {
    let (Some(http), Some((first, last))) = (counts.streams.first(), counts.span) else { return Vec::new() };
    let Some(index) = http.lines.len().checked_sub(1) else { return Vec::new() };
    let lines: Vec<&[TimeoutCounts]> =
        counts.streams.iter().map(|stream| stream.lines[index].opened.as_slice()).collect();
    let base_index = nearest(lines[0], USUAL);
    let Some(base) = lines[0].get(base_index) else { return Vec::new() };
    let mut sentences = vec![counted(counts, first, last), baseline(counts, index, base, http)];
    let other_timeouts = [nearest(lines[0], Duration::from_secs(5)), 0, lines[0].len() - 1];
    let other_timeouts = other_timeouts.into_iter().filter(|timeout| *timeout != base_index);
    sentences.extend(other_timeouts.map(|timeout| what_if_timeout(base, &lines[0][timeout])));
    if http.threshold == Bytes::ZERO {
        for (stream, line) in counts.streams.iter().zip(&lines).skip(1) {
            sentences.push(what_if_dhttp(counts, stream, base, &line[base_index]));
        }
    }
    if index > 0 {
        let lowest_limit = &http.lines[0];
        sentences.push(what_if_limit(&labels::title(counts, 0), base, &lowest_limit.opened[base_index]));
    }
    sentences.dedup();
    sentences
}

/// Index of the nearest time-out.
fn nearest(line: &[TimeoutCounts], wanted: Duration) -> usize {
    let distance = |index: &usize| line[*index].timeout.as_nanos().abs_diff(wanted.as_nanos());
    (0..line.len()).min_by_key(distance).unwrap_or(0)
}

fn counted(counts: &Counts, first: Time, last: Time) -> String {
    format!(
        "Counted: {} requests from {} to {} UTC.",
        number::count(counts.requests as f64),
        calendar::date_time(first.since(Time::ZERO)),
        calendar::date_time(last.since(Time::ZERO))
    )
}

fn baseline(counts: &Counts, index: usize, base: &TimeoutCounts, http: &Stream) -> String {
    let limit = labels::title(counts, index).to_lowercase();
    let under = match counts.streams.len() {
        1 => format!(" and {limit}"),
        _ => format!(", {limit} and {}", labels::protocol(http)),
    };
    format!(
        "With a {} s timeout{under} you would hold at most {}, first at {} UTC, and open {}.",
        labels::seconds(base.timeout),
        connections(base.peak.connections),
        calendar::date_time(base.peak.at.since(Time::ZERO)),
        number::count(base.total as f64),
    )
}

fn what_if_timeout(base: &TimeoutCounts, other: &TimeoutCounts) -> String {
    format!(
        "With a {} s timeout instead you would hold {}, and open {}.",
        labels::seconds(other.timeout),
        instead(base, other),
        change(base.total, other.total),
    )
}

fn what_if_dhttp(counts: &Counts, stream: &Stream, base: &TimeoutCounts, other: &TimeoutCounts) -> String {
    format!(
        "With DHTTP, responses below {} bytes by UDP, that is {:.0}% of them, you would hold {}, and open {}.",
        stream.threshold.get(),
        udp_share(counts.requests, stream.requests) * 100.0,
        match base.peak.connections == other.peak.connections {
            true => instead(base, other),
            false => {
                let change = change(base.peak.connections, other.peak.connections);
                format!("{} ({change})", instead(base, other))
            }
        },
        change(base.total, other.total),
    )
}

fn what_if_limit(title: &str, base: &TimeoutCounts, other: &TimeoutCounts) -> String {
    format!(
        "With {} you would hold {}, and open {}.",
        title.to_lowercase(),
        instead(base, other),
        change(base.total, other.total),
    )
}

/// `24 connections instead of 41`, `as many connections`.
fn instead(base: &TimeoutCounts, other: &TimeoutCounts) -> String {
    match base.peak.connections == other.peak.connections {
        true => "as many connections".to_owned(),
        false => format!(
            "{} instead of {}",
            connections(other.peak.connections),
            number::count(base.peak.connections as f64)
        ),
    }
}

fn connections(count: u64) -> String {
    match count {
        1 => "1 connection".to_owned(),
        many => format!("{} connections", number::count(many as f64)),
    }
}

/// `12% more`, `2.4 times as many`, `as many`.
fn change(before: u64, after: u64) -> String {
    if before == after {
        return "as many".to_owned();
    }
    if before == 0 {
        return number::count(after as f64);
    }
    let ratio = after as f64 / before as f64;
    match ratio {
        2.0.. => format!("{ratio:.1} times as many"),
        1.0.. => format!("{}% more", percent(ratio - 1.0)),
        _ => format!("{}% fewer", percent(1.0 - ratio)),
    }
}

/// A percentage without decimals, unless that would be 0.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 1.0 { format!("{percent:.1}") } else { format!("{percent:.0}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_stated_in_plain_words() {
        let reported =
            [(100, 100), (100, 112), (100, 250), (100, 67), (1_000, 998), (0, 5)].map(|(b, a)| change(b, a));
        assert_eq!(reported, ["as many", "12% more", "2.5 times as many", "33% fewer", "0.2% fewer", "5"]);
    }

    #[test]
    fn times_are_written_in_readable_units() {
        for day in (0..180_000).step_by(97) {
            let since_1970 = Duration::from_secs(day * 86_400 + day % 86_400);
            let written = calendar::date_time(since_1970);
            let read = accesslog::clock::iso_8601(written.as_bytes());
            assert_eq!(read, Some(Time::ZERO + since_1970), "{written}");
        }
    }
}
