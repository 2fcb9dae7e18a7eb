//! Send queue of a connection: bytes, and parts of files that the kernel sends by itself.
//!
//! Not a connection: its owner calls [`Queue::write`] when the socket is writable.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, IoSlice};
use std::net::TcpStream;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use rustix::fs::sendfile;
use socket2::SockRef;

use crate::handler::Body;

/// Pieces to send, in order.
#[derive(Debug, Default)]
pub struct Queue {
    pieces: VecDeque<Piece>,
}

#[derive(Debug)]
enum Piece {
    Bytes(Vec<u8>, usize),
    Shared(Arc<[u8]>, usize),
    File(Arc<File>, u64, u64),
    /// End of a response.
    End,
}

/// Result of a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Bytes that were accepted.
    pub bytes: u64,
    /// Responses that were accepted to their last byte.
    pub responses: usize,
    /// The connection accepts no more for now.
    pub is_full: bool,
}

/// Payload of a SYN over Ethernet: 1,500 bytes without two headers and the maximum of options.
const SYN_BYTES: usize = 1_420;
/// Pieces that are written in one call.
const MAX_PARTS: usize = 32;
/// Maximum bytes that a connection writes before it is the next one's turn.
const TURN_BYTES: u64 = 512 << 10;

impl Queue {
    /// Adds bytes.
    pub fn push_bytes(&mut self, bytes: Vec<u8>) {
        self.pieces.push_back(Piece::Bytes(bytes, 0));
    }

    /// Adds a body.
    pub fn push_body(&mut self, body: &Body) {
        match body {
            Body::Whole(bytes) => self.pieces.push_back(Piece::Shared(Arc::clone(bytes), 0)),
            Body::File { file, offset, length } => {
                self.pieces.push_back(Piece::File(Arc::clone(file), *offset, offset + length));
            }
            // No bytes to send.
            Body::Described(_) => {}
        }
    }

    /// Adds a header section, and in the same piece as much of a file as a SYN can carry.
    pub fn push_begun(&mut self, mut head: Vec<u8>, body: &Body) {
        let Body::File { file, offset, length } = body else {
            self.push_bytes(head);
            return self.push_body(body);
        };
        let start = head.len();
        let wanted = SYN_BYTES.saturating_sub(start).min(usize::try_from(*length).unwrap_or(SYN_BYTES));
        head.resize(start + wanted, 0);
        // A read error now is reported when the file's turn comes.
        let read = head.get_mut(start..).map_or(Ok(0), |buffer| file.read_at(buffer, *offset)).unwrap_or(0);
        head.truncate(start + read);
        self.push_bytes(head);
        self.pieces.push_back(Piece::File(Arc::clone(file), *offset + read as u64, *offset + *length));
    }

    /// Marks the end of a response.
    pub fn push_end(&mut self) {
        self.pieces.push_back(Piece::End);
    }

    /// Whether nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Returns the number of pending pieces, whatever their size.
    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Writes what the connection accepts, up to the maximum for one turn.
    ///
    /// # Errors
    /// The system's error; the connection is then unusable. A truncated file is an error, too: nothing can be sent in place of
    /// the missing bytes.
    pub fn write(&mut self, stream: &TcpStream) -> io::Result<Written> {
        let mut written = Written::default();
        loop {
            while let Some(front) = self.pieces.front() {
                match front {
                    Piece::End => written.responses += 1,
                    Piece::Bytes(bytes, at) if *at >= bytes.len() => {}
                    Piece::Shared(bytes, at) if *at >= bytes.len() => {}
                    Piece::File(_, at, end) if at >= end => {}
                    Piece::Bytes(..) | Piece::Shared(..) | Piece::File(..) => break,
                }
                self.pieces.pop_front();
            }
            if self.pieces.is_empty() || written.bytes >= TURN_BYTES {
                return Ok(written);
            }
            match self.write_front(stream) {
                Ok(count) => written.bytes += count as u64,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    written.is_full = true;
                    return Ok(written);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn write_front(&mut self, stream: &TcpStream) -> io::Result<usize> {
        if let Some(Piece::File(file, at, end)) = self.pieces.front_mut() {
            let count = usize::try_from(*end - *at).unwrap_or(usize::MAX).min(1 << 18);
            let sent = sendfile(stream, &**file, Some(at), count)?;
            return if sent == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(sent) };
        }
        let mut parts = [IoSlice::new(&[]); MAX_PARTS];
        let (mut used, mut flags) = (0, libc::MSG_DONTWAIT);
        for piece in &self.pieces {
            let (bytes, at) = match piece {
                Piece::Bytes(bytes, at) => (&bytes[..], at),
                Piece::Shared(bytes, at) => (&bytes[..], at),
                Piece::End => continue,
                Piece::File(..) => {
                    // Avoids a segment with the header section alone.
                    flags |= libc::MSG_MORE;
                    break;
                }
            };
            let Some(part) = parts.get_mut(used) else { break };
            *part = IoSlice::new(bytes.get(*at..).unwrap_or_default());
            used += 1;
        }
        let parts = parts.get(..used).unwrap_or_default();
        let count = SockRef::from(stream).send_vectored_with_flags(parts, flags)?;
        if count == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.advance(count);
        Ok(count)
    }

    fn advance(&mut self, mut count: usize) {
        for piece in &mut self.pieces {
            let (length, at) = match piece {
                Piece::Bytes(bytes, at) => (bytes.len(), at),
                Piece::Shared(bytes, at) => (bytes.len(), at),
                Piece::End => continue,
                Piece::File(..) => return,
            };
            let taken = count.min(length - *at);
            *at += taken;
            count -= taken;
            if count == 0 {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::TcpListener;

    #[test]
    fn bytes_and_files_come_in_order_and_ends_are_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut receiver, _) = listener.accept().unwrap();
        let path = std::env::temp_dir().join(format!("dhttp-queue-{}", std::process::id()));
        std::fs::write(&path, "0123456789").unwrap();
        let file = Arc::new(File::open(&path).unwrap());
        std::fs::remove_file(&path).unwrap();
        let mut queue = Queue::default();
        queue.push_bytes(b"head ".to_vec());
        queue.push_body(&Body::Whole((*b"body ").into()));
        queue.push_end();
        queue.push_bytes(b"file ".to_vec());
        queue.push_body(&Body::File { file: Arc::clone(&file), offset: 2, length: 5 });
        queue.push_end();
        assert_eq!(queue.write(&sender).unwrap(), Written { bytes: 20, responses: 2, is_full: false });
        queue.push_body(&Body::File { file, offset: 8, length: 5 });
        assert!(queue.write(&sender).is_err(), "the file is shorter than was said");
        drop(sender);
        let mut text = String::new();
        receiver.read_to_string(&mut text).unwrap();
        assert_eq!(text, "head body file 2345689");
    }
}
