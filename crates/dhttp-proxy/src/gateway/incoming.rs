//! Bytes received on a connection and not read yet.
//!
//! Not how it is to be read: that is for the readers of [`http1::message`].

use std::io::{self, Read};
use std::net::TcpStream;
use std::time::Duration;

/// One direction of a connection, as it comes in.
#[derive(Debug)]
pub(super) struct Incoming<S> {
    pub(super) stream: S,
    /// Read timeout set in the kernel.
    patience: Option<Duration>,
    room: Room,
    at: usize,
    end: usize,
}

/// Room for so much as is read at once, to be used again; made when it is needed.
#[derive(Debug, Default)]
pub(super) struct Room(Box<[u8]>);

/// So much is read at once.
const ROOM: usize = 32 << 10;

impl<S: AsRef<TcpStream>> Incoming<S> {
    /// Nothing of it is read yet but this, which is no more than there is room for.
    pub(super) fn new(stream: S, mut room: Room, unread: &[u8]) -> Self {
        if room.0.is_empty() {
            room.0 = vec![0; ROOM].into_boxed_slice();
        }
        let end = unread.len().min(ROOM);
        debug_assert!(end == unread.len(), "who reads so much reads less at once");
        for (place, byte) in room.0.iter_mut().zip(unread) {
            *place = *byte;
        }
        Self { stream, patience: None, room, at: 0, end }
    }

    /// The connection, what is there and not read yet, and the room.
    pub(super) fn end(self) -> (S, Vec<u8>, Room) {
        let unread = self.unread().to_vec();
        (self.stream, unread, self.room)
    }

    /// Returns the unread bytes.
    pub(super) fn unread(&self) -> &[u8] {
        self.room.0.get(self.at..self.end).unwrap_or_default()
    }

    /// So many bytes of it have been read.
    pub(super) const fn consume(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// Waits for more, when all that was there has been read; `false` at the end of the stream.
    ///
    /// # Errors
    /// The connection's error, or that nothing came within `patience`.
    pub(super) fn fill(&mut self, patience: Duration) -> io::Result<bool> {
        debug_assert!(self.at >= self.end, "what is there is read first");
        let mut stream = self.stream.as_ref();
        if self.patience != Some(patience) {
            stream.set_read_timeout(Some(patience))?;
            self.patience = Some(patience);
        }
        (self.at, self.end) = (0, 0);
        loop {
            match stream.read(&mut self.room.0) {
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
