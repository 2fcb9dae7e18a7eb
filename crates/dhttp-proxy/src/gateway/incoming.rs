//! Bytes received on a connection and not read yet.
//!
//! Parsing is for the readers of [`http1::message`].

use std::io::{self, Read};
use std::net::TcpStream;
use std::time::Duration;

/// Receiving direction of a connection.
#[derive(Debug)]
pub(super) struct Incoming<S> {
    pub(super) stream: S,
    /// Read timeout set in the kernel.
    timeout: Option<Duration>,
    buffer: ReadBuffer,
    at: usize,
    end: usize,
}

/// Read buffer, reused; allocated on first use.
#[derive(Debug, Default)]
pub(super) struct ReadBuffer(Box<[u8]>);

/// Maximum bytes of one read.
const READ_BUFFER_BYTES: usize = 32 << 10;

impl<S: AsRef<TcpStream>> Incoming<S> {
    /// Starts with these unread bytes, which must fit into the buffer.
    pub(super) fn new(stream: S, mut buffer: ReadBuffer, unread: &[u8]) -> Self {
        if buffer.0.is_empty() {
            buffer.0 = vec![0; READ_BUFFER_BYTES].into_boxed_slice();
        }
        let end = unread.len().min(READ_BUFFER_BYTES);
        debug_assert!(end == unread.len(), "the unread bytes fit into the buffer");
        for (target, byte) in buffer.0.iter_mut().zip(unread) {
            *target = *byte;
        }
        Self { stream, timeout: None, buffer, at: 0, end }
    }

    /// Returns the connection, the unread bytes, and the buffer.
    pub(super) fn end(self) -> (S, Vec<u8>, ReadBuffer) {
        let unread = self.unread().to_vec();
        (self.stream, unread, self.buffer)
    }

    /// Returns the unread bytes.
    pub(super) fn unread(&self) -> &[u8] {
        self.buffer.0.get(self.at..self.end).unwrap_or_default()
    }

    /// Marks bytes as read.
    pub(super) const fn consume(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// Waits for more bytes, once all are read; returns `false` at the end of the stream.
    ///
    /// # Errors
    /// The connection's error, or that nothing arrived within `timeout`.
    pub(super) fn fill(&mut self, timeout: Duration) -> io::Result<bool> {
        debug_assert!(self.at >= self.end, "what is there is read first");
        let mut stream = self.stream.as_ref();
        if self.timeout != Some(timeout) {
            stream.set_read_timeout(Some(timeout))?;
            self.timeout = Some(timeout);
        }
        (self.at, self.end) = (0, 0);
        loop {
            match stream.read(&mut self.buffer.0) {
                Ok(length) => {
                    self.end = length;
                    return Ok(length > 0);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}
