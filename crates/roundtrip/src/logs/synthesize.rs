//! The lines of a made-up log, in order of time.
//!
//! Within a minute, requests fall on its seconds by chance. Clients have addresses below 10.0.0.0/8.

use std::io::{self, Write};

use trace::calendar;
use wire::Seed;

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

/// Lines are written by so much, in bytes.
const BUFFER: usize = 1 << 20;

/// Writes the lines.
///
/// # Errors
/// Those of `out`.
pub fn write(wanted: &Wanted, out: &mut dyn Write) -> io::Result<()> {
    let Wanted { curve, requests, clients, seed } = wanted;
    let mut visitors = Visitors::new(*clients, *seed);
    let mut answers = Answers::new(*seed);
    let mut seconds = seed.stream("seconds", 0);
    let mut pages = seed.stream("pages", 0);
    let mut text = Vec::with_capacity(BUFFER + 1_024);
    for (minute, count) in curve.of(*requests) {
        let mut at = [0_u64; 60];
        for _ in 0..count {
            let second = usize::try_from(seconds.up_to(59)).unwrap_or(0);
            at[second] += 1;
        }
        let stamp = stamp(minute);
        for (second, count) in (0_u64..).zip(at) {
            for _ in 0..count {
                let [_, a, b, c] = visitors.next(minute + second).to_be_bytes();
                let (status, size) = answers.next();
                let page = pages.up_to(9_999);
                writeln!(
                    text,
                    "10.{a}.{b}.{c} - - [{stamp}:{second:02} +0000] \"GET /page/{page}.html HTTP/1.0\" {status} {size}"
                )?;
                if text.len() >= BUFFER {
                    out.write_all(&text)?;
                    text.clear();
                }
            }
        }
    }
    out.write_all(&text)?;
    out.flush()
}

/// A minute as Common Log Format begins its times: `30/Apr/1998:21:30`.
fn stamp(seconds: u64) -> String {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (year, month, day) = calendar::date(seconds / 86_400);
    let month = usize::try_from(month - 1).ok().and_then(|month| MONTHS.get(month)).unwrap_or(&"Jan");
    format!("{day:02}/{month}/{year:04}:{:02}:{:02}", seconds / 3_600 % 24, seconds / 60 % 60)
}

#[cfg(test)]
mod tests {
    use scenario::access_log::{Format, Reader, Who};

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
