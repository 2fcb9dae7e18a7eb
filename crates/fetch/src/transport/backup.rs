//! Connections that a browser opens beside the first to an origin, if that is not open after a while: its SYN may be lost.

use std::collections::BTreeMap;

use wire::{Duration, Time};

use super::Endpoint;

/// First connections that are being opened, and when each gets another beside it.
#[derive(Debug)]
pub(super) struct Backups {
    due: BTreeMap<Endpoint, Time>,
    /// The first of these times.
    next: Option<Time>,
}

impl Backups {
    pub(super) const fn new() -> Self {
        Self { due: BTreeMap::new(), next: None }
    }

    /// Notes the first connection to an origin, which is being opened.
    pub(super) fn begin(&mut self, now: Time, origin: Endpoint, after: Option<Duration>) {
        if let Some(after) = after {
            self.due.insert(origin, now + after);
            self.next = self.due.values().min().copied();
        }
    }

    /// Takes the origins whose first connection has taken too long; forgets those of which none is being opened any more.
    pub(super) fn take_due(&mut self, now: Time, is_opening: impl Fn(Endpoint) -> bool) -> Vec<Endpoint> {
        self.due.retain(|origin, _| is_opening(*origin));
        let due: Vec<Endpoint> =
            self.due.iter().filter(|(_, due)| **due <= now).map(|(origin, _)| *origin).collect();
        for origin in &due {
            self.due.remove(origin);
        }
        self.next = self.due.values().min().copied();
        due
    }

    /// Next time at which one is due.
    pub(super) const fn next(&self) -> Option<Time> {
        self.next
    }
}
