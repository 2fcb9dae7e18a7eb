//! A window over bytes from any source: as large as a packet requires, up to a limit.
//!
//! `BufRead` does not suffice: a packet must be contiguous, whatever its length.

use std::io::{self, ErrorKind, Read};
use std::ops::Range;

/// A reader with read-ahead.
#[derive(Debug)]
pub(super) struct Input<R> {
    read: R,
    buffer: Vec<u8>,
    /// Buffered bytes that have not been taken.
    unread: Range<usize>,
    /// Replaces the buffer, with the unread bytes, instead of reusing it.
    spare: Option<Vec<u8>>,
    /// The buffer that was replaced.
    used: Option<Vec<u8>>,
    /// Whether buffers are filled completely, so that their contents do not depend on the sizes of reads.
    fills: bool,
    /// A read error, to be returned when the bytes before it are taken.
    pending_error: Option<io::Error>,
}

/// Bytes per read.
const AHEAD: usize = 1 << 18;

impl<R: Read> Input<R> {
    pub(super) fn new(read: R) -> Self {
        Self {
            read,
            buffer: vec![0; AHEAD],
            unread: 0..0,
            spare: None,
            used: None,
            fills: false,
            pending_error: None,
        }
    }

    /// Returns the next `length` bytes, without taking them; `None` if there are fewer.
    pub(super) fn peek(&mut self, length: usize) -> io::Result<Option<&[u8]>> {
        if self.unread.len() < length && !self.fill(length)? {
            return Ok(None);
        }
        Ok(self.buffer.get(self.unread.start..self.unread.start + length))
    }

    /// Takes the next `length` bytes; returns their range, valid until the next call, or `None` if there are
    /// fewer.
    pub(super) fn take(&mut self, length: usize) -> io::Result<Option<Range<usize>>> {
        if self.unread.len() < length && !self.fill(length)? {
            return Ok(None);
        }
        let start = self.unread.start;
        self.unread.start += length;
        Ok(Some(start..start + length))
    }

    /// Returns the bytes of a range that was taken.
    pub(super) fn taken(&self, range: Range<usize>) -> &[u8] {
        self.buffer.get(range).unwrap_or_default()
    }

    /// Exchanges the buffer for `spare` when it is used up; its bytes then remain valid in [`Input::used`].
    pub(super) fn exchange_when_used(&mut self, spare: Vec<u8>) {
        (self.spare, self.fills) = (Some(spare), true);
    }

    /// Takes the buffer that was used up since the last call, if one was.
    pub(super) fn used(&mut self) -> Option<Vec<u8>> {
        self.used.take()
    }

    /// Takes the current buffer: nothing more is read.
    pub(super) fn take_buffer(&mut self) -> Vec<u8> {
        self.unread = 0..0;
        std::mem::take(&mut self.buffer)
    }

    /// Skips any number of bytes; false if there are fewer.
    pub(super) fn skip(&mut self, mut length: u64) -> io::Result<bool> {
        loop {
            let step = usize::try_from(length).unwrap_or(usize::MAX).min(self.unread.len());
            self.unread.start += step;
            length -= step as u64;
            if length == 0 {
                return Ok(true);
            }
            if !self.fill(1)? {
                return Ok(false);
            }
        }
    }

    /// Returns whether everything is taken and the source has ended.
    pub(super) fn at_end(&mut self) -> io::Result<bool> {
        Ok(self.unread.is_empty() && !self.fill(1)?)
    }

    /// Reads until `length` bytes are buffered; false if there are fewer.
    fn fill(&mut self, length: usize) -> io::Result<bool> {
        if let Some(mut spare) = self.spare.take() {
            spare.resize(spare.len().max(AHEAD).max(self.unread.len()), 0);
            spare[..self.unread.len()].copy_from_slice(&self.buffer[self.unread.clone()]);
            self.used = Some(std::mem::replace(&mut self.buffer, spare));
        } else {
            self.buffer.copy_within(self.unread.clone(), 0);
        }
        self.unread = 0..self.unread.len();
        if self.buffer.len() < length {
            self.buffer.resize(length, 0);
        }
        let target = if self.fills { self.buffer.len() } else { length };
        while self.unread.len() < target {
            if let Some(error) = self.pending_error.take_if(|_| self.unread.len() < length) {
                return Err(error);
            }
            match self.read.read(&mut self.buffer[self.unread.end..]) {
                Ok(0) => return Ok(self.unread.len() >= length),
                Ok(count) => self.unread.end += count.min(self.buffer.len() - self.unread.end),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if self.unread.len() < length => return Err(error),
                Err(error) => {
                    self.pending_error = Some(error);
                    return Ok(true);
                }
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns one byte at a time, like a slow pipe.
    struct Drip<'a>(&'a [u8]);

    impl Read for Drip<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.0.read(&mut into[..1])
        }
    }

    #[test]
    fn bytes_are_contiguous_whatever_the_read_sizes() {
        let bytes: Vec<u8> = (0..100).collect();
        let mut input = Input::new(Drip(&bytes));
        assert_eq!(input.peek(2).unwrap(), Some(&[0, 1][..]));
        let first = input.take(60).unwrap().unwrap();
        assert_eq!(input.taken(first), &bytes[..60]);
        assert!(input.skip(30).unwrap());
        assert_eq!(input.take(11).unwrap(), None);
        let last = input.take(10).unwrap().unwrap();
        assert_eq!(input.taken(last), &bytes[90..]);
        assert!(input.at_end().unwrap());
        assert!(!input.skip(1).unwrap());
    }
}
