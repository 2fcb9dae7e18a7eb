//! The lines of a made-up log, in order of time.
//!
//! Within a minute, requests fall on its seconds by chance. Clients have addresses below 10.0.0.0/8.

use std::io::{self, Write};

use wire::{Duration, Seed, calendar};

use super::answer::Answers;
use super::curve::Curve;
use super::visitor::Visitors;

/// What to make up.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// How busy the server is.
    pub curve: Curve,
    /// How many lines.
    pub requests: u64,
    /// How many clients there are; some may not come.
    pub clients: u32,
    /// What makes it repeatable.
    pub seed: Seed,
}

/// A line, before it is written.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// Seconds since 1970.
    pub second: u64,
    /// Who asked, from 0.
    pub client: u32,
    /// What was answered.
    pub status: u16,
    /// And how many bytes.
    pub size: u64,
}

/// Gives every line to `sink`.
///
/// # Errors
/// Those of `sink`.
pub fn each<E>(wanted: &Wanted, mut sink: impl FnMut(Line) -> Result<(), E>) -> Result<(), E> {
    let Wanted { curve, requests, clients, seed } = wanted;
    let mut visitors = Visitors::new(*clients, *seed);
    let mut answers = Answers::new(*seed);
    let mut seconds = seed.stream("seconds", 0);
    for (minute, count) in curve.of(*requests) {
        let mut at = [0_u64; 60];
        for _ in 0..count {
            let second = usize::try_from(seconds.up_to(59)).unwrap_or(0);
            at[second] += 1;
        }
        for (second, count) in (minute..).zip(at) {
            for _ in 0..count {
                let client = visitors.next(second);
                let (status, size) = answers.next();
                sink(Line { second, client, status, size })?;
            }
        }
    }
    Ok(())
}

/// Lines are written by so much, in bytes.
const BUFFER: usize = 1 << 20;

/// Writes the lines.
///
/// # Errors
/// Those of `out`.
pub fn write(wanted: &Wanted, out: &mut dyn Write) -> io::Result<()> {
    let mut pages = wanted.seed.stream("pages", 0);
    let mut text = Vec::with_capacity(BUFFER + 1_024);
    let mut stamped = (u64::MAX, String::new());
    each(wanted, |Line { second, client, status, size }| {
        if stamped.0 != second {
            stamped = (second, calendar::common_log(Duration::from_secs(second)));
        }
        let [_, a, b, c] = client.to_be_bytes();
        let (stamp, page) = (&stamped.1, pages.up_to(9_999));
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
    use accesslog::{Format, Reader, Who};

    use super::*;

    #[test]
    fn every_line_is_read_back_and_time_does_not_run_backwards() {
        let wanted = Wanted { curve: Curve::day(), requests: 20_000, clients: 500, seed: Seed::default() };
        let write = || {
            let mut text = Vec::new();
            write(&wanted, &mut text).unwrap();
            text
        };
        let text = write();
        let tally = Reader::new(Format::Clf, Who::default()).read(&text, |_| {});
        assert_eq!((tally.records, tally.bad(), tally.backwards), (20_000, 0, 0));
        assert!(text == write(), "the same seed gives other lines");
    }
}
