//! One kernel TCP connection on a non-blocking socket, as a driver sees it: writes that wait their turn, what
//! arrives, and the ways to end.
//!
//! Not a machine and not a loop: what to write and when to close is for the state machines to say, when to try for `driver`.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

use nix::poll::PollFlags;
use nix::sys::socket::{getsockopt, sockopt};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::Error;
use crate::profile::Profile;

/// A connection being opened, open, or ending.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: Socket,
    is_open: bool,
    /// Writes that the machine has asked for and the kernel has not taken whole.
    writes: VecDeque<Vec<u8>>,
    /// How much of the first of them it has taken.
    taken: usize,
    /// Whether the rest of a message will be written as soon as the kernel has taken these.
    goes_on: bool,
    ends_after_writes: bool,
}

/// What a read gave.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Arrived {
    /// So many bytes are in the buffer.
    Bytes(usize),
    /// The peer will send no more.
    End,
    /// Nothing yet.
    Nothing,
}

fn set_options(socket: &Socket, profile: &Profile) -> io::Result<()> {
    socket.set_tcp_nodelay(profile.nodelay)?;
    match profile.send_buffer {
        // The kernel takes what is too large for it as the largest it allows, and so does this.
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
        Ok(Self::around(socket, false))
    }

    /// A connection that a listener accepted.
    pub(crate) fn accepted(socket: Socket, profile: &Profile) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        set_options(&socket, profile)?;
        Ok(Self::around(socket, true))
    }

    fn around(socket: Socket, is_open: bool) -> Self {
        Self { socket, is_open, writes: VecDeque::new(), taken: 0, goes_on: false, ends_after_writes: false }
    }

    /// Whether the handshake is over.
    pub(crate) const fn is_open(&self) -> bool {
        self.is_open
    }

    /// To be called when a socket being opened turned writable: open now, or the reason why not.
    pub(crate) fn conclude_opening(&mut self) -> io::Result<()> {
        if let Some(refusal) = self.socket.take_error()? {
            return Err(refusal);
        }
        self.is_open = true;
        Ok(())
    }

    /// What to wait for.
    pub(crate) fn interest(&self) -> PollFlags {
        match (self.is_open, self.writes.is_empty()) {
            (false, true | false) => PollFlags::POLLOUT,
            (true, true) => PollFlags::POLLIN,
            (true, false) => PollFlags::POLLIN | PollFlags::POLLOUT,
        }
    }

    /// Hands `bytes` to TCP in one call, after those that wait; what the kernel does not take waits.
    pub(crate) fn write(&mut self, bytes: Vec<u8>) -> io::Result<()> {
        self.writes.push_back(bytes);
        self.write_what_waits()
    }

    /// Whether from now on what is written goes on with the next write at once: then the kernel keeps a last segment that
    /// is not full, as it would were both one write.
    pub(crate) const fn go_on(&mut self, goes_on: bool) {
        self.goes_on = goes_on;
    }

    /// Hands to TCP what waits, as far as it takes it.
    pub(crate) fn write_what_waits(&mut self) -> io::Result<()> {
        while let Some(first) = self.writes.front() {
            let flags = libc::MSG_NOSIGNAL | if self.goes_on { libc::MSG_MORE } else { 0 };
            match self.socket.send_with_flags(first.get(self.taken..).unwrap_or_default(), flags) {
                Ok(taken) => self.taken += taken,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            if self.taken >= first.len() {
                self.writes.pop_front();
                self.taken = 0;
            }
        }
        if self.ends_after_writes { self.shut_down() } else { Ok(()) }
    }

    /// Whether the kernel has yet to take some of what was written.
    pub(crate) fn has_writes(&self) -> bool {
        !self.writes.is_empty()
    }

    /// Writes that the kernel has yet to take, or to take whole.
    pub(crate) fn writes(&self) -> usize {
        self.writes.len()
    }

    /// What has arrived, into `buffer`.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<Arrived> {
        loop {
            return match (&self.socket).read(buffer) {
                Ok(0) => Ok(Arrived::End),
                Ok(length) => Ok(Arrived::Bytes(length)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(Arrived::Nothing),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
        }
    }

    /// Sends a FIN after what waits; reading goes on.
    pub(crate) fn half_close(&mut self) -> io::Result<()> {
        self.ends_after_writes = true;
        if self.writes.is_empty() { self.shut_down() } else { Ok(()) }
    }

    fn shut_down(&self) -> io::Result<()> {
        match self.socket.shutdown(Shutdown::Write) {
            // The peer was quicker, or reset the connection: it has ended as asked.
            Err(error) if error.kind() == ErrorKind::NotConnected => Ok(()),
            other => other,
        }
    }

    /// Ends the connection with a reset.
    pub(crate) fn abort(self) -> io::Result<()> {
        self.socket.set_linger(Some(std::time::Duration::ZERO))
    }

    /// Whether the open socket has the congestion control and the segment size that its profile pins.
    pub(crate) fn check(&self, profile: &Profile) -> Result<(), Error> {
        let unpinned = |setting: &str, wanted: String, found: String| {
            Err(Error::Unpinned { setting: setting.to_owned(), wanted, found })
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
