//! A window over bytes from any source: as large as a packet requires, up to a limit.
//!
//! Not `BufRead`: a packet must be contiguous, whatever its length.

use std::io::{self, ErrorKind, Read};
use std::ops::Range;

/// A reader with read-ahead.
#[derive(Debug)]
pub(super) struct Input<R> {
    read: R,
    buffer: Vec<u8>,
    /// Buffered bytes that have not been taken.
    waiting: Range<usize>,
}

/// Bytes per read.
const AHEAD: usize = 1 << 18;

impl<R: Read> Input<R> {
    pub(super) fn new(read: R) -> Self {
        Self { read, buffer: vec![0; AHEAD], waiting: 0..0 }
    }

    /// Returns the next `length` bytes, without taking them; `None` if there are fewer.
    pub(super) fn peek(&mut self, length: usize) -> io::Result<Option<&[u8]>> {
        if self.waiting.len() < length && !self.fill(length)? {
            return Ok(None);
        }
        Ok(self.buffer.get(self.waiting.start..self.waiting.start + length))
    }

    /// Takes the next `length` bytes; returns their range, valid until the next call, or `None` if there are
    /// fewer.
    pub(super) fn take(&mut self, length: usize) -> io::Result<Option<Range<usize>>> {
        if self.waiting.len() < length && !self.fill(length)? {
            return Ok(None);
        }
        let start = self.waiting.start;
        self.waiting.start += length;
        Ok(Some(start..start + length))
    }

    /// Returns the bytes of a range that was taken.
    pub(super) fn taken(&self, place: Range<usize>) -> &[u8] {
        self.buffer.get(place).unwrap_or_default()
    }

    /// Skips any number of bytes; false if there are fewer.
    pub(super) fn skip(&mut self, mut length: u64) -> io::Result<bool> {
        loop {
            let here = usize::try_from(length).unwrap_or(usize::MAX).min(self.waiting.len());
            self.waiting.start += here;
            length -= here as u64;
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
        Ok(self.waiting.is_empty() && !self.fill(1)?)
    }

    /// Reads until `length` bytes are buffered; false if there are fewer.
    fn fill(&mut self, length: usize) -> io::Result<bool> {
        self.buffer.copy_within(self.waiting.clone(), 0);
        self.waiting = 0..self.waiting.len();
        if self.buffer.len() < length {
            self.buffer.resize(length, 0);
        }
        while self.waiting.len() < length {
            match self.read.read(&mut self.buffer[self.waiting.end..]) {
                Ok(0) => return Ok(false),
                Ok(more) => self.waiting.end += more.min(self.buffer.len() - self.waiting.end),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
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
        let rest = input.take(10).unwrap().unwrap();
        assert_eq!(input.taken(rest), &bytes[90..]);
        assert!(input.at_end().unwrap());
        assert!(!input.skip(1).unwrap());
    }
}
