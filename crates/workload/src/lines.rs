//! Requests of an access log, as a plan uses them: client, file, time and response of each, and the sizes of
//! the files.
//!
//! Lines are parsed by [`accesslog`]. A target is a file; where a log does not record targets,
//! responses of one size are one file. The responses of a file may differ in size, because it changed, was
//! generated, or was aborted. Its size is the largest of its whole responses, and without any the largest
//! part. The size of a file that was never sent, because it was unchanged, is unknown.

use std::collections::BTreeMap;

use wire::Time;

use accesslog::{Client, Record, Target};

/// Requests of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    lines: Vec<Line>,
    /// Records that were skipped: neither whole nor partial responses nor 304, or of unknown size.
    pub left_out: u64,
    /// Number of requests with a target.
    pub named: usize,
}

/// A request with its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) time: Time,
    pub(super) client: Client,
    /// `None` for a 304 without a target.
    pub(super) file: Option<Target>,
    pub(super) answer: Answer,
}

/// Response to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Whole(u64),
    Part(u64),
    Unchanged,
}

impl Answer {
    /// Bytes sent.
    pub(super) const fn size(self) -> Option<u64> {
        match self {
            Self::Whole(size) | Self::Part(size) => Some(size),
            Self::Unchanged => None,
        }
    }
}

/// A file as a log shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// Number of requests.
    pub(super) count: u64,
    whole: Option<u64>,
    part: Option<u64>,
}

impl Seen {
    pub(super) fn size(&self) -> Option<u64> {
        self.whole.or(self.part)
    }
}

impl Lines {
    /// Adds a record, and its target.
    pub fn push(&mut self, record: &Record, target: Option<Target>) {
        let Record { time, client, status, size, covers: _, taken: _ } = *record;
        let answer = match (status, size) {
            (304, _) => Answer::Unchanged,
            (0 | 200, Some(size)) => Answer::Whole(size.get()),
            (206, Some(size)) => Answer::Part(size.get()),
            _ => {
                self.left_out += 1;
                return;
            }
        };
        self.named += usize::from(target.is_some());
        let file = target.or(answer.size().map(Target::of_size));
        self.lines.push(Line { time, client, file, answer });
    }

    /// Keeps only the first `most`.
    pub fn cut(&mut self, most: usize) {
        self.lines.truncate(most);
    }

    /// Number of requests.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// All requests in order of time; simultaneous ones in the order of the log.
    pub(super) fn sorted(mut self) -> Vec<Line> {
        self.lines.sort_by_key(|line| line.time);
        self.lines
    }
}

/// Files of the requests, by descending number of requests.
pub(super) fn files(lines: &[Line]) -> Vec<(Target, Seen)> {
    let mut files: BTreeMap<Target, Seen> = BTreeMap::new();
    for Line { time: _, client: _, file, answer } in lines {
        let Some(file) = file else { continue };
        let seen = files.entry(*file).or_default();
        seen.count += 1;
        match *answer {
            Answer::Whole(size) => seen.whole = seen.whole.max(Some(size)),
            Answer::Part(size) => seen.part = seen.part.max(Some(size)),
            Answer::Unchanged => {}
        }
    }
    let mut files: Vec<(Target, Seen)> = files.into_iter().collect();
    files.sort_by_key(|(_, seen)| std::cmp::Reverse(seen.count));
    files
}

/// Whether all times are whole seconds, which hide the order of events within one.
pub(super) fn has_whole_seconds(mut times: impl Iterator<Item = Time>) -> bool {
    times.all(|time| time.since(Time::ZERO).as_nanos().is_multiple_of(1_000_000_000))
}
