//! Events of which the application has not yet been notified.
//!
//! Each kind is returned once, even if it occurred repeatedly, and in a fixed order.

use crate::interface::{Event, Failure};

/// Pending events.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "a set of kinds")]
pub(super) struct Events {
    pub connected: bool,
    pub readable: bool,
    pub written: bool,
    pub peer_finished: bool,
    pub closed: bool,
    pub failed: Option<Failure>,
}

impl Events {
    /// Returns the next event.
    pub(super) fn next(&mut self) -> Option<Event> {
        // The common case: nothing is pending.
        if self.has_only_failure() {
            return self.failed.take().map(Event::Failed);
        }
        let take = std::mem::take::<bool>;
        if take(&mut self.connected) {
            Some(Event::Connected)
        } else if take(&mut self.readable) {
            Some(Event::Readable)
        } else if take(&mut self.written) {
            Some(Event::Written)
        } else if take(&mut self.peer_finished) {
            Some(Event::PeerFinished)
        } else {
            take(&mut self.closed).then_some(Event::Closed)
        }
    }

    /// Returns whether nothing is pending except possibly the failure, which comes last.
    const fn has_only_failure(&self) -> bool {
        !(self.connected | self.readable | self.written | self.peer_finished | self.closed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_returned_once_and_a_failure_last() {
        let mut events =
            Events { failed: Some(Failure::Reset), readable: true, connected: true, ..Events::default() };
        events.peer_finished = true;
        let reported: Vec<Event> = std::iter::from_fn(|| events.next()).collect();
        let expected =
            [Event::Connected, Event::Readable, Event::PeerFinished, Event::Failed(Failure::Reset)];
        assert_eq!(reported, expected);
    }
}
