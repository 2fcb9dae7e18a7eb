//! One kernel TCP connection on a non-blocking socket, as a driver uses it: queued writes, received data, and
//! the ways to close.
//!
//! The state machines decide what to write and when to close, `driver` when to try.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

use http1::server::Input;
use nix::poll::PollFlags;
use nix::sys::socket::{getsockopt, sockopt};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::Error;
use crate::profile::Profile;

/// A connection being opened, open, or closing.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: Socket,
    is_open: bool,
    /// Requested writes that the kernel has not accepted completely.
    writes: VecDeque<Vec<u8>>,
    /// Bytes of the first one that it has accepted.
    accepted_bytes: usize,
    /// Whether the rest of a message follows as soon as the kernel has accepted these.
    more_follows: bool,
    half_closes_after_writes: bool,
}

/// Result of a read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ReadResult {
    /// Number of bytes in the buffer.
    Bytes(usize),
    /// End of the peer's data.
    End,
    /// No data yet.
    Nothing,
}

fn set_options(socket: &Socket, profile: &Profile) -> io::Result<()> {
    socket.set_tcp_nodelay(profile.nodelay)?;
    match profile.send_buffer {
        // The kernel limits a larger value to its maximum, and so does this.
        Some(size) => socket.set_send_buffer_size(usize::try_from(size.get()).unwrap_or(usize::MAX)),
        None => Ok(()),
    }
}

impl Connection {
    /// Sends a SYN to `server`; the connection is open when the socket turns writable.
    pub(crate) fn open(server: SocketAddr, profile: &Profile) -> io::Result<Self> {
        let socket =
            Socket::new(Domain::for_address(server), Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
        set_options(&socket, profile)?;
        match socket.connect(&SockAddr::from(server)) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
            Err(error) => return Err(error),
        }
        Ok(Self::from_socket(socket, false))
    }

