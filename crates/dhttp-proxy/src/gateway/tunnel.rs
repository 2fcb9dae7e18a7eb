//! Bytes in both directions, untouched, until both sides have ended (RFC 9110, section 9.3.6).
//!
//! Nothing in them is interpreted. There is no idle timeout: the protocol inside has its own. Polling is done by `event_loop`,
//! edge-triggered.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;

use http1::message::RequestHead;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use dhttp::readiness::Interest;

/// A tunnel.
#[derive(Debug)]
pub(super) struct Tunnel {
    program: TunnelEnd,
    server: TunnelEnd,
    /// Client and request of the tunnel, for the log.
    pub(super) peer: SocketAddr,
    pub(super) requested: RequestHead,
}

/// An end of a tunnel, with its pending output.
#[derive(Debug)]
struct TunnelEnd {
    stream: Arc<TcpStream>,
    /// Bytes that its socket has not accepted yet.
    unwritten: Vec<u8>,
    /// Whether it sends no more, and the other end has been notified.
    has_ended: bool,
}

/// Name of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Program,
    Server,
}

/// Condition for further relaying.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RelayLimit {
    /// The next event.
    All,
    /// Other connections have had their turn.
    Turn,
    /// Nothing more: both have ended, or one broke off.
    ToTheEnd,
}

/// Events watched on both ends, from first to last.
pub(super) const WATCHED: Interest =
    Interest::IN.union(Interest::OUT).union(Interest::RDHUP).union(Interest::ET);

/// Maximum number of reads from one side before other connections have their turn.
const SHARE: usize = 16;

impl Tunnel {
    /// Creates a tunnel between a program, which has got its 200 response, and a server.
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

    /// Handles an event at one side.
    pub(super) fn ready(&mut self, side: Side, buffer: &mut [u8]) -> RelayLimit {
        let (source, destination) = match side {
            Side::Program => (&mut self.program, &mut self.server),
            Side::Server => (&mut self.server, &mut self.program),
        };
        let was_full = !source.unwritten.is_empty();
        let progress = carry(source, destination, buffer);
        // Its freed buffer space takes what the other side could not send before.
        let reverse_progress = if was_full { carry(destination, source, buffer) } else { Ok(true) };
        match (progress, reverse_progress) {
            (Ok(_), Ok(_)) if source.has_ended && destination.has_ended => RelayLimit::ToTheEnd,
            (Ok(true), Ok(true)) => RelayLimit::All,
            (Ok(_), Ok(_)) => RelayLimit::Turn,
            (Err(_), _) | (_, Err(_)) => {
                let _ = (source.stream.shutdown(Shutdown::Both), destination.stream.shutdown(Shutdown::Both));
                RelayLimit::ToTheEnd
            }
        }
    }
}

/// Relays what is available, as far as it is accepted; returns whether that was all.
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
            // An end of stream is forwarded as such: the other direction continues.
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
