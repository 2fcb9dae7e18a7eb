//! The send buffer: data that the application wrote and the peer has not acknowledged, by sequence number.
//!
//! `flight` and `output` know which data was, or may be, sent.

use std::collections::VecDeque;

use crate::Payload;
use crate::config::BufferOccupancy;

/// The send buffer. The first byte written is number 1.
#[derive(Clone, Debug)]
pub(super) struct SendBuffer {
    /// Payloads of writes, each with the number of its first byte.
    writes: VecDeque<(u64, Payload)>,
    /// First unacknowledged number.
    start: u64,
    /// Number after the last byte in the buffer.
    end: u64,
    capacity: u64,
    /// Capacity up to which a tuned buffer grows.
    max_capacity: u64,
    occupancy: BufferOccupancy,
    /// Unsent bytes from which on the application is blocked.
    unsent_limit: Option<u64>,
    /// First number that has not been sent.
    unsent: u64,
    /// First number that still occupies the buffer.
    freed: u64,
    /// Data that did not fit: the application is blocked until it fits.
    blocked: VecDeque<Payload>,
}

/// Memory of a segment besides its payload: `MAX_TCP_HEADER` and `skb_shared_info`, rounded up together with it ...
const SEGMENT_OVERHEAD: u64 = 640;
/// ... and `sk_buff`.
const DESCRIPTOR: u64 = 256;
/// `TCP_INIT_CWND`.
const MIN_WINDOW: u64 = 10;
/// Data for which `tcp_sendmsg` looks at the limit once: that of a buffer for segmentation offload, 44 segments of 1,460 bytes.
const OFFLOADED: u64 = 44 * 1_460;

impl SendBuffer {
    pub(super) fn new(capacity: u32, occupancy: BufferOccupancy, unsent_limit: Option<u32>) -> Self {
        Self {
            writes: VecDeque::new(),
            start: 1,
            end: 1,
            capacity: match occupancy {
                BufferOccupancy::Unacknowledged | BufferOccupancy::Unsent => u64::from(capacity),
                BufferOccupancy::Tuned => 0,
            },
            max_capacity: u64::from(capacity),
            occupancy,
            unsent_limit: unsent_limit.map(u64::from),
            unsent: 1,
            freed: 1,
            blocked: VecDeque::new(),
        }
    }

    /// Returns the number after the last byte in the buffer.
    pub(super) const fn end(&self) -> u64 {
        self.end
    }

    /// Accepts the part of a write that fits.
    pub(super) fn write(&mut self, payload: Payload) {
        if !payload.is_empty() {
            self.blocked.push_back(payload);
        }
        self.accept();
    }

    /// Grows a tuned buffer for a congestion window of this many segments. It never shrinks.
    pub(super) fn tune(&mut self, window: u64, mss: u64) {
        match self.occupancy {
            BufferOccupancy::Unacknowledged | BufferOccupancy::Unsent => {}
            BufferOccupancy::Tuned => {
                let segment = (mss + SEGMENT_OVERHEAD).next_power_of_two() + DESCRIPTOR;
                let target = 2 * window.max(MIN_WINDOW) * segment;
                self.capacity = target.min(self.max_capacity).max(self.capacity);
            }
        }
    }

    /// Accepts the part of the blocked data that fits now; returns whether any did.
    pub(super) fn unblock(&mut self) -> bool {
        let before = self.end;
        // `sk_stream_is_writeable`: a sleeping writer is woken when a third is free.
        let is_tuned = self.occupancy == BufferOccupancy::Tuned;
        if is_tuned && 3 * (self.end - self.freed) > 2 * self.capacity {
            return false;
        }
        // `tcp_stream_memory_free`: it is woken when less than half of the limit is unsent.
        if self.unsent_limit.is_some_and(|limit| 2 * (self.end - self.unsent) >= limit) {
            return false;
        }
        self.accept();
        self.end > before
    }

    /// Accepts what fits of the blocked data.
    fn accept(&mut self) {
        while let Some(first) = self.blocked.front_mut() {
            let mut space = self.capacity.saturating_sub(self.end - self.freed);
            if let Some(limit) = self.unsent_limit {
                let is_below = self.end - self.unsent < limit;
                space = space.min(if is_below { OFFLOADED } else { 0 });
            }
            if space == 0 {
                break;
            }
            let remainder = first.split_off(usize::try_from(space).unwrap_or(usize::MAX));
            let fits = std::mem::replace(first, remainder);
            if first.is_empty() {
                self.blocked.pop_front();
            }
            self.append(fits);
        }
    }

    fn append(&mut self, piece: Payload) {
        let bytes = piece.len() as u64;
        // Pieces of one write are joined, so that segments do not span them.
        if !self.writes.back_mut().is_some_and(|(_, last)| last.extend(&piece)) {
            self.writes.push_back((self.end, piece));
        }
        self.end += bytes;
    }

