//! Counts of a log's lines: records, and rejected lines by reason, each with a few examples.
//!
//! A log with bad lines is not an error. The caller decides whether enough lines are left.

use std::fmt;

use wire::Time;

/// Reason why a line gives no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Not of the log's format.
    Shape,
    /// No client.
    Client,
    /// The time is invalid, or before 1970.
    Time,
    /// The status is not a number of three digits.
    Status,
    /// The size is neither a number nor one of the notations of unknown.
    Size,
    /// A line of data before the line that names its fields.
    Fields,
    /// Longer than [`MAX_LINE_BYTES`].
    TooLong,
}

/// Maximum length of a line, in bytes: servers allow requests of 8 KiB, and a few headers may be logged too.
pub const MAX_LINE_BYTES: usize = 1 << 20;

impl Reason {
    /// Every reason.
    pub const ALL: [Self; 7] =
        [Self::Shape, Self::Client, Self::Time, Self::Status, Self::Size, Self::Fields, Self::TooLong];

    const fn index(self) -> usize {
        match self {
            Self::Shape => 0,
            Self::Client => 1,
            Self::Time => 2,
            Self::Status => 3,
            Self::Size => 4,
            Self::Fields => 5,
            Self::TooLong => 6,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Shape => "not of the log's format",
            Self::Client => "no client",
            Self::Time => "a time that cannot be read",
            Self::Status => "a status that is not three digits",
            Self::Size => "a size that is not a number",
            Self::Fields => "data before the line that names its fields",
            Self::TooLong => "longer than 1 MiB",
        })
    }
}

/// A rejected line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// Its line number, from 1.
    pub line: u64,
    /// Its beginning; invalid UTF-8 is replaced.
    pub text: String,
}

/// Maximum number of examples per reason.
const EXAMPLES: usize = 3;
/// Maximum length of an example, in bytes.
const SHOWN: usize = 120;

/// Counts of a stretch of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Lines, including blank ones and comments.
    pub lines: u64,
    /// Lines that gave a record.
    pub records: u64,
    /// Lines whose time is earlier than the previous record's.
    pub backwards: u64,
    /// Times of the first and the last record, in order of lines.
    ends: Option<(Time, Time)>,
    bad: [u64; Reason::ALL.len()],
    examples: [Vec<Example>; Reason::ALL.len()],
}

impl Tally {
    /// Counts a record.
    #[inline]
    pub fn record(&mut self, time: Time) {
        self.records += 1;
        let (first, last) = self.ends.unwrap_or((time, time));
        self.backwards += u64::from(time < last);
        self.ends = Some((first, time));
    }

    /// Counts a line without a record; its number is that of the lines counted so far.
    pub fn reject(&mut self, reason: Reason, line: &[u8]) {
        let index = reason.index();
        self.bad[index] += 1;
        if self.examples[index].len() < EXAMPLES {
            let text = String::from_utf8_lossy(&line[..line.len().min(SHOWN)]).into_owned();
            self.examples[index].push(Example { line: self.lines, text });
        }
    }

    /// Adds the counts of the following stretch.
    pub fn append(&mut self, next: Self) {
        let Self { lines, records, backwards, ends, bad, examples } = next;
        for (retained, more) in self.examples.iter_mut().zip(examples) {
            let capacity = EXAMPLES.saturating_sub(retained.len());
            retained.extend(
                more.into_iter()
                    .take(capacity)
                    .map(|example| Example { line: example.line + self.lines, ..example }),
            );
        }
        self.lines += lines;
        self.records += records;
        self.backwards += backwards;
        self.ends = match (self.ends, ends) {
            (Some((first, before)), Some((after, last))) => {
                self.backwards += u64::from(after < before);
                Some((first, last))
            }
            (one, other) => one.or(other),
        };
        for (count, more) in self.bad.iter_mut().zip(bad) {
            *count += more;
        }
    }

    /// Number of lines without a record.
    pub fn bad(&self) -> u64 {
        self.bad.iter().sum()
    }

    /// Reasons that occurred, with their counts and a few examples each.
    pub fn reasons(&self) -> impl Iterator<Item = (Reason, u64, &[Example])> {
        Reason::ALL
            .into_iter()
            .map(|reason| (reason, self.bad[reason.index()], self.examples[reason.index()].as_slice()))
            .filter(|(_, count, _)| *count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_few_and_keep_their_line_numbers_when_merged() {
        let stretch = || {
            let mut tally = Tally::default();
            for line in [b"one".as_slice(), b"two"] {
                tally.lines += 1;
                tally.reject(Reason::Time, line);
            }
            tally
        };
        let mut whole = stretch();
        whole.append(stretch());
        let (reason, count, examples) = whole.reasons().next().unwrap();
        assert_eq!((reason, count, whole.bad()), (Reason::Time, 4, 4));
        let numbers: Vec<u64> = examples.iter().map(|example| example.line).collect();
        assert_eq!(numbers, [1, 2, 3]);
    }

    #[test]
    fn every_reason_has_its_own_index() {
        for (index, reason) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(reason.index(), index);
        }
    }
}
