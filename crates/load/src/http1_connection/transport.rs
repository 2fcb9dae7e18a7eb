//! The bytes of a connection of HTTP/1: over TCP alone, or over TLS on it.
//!
//! HTTP is parsed by the caller. Nothing blocks: a call that would returns `WouldBlock`.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::TcpFastOpenConnect;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use socket2::{Domain, Protocol, Socket, Type};

use crate::config::Target;
use crate::tls::{TrustError, with_own_tickets};

/// ALPN protocol name of HTTP/1.1 (RFC 7301, section 6).
pub(crate) const ALPN: &[u8] = b"http/1.1";

/// Opens a user's connections.
#[derive(Clone, Debug)]
pub(crate) struct Connector {
    pub(crate) server: SocketAddr,
    /// Whether the first bytes leave with the SYN where the server allows it (RFC 7413).
    pub(crate) fast_open: bool,
    /// TLS parameters and the server's name; `None` for TCP alone.
    pub(crate) tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
}

/// A connection that is being opened, or is open.
#[derive(Debug)]
pub(crate) enum Transport {
    Tcp(Socket),
    Tls(Box<StreamOwned<ClientConnection, Socket>>),
}

impl Connector {
    /// Connections to a target over HTTP/1.
    ///
    /// # Errors
    /// [`TrustError`] if no certificate can be verified.
    pub(crate) fn new(target: &Target, fast_open: bool) -> Result<Self, TrustError> {
        let tls = match &target.security {
            Some(security) => Some((Arc::new(security.client(ALPN)?), security.server()?)),
            None => None,
        };
        Ok(Self { server: target.address, fast_open, tls })
    }

    /// The same, with session tickets of its own.
    pub(crate) fn with_own_tickets(&self) -> Self {
        let tls = self.tls.as_ref().map(|(config, name)| (Arc::new(with_own_tickets(config)), name.clone()));
        Self { tls, ..*self }
    }

    /// Opens a connection: sends a SYN.
    pub(crate) fn open(&self) -> io::Result<Transport> {
        let Self { server, fast_open, tls } = self;
        let kind = Type::STREAM.nonblocking().cloexec();
        let socket = Socket::new(Domain::for_address(*server), kind, Some(Protocol::TCP))?;
        socket.set_tcp_nodelay(true)?;
        if *fast_open {
            setsockopt(&socket, TcpFastOpenConnect, &true)?;
        }
        match socket.connect(&(*server).into()) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::INPROGRESS.raw_os_error()) => {}
            Err(error) => return Err(error),
        }
        Ok(match tls {
            None => Transport::Tcp(socket),
            Some((config, name)) => {
                let session = ClientConnection::new(Arc::clone(config), name.clone());
                Transport::Tls(Box::new(StreamOwned::new(session.map_err(io::Error::other)?, socket)))
            }
        })
    }
}

impl Transport {
    /// Takes the pending error of the socket.
    pub(crate) fn take_error(&self) -> io::Result<Option<io::Error>> {
        match self {
            Self::Tcp(socket) => socket.take_error(),
            Self::Tls(stream) => stream.sock.take_error(),
        }
    }

    /// Sends as much as the kernel accepts; returns the number of bytes.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            // SIGPIPE is ignored by every Rust program.
            Self::Tcp(socket) => socket.send(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    /// Sends pending TLS records, including those of the handshake.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Tcp(_) => Ok(()),
            Self::Tls(stream) => stream.flush(),
        }
    }

    /// Receives once; 0 means that the peer sends no more.
    pub(crate) fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => socket.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }

    /// Whether decrypted bytes wait here, which epoll does not report.
    pub(crate) fn has_received(&mut self) -> bool {
        match self {
            Self::Tcp(_) => false,
            Self::Tls(stream) => {
                stream.conn.process_new_packets().is_ok_and(|state| state.plaintext_bytes_to_read() > 0)
            }
        }
    }

    /// Whether to wait for a writable socket, if `waiting` bytes of HTTP are not sent.
    pub(crate) fn wants_writable(&self, waiting: usize) -> bool {
        match self {
            Self::Tcp(_) => waiting > 0,
            // During the handshake HTTP's bytes wait for the server.
            Self::Tls(stream) => stream.conn.wants_write() || (waiting > 0 && !stream.conn.is_handshaking()),
        }
    }
}

impl AsFd for Transport {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(socket) => socket.as_fd(),
            Self::Tls(stream) => stream.sock.as_fd(),
        }
    }
}
