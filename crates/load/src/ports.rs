//! The UDP ports of a thread: its users share them for all datagrams, many with one system call.
//!
//! Datagrams are made by each user's own state machine (`dhttp_user`). A server identifies clients by address and id, so a port
//! may be shared. A server with several threads distributes clients by address and port, so there are several. The id of a
//! response identifies its user: the last [`USER_BITS`] are the user's, the others are random.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use dhttp::batch::{self, Endpoints, Inbox, Outbox};
use dhttp_proto::Id;
use socket2::SockRef;

/// Number of bits for the user: more than the connections to one address.
const USER_BITS: u32 = 24;
/// Socket buffers for datagrams that wait while others have this CPU, in bytes; the kernel may grant less.
const RECEIVE_BUFFER_BYTES: usize = 4 << 20;

/// A thread's UDP ports, for one server.
pub(crate) struct Ports {
    server: SocketAddr,
    ports: Vec<(UdpSocket, Outbox)>,
}

impl Ports {
    /// Binds this number of ports, at least one.
    pub(crate) fn bind(server: SocketAddr, count: usize) -> io::Result<Self> {
        let any: SocketAddr = match server {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let bind = |_| {
            let socket = batch::client(any)?;
            SockRef::from(&socket).set_recv_buffer_size(RECEIVE_BUFFER_BYTES)?;
            SockRef::from(&socket).set_send_buffer_size(RECEIVE_BUFFER_BYTES)?;
            Ok((socket, Outbox::default()))
        };
        Ok(Self { server, ports: (0..count.max(1)).map(bind).collect::<io::Result<_>>()? })
    }

    /// Sockets to register with epoll.
    pub(crate) fn sockets(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.ports.iter().map(|(socket, _)| socket.as_fd())
    }

    /// Queues a user's datagram at its port.
    pub(crate) fn put(&mut self, user: u32, datagram: &[u8]) {
        let (count, ends) = (self.ports.len(), Endpoints { peer: self.server, local: None });
        if let Some((_, outbox)) = self.ports.get_mut(user as usize % count) {
            outbox.slot(ends).extend_from_slice(datagram);
        }
    }

    /// Sends everything queued. Datagrams that the kernel refuses are lost, as on the path: they will be retried.
    pub(crate) fn send(&mut self) {
        for (socket, outbox) in &mut self.ports {
            if !outbox.is_empty() {
                outbox.send(socket);
                outbox.too_large();
            }
        }
    }

    /// Receives datagrams of a port; `false` if there are none.
    pub(crate) fn receive(&self, port: usize, inbox: &mut Inbox) -> bool {
        self.ports.get(port).is_some_and(|(socket, _)| inbox.receive(socket).is_ok())
    }

    /// Whether ICMP reported that nothing listens there.
    pub(crate) fn is_refused(&self, port: usize) -> bool {
        self.ports.get(port).is_some_and(|(socket, _)| batch::refused(socket).is_some())
    }

    /// Number of ports: each user's is the one with its index, modulo this.
    pub(crate) fn count(&self) -> usize {
        self.ports.len()
    }
}

/// A request's id, from an unpredictable number.
pub(crate) const fn id(drawn: u64, user: u32) -> Id {
    Id::marked(drawn << USER_BITS | user as u64)
}

/// Index of the user that sent the request.
pub(crate) fn user(id: Id) -> usize {
    id.number().map_or(usize::MAX, |number| (number & ((1 << USER_BITS) - 1)) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_identifies_its_user() {
        for number in [0, 1, 77, 9_999_999] {
            assert_eq!(user(id(u64::MAX, number)), number as usize);
        }
        assert_ne!(id(1, 5), id(2, 5));
    }
}
