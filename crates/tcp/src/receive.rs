//! The receive buffer: data received, in order and out of order, and the advertised window.
//!
//! Acknowledgement is in `acks`, handling of a FIN in `input`.

use std::collections::{BTreeMap, VecDeque};

use crate::Payload;
use crate::config::ReceiveBuffer;
use crate::ranges::Ranges;
use crate::segment::SackBlocks;

/// The receive buffer and its window.
#[derive(Clone, Debug)]
pub(super) struct Receiver {
    /// Number of the next byte expected.
    next: u64,
    /// Right edge of the advertised window: it never moves left.
    edge: u64,
    buffer: ReceiveBuffer,
    /// Current size of the buffer.
    size: u64,
    /// Data in order, not yet read.
    unread: VecDeque<Payload>,
    unread_bytes: u64,
    /// Data out of order, by number; pieces do not overlap.
    out_of_order: BTreeMap<u64, Payload>,
    out_of_order_ranges: Ranges,
    /// A number in each out-of-order range, in the order in which the ranges last grew, most recent first.
    recent: Vec<u64>,
    /// Number of the FIN, once it is known.
    fin: Option<u64>,
}

/// Classification of a segment's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// No new bytes.
    Old,
    /// Bytes in order, no gap before or after.
    InOrder,
    /// Bytes in order that filled a gap, or left one beyond.
    FilledGap,
    /// Bytes beyond a gap, or beyond the window.
    OutOfOrder,
}

impl Receiver {
    pub(super) fn new(buffer: ReceiveBuffer) -> Self {
        let size = match buffer {
            ReceiveBuffer::Fixed(bytes) => bytes,
            ReceiveBuffer::Growing { initial, max } => initial.min(max),
        };
        Self {
            next: 0,
            edge: 0,
            buffer,
            size: u64::from(size),
            unread: VecDeque::new(),
            unread_bytes: 0,
            out_of_order: BTreeMap::new(),
            out_of_order_ranges: Ranges::default(),
            recent: Vec::new(),
            fin: None,
        }
    }

    /// Returns the number of the next byte expected.
    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    /// Returns the right edge of the advertised window.
    pub(super) const fn edge(&self) -> u64 {
        self.edge
    }

    /// Returns the current size of the buffer.
    pub(super) const fn size(&self) -> u64 {
        self.size
    }

    /// Returns the number of bytes not yet read by the application.
    pub(super) const fn unread(&self) -> u64 {
        self.unread_bytes
    }

    /// Returns whether there is data beyond a gap.
    pub(super) fn has_gap(&self) -> bool {
        !self.out_of_order_ranges.is_empty()
    }

    /// Synchronizes with the peer's SYN: the first byte of its data has the number `next`. The window that our SYN
    /// advertised begins there.
    pub(super) const fn begin(&mut self, next: u64) {
        self.edge += next;
        self.next = next;
    }

    /// Returns the free space.
    pub(super) const fn space(&self) -> u64 {
        self.size.saturating_sub(self.unread_bytes)
    }

    /// Returns the window to advertise, in bytes: without silly windows (RFC 9293, 3.8.6.2.2), and the edge never moves
    /// left.
    pub(super) fn window(&self, mss: u64) -> u64 {
        let space = self.space();
        let open = if space < mss && space < self.size / 4 { 0 } else { space };
        open.max(self.edge.saturating_sub(self.next))
    }

    /// Records that `window` bytes have been advertised.
    pub(super) fn advertised(&mut self, window: u64) {
        self.edge = self.edge.max(self.next + window);
    }

    /// Accepts a segment's data, whose first byte has the number `start`. Discards bytes beyond the window.
    pub(super) fn accept(&mut self, start: u64, payload: &Payload) -> Arrival {
        let limit = self.edge.max(self.next);
        let end = (start + payload.len() as u64).min(limit);
        if end <= start.max(self.next) {
            return if start > self.next { Arrival::OutOfOrder } else { Arrival::Old };
        }
        let skip = self.next.saturating_sub(start);
        let piece = trim(payload, skip, end.saturating_sub(start));
        if start + skip > self.next {
            self.store_out_of_order(start, piece);
            return Arrival::OutOfOrder;
        }
        self.deliver(piece);
        if self.out_of_order_ranges.is_empty() {
            return Arrival::InOrder;
        }
        self.deliver_in_order();
        Arrival::FilledGap
    }

    /// Records a FIN; its own number is `at`.
    pub(super) const fn record_fin(&mut self, at: u64) {
        self.fin = Some(at);
    }

    /// Consumes the FIN if all data before it has arrived. Returns true once.
    pub(super) fn consume_fin(&mut self) -> bool {
        let is_next = self.fin == Some(self.next);
        if is_next {
            self.next += 1;
            self.edge = self.edge.max(self.next);
            self.fin = None;
        }
        is_next
    }

    /// Returns the next bytes, in the pieces in which they arrived.
    pub(super) fn read(&mut self) -> Option<Payload> {
        let piece = self.unread.pop_front()?;
        self.unread_bytes -= piece.len() as u64;
        Some(piece)
    }

    /// Discards unread data.
    pub(super) fn discard(&mut self) {
        self.unread.clear();
        self.unread_bytes = 0;
    }

