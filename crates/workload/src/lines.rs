//! What a plan takes of an access log: whose requests for which files were answered when, and the sizes of those files.
//!
//! Not how lines are read: that is [`accesslog`]. A target is a file; where a log does not say what was asked for,
//! answers of one size are one file. The answers of a file may differ in size, because it changed, was generated, or was not
//! waited for: its size is the largest of its whole answers, and where there is none the largest part. Of a file that was
//! never sent, because nothing had changed, no size is known.

use std::collections::BTreeMap;

use wire::Time;

use accesslog::{Client, Record, Target};

/// Requests of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    lines: Vec<Line>,
    /// Records that are not among them: neither whole nor partial nor unchanged answers, or of a size that the log does not say.
    pub left_out: u64,
    /// How many of them name what was asked for.
    pub named: usize,
}

/// A request that was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) time: Time,
    pub(super) client: Client,
    /// `None` where nothing had changed in a file that has no name.
    pub(super) file: Option<Target>,
    pub(super) answer: Answer,
}

/// What came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Whole(u64),
    Part(u64),
    Unchanged,
}

impl Answer {
    /// How much was sent.
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
    /// How often it was asked for.
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
    /// Takes a record, and what it asked for.
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

    /// Leaves all but the first so many away.
    pub fn cut(&mut self, most: usize) {
        self.lines.truncate(most);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// All of them in the order of their times; those of one time in the order of the log.
    pub(super) fn sorted(mut self) -> Vec<Line> {
        self.lines.sort_by_key(|line| line.time);
        self.lines
    }
}

/// The files that lines ask for, the one that is asked for most often first.
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

/// Whether all times are whole seconds, which hide what happens within one.
pub(super) fn has_whole_seconds(mut times: impl Iterator<Item = Time>) -> bool {
    times.all(|time| time.since(Time::ZERO).as_nanos().is_multiple_of(1_000_000_000))
}
