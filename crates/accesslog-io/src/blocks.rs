//! A log cut into blocks of whole lines, each of about the same size, from any source of bytes.
//!
//! Not lines: the reader of a block finds those. A line over the maximum length is truncated, so that no line can
//! exhaust memory.

use std::io::{self, Read};

use accesslog::tally::MAX_LINE_BYTES;

/// Iterator over a log's blocks.
pub struct Blocks {
    bytes: Bytes,
    size: usize,
    /// The beginning of a line whose end has not been read yet.
    begun: Vec<u8>,
    /// Whether the rest of an overlong line is being skipped.
    is_skipping: bool,
    ended: bool,
    /// A read error, returned after everything that was read before it.
    failed: Option<io::Error>,
}

/// Opens a log's bytes.
pub type OpenLog = Box<dyn FnOnce() -> io::Result<Box<dyn Read + Send>> + Send>;

enum Bytes {
    Closed(Option<OpenLog>),
    Open(Box<dyn Read + Send>),
}

impl Blocks {
    /// Blocks of `size` bytes plus the rest of a line; the log is opened at the first call of [`next_block`](Self::next_block).
    pub fn new(open: OpenLog, size: usize) -> Self {
        Self {
            bytes: Bytes::Closed(Some(open)),
            size,
            begun: Vec::new(),
            is_skipping: false,
            ended: false,
            failed: None,
        }
    }

    /// The next block; `None` at the end.
    ///
    /// # Errors
    /// The system's error, after everything that could be read.
    pub fn next_block(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            if self.ended {
                return self.failed.take().map_or(Ok(None), Err);
            }
            let mut block = std::mem::take(&mut self.begun);
            let length_before = block.len();
            self.fill(&mut block);
            if self.is_skipping {
                // From the truncation to the end of the line.
                match memchr::memchr(b'\n', &block[length_before..]) {
                    Some(end) => {
                        block.drain(length_before..length_before + end);
                        self.is_skipping = false;
                    }
                    None => block.truncate(length_before),
                }
            }
            if !self.ended {
                let end = memchr::memrchr(b'\n', &block).map_or(0, |end| end + 1);
                self.begun = block.split_off(end);
                if self.begun.len() > MAX_LINE_BYTES {
                    // One byte over the maximum: the reader reports the line.
                    self.begun.truncate(MAX_LINE_BYTES + 1);
                    self.is_skipping = true;
                }
            }
            if !block.is_empty() {
                return Ok(Some(block));
            }
        }
    }

    /// Appends bytes of one block size, or the rest of the log.
    fn fill(&mut self, block: &mut Vec<u8>) {
        let (length_before, wanted) = (block.len(), self.size as u64);
        block.reserve_exact(self.size);
        match self.bytes.open().and_then(|bytes| bytes.take(wanted).read_to_end(block)) {
            Ok(_) => self.ended = block.len() < length_before + self.size,
            Err(error) => {
                self.ended = true;
                self.failed = Some(error);
            }
        }
    }
}

impl Bytes {
    fn open(&mut self) -> io::Result<&mut (dyn Read + Send)> {
        if let Self::Closed(open) = self
            && let Some(open) = open.take()
        {
            *self = Self::Open(open()?);
        }
        match self {
            Self::Open(bytes) => Ok(bytes),
            Self::Closed(_) => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(text: &[u8], size: usize) -> Vec<Vec<u8>> {
        let text = text.to_vec();
        let mut blocks = Blocks::new(Box::new(|| Ok(Box::new(io::Cursor::new(text)))), size);
        std::iter::from_fn(|| blocks.next_block().unwrap()).collect()
    }

    #[test]
    fn blocks_are_whole_lines_and_together_the_log() {
        let text = b"one\ntwo\n\nthree\nfour";
        for size in 1..25 {
            let blocks = blocks(text, size);
            assert_eq!(blocks.concat(), text, "{size}");
            assert!(blocks[..blocks.len() - 1].iter().all(|block| block.ends_with(b"\n")), "{size}");
        }
    }

    #[test]
    fn an_overlong_line_is_truncated_and_the_next_one_is_whole() {
        let text = [b"a\n".as_slice(), &vec![b'x'; MAX_LINE_BYTES * 3], b"\nb\n"].concat();
        let whole = blocks(&text, 1 << 18).concat();
        let lengths: Vec<usize> = whole.split(|byte| *byte == b'\n').map(<[u8]>::len).collect();
        assert_eq!(lengths, [1, MAX_LINE_BYTES + 1, 1, 0]);
    }

    #[test]
    fn bytes_read_before_an_error_are_not_lost() {
        struct BrokenReader;
        impl Read for BrokenReader {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::ErrorKind::UnexpectedEof.into())
            }
        }
        let mut blocks =
            Blocks::new(Box::new(|| Ok(Box::new(io::Cursor::new(b"one\ntw").chain(BrokenReader)))), 1 << 10);
        assert_eq!(blocks.next_block().unwrap().unwrap(), b"one\ntw");
        assert!(blocks.next_block().is_err());
        assert!(blocks.next_block().unwrap().is_none());
    }
}
