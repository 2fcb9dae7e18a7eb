//! Ordered bytes of both directions, reassembled once; readers of protocols stack on them.
//!
//! A reader gets bytes in order, each with the mark of the packet that made them readable, and never a segment. What was
//! not captured is an event, too: a hole. Out-of-order data is stored up to a limit; beyond it what is missing is a hole.

use std::collections::BTreeMap;

use crate::{Both, Mark, Side};

/// A reader of ordered bytes.
pub trait Reader {
    /// Reads bytes that `side` sent next.
    fn bytes(&mut self, side: Side, data: &[u8], mark: Mark);

    /// Skips `length` bytes that `side` sent next and that were not captured.
    fn hole(&mut self, side: Side, length: u64, mark: Mark);
}

/// Both directions of a connection.
#[derive(Debug, Default)]
pub struct Streams {
    directions: Both<OrderedBytes>,
}

/// Bytes of one direction, or of a stream of QUIC, put in order.
#[derive(Debug, Default)]
pub(crate) struct OrderedBytes {
    /// Position of the next byte to be read.
    next: Option<u64>,
    /// Out-of-order data beyond it, if any.
    ahead: Option<Box<OutOfOrderData>>,
}

/// The next part of a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part<'a> {
    Bytes(&'a [u8]),
    /// Number of bytes that are missing.
    Hole(u64),
}

/// Out-of-order pieces with the number of bytes that each had on the wire, and the total of what is stored.
#[derive(Debug, Default)]
struct OutOfOrderData {
    pieces: BTreeMap<u64, (Vec<u8>, u64)>,
    bytes: usize,
}

/// Limits on the memory of one direction.
const MAX_AHEAD_BYTES: usize = 1 << 16;
const MAX_AHEAD_PIECES: usize = 1 << 10;

impl Streams {
    /// Returns whether data from `start` on is the next of `side`, or its first.
    pub fn is_next(&self, side: Side, start: u64) -> bool {
        self.directions.of(side).next.is_none_or(|next| next == start)
    }

    /// Returns whether all data of `side` so far was read: none is missing before it.
    pub fn is_read(&self, side: Side) -> bool {
        self.directions.of(side).ahead.as_ref().is_none_or(|ahead| ahead.pieces.is_empty())
    }

    /// Drops what is stored: nothing reads on.
    pub fn close(&mut self) {
        self.directions.client.ahead = None;
        self.directions.server.ahead = None;
    }

    /// Passes `length` bytes that `side` sent from `start` on, `payload` of them captured, to the reader.
    pub fn sent(
        &mut self,
        side: Side,
        start: u64,
        payload: &[u8],
        length: u64,
        mark: Mark,
        reader: &mut impl Reader,
    ) {
        self.directions.of_mut(side).sent(start, payload, length, &mut |part| match part {
            Part::Bytes(data) => reader.bytes(side, data, mark),
            Part::Hole(length) => reader.hole(side, length, mark),
        });
    }
}

impl OrderedBytes {
    /// Begins with the first byte of a stream, whatever is captured first.
    pub(crate) const fn from_the_first() -> Self {
        Self { next: Some(0), ahead: None }
    }

    /// Returns the number of bytes behind holes.
    pub(crate) fn stored(&self) -> usize {
        self.ahead.as_deref().map_or(0, |ahead| ahead.bytes)
    }

