//! The client's threads, which send requests and handle responses one after another.
//!
//! With no time for each, nothing waits here.

use std::collections::VecDeque;

use wire::{Duration, Time};

use crate::transport::{Request, RequestId};

/// Work of the client.
#[derive(Debug)]
pub(super) enum Work {
    /// A request leaves.
    Send(Request),
    /// A complete response is handled.
    Complete(RequestId),
}

/// Work in its order.
#[derive(Debug)]
pub(super) struct ClientThreads {
    /// Time for each piece of work.
    time: Duration,
    /// Time from which they are free.
    free: Time,
    /// Work by the time at which it is done.
    waiting: VecDeque<(Time, Work)>,
}

impl ClientThreads {
    pub(super) const fn new(time: Duration) -> Self {
        Self { time, free: Time::ZERO, waiting: VecDeque::new() }
    }

    /// Returns the work if it takes no time; otherwise it waits for its turn.
    pub(super) fn pass(&mut self, now: Time, work: Work) -> Option<Work> {
        if self.time == Duration::ZERO {
            return Some(work);
        }
        self.free = self.free.max(now) + self.time;
        self.waiting.push_back((self.free, work));
        None
    }

    /// Takes the next work that is done.
    pub(super) fn take_due(&mut self, now: Time) -> Option<Work> {
        self.waiting.pop_front_if(|(done, _)| *done <= now).map(|(_, work)| work)
    }

    /// Time at which the next work is done.
    pub(super) fn next(&self) -> Option<Time> {
        self.waiting.front().map(|(done, _)| *done)
    }

    /// Forgets the work that waits.
    pub(super) fn abort(&mut self) {
        self.waiting.clear();
    }
}
