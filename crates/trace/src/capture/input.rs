//! A window over bytes that come from anywhere: as much as a packet needs, and no more than a limit.
//!
//! Not `BufRead`: a packet must lie in one piece, whatever its length.

use std::io::{self, ErrorKind, Read};
use std::ops::Range;

/// Bytes, read ahead.
#[derive(Debug)]
pub(super) struct Input<R> {
    read: R,
    buffer: Vec<u8>,
    /// What is not yet taken.
    waiting: Range<usize>,
}

/// How much is read at once.
const AHEAD: usize = 1 << 18;

impl<R: Read> Input<R> {
    pub(super) fn new(read: R) -> Self {
        Self { read, buffer: vec![0; AHEAD], waiting: 0..0 }
    }

    /// The next `length` bytes, left where they are; `None` if there are fewer.
    pub(super) fn peek(&mut self, length: usize) -> io::Result<Option<&[u8]>> {
        if self.waiting.len() < length && !self.fill(length)? {
            return Ok(None);
        }
        Ok(self.buffer.get(self.waiting.start..self.waiting.start + length))
    }

    /// Takes the next `length` bytes; where they are until the next call, or `None` if there are fewer.
    pub(super) fn take(&mut self, length: usize) -> io::Result<Option<Range<usize>>> {
        if self.waiting.len() < length && !self.fill(length)? {
            return Ok(None);
        }
        let start = self.waiting.start;
        self.waiting.start += length;
        Ok(Some(start..start + length))
    }

    /// What was taken.
    pub(super) fn taken(&self, place: Range<usize>) -> &[u8] {
        self.buffer.get(place).unwrap_or_default()
    }

    /// Passes over `length` bytes, however many they are; false if there are fewer.
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

    /// Whether everything is taken and nothing more comes.
    pub(super) fn at_end(&mut self) -> io::Result<bool> {
        Ok(self.waiting.is_empty() && !self.fill(1)?)
    }

    /// Reads until `length` bytes wait; false if there are fewer.
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

    /// Gives one byte at a time, as a slow pipe does.
    struct Drip<'a>(&'a [u8]);

    impl Read for Drip<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.0.read(&mut into[..1])
        }
    }

    #[test]
    fn bytes_come_whole_however_they_arrive() {
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
