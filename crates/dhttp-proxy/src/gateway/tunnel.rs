//! Bytes both ways, untouched, until both sides have ended (RFC 9110, section 9.3.6).
//!
//! Nothing is read out of them. A connection that says nothing for hours is no fault here: those inside know when it is
//! one. Not the watching: that is `front`'s, which tells once each time that something has changed.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;

use http1::message::RequestHead;
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

/// A tunnel.
#[derive(Debug)]
pub(super) struct Tunnel {
    program: TunnelEnd,
    server: TunnelEnd,
    /// Client and request of the tunnel, for the log.
    pub(super) peer: SocketAddr,
    pub(super) requested: RequestHead,
}

/// One of its ends.
#[derive(Debug)]
struct TunnelEnd {
    stream: Arc<TcpStream>,
    /// Bytes that it has not accepted yet.
    unwritten: Vec<u8>,
    /// It says no more, and the other has been told.
    has_ended: bool,
}

/// Which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Program,
    Server,
}

/// Condition for carrying on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RelayLimit {
    /// When something has changed.
    All,
    /// When others have had their turn.
    MyShare,
    /// Not at all: both have ended, or one broke off.
    ToTheEnd,
}

/// Events watched on both ends, from first to last.
pub(super) const WATCHED: EventFlags =
    EventFlags::IN.union(EventFlags::OUT).union(EventFlags::RDHUP).union(EventFlags::ET);

/// So often is something taken from one side before others have their turn.
const SHARE: usize = 16;

impl Tunnel {
    /// Between a program, which has been told that it is there, and a server.
    pub(super) fn new(
        peer: SocketAddr,
        requested: RequestHead,
        program: Arc<TcpStream>,
        server: TcpStream,
    ) -> Self {
        let end = |stream| TunnelEnd { stream, unwritten: Vec::new(), has_ended: false };
        Self { program: end(program), server: end(Arc::new(server)), peer, requested }
    }

    pub(super) fn stream(&self, side: Side) -> &TcpStream {
        match side {
            Side::Program => &self.program.stream,
            Side::Server => &self.server.stream,
        }
    }

    /// Something has changed at one side.
    pub(super) fn ready(&mut self, side: Side, buffer: &mut [u8]) -> RelayLimit {
        let (this, other) = match side {
            Side::Program => (&mut self.program, &mut self.server),
            Side::Server => (&mut self.server, &mut self.program),
        };
        let was_full = !this.unwritten.is_empty();
        let there = carry(this, other, buffer);
        // What it has room for now is what the other was kept from saying.
        let back = if was_full { carry(other, this, buffer) } else { Ok(true) };
        match (there, back) {
            (Ok(_), Ok(_)) if this.has_ended && other.has_ended => RelayLimit::ToTheEnd,
            (Ok(true), Ok(true)) => RelayLimit::All,
            (Ok(_), Ok(_)) => RelayLimit::MyShare,
            (Err(_), _) | (_, Err(_)) => {
                let _ = (this.stream.shutdown(Shutdown::Both), other.stream.shutdown(Shutdown::Both));
                RelayLimit::ToTheEnd
            }
        }
    }
}

/// Carries what there is, as far as it is taken; whether that was all.
fn carry(from: &mut TunnelEnd, to: &mut TunnelEnd, buffer: &mut [u8]) -> io::Result<bool> {
    for _ in 0..SHARE {
        if !to.unwritten.is_empty() {
            let sent = write(&to.stream, &to.unwritten)?;
            to.unwritten.drain(..sent);
            if !to.unwritten.is_empty() {
                return Ok(true);
            }
        }
        if from.has_ended {
            return Ok(true);
        }
        match recv(&*from.stream, &mut *buffer, RecvFlags::DONTWAIT) {
            // An end is passed on as an end: the other direction goes on.
            Ok((0, _)) => {
                from.has_ended = true;
                let _ = to.stream.shutdown(Shutdown::Write);
            }
            Ok((length, _)) => {
                let bytes = buffer.get(..length).unwrap_or_default();
                let sent = write(&to.stream, bytes)?;
                to.unwritten.extend_from_slice(bytes.get(sent..).unwrap_or_default());
            }
            Err(Errno::WOULDBLOCK) => return Ok(true),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(false)
}

/// Writes bytes, and returns the number accepted.
fn write(stream: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
    loop {
        match send(stream, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Ok(sent) => return Ok(sent),
            Err(Errno::WOULDBLOCK) => return Ok(0),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