    /// Records that everything before `number` has been sent.
    pub(super) fn sent(&mut self, number: u64) {
        self.unsent = number.min(self.end).max(self.unsent);
        match self.occupancy {
            BufferOccupancy::Unacknowledged | BufferOccupancy::Tuned => {}
            BufferOccupancy::Unsent => self.freed = number.min(self.end).max(self.freed),
        }
    }

    /// Returns whether the application is blocked.
    pub(super) fn is_blocked(&self) -> bool {
        !self.blocked.is_empty()
    }

    /// Releases everything before `number`, which is acknowledged.
    pub(super) fn release(&mut self, number: u64) {
        self.start = number.min(self.end).max(self.start);
        match self.occupancy {
            BufferOccupancy::Unacknowledged | BufferOccupancy::Tuned => self.freed = self.start,
            BufferOccupancy::Unsent => {}
        }
        while let Some((first, payload)) = self.writes.front()
            && first + payload.len() as u64 <= self.start
        {
            self.writes.pop_front();
        }
    }

    /// Returns the bytes from `start` to `end`, which must be in the buffer. Copied only if they span two writes.
    pub(super) fn slice(&self, start: u64, end: u64) -> Payload {
        // The common case: the range lies in the last write.
        if let Some((first, payload)) = self.writes.back()
            && *first <= start
        {
            return subslice(payload, start - first, end - first);
        }
        let after = self.writes.partition_point(|(first, _)| *first <= start);
        let mut from = self.writes.range(after.saturating_sub(1)..);
        let Some((first, payload)) = from.next() else { return Payload::EMPTY };
        let piece = subslice(payload, start - first, end - first);
        if piece.len() as u64 == end - start {
            return piece;
        }
        let mut whole = Vec::with_capacity(usize::try_from(end - start).unwrap_or_default());
        whole.extend_from_slice(&piece);
        for (first, payload) in from.take_while(|(first, _)| *first < end) {
            whole.extend_from_slice(&subslice(payload, 0, end - first));
        }
        Payload::from(whole)
    }
}

fn subslice(payload: &Payload, from: u64, to: u64) -> Payload {
    let index = |offset| usize::try_from(offset).unwrap_or(usize::MAX);
    payload.slice(index(from)..index(to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tuned_buffer_grows_with_the_window_and_wakes_its_writer_when_a_third_is_free() {
        let mut buffer = SendBuffer::new(4 << 20, BufferOccupancy::Tuned, None);
        buffer.tune(10, 1_460);
        // The default of Linux for an MSS of 1,460 bytes, as `ss` shows it: 87,040.
        buffer.write(Payload::from(vec![0; 100_000]));
        assert_eq!(buffer.end() - 1, 87_040);
        buffer.release(1 + 29_000);
        assert!(!buffer.unblock());
        buffer.release(1 + 29_014);
        assert!(buffer.unblock() && !buffer.is_blocked());
        buffer.tune(1_000_000, 1_460);
        buffer.write(Payload::from(vec![0; 8 << 20]));
        assert_eq!(buffer.end() - 1, 29_014 + (4 << 20));
    }

    #[test]
    fn limit_of_unsent_bytes_blocks_a_writer_until_half_of_it_has_been_sent() {
        let mut buffer = SendBuffer::new(4 << 20, BufferOccupancy::Unacknowledged, Some(16_384));
        buffer.write(Payload::from(vec![0; 100_000]));
        assert_eq!(buffer.end() - 1, OFFLOADED, "the limit is looked at once");
        buffer.sent(1 + OFFLOADED - 8_192);
        assert!(!buffer.unblock(), "half of the limit is unsent");
        buffer.sent(1 + OFFLOADED - 8_191);
        assert!(buffer.unblock() && !buffer.is_blocked());
        assert_eq!(buffer.end() - 1, 100_000);
    }

    #[test]
    fn write_beyond_the_capacity_is_blocked_and_accepted_in_order() {
        let mut buffer = SendBuffer::new(4, BufferOccupancy::Unacknowledged, None);
        buffer.write(Payload::from(&b"abcdef"[..]));
        assert!(buffer.is_blocked());
        buffer.write(Payload::from(&b"g"[..]));
        assert!(!buffer.unblock());
        assert_eq!(&*buffer.slice(2, 5), b"bcd");
        buffer.release(4);
        assert!(buffer.unblock());
        assert!(!buffer.is_blocked());
        assert_eq!(&*buffer.slice(4, 8), b"defg");
        assert_eq!(buffer.end(), 8);
    }

    #[test]
    fn a_slice_may_span_writes() {
        let mut buffer = SendBuffer::new(100, BufferOccupancy::Unacknowledged, None);
        for text in ["ab", "c", "def"] {
            buffer.write(Payload::from(text.as_bytes()));
        }
        assert_eq!(&*buffer.slice(1, 7), b"abcdef");
        assert_eq!(&*buffer.slice(2, 4), b"bc");
        buffer.release(3);
        assert_eq!(&*buffer.slice(3, 6), b"cde");
    }
}
