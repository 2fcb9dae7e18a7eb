//! What the application has not yet been told.
//!
//! Not a queue: each kind is told once, however often it happened meanwhile, and in this order.

use crate::tcp::interface::{Event, Failure};

/// The kinds that wait to be told.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "a set of kinds, each there or not")]
pub(super) struct Events {
    pub connected: bool,
    pub readable: bool,
    pub written: bool,
    pub peer_finished: bool,
    pub closed: bool,
    pub failed: Option<Failure>,
}

impl Events {
    /// The next one.
    pub(super) const fn next(&mut self) -> Option<Event> {
        let kinds = [
            (&mut self.connected, Event::Connected),
            (&mut self.readable, Event::Readable),
            (&mut self.written, Event::Written),
            (&mut self.peer_finished, Event::PeerFinished),
            (&mut self.closed, Event::Closed),
        ];
        let mut place = 0;
        while place < kinds.len() {
            if *kinds[place].0 {
                *kinds[place].0 = false;
                return Some(kinds[place].1);
            }
            place += 1;
        }
        match self.failed.take() {
            Some(failure) => Some(Event::Failed(failure)),
            None => None,
        }
    }
}
