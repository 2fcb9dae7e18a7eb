//! What the kernel says of this machine's TCP sockets: whose they are, and what held them up by its own account (TCP_INFO).
//!
//! Not packets, and not a judgement. One socket at a time is asked about, because a list of all walks through a table that may
//! have a hundred thousand entries; of a closed one the kernel tells once, when it is gone. From
//! sock_diag(7), `linux/inet_diag.h` and `linux/tcp.h`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, sendto, socket,
};
use wire::{Bytes, Duration};

use crate::Error;
use crate::netlink_message::{Attributes, Message, messages};

/// Asks, and hears.
#[derive(Debug)]
pub struct Sockets {
    questions: OwnedFd,
    endings: OwnedFd,
    sequence: u32,
}

/// One socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpSocket {
    /// Its own address; port 0 when it is gone.
    pub local: SocketAddr,
    /// Its peer's.
    pub peer: SocketAddr,
    /// What no other socket ever has.
    pub cookie: u64,
    /// The file that a process holds it by (`socket:[N]` in /proc/PID/fd); 0 if none does any more.
    pub inode: u32,
    /// What the kernel counts of it.
    pub info: TcpInfo,
}

/// The kernel's own account of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// For how long it had something to send or to have acknowledged.
    pub busy: Duration,
    /// Of this, held up by the peer's window.
    pub receive_window_limited: Duration,
    /// Of this, held up by the size of its own send buffer.
    pub send_buffer_limited: Duration,
    /// There and back, smoothed.
    pub round_trip: Duration,
    /// Segments sent again.
    pub retransmitted: u32,
    /// What it may send, and what it is about.
    pub sending: Sending,
}

/// How a sender stands at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sending {
    /// Whether it repairs a loss.
    pub standing: Standing,
    /// Segments on their way.
    pub unacknowledged: u32,
    /// Segments that it lets itself have on their way.
    pub congestion_window: u32,
    /// Segments above which that grows slowly; a huge number before the first loss.
    pub slow_start_threshold: u32,
    /// What its program wrote and it has not sent yet.
    pub not_sent: Bytes,
    /// What its peer lets it send (0 also on kernels before 5.4, which do not tell).
    pub peer_window: Bytes,
}

/// The kernel's `tcp_ca_state`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    /// Nothing is missing.
    #[default]
    Open,
    /// Something may be missing.
    Disorder,
    /// Its window was made smaller for another reason than a loss.
    Reduced,
    /// Acknowledgements told of a loss.
    Recovery,
    /// The timer ran out.
    Loss,
}

impl Sockets {
    /// In the calling thread's network namespace.
    ///
    /// # Errors
    /// What the kernel refused.
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

    /// The socket between these two, if there is one. Quick however many there are.
    ///
    /// # Errors
    /// What the kernel refused.
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
        // Where nothing is connected, the kernel answers with what listens.
        Ok(found.filter(|socket| socket.peer.port() == peer.port()))
    }

    /// Every socket that ended since this was last asked, as it was in the end.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn ended(&mut self, mut each: impl FnMut(TcpSocket)) -> Result<(), Error> {
        match read(&self.endings, &mut each) {
            // More ended than the kernel keeps for us: those are not told.
            Ok(()) | Err(Errno::ENOBUFS) => Ok(()),
            Err(errno) => Err(Error::kernel("hear of sockets that ended")(errno)),
        }
    }
}

/// Reads what there is.
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
                // A zero acknowledges the question.
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
    /// From a `struct inet_diag_msg` and what follows it.
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
    /// From a `struct tcp_info`; zeros for what an older kernel does not tell.
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
    fn a_connection_is_found_by_its_ends_and_told_of_when_it_is_gone() {
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
        // The kernel tells it once it has tidied up, and of the connections of other tests, too.
        let mut gone: Vec<TcpSocket> = Vec::new();
        while !found.iter().any(|cookie| gone.iter().any(|socket| socket.cookie == *cookie)) {
            let mut heard = [PollFd::new(sockets.endings.as_fd(), PollFlags::POLLIN)];
            assert_eq!(poll(&mut heard, PollTimeout::from(10_000_u16)), Ok(1), "{gone:?}");
            sockets.ended(|socket| gone.push(socket)).unwrap();
        }
    }

    #[test]
    fn what_is_cut_is_read_as_far_as_it_goes_or_not_at_all() {
        for length in 0..400 {
            let mut body = vec![1; length];
            if let Some(family) = body.first_mut() {
                *family = 2;
            }
            assert_eq!(TcpSocket::read(&body).is_some(), length >= 72, "{length}");
        }
    }
}
