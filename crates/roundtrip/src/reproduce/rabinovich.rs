//! Ours for what `papers/dhttp#section-vi-a` says of its log: counted from another log, a day of NASA's server.
//!
//! The paper's log, three months of AT&T's EasyWWW, is not to be had, and its figures have no numbers in print: what the
//! text says of them stands in the data. The log is found by the environment (`ROUNDTRIP_LOGS`); without it nothing
//! here is testable.

use std::path::PathBuf;

use simulate::connections::{Counts, Opened, Question, Stream};
use wire::{Bytes, Duration};

use crate::connections::input::Input;
use crate::connections::{Answer, answer, ask::Asked};

use super::measured::Measured;
use super::published::Cell;

/// Our value, or why the log could not be counted.
type Ours = Result<Option<f64>, String>;

const LOG: &str = "nasa_19950801.clf";
const HTTP: Bytes = Bytes::ZERO;

/// The share of answers that go by UDP.
pub fn shares(cell: &Cell, measured: &mut Measured<'_>) -> Ours {
    let Some(counts) = measured.counts(LOG, count)? else { return Ok(None) };
    let by_tcp = stream(counts, threshold(cell)).map(|stream| stream.requests as f64);
    Ok(by_tcp.map(|by_tcp| 1.0 - by_tcp / counts.requests as f64))
}

/// How far the most connections at once fall, at 15 s with three connections per client.
pub fn figure_6(cell: &Cell, measured: &mut Measured<'_>) -> Ours {
    Ok(peaks(measured, threshold(cell), 3, 15)?.map(|[http, dhttp]| 1.0 - dhttp / http))
}

/// How many times the bytes a connection carries, at the shortest time-out with three connections per client.
pub fn figure_7(cell: &Cell, measured: &mut Measured<'_>) -> Ours {
    let Some(counts) = measured.counts(LOG, count)? else { return Ok(None) };
    let carried = |threshold| {
        let stream = stream(counts, threshold)?;
        Some(stream.bytes.as_f64() / opened(stream, 3, 1)?.total as f64)
    };
    Ok(carried(threshold(cell)).zip(carried(HTTP)).map(|(dhttp, http)| dhttp / http))
}

/// How many times as many connections HTTP holds, at 5 s with one connection per client.
pub fn figure_8(cell: &Cell, measured: &mut Measured<'_>) -> Ours {
    Ok(peaks(measured, threshold(cell), 1, 5)?.map(|[http, dhttp]| http / dhttp))
}

/// The first label is a threshold.
fn threshold(cell: &Cell) -> Bytes {
    Bytes::new(cell.label(0).parse().unwrap_or(0))
}

/// The most connections at once of HTTP and of DHTTP.
fn peaks(
    measured: &mut Measured<'_>,
    threshold: Bytes,
    limit: usize,
    timeout_s: u64,
) -> Result<Option<[f64; 2]>, String> {
    let Some(counts) = measured.counts(LOG, count)? else { return Ok(None) };
    let peak =
        |threshold| Some(opened(stream(counts, threshold)?, limit, timeout_s)?.peak.connections as f64);
    Ok(peak(HTTP).zip(peak(threshold)).map(|(http, dhttp)| [http, dhttp]))
}

fn stream(counts: &Counts, threshold: Bytes) -> Option<&Stream> {
    counts.streams.iter().find(|stream| stream.threshold == threshold)
}

fn opened(stream: &Stream, limit: usize, timeout_s: u64) -> Option<&Opened> {
    let line = stream.lines.iter().find(|line| line.limit == limit)?;
    line.opened.iter().find(|opened| opened.timeout == Duration::from_secs(timeout_s))
}

/// What these tables ask, of one log.
fn count(log: PathBuf) -> Result<Counts, String> {
    let timeouts = [1, 5, 15].map(Duration::from_secs);
    let thresholds = [0, 1_460, 4_096].map(Bytes::new);
    let question = Question::new(&timeouts, &[1, 3], &thresholds, Duration::from_secs(15))
        .map_err(|error| error.to_string())?;
    let asked = Asked::of(question);
    let Answer { passed, names: _, said: _ } =
        answer(vec![Input::File(log)], &asked).map_err(|failure| failure.to_string())?;
    Ok(passed.counts)
}