    /// Passes on what can be read of `length` bytes sent from `start` on, `payload` of them captured.
    pub(crate) fn sent(&mut self, start: u64, payload: &[u8], length: u64, on: &mut impl FnMut(Part<'_>)) {
        let next = *self.next.get_or_insert(start);
        if start > next {
            if length > 0 && self.store(start, payload, length) {
                self.skip_hole(on);
            }
            return;
        }
        self.read(start, payload, length, on);
        self.read_stored(on);
    }

    /// Reads what is new of a piece that begins at or before the next byte.
    fn read(&mut self, start: u64, payload: &[u8], length: u64, on: &mut impl FnMut(Part<'_>)) {
        let (next, end) = (self.next.unwrap_or(start), start + length);
        if end <= next {
            return;
        }
        self.next = Some(end);
        let known = usize::try_from(next - start).unwrap_or(usize::MAX);
        let fresh = payload.get(known..).unwrap_or_default();
        if !fresh.is_empty() {
            on(Part::Bytes(fresh));
        }
        let missing = end - next - fresh.len() as u64;
        if missing > 0 {
            on(Part::Hole(missing));
        }
    }

    fn read_stored(&mut self, on: &mut impl FnMut(Part<'_>)) {
        while let Some((start, piece, length)) = self.take_stored() {
            self.read(start, &piece, length, on);
        }
    }

    /// Takes the first stored piece, if it is the next.
    fn take_stored(&mut self) -> Option<(u64, Vec<u8>, u64)> {
        let next = self.next?;
        let ahead = self.ahead.as_deref_mut()?;
        let Some(piece) = ahead.pieces.first_entry() else {
            self.ahead = None;
            return None;
        };
        if *piece.key() > next {
            return None;
        }
        let (start, (piece, length)) = piece.remove_entry();
        ahead.bytes = ahead.bytes.saturating_sub(piece.len());
        Some((start, piece, length))
    }

    /// Stores a piece; returns whether too much is stored.
    fn store(&mut self, start: u64, payload: &[u8], length: u64) -> bool {
        let ahead = self.ahead.get_or_insert_default();
        let is_longer = ahead.pieces.get(&start).is_none_or(|(_, stored)| *stored < length);
        if is_longer {
            let stored = ahead.pieces.insert(start, (payload.to_vec(), length));
            ahead.bytes =
                (ahead.bytes + payload.len()).saturating_sub(stored.map_or(0, |(piece, _)| piece.len()));
        }
        ahead.bytes > MAX_AHEAD_BYTES || ahead.pieces.len() > MAX_AHEAD_PIECES
    }

    /// Gives up what is missing before the first stored piece.
    fn skip_hole(&mut self, on: &mut impl FnMut(Part<'_>)) {
        let first = self.ahead.as_deref().and_then(|ahead| ahead.pieces.keys().next().copied());
        let (Some(next), Some(first)) = (self.next, first) else { return };
        self.next = Some(first);
        on(Part::Hole(first.saturating_sub(next)));
        self.read_stored(on);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Time;

    /// Input of a reader: bytes, or the length of a hole, with the packet.
    #[derive(Default)]
    struct Record(Vec<(Result<Vec<u8>, u64>, u64)>);

    impl Reader for Record {
        fn bytes(&mut self, _: Side, data: &[u8], mark: Mark) {
            self.0.push((Ok(data.to_vec()), mark.frame));
        }

        fn hole(&mut self, _: Side, length: u64, mark: Mark) {
            self.0.push((Err(length), mark.frame));
        }
    }

    /// Start, bytes and length on the wire of each segment.
    fn read(segments: &[(u64, &[u8], u64)]) -> Vec<(Result<Vec<u8>, u64>, u64)> {
        let (mut streams, mut record) = (Streams::default(), Record::default());
        for (frame, (start, payload, length)) in (1..).zip(segments) {
            let mark = Mark { at: Time::from_nanos(frame), frame };
            streams.sent(Side::Server, *start, payload, *length, mark, &mut record);
        }
        record.0
    }

    #[test]
    fn reordered_and_repeated_data_is_read_once_in_order() {
        let read = read(&[(10, b"ab", 2), (14, b"ef", 2), (10, b"ab", 2), (11, b"bcd", 3)]);
        assert_eq!(read, [(Ok(b"ab".to_vec()), 1), (Ok(b"cd".to_vec()), 4), (Ok(b"ef".to_vec()), 4)]);
    }

    #[test]
    fn truncated_packets_leave_holes() {
        let read = read(&[(10, b"ab", 5), (17, b"x", 3), (15, b"cd", 2)]);
        let expected = [
            (Ok(b"ab".to_vec()), 1),
            (Err(3), 1),
            (Ok(b"cd".to_vec()), 3),
            (Ok(b"x".to_vec()), 3),
            (Err(2), 3),
        ];
        assert_eq!(read, expected);
    }

    #[test]
    fn missing_data_is_a_hole_once_too_much_is_stored() {
        let piece = vec![7; 40_000];
        let read = read(&[(0, b"a", 1), (100, &piece, 40_000), (40_100, &piece, 40_000), (50, b"late", 4)]);
        let holes: Vec<_> =
            read.iter().filter_map(|(read, frame)| Some((read.as_ref().err()?, *frame))).collect();
        assert_eq!(holes, [(&99, 3)]);
        assert_eq!(read.len(), 4, "what comes later is not read again");
    }
}
