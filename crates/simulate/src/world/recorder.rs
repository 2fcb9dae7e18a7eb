//! The packets of a run, as captures at both ends would show them.
//!
//! In memory; [`crate::capture`] writes files.

use tcp::{ConnectionStats, Segment};
use wire::Time;

use crate::world::Address;

/// A segment at a point and a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Time of the observation.
    pub at: Time,
    /// Point of the observation.
    pub seen: ObservationPoint,
    /// Sender.
    pub from: Address,
    /// Destination.
    pub to: Address,
    /// The segment.
    pub segment: Segment,
}

/// Point at which a segment was observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ObservationPoint {
    /// At the sender.
    Sent,
    /// At the receiver.
    Received,
    /// Dropped: a link lost it, or its queue was full.
    Lost,
}

/// State of a connection from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Time of the change.
    pub at: Time,
    /// Address of the probed end.
    pub local: Address,
    /// Address of the other end.
    pub peer: Address,
    /// Statistics of the endpoint.
    pub stats: ConnectionStats,
}

/// All observations, in order.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    records: Vec<Record>,
}

impl Recorder {
    pub(super) fn note(
        &mut self,
        at: Time,
        seen: ObservationPoint,
        from: Address,
        to: Address,
        segment: &Segment,
    ) {
        self.records.push(Record { at, seen, from, to, segment: segment.clone() });
    }

    /// All observations, in order.
    pub fn records(&self) -> &[Record] {
        &self.records
    }
}
