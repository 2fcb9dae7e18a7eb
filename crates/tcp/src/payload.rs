//! Payload bytes that are not copied: one contiguous slice of a shared buffer.
//!
//! A write of the application is one buffer; segments are slices of it, and so is the data that the other application
//! reads. Shared within one thread only: a simulation runs in one thread.

use std::ops::{Deref, Range};
use std::rc::Rc;

/// A slice of a shared buffer; cloning it copies no byte.
#[derive(Clone, Default)]
pub struct Payload {
    buffer: Option<Rc<Vec<u8>>>,
    start: u32,
    end: u32,
}

impl Payload {
    /// No bytes, and no buffer.
    pub const EMPTY: Self = Self { buffer: None, start: 0, end: 0 };

    /// Returns the length in bytes.
    pub const fn len(&self) -> usize {
        (self.end - self.start) as usize
    }

    /// Returns whether it is empty.
    pub const fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Returns the bytes of `range`, relative to this payload and clamped to its end.
    pub fn slice(&self, range: Range<usize>) -> Self {
        let position = |offset: usize| {
            u32::try_from(offset).map_or(self.end, |offset| self.start.saturating_add(offset).min(self.end))
        };
        let (start, end) = (position(range.start), position(range.end));
        Self { buffer: self.buffer.clone(), start, end: end.max(start) }
    }

    /// Appends `next` if it follows in the same buffer; returns whether it did.
    pub(super) fn extend(&mut self, next: &Self) -> bool {
        let is_same = match (&self.buffer, &next.buffer) {
            (Some(own), Some(other)) => Rc::ptr_eq(own, other),
            (None, _) | (_, None) => false,
        };
        let follows = is_same && self.end == next.start;
        if follows {
            self.end = next.end;
        }
        follows
    }

    /// Returns these bytes followed by those of `others`; copies them, unless there are none.
    #[must_use]
    pub fn join(self, others: &[Self]) -> Self {
        if others.is_empty() {
            return self;
        }
        let length = others.iter().fold(self.len(), |length, other| length + other.len());
        let mut bytes = Vec::with_capacity(length);
        bytes.extend_from_slice(&self);
        others.iter().for_each(|other| bytes.extend_from_slice(other));
        Self::from(bytes)
    }

    /// Retains the first `at` bytes and returns the remaining ones.
    pub fn split_off(&mut self, at: usize) -> Self {
        let tail = self.slice(at..self.len());
        self.end = tail.start;
        tail
    }
}

impl Deref for Payload {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.buffer {
            Some(buffer) => &buffer[self.start as usize..self.end as usize],
            None => &[],
        }
    }
}

impl From<&[u8]> for Payload {
    /// Copies the bytes; truncates beyond 4 GiB.
    fn from(bytes: &[u8]) -> Self {
        Self::from(bytes.to_vec())
    }
}

impl From<Vec<u8>> for Payload {
    /// Copies nothing; truncates beyond 4 GiB.
    fn from(bytes: Vec<u8>) -> Self {
        let end = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        match end {
            0 => Self::EMPTY,
            1.. => Self { buffer: Some(Rc::new(bytes)), start: 0, end },
        }
    }
}

impl PartialEq for Payload {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Payload {}

impl std::fmt::Debug for Payload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_relative_to_their_payload() {
        let mut whole = Payload::from(&b"0123456789"[..]);
        assert_eq!(&*whole.slice(2..8).slice(1..3), b"34");
        assert_eq!(&*whole.slice(8..99), b"89");
        assert!(whole.slice(99..200).is_empty());
        let tail = whole.split_off(4);
        assert_eq!((&*whole, &*tail), (&b"0123"[..], &b"456789"[..]));
        assert!(!whole.extend(&tail.slice(1..3)));
        assert!(whole.extend(&tail.slice(0..2)));
        assert_eq!(&*whole, b"012345");
    }

    #[test]
    fn empty_payload_has_no_buffer() {
        assert_eq!(Payload::from(Vec::new()), Payload::EMPTY);
        assert!(Payload::EMPTY.slice(0..1).is_empty());
    }
}
