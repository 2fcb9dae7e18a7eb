//! Lookups of the origins' names: a request leaves when the name of its origin is known.
//!
//! A lookup begins with the first request to an origin; requests that follow wait for the same one.

use std::collections::{BTreeMap, VecDeque};

use wire::{Duration, Time};

use crate::transport::Request;

/// Names, and requests that wait for them.
#[derive(Debug, Default)]
pub(super) struct Lookups {
    /// Time that the lookup of each origin takes; those beyond the end take none.
    times: Vec<Duration>,
    /// Time at which each origin's name is known, once it is looked up.
    known: BTreeMap<usize, Time>,
    /// Requests in the order in which their lookups end.
    waiting: BTreeMap<Time, VecDeque<Request>>,
}

impl Lookups {
    pub(super) fn new(times: &[Duration]) -> Self {
        Self { times: times.to_vec(), ..Self::default() }
    }

    /// Returns the request if it may leave; otherwise it waits.
    pub(super) fn pass(&mut self, now: Time, request: Request) -> Option<Request> {
        let time = self.times.get(request.origin).copied().unwrap_or_default();
        if time == Duration::ZERO {
            return Some(request);
        }
        let known = *self.known.entry(request.origin).or_insert(now + time);
        if known <= now {
            return Some(request);
        }
        self.waiting.entry(known).or_default().push_back(request);
        None
    }

    /// Takes the next request whose lookup has ended.
    pub(super) fn take_due(&mut self, now: Time) -> Option<Request> {
        let mut first = self.waiting.first_entry().filter(|first| *first.key() <= now)?;
        let request = first.get_mut().pop_front();
        if first.get().is_empty() {
            first.remove();
        }
        request
    }

    /// Time at which the next lookup ends that a request waits for.
    pub(super) fn next(&self) -> Option<Time> {
        self.waiting.keys().next().copied()
    }

    /// Forgets the requests that wait.
    pub(super) fn abort(&mut self) {
        self.waiting.clear();
    }
}
