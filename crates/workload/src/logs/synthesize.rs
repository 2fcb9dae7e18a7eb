//! Lines of a synthetic log, sorted by time.
//!
//! Within a minute, requests fall on random seconds. Clients have addresses below 10.0.0.0/8.

use std::io::{self, Write};

use wire::{Duration, Seed, calendar};

use super::curve::Curve;
use super::responses::ResponseGenerator;
use super::visitor::Visitors;

/// Options of a synthetic log.
#[derive(Clone, Debug)]
pub struct SynthesisOptions {
    /// Request rate over time.
    pub curve: Curve,
    /// Number of lines.
    pub requests: u64,
    /// Number of clients; some may have no request.
    pub clients: u32,
    /// Random seed.
    pub seed: Seed,
}

/// A line of the log, before it is formatted.
#[derive(Clone, Copy, Debug)]
pub struct LogLine {
    /// Seconds since 1970.
    pub second: u64,
    /// Index of the client, from 0.
    pub client: u32,
    /// Status of the response.
    pub status: u16,
    /// Size of the response, in bytes.
    pub size: u64,
}

/// Passes every line to `sink`.
///
/// # Errors
/// Those of `sink`.
pub fn each<E>(options: &SynthesisOptions, mut sink: impl FnMut(LogLine) -> Result<(), E>) -> Result<(), E> {
    let SynthesisOptions { curve, requests, clients, seed } = options;
    let mut visitors = Visitors::new(*clients, *seed);
    let mut responses = ResponseGenerator::new(*seed);
    let mut seconds = seed.stream("seconds", 0);
    for (minute, count) in curve.distribute(*requests) {
        let mut per_second = [0_u64; 60];
        for _ in 0..count {
            let second = usize::try_from(seconds.up_to(59)).unwrap_or(0);
            per_second[second] += 1;
        }
        for (second, count) in (minute..).zip(per_second) {
            for _ in 0..count {
                let client = visitors.next(second);
                let (status, size) = responses.sample();
                sink(LogLine { second, client, status, size })?;
            }
        }
    }
    Ok(())
}

/// Size of the output buffer, in bytes.
const BUFFER: usize = 1 << 20;

/// Writes the lines.
///
/// # Errors
/// Those of `out`.
pub fn write(options: &SynthesisOptions, out: &mut dyn Write) -> io::Result<()> {
    let mut pages = options.seed.stream("pages", 0);
    let mut text = Vec::with_capacity(BUFFER + 1_024);
    let mut timestamp = (u64::MAX, String::new());
    each(options, |LogLine { second, client, status, size }| {
        if timestamp.0 != second {
            timestamp = (second, calendar::common_log(Duration::from_secs(second)));
        }
        let [_, a, b, c] = client.to_be_bytes();
        let (stamp, page) = (&timestamp.1, pages.up_to(9_999));
        writeln!(text, "10.{a}.{b}.{c} - - [{stamp}] \"GET /page/{page}.html HTTP/1.0\" {status} {size}")?;
        if text.len() >= BUFFER {
            out.write_all(&text)?;
            text.clear();
        }
        io::Result::Ok(())
    })?;
    out.write_all(&text)?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use accesslog::{ClientDefinition, Format, Reader};

    use super::*;

    #[test]
    fn every_line_can_be_parsed_and_times_ascend() {
        let options =
            SynthesisOptions { curve: Curve::day(), requests: 20_000, clients: 500, seed: Seed::default() };
        let write = || {
            let mut text = Vec::new();
            write(&options, &mut text).unwrap();
            text
        };
        let text = write();
        let tally = Reader::new(Format::Clf, ClientDefinition::default()).read(&text, |_| {});
        assert_eq!((tally.records, tally.bad(), tally.backwards), (20_000, 0, 0));
        assert!(text == write(), "the same seed gives other lines");
    }
}