    /// A connection accepted by a listener.
    pub(crate) fn accepted(socket: Socket, profile: &Profile) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        set_options(&socket, profile)?;
        Ok(Self::from_socket(socket, true))
    }

    fn from_socket(socket: Socket, is_open: bool) -> Self {
        Self {
            socket,
            is_open,
            writes: VecDeque::new(),
            accepted_bytes: 0,
            more_follows: false,
            half_closes_after_writes: false,
        }
    }

    /// Whether the handshake is complete.
    pub(crate) const fn is_open(&self) -> bool {
        self.is_open
    }

    /// To be called when a socket being opened turned writable: open now, or the error.
    pub(crate) fn conclude_opening(&mut self) -> io::Result<()> {
        if let Some(error) = self.socket.take_error()? {
            return Err(error);
        }
        self.is_open = true;
        Ok(())
    }

    /// Poll events to wait for.
    pub(crate) fn interest(&self) -> PollFlags {
        match (self.is_open, self.writes.is_empty()) {
            (false, true | false) => PollFlags::POLLOUT,
            (true, true) => PollFlags::POLLIN,
            (true, false) => PollFlags::POLLIN | PollFlags::POLLOUT,
        }
    }

    /// Passes `bytes` to TCP in one call, after queued writes; the rest that the kernel does not accept is
    /// queued.
    pub(crate) fn write(&mut self, bytes: Vec<u8>) -> io::Result<()> {
        self.writes.push_back(bytes);
        self.write_pending()
    }

    /// Sets whether further writes follow immediately: then the kernel holds back a last segment that is not
    /// full, as if both were one write.
    pub(crate) const fn hold_last_segment(&mut self, more_follows: bool) {
        self.more_follows = more_follows;
    }

    /// Passes queued writes to TCP, as far as it accepts them.
    pub(crate) fn write_pending(&mut self) -> io::Result<()> {
        while let Some(first) = self.writes.front() {
            let flags = libc::MSG_NOSIGNAL | if self.more_follows { libc::MSG_MORE } else { 0 };
            match self.socket.send_with_flags(first.get(self.accepted_bytes..).unwrap_or_default(), flags) {
                Ok(accepted_bytes) => self.accepted_bytes += accepted_bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            if self.accepted_bytes >= first.len() {
                self.writes.pop_front();
                self.accepted_bytes = 0;
            }
        }
        if self.half_closes_after_writes { self.shut_down() } else { Ok(()) }
    }

    /// Whether the kernel has not accepted all writes yet.
    pub(crate) fn has_writes(&self) -> bool {
        !self.writes.is_empty()
    }

    /// Number of writes that the kernel has not accepted completely.
    pub(crate) fn writes(&self) -> usize {
        self.writes.len()
    }

    /// Reads received data into `buffer`.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<ReadResult> {
        loop {
            return match (&self.socket).read(buffer) {
                Ok(0) => Ok(ReadResult::End),
                Ok(length) => Ok(ReadResult::Bytes(length)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(ReadResult::Nothing),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
        }
    }

    /// Reads received data as input of a server's state machine; `None`: no data yet.
    pub(crate) fn read_input<'a>(&self, buffer: &'a mut [u8]) -> Option<Input<'a>> {
        match self.read(buffer) {
            Ok(ReadResult::Nothing) => None,
            Ok(ReadResult::Bytes(length)) => Some(Input::Received(buffer.get(..length).unwrap_or_default())),
            Ok(ReadResult::End) => Some(Input::EndOfStream),
            Err(_) => Some(Input::Reset),
        }
    }

    /// Continues queued writes, and reads if that is wanted, as far as these ready events permit.
    pub(crate) fn handle_readiness<'a>(
        &mut self,
        flags: PollFlags,
        is_reading: bool,
        buffer: &'a mut [u8],
    ) -> Option<Input<'a>> {
        if flags.contains(PollFlags::POLLOUT) && self.write_pending().is_err() {
            return Some(Input::Reset);
        }
        let is_readable = flags.intersects(PollFlags::POLLIN | PollFlags::POLLHUP | PollFlags::POLLERR);
        if is_reading && is_readable { self.read_input(buffer) } else { None }
    }

    /// Sends a FIN after queued writes; reading continues.
    pub(crate) fn half_close(&mut self) -> io::Result<()> {
        self.half_closes_after_writes = true;
        if self.writes.is_empty() { self.shut_down() } else { Ok(()) }
    }

    fn shut_down(&self) -> io::Result<()> {
        match self.socket.shutdown(Shutdown::Write) {
            // The peer was quicker, or reset the connection: it is closed already.
            Err(error) if error.kind() == ErrorKind::NotConnected => Ok(()),
            other => other,
        }
    }

    /// Ends the connection with a reset.
    pub(crate) fn abort(self) -> io::Result<()> {
        self.set_reset()
    }

    /// Makes the end of the connection a reset.
    pub(crate) fn set_reset(&self) -> io::Result<()> {
        self.socket.set_linger(Some(std::time::Duration::ZERO))
    }

    /// Whether the open socket has the congestion control and the segment size that its profile pins.
    pub(crate) fn check(&self, profile: &Profile) -> Result<(), Error> {
        let unpinned = |setting: &str, wanted: String, found: String| {
            Err(testbed::Error::Unpinned { setting: setting.to_owned(), wanted, found }.into())
        };
        let congestion = getsockopt(&self.socket, sockopt::TcpCongestion)
            .map_err(Error::kernel("read a socket's congestion control"))?;
        if congestion != profile.congestion {
            let found = congestion.to_string_lossy().into_owned();
            return unpinned("TCP_CONGESTION", profile.congestion.to_owned(), found);
        }
        let segment = getsockopt(&self.socket, sockopt::TcpMaxSeg)
            .map_err(Error::kernel("read a socket's segment size"))?;
        if segment != profile.segment {
            return unpinned("TCP_MAXSEG", profile.segment.to_string(), segment.to_string());
        }
        Ok(())
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
