//! Hand-over to the event loop: connections that threads return, and progress of pending requests.

use std::io;
use std::sync::{Mutex, PoisonError};

use super::connection::Connection;
use super::stage::ExchangeEnd;
use dhttp::readiness::Waker;

/// Connections returned to the loop, and its waker.
pub(super) struct Completions {
    returned: Mutex<Vec<(u64, Completion)>>,
    pub(super) waker: Waker,
}

/// Event of a connection.
pub(super) enum Completion {
    /// A thread returned it with the end of its exchange; `None`: it is closed.
    Returned(Option<Box<(Connection, ExchangeEnd)>>),
    /// It was not leased: its pending request has progressed.
    Progress,
}

impl Completions {
    /// # Errors
    /// If the system has no descriptor left.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { returned: Mutex::default(), waker: Waker::new()? })
    }

    /// Wakes the loop.
    pub(super) fn wake(&self) {
        self.waker.wake();
    }

    /// Reports progress of this connection's pending request.
    pub(super) fn ring(&self, number: u64) {
        self.put(number, Completion::Progress);
    }

    pub(super) fn put(&self, number: u64, back: Completion) {
        let mut returned = self.returned.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = returned.is_empty();
        returned.push((number, back));
        drop(returned);
        if is_first {
            self.wake();
        }
    }

    pub(super) fn take(&self) -> Vec<(u64, Completion)> {
        self.waker.clear();
        std::mem::take(&mut *self.returned.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
