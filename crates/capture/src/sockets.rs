//! The kernel's statistics of this host's TCP sockets: their owners, and their limits of sending (TCP_INFO).
//!
//! Neither packets nor a judgement. Sockets are queried one at a time, because a list of all walks a table
//! that may have a hundred thousand entries. A closed socket is reported once, when it is destroyed. From
//! sock_diag(7), `linux/inet_diag.h` and `linux/tcp.h`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, sendto, socket,
};
use testbed::Error;
use testbed::netlink_message::{Attributes, Message, messages};
use wire::{Bytes, Duration};

/// Netlink sockets for queries and for notifications.
#[derive(Debug)]
pub struct Sockets {
    questions: OwnedFd,
    endings: OwnedFd,
    sequence: u32,
}

/// One socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpSocket {
    /// Local address; port 0 once it is destroyed.
    pub local: SocketAddr,
    /// Peer's address.
    pub peer: SocketAddr,
    /// Unique identifier, never reused.
    pub cookie: u64,
    /// Inode of the file by which a process holds it (`socket:[N]` in /proc/PID/fd); 0 if none does any more.
    pub inode: u32,
    /// The kernel's statistics.
    pub info: TcpInfo,
}

/// The kernel's statistics of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Time during which it had data to send or unacknowledged.
    pub busy: Duration,
    /// Part of this time limited by the peer's window.
    pub receive_window_limited: Duration,
    /// Part of this time limited by its own send buffer.
    pub send_buffer_limited: Duration,
    /// Smoothed round trip time.
    pub round_trip: Duration,
    /// Number of retransmitted segments.
    pub retransmitted: u32,
    /// Current state of sending.
    pub sending: Sending,
}

/// Current state of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sending {
    /// Congestion state.
    pub standing: Standing,
    /// Segments in flight.
    pub unacknowledged: u32,
    /// Congestion window in segments.
    pub congestion_window: u32,
    /// Slow start threshold in segments; a huge number before the first loss.
    pub slow_start_threshold: u32,
    /// Bytes written by its program and not sent yet.
    pub not_sent: Bytes,
    /// Window of the peer (also 0 on kernels before 5.4, which do not report it).
    pub peer_window: Bytes,
}

/// The kernel's `tcp_ca_state`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    /// No loss.
    #[default]
    Open,
    /// Duplicate ACKs or SACK: a loss is possible.
    Disorder,
    /// Window reduced for another reason than a loss.
    Reduced,
    /// Fast recovery: acknowledgements reported a loss.
    Recovery,
    /// The retransmission timer expired.
    Loss,
}

impl Sockets {
    /// Opens the sockets in the calling thread's network namespace.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn open() -> Result<Self, Error> {
        let open = || {
            socket(
                AddressFamily::Netlink,
                SockType::Raw,
                SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK,
                SockProtocol::NetlinkSockDiag,
            )
            .map_err(Error::kernel("ask the kernel about sockets"))
        };
        let (questions, endings) = (open()?, open()?);
        bind(endings.as_raw_fd(), &NetlinkAddr::new(0, TCP_ENDS | TCP6_ENDS))
            .map_err(Error::kernel("hear of sockets that end"))?;
        Ok(Self { questions, endings, sequence: 0 })
    }

    /// The socket between these two addresses, if it exists. Fast whatever the number of sockets.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn find(&mut self, local: SocketAddr, peer: SocketAddr) -> Result<Option<TcpSocket>, Error> {
        self.sequence = self.sequence.wrapping_add(1);
        let question = question(local, peer).finish(self.sequence);
        let refused = || Error::kernel("ask the kernel about a socket");
        sendto(self.questions.as_raw_fd(), &question, &NetlinkAddr::new(0, 0), MsgFlags::empty())
            .map_err(refused())?;
        let mut found = None;
        match read(&self.questions, &mut |socket| found = Some(socket)) {
            Ok(()) | Err(Errno::ENOENT) => {}
            Err(errno) => return Err(refused()(errno)),
        }
        // Without a connection, the kernel returns a listening socket.
        Ok(found.filter(|socket| socket.peer.port() == peer.port()))
    }

    /// Passes every socket that was destroyed since the last call to `each`, with its final state.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn ended(&mut self, mut each: impl FnMut(TcpSocket)) -> Result<(), Error> {
        match read(&self.endings, &mut each) {
            // More were destroyed than the kernel's buffer holds: those are not reported.
            Ok(()) | Err(Errno::ENOBUFS) => Ok(()),
            Err(errno) => Err(Error::kernel("hear of sockets that ended")(errno)),
        }
    }
}