    /// Returns the ranges received beyond the gap, most recent first; at most `max_blocks`, because header space is
    /// limited.
    pub(super) fn sack(&self, max_blocks: usize) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        for number in self.recent.iter().take(max_blocks) {
            if let Some((start, end)) = self.out_of_order_ranges.containing(*number) {
                blocks.push(self.next, start, end);
            }
        }
        blocks
    }

    fn deliver(&mut self, piece: Payload) {
        let bytes = piece.len() as u64;
        self.next += bytes;
        self.unread_bytes += bytes;
        match self.buffer {
            ReceiveBuffer::Fixed(_) => {}
            ReceiveBuffer::Growing { initial: _, max } => {
                self.size = (self.size + 2 * bytes).min(u64::from(max).max(self.size));
            }
        }
        self.unread.push_back(piece);
    }

    /// Stores a piece that arrived out of order; bytes already present are left unchanged.
    fn store_out_of_order(&mut self, start: u64, piece: Payload) {
        let end = start + piece.len() as u64;
        let (whole_start, whole_end) = self.out_of_order_ranges.insert(start, end);
        // One representative per range: those merged into this one are removed.
        self.recent.retain(|number| !(whole_start..whole_end).contains(number));
        self.recent.insert(0, start);
        let mut at = start;
        while at < end {
            let covered =
                self.out_of_order.range(..=at).next_back().map(|(from, held)| from + held.len() as u64);
            if let Some(covered) = covered
                && covered > at
            {
                at = covered;
                continue;
            }
            let free_until = self.out_of_order.range(at..).next().map_or(end, |(from, _)| end.min(*from));
            self.out_of_order.insert(at, trim(&piece, at - start, free_until - start));
            at = free_until;
        }
    }

    /// Delivers out-of-order pieces that are now in order.
    fn deliver_in_order(&mut self) {
        while let Some((start, piece)) = self.out_of_order.pop_first() {
            if start > self.next {
                self.out_of_order.insert(start, piece);
                break;
            }
            let remainder = trim(&piece, self.next - start, piece.len() as u64);
            if !remainder.is_empty() {
                self.deliver(remainder);
            }
        }
        self.out_of_order_ranges.remove_below(self.next);
        let ranges = &self.out_of_order_ranges;
        self.recent.retain(|number| ranges.containing(*number).is_some());
    }
}

/// Returns the bytes from `from` to `to` of a piece.
fn trim(piece: &Payload, from: u64, to: u64) -> Payload {
    let index = |offset| usize::try_from(offset).unwrap_or(usize::MAX);
    piece.slice(index(from)..index(to))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receiver(buffer: u32) -> Receiver {
        let mut receiver = Receiver::new(ReceiveBuffer::Fixed(buffer));
        receiver.begin(1);
        receiver.advertised(receiver.window(10));
        receiver
    }

    fn bytes(text: &str) -> Payload {
        Payload::from(text.as_bytes())
    }

    fn read_all(receiver: &mut Receiver) -> String {
        let pieces: Vec<Payload> = std::iter::from_fn(|| receiver.read()).collect();
        String::from_utf8(pieces.iter().flat_map(|piece| piece.to_vec()).collect()).unwrap()
    }

    #[test]
    fn out_of_order_data_waits_for_the_missing_data() {
        let mut receiver = receiver(100);
        assert_eq!(receiver.accept(4, &bytes("def")), Arrival::OutOfOrder);
        assert_eq!(receiver.accept(9, &bytes("ij")), Arrival::OutOfOrder);
        assert_eq!(receiver.sack(4).ranges(1).collect::<Vec<_>>(), [(9, 11), (4, 7)]);
        assert_eq!(receiver.accept(3, &bytes("cde")), Arrival::OutOfOrder);
        assert_eq!(receiver.accept(1, &bytes("abc")), Arrival::FilledGap);
        assert_eq!(receiver.next(), 7);
        assert_eq!(receiver.accept(5, &bytes("efgh")), Arrival::FilledGap);
        assert_eq!(receiver.accept(1, &bytes("abc")), Arrival::Old);
        assert!(!receiver.has_gap());
        assert_eq!(read_all(&mut receiver), "abcdefghij");
    }

    #[test]
    fn data_beyond_the_window_is_discarded() {
        let mut receiver = receiver(4);
        assert_eq!(receiver.accept(1, &bytes("abcdef")), Arrival::InOrder);
        assert_eq!(receiver.accept(5, &bytes("ef")), Arrival::Old);
        assert_eq!(receiver.window(2), 0);
        assert_eq!(read_all(&mut receiver), "abcd");
        assert_eq!(receiver.window(2), 4);
    }

    #[test]
    fn window_edge_never_moves_back_and_small_openings_are_not_advertised() {
        let mut receiver = receiver(100);
        assert_eq!(receiver.edge(), 101);
        receiver.accept(1, &Payload::from(vec![0; 95]));
        receiver.advertised(receiver.window(10));
        assert_eq!((receiver.edge(), receiver.window(10)), (101, 5));
        receiver.accept(96, &Payload::from(vec![0; 5]));
        assert_eq!(receiver.window(10), 0);
    }

    #[test]
    fn fin_is_consumed_once_and_only_in_order() {
        let mut receiver = receiver(100);
        receiver.record_fin(4);
        assert!(!receiver.consume_fin());
        receiver.accept(1, &bytes("abc"));
        assert!(receiver.consume_fin());
        assert!(!receiver.consume_fin());
        assert_eq!(receiver.next(), 5);
    }

    #[test]
    fn growing_buffer_opens_by_twice_the_bytes_received() {
        let mut receiver = Receiver::new(ReceiveBuffer::Growing { initial: 10, max: 40 });
        receiver.begin(1);
        receiver.advertised(receiver.window(1));
        receiver.accept(1, &bytes("abcdefghij"));
        read_all(&mut receiver);
        assert_eq!(receiver.window(1), 30);
    }
}
