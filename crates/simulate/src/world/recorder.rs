//! The packets of a run, as captures at both ends would have them.
//!
//! Not a file: what is kept here can be written as one.

use tcp::{Segment, Vitals};
use wire::Time;

use crate::world::Address;

/// A segment at a place and a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// When.
    pub at: Time,
    /// Where.
    pub seen: Seen,
    /// Who sent it.
    pub from: Address,
    /// Who is to have it.
    pub to: Address,
    /// What it was.
    pub segment: Segment,
}

/// Where a segment was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Seen {
    /// At the host that sent it.
    Sent,
    /// At the host that it was for.
    Received,
    /// For the last time: a link lost it, or its queue was full.
    Lost,
}

/// How a connection was, from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// When it became so.
    pub at: Time,
    /// Its end that was looked at.
    pub local: Address,
    /// Its other end.
    pub peer: Address,
    /// How it was.
    pub vitals: Vitals,
}

/// Everything that was seen, in order.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    records: Vec<Record>,
}

impl Recorder {
    pub(super) fn note(&mut self, at: Time, seen: Seen, from: Address, to: Address, segment: &Segment) {
        self.records.push(Record { at, seen, from, to, segment: segment.clone() });
    }

    /// Everything that was seen, in order.
    pub fn records(&self) -> &[Record] {
        &self.records
    }
}
