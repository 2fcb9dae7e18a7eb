//! What has come on a connection and is not read yet.
//!
//! Not how it is to be read: that is for the readers of [`proto::http`].

use std::io::{self, Read};
use std::net::TcpStream;
use std::time::Duration;

/// One direction of a connection, as it comes in.
#[derive(Debug)]
pub(super) struct Incoming<S> {
    pub(super) stream: S,
    /// What the kernel has been told of it.
    patience: Option<Duration>,
    room: Box<[u8]>,
    at: usize,
    end: usize,
}

/// So much is read at once.
const ROOM: usize = 32 << 10;

impl<S: AsRef<TcpStream>> Incoming<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, patience: None, room: vec![0; ROOM].into_boxed_slice(), at: 0, end: 0 }
    }

    /// What is there.
    pub(super) fn unread(&self) -> &[u8] {
        self.room.get(self.at..self.end).unwrap_or_default()
    }

    /// So many bytes of it have been read.
    pub(super) const fn consume(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// Waits for more, when all that was there has been read; `false` at the end of the stream.
    ///
    /// # Errors
    /// What the connection said, or that nothing came for so long.
    pub(super) fn fill(&mut self, patience: Duration) -> io::Result<bool> {
        debug_assert!(self.at >= self.end, "what is there is read first");
        let mut stream = self.stream.as_ref();
        if self.patience != Some(patience) {
            stream.set_read_timeout(Some(patience))?;
            self.patience = Some(patience);
        }
        (self.at, self.end) = (0, 0);
        loop {
            match stream.read(&mut self.room) {
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