/// Reads all pending messages.
fn read(from: &OwnedFd, each: &mut impl FnMut(TcpSocket)) -> Result<(), Errno> {
    let mut buffer = vec![0; 1 << 16];
    loop {
        let length = match recv(from.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
            Ok(length) => length,
            Err(Errno::EAGAIN) => return Ok(()),
            Err(Errno::EINTR) => continue,
            Err(errno) => return Err(errno),
        };
        for message in messages(buffer.get(..length).unwrap_or_default()) {
            match message.kind {
                SOCK_DIAG_BY_FAMILY => each_of(message.body, each),
                // A zero acknowledges the request.
                NLMSG_ERROR if message.error() != 0 => return Err(Errno::from_raw(-message.error())),
                _another => {}
            }
        }
    }
}

fn each_of(body: &[u8], each: &mut impl FnMut(TcpSocket)) {
    if let Some(socket) = TcpSocket::read(body) {
        each(socket);
    }
}

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLMSG_ERROR: u16 = 2;
const INET_DIAG_INFO: u16 = 2;
/// SKNLGRP_INET_TCP_DESTROY and SKNLGRP_INET6_TCP_DESTROY, as bits.
const TCP_ENDS: u32 = 1 << 0;
const TCP6_ENDS: u32 = 1 << 2;

/// `struct inet_diag_req_v2`: one socket, with its TCP_INFO.
fn question(local: SocketAddr, peer: SocketAddr) -> Message {
    const ANY_STATE: u32 = u32::MAX;
    const ANY_INTERFACE: [u8; 4] = [0; 4];
    const ANY_COOKIE: [u8; 8] = [0xff; 8];
    let family = if local.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let byte = |number: i32| u8::try_from(number).unwrap_or_default();
    let mut message = Message::new(SOCK_DIAG_BY_FAMILY, 0);
    message.put(&[byte(family), byte(libc::IPPROTO_TCP), 1 << (INET_DIAG_INFO - 1), 0]);
    message.put(&ANY_STATE.to_ne_bytes());
    message.put(&local.port().to_be_bytes());
    message.put(&peer.port().to_be_bytes());
    for address in [local.ip(), peer.ip()] {
        match address {
            IpAddr::V4(four) => {
                message.put(&four.octets());
                message.put(&[0; 12]);
            }
            IpAddr::V6(six) => message.put(&six.octets()),
        }
    }
    message.put(&ANY_INTERFACE);
    message.put(&ANY_COOKIE);
    message
}

impl TcpSocket {
    /// Parses a `struct inet_diag_msg` and its attributes.
    fn read(body: &[u8]) -> Option<Self> {
        const LENGTH: usize = 72;
        const INODE: usize = 68;
        const COOKIE: usize = 44;
        let family = i32::from(*body.first()?);
        let port = |at: usize| body.get(at..)?.first_chunk().map(|port| u16::from_be_bytes(*port));
        let address = |at: usize| {
            let bytes = body.get(at..)?.first_chunk::<16>()?;
            match family {
                libc::AF_INET => bytes.first_chunk::<4>().map(|four| IpAddr::from(Ipv4Addr::from(*four))),
                libc::AF_INET6 => Some(Ipv6Addr::from(*bytes).to_canonical()),
                _another => None,
            }
        };
        let mut attributes = Attributes::after(body, LENGTH);
        let info = attributes.find(|(kind, _)| *kind == INET_DIAG_INFO);
        Some(Self {
            local: SocketAddr::new(address(8)?, port(4)?),
            peer: SocketAddr::new(address(24)?, port(6)?),
            cookie: long(body, COOKIE)?,
            inode: word(body, INODE)?,
            info: info.map_or_else(TcpInfo::default, |(_, info)| TcpInfo::read(info)),
        })
    }
}

