//! Listening sockets of a server, one for each origin.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use nix::poll::{PollFd, PollFlags};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::Error;
use crate::profile::Profile;
use crate::socket::Connection;

/// Listen backlog, more than any of our clients opens concurrently.
const BACKLOG: i32 = 1_024;

/// Listeners, in the order of the origins.
#[derive(Debug)]
pub(super) struct Listeners(Vec<Socket>);

impl Listeners {
    /// Listens in the calling thread's namespace.
    pub(super) fn open(addresses: impl Iterator<Item = SocketAddr>) -> Result<Self, Error> {
        addresses.map(listen).collect::<Result<_, _>>().map(Self)
    }

    /// The sockets, which are readable when a connection waits.
    pub(super) fn poll_fds(&self) -> impl ExactSizeIterator<Item = PollFd<'_>> {
        self.0.iter().map(|listener| PollFd::new(listener.as_fd(), PollFlags::POLLIN))
    }

    /// Accepts every connection that waits; each with the index of its origin.
    pub(super) fn accept(&self, profile: &Profile) -> Result<Vec<(usize, Connection)>, Error> {
        let failed = || Error::io("accept a connection");
        let mut accepted = Vec::new();
        for (origin, listener) in self.0.iter().enumerate() {
            loop {
                match listener.accept() {
                    Ok((socket, _)) => {
                        accepted.push((origin, Connection::accepted(socket, profile).map_err(failed())?));
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    // The client aborted before it was accepted.
                    Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                    Err(error) => return Err(failed()(error)),
                }
            }
        }
        Ok(accepted)
    }
}

/// Listens in the calling thread's namespace.
pub(super) fn listen(address: SocketAddr) -> Result<Socket, Error> {
    let doing = || format!("listen at {address}");
    let kind = Type::STREAM.nonblocking();
    let listener =
        Socket::new(Domain::for_address(address), kind, Some(Protocol::TCP)).map_err(Error::io(doing()))?;
    listener.bind(&SockAddr::from(address)).map_err(Error::io(doing()))?;
    listener.listen(BACKLOG).map_err(Error::io(doing()))?;
    Ok(listener)
}
