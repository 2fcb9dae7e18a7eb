//! The UDP ports of a thread: all its users' datagrams leave and come there, many with one system call.
//!
//! Not the protocol: which datagrams there are is said by each user's own machine (`pair`). A server tells clients apart by
//! address and id, so a port may be shared; a server with several threads deals them out by address and port, so there are
//! several. Whose an answer is stands in its id: the last [`USER_BITS`] are the user's, the others are drawn.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use dhttp::batch::{self, Ends, Inbox, Outbox};
use dhttp_proto::Id;
use socket2::SockRef;

/// As many as there are connections to one address, and more.
const USER_BITS: u32 = 24;
/// Room for answers that come while others have this processor; the kernel gives what it may.
const ROOM: usize = 4 << 20;

/// A thread's UDP ports, for one server.
pub(crate) struct Ports {
    server: SocketAddr,
    ports: Vec<(UdpSocket, Outbox)>,
}

impl Ports {
    /// Binds so many, at least one.
    pub(crate) fn bind(server: SocketAddr, count: usize) -> io::Result<Self> {
        let any: SocketAddr = match server {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let bind = |_| {
            let socket = batch::client(any)?;
            SockRef::from(&socket).set_recv_buffer_size(ROOM)?;
            SockRef::from(&socket).set_send_buffer_size(ROOM)?;
            Ok((socket, Outbox::default()))
        };
        Ok(Self { server, ports: (0..count.max(1)).map(bind).collect::<io::Result<_>>()? })
    }

    /// What to listen to.
    pub(crate) fn sockets(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.ports.iter().map(|(socket, _)| socket.as_fd())
    }

    /// Puts a user's datagram where it will leave from.
    pub(crate) fn put(&mut self, user: u32, datagram: &[u8]) {
        let (count, ends) = (self.ports.len(), Ends { peer: self.server, local: None });
        if let Some((_, outbox)) = self.ports.get_mut(user as usize % count) {
            outbox.slot(ends).extend_from_slice(datagram);
        }
    }

    /// Lets everything go. What is not taken is lost, as on the way: it will be sent again.
    pub(crate) fn send(&mut self) {
        for (socket, outbox) in &mut self.ports {
            if !outbox.is_empty() {
                outbox.send(socket);
                outbox.too_large();
            }
        }
    }

    /// Takes what has come to a port; `false` if there is nothing.
    pub(crate) fn receive(&self, port: usize, inbox: &mut Inbox) -> bool {
        self.ports.get(port).is_some_and(|(socket, _)| inbox.receive(socket).is_ok())
    }

    /// Whether ICMP says that nobody takes datagrams there.
    pub(crate) fn is_refused(&self, port: usize) -> bool {
        self.ports.get(port).is_some_and(|(socket, _)| batch::refused(socket).is_some())
    }

    /// How many there are: each user's is the one with its number, modulo this.
    pub(crate) fn count(&self) -> usize {
        self.ports.len()
    }
}

/// A request's name, of a number that nobody can foresee.
pub(crate) const fn id(drawn: u64, user: u32) -> Id {
    Id(drawn << USER_BITS | user as u64)
}

/// Whose request it is.
pub(crate) const fn user(id: Id) -> usize {
    (id.0 & ((1 << USER_BITS) - 1)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_says_whose_it_is() {
        for number in [0, 1, 77, 9_999_999] {
            assert_eq!(user(id(u64::MAX, number)), number as usize);
        }
        assert_ne!(id(1, 5), id(2, 5));
    }
}