impl TcpInfo {
    /// Parses a `struct tcp_info`; zeros for fields that an older kernel does not have.
    fn read(bytes: &[u8]) -> Self {
        let micros = |micros: Option<u64>| Duration::from_micros(micros.unwrap_or_default());
        Self {
            busy: micros(long(bytes, 168)),
            receive_window_limited: micros(long(bytes, 176)),
            send_buffer_limited: micros(long(bytes, 184)),
            round_trip: micros(word(bytes, 68).map(u64::from)),
            retransmitted: word(bytes, 100).unwrap_or_default(),
            sending: Sending::read(bytes),
        }
    }
}

impl Sending {
    fn read(bytes: &[u8]) -> Self {
        let number = |at| word(bytes, at).unwrap_or_default();
        let size = |at| Bytes::new(u64::from(number(at)));
        Self {
            standing: match bytes.get(1) {
                Some(1) => Standing::Disorder,
                Some(2) => Standing::Reduced,
                Some(3) => Standing::Recovery,
                Some(4) => Standing::Loss,
                Some(_) | None => Standing::Open,
            },
            unacknowledged: number(24),
            congestion_window: number(80),
            slow_start_threshold: number(76),
            not_sent: size(144),
            peer_window: size(228),
        }
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|word| u32::from_ne_bytes(*word))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|long| u64::from_ne_bytes(*long))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

    use super::*;

    #[test]
    fn connection_is_found_by_its_addresses_and_reported_when_destroyed() {
        let mut sockets = Sockets::open().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut here = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut there, _) = listener.accept().unwrap();
        here.write_all(b"hello").unwrap();
        there.read_exact(&mut [0; 5]).unwrap();
        let (one, other) = (here.local_addr().unwrap(), here.peer_addr().unwrap());
        let find = |sockets: &mut Sockets, local, peer| sockets.find(local, peer).unwrap();
        let found = [(one, other), (other, one)].map(|(local, peer)| {
            let socket = find(&mut sockets, local, peer).unwrap();
            assert_eq!((socket.local, socket.peer), (local, peer));
            assert!(socket.inode > 0);
            socket.cookie
        });
        assert_ne!(found[0], found[1]);
        let nobody = (std::net::Ipv4Addr::LOCALHOST, 1).into();
        assert_eq!(find(&mut sockets, other, nobody), None, "what listens was taken for what is connected");
        drop((here, there, listener));
        // The kernel reports it once it has cleaned up, and also the connections of other tests.
        let mut gone: Vec<TcpSocket> = Vec::new();
        while !found.iter().any(|cookie| gone.iter().any(|socket| socket.cookie == *cookie)) {
            let mut heard = [PollFd::new(sockets.endings.as_fd(), PollFlags::POLLIN)];
            assert_eq!(poll(&mut heard, PollTimeout::from(10_000_u16)), Ok(1), "{gone:?}");
            sockets.ended(|socket| gone.push(socket)).unwrap();
        }
    }

    #[test]
    fn truncated_messages_are_read_in_part_or_not_at_all() {
        for length in 0..400 {
            let mut body = vec![1; length];
            if let Some(family) = body.first_mut() {
                *family = 2;
            }
            assert_eq!(TcpSocket::read(&body).is_some(), length >= 72, "{length}");
        }
    }
}
