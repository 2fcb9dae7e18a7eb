//! Requests of an access log: client, file, time and response of each, and the sizes of the files.
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
pub struct LogSample {
    lines: Vec<SampledRequest>,
    /// Records that were skipped: neither whole nor partial responses nor 304, or of unknown size.
    pub skipped: u64,
    /// Number of requests with a target.
    pub with_target: usize,
}

/// A request with its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SampledRequest {
    pub(super) time: Time,
    pub(super) client: Client,
    /// `None` for a 304 without a target.
    pub(super) file: Option<Target>,
    pub(super) response: ResponseKind,
}

/// Response to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResponseKind {
    Whole(u64),
    Part(u64),
    Unchanged,
}

impl ResponseKind {
    /// Returns the bytes sent.
    pub(super) const fn size(self) -> Option<u64> {
        match self {
            Self::Whole(size) | Self::Part(size) => Some(size),
            Self::Unchanged => None,
        }
    }
}

/// Requests for a file, and its sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FileUse {
    /// Number of requests.
    pub(super) count: u64,
    whole: Option<u64>,
    part: Option<u64>,
}

impl FileUse {
    pub(super) fn size(&self) -> Option<u64> {
        self.whole.or(self.part)
    }
}

impl LogSample {
    /// Adds a record, and its target.
    pub fn push(&mut self, record: &Record, target: Option<Target>) {
        let Record { time, client, status, size, covers: _, taken: _ } = *record;
        let response = match (status, size) {
            (304, _) => ResponseKind::Unchanged,
            (0 | 200, Some(size)) => ResponseKind::Whole(size.get()),
            (206, Some(size)) => ResponseKind::Part(size.get()),
            _ => {
                self.skipped += 1;
                return;
            }
        };
        self.with_target += usize::from(target.is_some());
        let file = target.or(response.size().map(Target::of_size));
        self.lines.push(SampledRequest { time, client, file, response });
    }

    /// Truncates it to the first `max` requests.
    pub fn truncate(&mut self, max: usize) {
        self.lines.truncate(max);
    }

    /// Returns the number of requests.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Returns whether there are no requests.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Returns the requests in order of time; simultaneous ones in the order of the log.
    pub(super) fn sorted(mut self) -> Vec<SampledRequest> {
        self.lines.sort_by_key(|line| line.time);
        self.lines
    }
}

/// Returns the files, by descending number of requests.
pub(super) fn files(lines: &[SampledRequest]) -> Vec<(Target, FileUse)> {
    let mut files: BTreeMap<Target, FileUse> = BTreeMap::new();
    for SampledRequest { time: _, client: _, file, response } in lines {
        let Some(file) = file else { continue };
        let usage = files.entry(*file).or_default();
        usage.count += 1;
        match *response {
            ResponseKind::Whole(size) => usage.whole = usage.whole.max(Some(size)),
            ResponseKind::Part(size) => usage.part = usage.part.max(Some(size)),
            ResponseKind::Unchanged => {}
        }
    }
    let mut files: Vec<(Target, FileUse)> = files.into_iter().collect();
    files.sort_by_key(|(_, usage)| std::cmp::Reverse(usage.count));
    files
}

/// Returns whether all times are whole seconds, which hide the order of events within one.
pub(super) fn has_whole_seconds(mut times: impl Iterator<Item = Time>) -> bool {
    times.all(|time| time.since(Time::ZERO).as_nanos().is_multiple_of(1_000_000_000))
}
