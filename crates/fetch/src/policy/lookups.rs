//! Lookups of the origins' names: a request leaves when the name of its origin is known.
//!
//! A lookup begins with the first request to an origin; requests that follow wait for the same one.

use std::collections::{BTreeMap, VecDeque};

use wire::{Duration, Time};

use crate::transport::ToTransport;

/// Names, and requests that wait for them.
#[derive(Debug, Default)]
pub(super) struct Lookups {
    /// Time that the lookup of each origin takes; those beyond the end take none.
    times: Vec<Duration>,
    /// Time at which each origin's name is known, once it is looked up.
    known: BTreeMap<usize, Time>,
    /// Inputs that wait, in the order in which the lookups end.
    waiting: BTreeMap<Time, VecDeque<ToTransport>>,
}

impl Lookups {
    pub(super) fn new(times: &[Duration]) -> Self {
        Self { times: times.to_vec(), ..Self::default() }
    }

    /// Looks the name of an origin up, unless it is known; returns the time at which it is.
    pub(super) fn begin(&mut self, now: Time, origin: usize) -> Time {
        match self.times.get(origin).copied().unwrap_or_default() {
            Duration::ZERO => now,
            time => *self.known.entry(origin).or_insert(now + time),
        }
    }

    /// Returns what is for an origin if it may pass; otherwise it waits.
    pub(super) fn pass(&mut self, now: Time, origin: usize, input: ToTransport) -> Option<ToTransport> {
        let known = self.begin(now, origin);
        if known <= now {
            return Some(input);
        }
        self.waiting.entry(known).or_default().push_back(input);
        None
    }

    /// Takes the next whose lookup has ended.
    pub(super) fn take_due(&mut self, now: Time) -> Option<ToTransport> {
        let mut first = self.waiting.first_entry().filter(|first| *first.key() <= now)?;
        let input = first.get_mut().pop_front();
        if first.get().is_empty() {
            first.remove();
        }
        input
    }

    /// Time at which the next lookup ends that something waits for.
    pub(super) fn next(&self) -> Option<Time> {
        self.waiting.keys().next().copied()
    }

    /// Forgets what waits.
    pub(super) fn abort(&mut self) {
        self.waiting.clear();
    }
}
