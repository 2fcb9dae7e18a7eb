//! Streams of a connection: their responses' or requests' bodies, and the order in which DATA leaves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::profile::Scheduling;
use crate::window::SendWindows;

/// Priority of a stream (RFC 9218, section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// Urgency, 0 to 7; 0 comes first.
    pub urgency: u8,
    /// Whether it is useful in parts, so that it shares the connection.
    pub is_incremental: bool,
}

impl Default for Priority {
    fn default() -> Self {
        Self { urgency: 3, is_incremental: false }
    }
}

impl Priority {
    /// Reads the field `priority`; whatever is invalid in it is ignored (RFC 9218, section 4).
    pub fn read(value: &[u8]) -> Self {
        let mut priority = Self::default();
        for member in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            match member {
                [b'u', b'=', digit @ b'0'..=b'7'] => priority.urgency = digit - b'0',
                b"i" | b"i=?1" => priority.is_incremental = true,
                b"i=?0" => priority.is_incremental = false,
                _ => {}
            }
        }
        priority
    }

    /// Returns the field's value, as Chromium writes it: `u=1, i`.
    pub fn value(self) -> String {
        format!("u={}{}", self.urgency, if self.is_incremental { ", i" } else { "" })
    }
}

/// Bodies that are being sent.
#[derive(Clone, Debug)]
pub(super) struct Bodies {
    scheduling: Scheduling,
    bodies: BTreeMap<u32, Body>,
    /// Streams with bytes to send, in the order in which they may.
    order: BTreeSet<Place>,
    /// Number of frames of streams that take turns.
    turns: u64,
}

/// Place of a stream: urgency, turn, stream. Streams that take no turns come before those that do.
type Place = (u8, u64, u32);

#[derive(Clone, Debug)]
struct Body {
    bytes: Arc<[u8]>,
    sent: usize,
    place: Place,
}

/// The next bytes of a body.
pub(super) struct Chunk {
    pub(super) stream: u32,
    pub(super) bytes: Arc<[u8]>,
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) is_last: bool,
}

impl Bodies {
    pub(super) const fn new(scheduling: Scheduling) -> Self {
        Self { scheduling, bodies: BTreeMap::new(), order: BTreeSet::new(), turns: 0 }
    }

    /// Adds a body of at least one byte, in place of any other of the stream.
    pub(super) fn insert(&mut self, stream: u32, priority: Priority, bytes: Arc<[u8]>) {
        self.remove(stream);
        let place = match self.scheduling {
            Scheduling::Urgency if priority.is_incremental => (priority.urgency, self.next_turn(), stream),
            Scheduling::Urgency => (priority.urgency, 0, stream),
            Scheduling::RoundRobin => (0, self.next_turn(), stream),
            Scheduling::InOrder => (0, 0, stream),
        };
        self.order.insert(place);
        self.bodies.insert(stream, Body { bytes, sent: 0, place });
    }

    /// Forgets a body.
    pub(super) fn remove(&mut self, stream: u32) {
        if let Some(body) = self.bodies.remove(&stream) {
            self.order.remove(&body.place);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bodies.is_empty()
    }

    /// Takes at most `max` bytes of the first stream whose window allows any.
    pub(super) fn next(&mut self, windows: &SendWindows, max: u32) -> Option<Chunk> {
        let may_send = |place: &&Place| windows.available(place.2) > 0;
        let place = *self.order.iter().find(may_send)?;
        let (urgency, turn, stream) = place;
        let next_turn = self.next_turn();
        let body = self.bodies.get_mut(&stream)?;
        let window = usize::try_from(windows.available(stream)).unwrap_or(usize::MAX);
        let from = body.sent;
        let to = body.bytes.len().min(from + window.min(max as usize));
        body.sent = to;
        self.order.remove(&place);
        let is_last = to == body.bytes.len();
        let bytes = Arc::clone(&body.bytes);
        if is_last {
            self.bodies.remove(&stream);
        } else {
            body.place = if turn == 0 { place } else { (urgency, next_turn, stream) };
            self.order.insert(body.place);
        }
        Some(Chunk { stream, bytes, from, to, is_last })
    }

    fn next_turn(&mut self) -> u64 {
        self.turns += 1;
        self.turns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Streams in the order in which three bodies of two chunks leave: an incremental one, then two others.
    fn order(scheduling: Scheduling) -> Vec<u32> {
        let mut bodies = Bodies::new(scheduling);
        for (stream, urgency, is_incremental) in [(1, 3, true), (3, 3, true), (5, 1, false)] {
            bodies.insert(stream, Priority { urgency, is_incremental }, Arc::from([0; 20]));
        }
        let windows = SendWindows::default();
        std::iter::from_fn(|| bodies.next(&windows, 10)).map(|chunk| chunk.stream).collect()
    }

    #[test]
    fn urgent_streams_come_first_and_incremental_ones_take_turns() {
        assert_eq!(order(Scheduling::Urgency), [5, 5, 1, 3, 1, 3]);
        assert_eq!(order(Scheduling::RoundRobin), [1, 3, 5, 1, 3, 5]);
        assert_eq!(order(Scheduling::InOrder), [1, 1, 3, 3, 5, 5]);
    }

    #[test]
    fn stream_without_a_window_is_passed_over() {
        let mut bodies = Bodies::new(Scheduling::InOrder);
        let mut windows = SendWindows::default();
        windows.set_initial(10);
        for stream in [1, 3] {
            bodies.insert(stream, Priority::default(), Arc::from([0; 20]));
        }
        let mut next = || {
            let chunk = bodies.next(&windows, 100)?;
            windows.sent(chunk.stream, u32::try_from(chunk.to - chunk.from).unwrap());
            Some((chunk.stream, chunk.to - chunk.from))
        };
        assert_eq!([next(), next(), next()], [Some((1, 10)), Some((3, 10)), None]);
    }

    #[test]
    fn priority_field_is_read_and_written() {
        for text in ["u=0, i", "u=5"] {
            assert_eq!(Priority::read(text.as_bytes()).value(), text);
        }
        assert_eq!(Priority::read(b"u=9, x=1"), Priority::default());
    }
}
