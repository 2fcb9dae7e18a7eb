//! The kernel's statistics of this host's TCP sockets: owners, and what limits their sending (TCP_INFO).
//!
//! Single sockets are looked up by hash, at a cost independent of their number; a list
//! of all walks a table that may have a hundred thousand entries. A closed socket is reported once, when it is
//! destroyed. No privilege is needed. From sock_diag(7), `linux/inet_diag.h` and `linux/tcp.h`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, sendto, socket,
};
use wire::{Bytes, Duration};

use crate::Error;
use crate::netlink_message::{Attributes, Message, messages};

pub use unix::unix_pairs;

mod unix;

/// Netlink sockets for queries and for notifications.
#[derive(Debug)]
pub struct Sockets {
    queries: OwnedFd,
    /// Without it no notifications are received.
    endings: Option<OwnedFd>,
    sequence: u32,
    /// For replies.
    buffer: Vec<u8>,
}

/// Largest reply that the kernel makes, with headroom.
const REPLY: usize = 1 << 16;

/// One socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpSocket {
    /// Local address; port 0 once it is destroyed.
    pub local: SocketAddr,
    /// Peer's address.
    pub peer: SocketAddr,
    /// Unique identifier, never reused.
    pub cookie: u64,
    /// Inode of the file by which a process holds it (`socket:[N]` in /proc/PID/fd); 0 if no process does.
    pub inode: u32,
    /// State of the connection.
    pub state: State,
    /// Whether this side has sent a FIN: its program may no longer hold it.
    pub is_closing: bool,
    /// Bytes not sent or not acknowledged; of a listening socket, its backlog.
    pub send_queue: u32,
    /// Bytes received and not read by the program; of a listening socket, connections not accepted.
    pub receive_queue: u32,
    /// Number of consecutive retransmissions without an acknowledgement, including SYN and SYN/ACK.
    pub retransmits: u8,
    /// Bytes in queues of this host below TCP; `None` if the kernel does not report it.
    pub device_queue: Option<u32>,
    /// The kernel's statistics.
    pub info: TcpInfo,
    /// Positions and times.
    pub progress: SenderProgress,
}

/// State of a connection, as far as relevant for its data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Data may flow, at least in one direction.
    #[default]
    Open,
    /// A client that waits for SYN/ACK.
    SynSent,
    /// A server that waits for the last segment of the handshake.
    SynReceived,
    /// A socket that accepts connections.
    Listening,
    /// Closed, or waiting for late segments.
    Closed,
}

impl State {
    /// The kernel's number, from `linux/tcp_states.h`.
    const fn read(number: u8) -> Self {
        match number {
            2 => Self::SynSent,
            3 | 12 => Self::SynReceived,
            10 => Self::Listening,
            6 | 7 => Self::Closed,
            _open => Self::Open,
        }
    }
}

/// Progress of a sender, and the times of its last events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderProgress {
    /// Current MSS.
    pub mss: u32,
    /// Payload bytes sent, retransmissions included (0 before Linux 4.19).
    pub bytes_sent: u64,
    /// Payload bytes retransmitted; SYNs carry none (0 before Linux 4.19).
    pub bytes_retransmitted: u64,
    /// Payload bytes acknowledged by the peer.
    pub bytes_acked: u64,
    /// Payload bytes received.
    pub bytes_received: u64,
    /// Time since data was last sent, in the kernel's ticks of 1 to 10 ms.
    pub since_sent: Duration,
    /// Time since data was last received.
    pub since_received: Duration,
    /// Minimum round trip time.
    pub min_round_trip: Duration,
    /// Current retransmission timeout.
    pub timeout: Duration,
    /// Rate at which a pacer may send, bytes per second.
    pub pacing_rate: u64,
    /// Number of segments that the peer reported as received twice (DSACK, RFC 2883; 0 before Linux 4.19).
    pub duplicates: u32,
    /// Number of segments received out of order (0 before Linux 5.4).
    pub received_out_of_order: u32,
    /// Number of expired retransmission timers (0 before Linux 6.7).
    pub timeouts: u16,
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
    pub sending: SenderState,
}

/// Current state of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderState {
    /// Congestion state.
    pub congestion_state: CongestionState,
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
pub enum CongestionState {
    /// No loss.
    #[default]
    Open,
    /// Duplicate ACKs or SACK: a loss is possible.
    Disorder,
    /// Window reduced for a reason other than loss.
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
        let endings = open_socket()?;
        bind(endings.as_raw_fd(), &NetlinkAddr::new(0, TCP_ENDS | TCP6_ENDS))
            .map_err(Error::kernel("subscribe to events of closed sockets"))?;
        Ok(Self { endings: Some(endings), ..Self::for_queries()? })
    }

    /// The same without notifications of closed sockets, which cost the kernel a message for each.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn for_queries() -> Result<Self, Error> {
        Ok(Self { queries: open_socket()?, endings: None, sequence: 0, buffer: vec![0; REPLY] })
    }

    /// The socket between these two addresses, if it exists. Fast whatever the number of sockets.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn find(&mut self, local: SocketAddr, peer: SocketAddr) -> Result<Option<TcpSocket>, Error> {
        self.sequence = self.sequence.wrapping_add(1);
        let question = single_socket_request(local, peer).finish(self.sequence);
        let refused = || Error::kernel("query a socket of the kernel");
        sendto(self.queries.as_raw_fd(), &question, &NetlinkAddr::new(0, 0), MsgFlags::empty())
            .map_err(refused())?;
        let mut found = None;
        match read_tcp(&self.queries, &mut self.buffer, &mut |socket| found = Some(socket)) {
            Ok(()) | Err(Errno::ENOENT) => {}
            Err(errno) => return Err(refused()(errno)),
        }
        // If there is no such connection, the kernel returns a listening socket.
        Ok(found.filter(|socket| socket.peer.port() == peer.port()))
    }

    /// Passes the existing sockets between these addresses to `each`; cheaper than single queries.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn find_all(
        &mut self,
        ends: &[(SocketAddr, SocketAddr)],
        mut each: impl FnMut(TcpSocket),
    ) -> Result<(), Error> {
        /// Number of replies that fit into the smallest usual receive buffer.
        const BATCH: usize = 64;
        let refused = || Error::kernel("query the kernel's sockets");
        for ends in ends.chunks(BATCH) {
            let mut batch = Vec::new();
            for (local, peer) in ends {
                self.sequence = self.sequence.wrapping_add(1);
                batch.extend(without_ack(single_socket_request(*local, *peer).finish(self.sequence)));
            }
            sendto(self.queries.as_raw_fd(), &batch, &NetlinkAddr::new(0, 0), MsgFlags::empty())
                .map_err(refused())?;
            let mut each = |socket: TcpSocket| {
                if socket.state != State::Listening {
                    each(socket);
                }
            };
            loop {
                match read_tcp(&self.queries, &mut self.buffer, &mut each) {
                    Ok(()) => break,
                    // That socket no longer exists; the replies after it must still be read.
                    Err(Errno::ENOENT) => {}
                    Err(errno) => return Err(refused()(errno)),
                }
            }
        }
        Ok(())
    }

    /// Passes every socket that is not closed to `each`; if `port` is given, only those with it at either end, which the
    /// kernel selects.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn list(&mut self, port: Option<u16>, mut each: impl FnMut(TcpSocket)) -> Result<(), Error> {
        self.list_with(EXTENSIONS, port, &mut each)
    }

    /// The same without the kernel's statistics, at about a third of the cost: addresses, state, owner and queues only.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn scan(&mut self, port: Option<u16>, mut each: impl FnMut(TcpSocket)) -> Result<(), Error> {
        self.list_with(0, port, &mut each)
    }

    fn list_with(
        &mut self,
        extensions: u8,
        port: Option<u16>,
        each: &mut impl FnMut(TcpSocket),
    ) -> Result<(), Error> {
        self.sequence = self.sequence.wrapping_add(1);
        let refused = || Error::kernel("list the kernel's sockets");
        let request = list_request(extensions, port).finish(self.sequence);
        sendto(self.queries.as_raw_fd(), &request, &NetlinkAddr::new(0, 0), MsgFlags::empty())
            .map_err(refused())?;
        read_tcp(&self.queries, &mut self.buffer, each).map_err(refused())
    }

    /// Passes every socket that was destroyed since the last call to `each`, with its final state.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn ended(&mut self, mut each: impl FnMut(TcpSocket)) -> Result<(), Error> {
        let Some(endings) = &self.endings else { return Ok(()) };
        match read_tcp(endings, &mut self.buffer, &mut each) {
            // More sockets were destroyed than the kernel's buffer holds: the rest are not reported.
            Ok(()) | Err(Errno::ENOBUFS) => Ok(()),
            Err(errno) => Err(Error::kernel("receive events of closed sockets")(errno)),
        }
    }
}

fn open_socket() -> Result<OwnedFd, Error> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkSockDiag)
        .map_err(Error::kernel("query the kernel's sockets"))
}

/// Reads all pending messages about TCP sockets.
fn read_tcp(from: &OwnedFd, buffer: &mut [u8], each: &mut impl FnMut(TcpSocket)) -> Result<(), Errno> {
    read(from, buffer, &mut |body| TcpSocket::read(body).into_iter().for_each(&mut *each))
}

/// Reads all pending messages, and passes the contents of those that describe a socket to `each`.
fn read(from: &OwnedFd, buffer: &mut [u8], each: &mut impl FnMut(&[u8])) -> Result<(), Errno> {
    loop {
        let length = match recv(from.as_raw_fd(), buffer, MsgFlags::empty()) {
            Ok(length) => length,
            Err(Errno::EAGAIN) => return Ok(()),
            Err(Errno::EINTR) => continue,
            Err(errno) => return Err(errno),
        };
        for message in messages(buffer.get(..length).unwrap_or_default()) {
            match message.kind {
                SOCK_DIAG_BY_FAMILY | TCPDIAG_GETSOCK => each(message.body),
                // A zero acknowledges the request.
                NLMSG_ERROR if message.error() != 0 => return Err(Errno::from_raw(-message.error())),
                _another => {}
            }
        }
    }
}

const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// The older request, whose list has both families in one walk of the table.
const TCPDIAG_GETSOCK: u16 = 18;
const NLMSG_ERROR: u16 = 2;
/// NLM_F_ROOT and NLM_F_MATCH.
const NLM_F_DUMP: u16 = 0x300;
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_SKMEMINFO: u16 = 7;
const INET_DIAG_REQ_BYTECODE: u16 = 1;
/// Extensions of a reply, as bits.
const EXTENSIONS: u8 = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_SKMEMINFO - 1);
/// SKNLGRP_INET_TCP_DESTROY and SKNLGRP_INET6_TCP_DESTROY, as bits.
const TCP_ENDS: u32 = 1 << 0;
const TCP6_ENDS: u32 = 1 << 2;

/// `struct inet_diag_req_v2`: one socket, with its TCP_INFO.
fn single_socket_request(local: SocketAddr, peer: SocketAddr) -> Message {
    const ANY_STATE: u32 = u32::MAX;
    const ANY_INTERFACE: [u8; 4] = [0; 4];
    const ANY_COOKIE: [u8; 8] = [0xff; 8];
    let family = if local.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let byte = |number: i32| u8::try_from(number).unwrap_or_default();
    let mut message = Message::new(SOCK_DIAG_BY_FAMILY, 0);
    message.put(&[byte(family), byte(libc::IPPROTO_TCP), EXTENSIONS, 0]);
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

/// A message whose reply shows the result: clears NLM_F_ACK in its header.
fn without_ack(mut message: Vec<u8>) -> Vec<u8> {
    const FLAGS: usize = 6;
    const ACK: u16 = 4;
    if let Some(flags) = message.get_mut(FLAGS..).and_then(<[u8]>::first_chunk_mut) {
        *flags = (u16::from_ne_bytes(*flags) & !ACK).to_ne_bytes();
    }
    message
}

/// `struct inet_diag_req`: all sockets except those in TIME-WAIT or closed.
fn list_request(extensions: u8, port: Option<u16>) -> Message {
    const STATES: u32 = 0xfff & !(1 << 6 | 1 << 7);
    /// `struct inet_diag_sockid`, which a list ignores.
    const ANY_SOCKET: [u8; 48] = [0; 48];
    const NO_LIMIT: [u8; 4] = [0; 4];
    let mut message = Message::new(TCPDIAG_GETSOCK, NLM_F_DUMP);
    message.put(&[0, 0, 0, extensions]);
    message.put(&ANY_SOCKET);
    message.put(&STATES.to_ne_bytes());
    message.put(&NO_LIMIT);
    if let Some(port) = port {
        message.attribute(INET_DIAG_REQ_BYTECODE, &port_filter(port));
    }
    message
}

/// Returns a program of `struct inet_diag_bc_op`: the local port or the peer's is this one. A comparison takes two
/// operations, the second with the port; `yes` and `no` are distances in bytes, and a distance beyond the end rejects.
fn port_filter(port: u16) -> Vec<u8> {
    const JUMP: u8 = 1;
    const LOCAL_FROM: u8 = 2;
    const LOCAL_TO: u8 = 3;
    const PEER_FROM: u8 = 4;
    const PEER_TO: u8 = 5;
    let operations: [(u8, u8, u16); 9] = [
        (LOCAL_FROM, 8, 20),
        (0, 0, port),
        (LOCAL_TO, 8, 12),
        (0, 0, port),
        (JUMP, 4, 20),
        (PEER_FROM, 8, 20),
        (0, 0, port),
        (PEER_TO, 8, 12),
        (0, 0, port),
    ];
    operations
        .iter()
        .flat_map(|(code, yes, no)| {
            let [low, high] = no.to_ne_bytes();
            [*code, *yes, low, high]
        })
        .collect()
}

impl TcpSocket {
    /// Parses a `struct inet_diag_msg` and its attributes.
    fn read(body: &[u8]) -> Option<Self> {
        const LENGTH: usize = 72;
        const INODE: usize = 68;
        const COOKIE: usize = 44;
        const RECEIVE_QUEUE: usize = 56;
        const SEND_QUEUE: usize = 60;
        const RETRANSMIT_TIMER: u8 = 1;
        /// Of the array of SKMEMINFO: SK_MEMINFO_WMEM_ALLOC.
        const BELOW: usize = 2 * 4;
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
        let (mut info, mut progress, mut device_queue) =
            (TcpInfo::default(), SenderProgress::default(), None);
        for (kind, bytes) in Attributes::after(body, LENGTH) {
            match kind {
                INET_DIAG_INFO => (info, progress) = (TcpInfo::read(bytes), SenderProgress::read(bytes)),
                INET_DIAG_SKMEMINFO => device_queue = word(bytes, BELOW),
                _another => {}
            }
        }
        Some(Self {
            local: SocketAddr::new(address(8)?, port(4)?),
            peer: SocketAddr::new(address(24)?, port(6)?),
            cookie: long(body, COOKIE)?,
            inode: word(body, INODE)?,
            state: State::read(*body.get(1)?),
            // FIN_WAIT1, FIN_WAIT2, LAST_ACK and CLOSING of `linux/tcp_states.h`.
            is_closing: matches!(*body.get(1)?, 4 | 5 | 9 | 11),
            // With another timer, that number counts probes of a closed window.
            retransmits: if *body.get(2)? == RETRANSMIT_TIMER { *body.get(3)? } else { 0 },
            send_queue: word(body, SEND_QUEUE)?,
            receive_queue: word(body, RECEIVE_QUEUE)?,
            device_queue,
            info,
            progress,
        })
    }
}

impl SenderProgress {
    /// Parses a `struct tcp_info`.
    fn read(bytes: &[u8]) -> Self {
        let count = |at| long(bytes, at).unwrap_or_default();
        let number = |at| word(bytes, at).unwrap_or_default();
        let micros = |at| Duration::from_micros(u64::from(number(at)));
        let millis = |at| Duration::from_millis(u64::from(number(at)));
        Self {
            mss: number(16),
            bytes_sent: count(200),
            bytes_retransmitted: count(208),
            bytes_acked: count(120),
            bytes_received: count(128),
            since_sent: millis(44),
            since_received: millis(52),
            min_round_trip: micros(148),
            timeout: micros(8),
            pacing_rate: count(104),
            duplicates: number(216),
            received_out_of_order: number(224),
            timeouts: bytes
                .get(240..)
                .and_then(<[u8]>::first_chunk)
                .map_or(0, |two| u16::from_ne_bytes(*two)),
        }
    }
}

impl TcpInfo {
    /// Parses a `struct tcp_info`; fields that an older kernel does not have are zero.
    fn read(bytes: &[u8]) -> Self {
        let micros = |micros: Option<u64>| Duration::from_micros(micros.unwrap_or_default());
        Self {
            busy: micros(long(bytes, 168)),
            receive_window_limited: micros(long(bytes, 176)),
            send_buffer_limited: micros(long(bytes, 184)),
            round_trip: micros(word(bytes, 68).map(u64::from)),
            retransmitted: word(bytes, 100).unwrap_or_default(),
            sending: SenderState::read(bytes),
        }
    }
}

impl SenderState {
    fn read(bytes: &[u8]) -> Self {
        let number = |at| word(bytes, at).unwrap_or_default();
        let size = |at| Bytes::new(u64::from(number(at)));
        Self {
            congestion_state: match bytes.get(1) {
                Some(1) => CongestionState::Disorder,
                Some(2) => CongestionState::Reduced,
                Some(3) => CongestionState::Recovery,
                Some(4) => CongestionState::Loss,
                Some(_) | None => CongestionState::Open,
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
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server_end, _) = listener.accept().unwrap();
        client.write_all(b"hello").unwrap();
        server_end.read_exact(&mut [0; 5]).unwrap();
        let (one, other) = (client.local_addr().unwrap(), client.peer_addr().unwrap());
        let find = |sockets: &mut Sockets, local, peer| sockets.find(local, peer).unwrap();
        let found = [(one, other), (other, one)].map(|(local, peer)| {
            let socket = find(&mut sockets, local, peer).unwrap();
            assert_eq!((socket.local, socket.peer), (local, peer));
            assert!(socket.inode > 0);
            socket.cookie
        });
        assert_ne!(found[0], found[1]);
        let unused_port = (std::net::Ipv4Addr::LOCALHOST, 1).into();
        assert_eq!(find(&mut sockets, other, unused_port), None, "a listening socket is not a connection");
        drop((client, server_end, listener));
        // The kernel reports a socket only after cleaning it up, and also reports the connections of other tests.
        let mut destroyed: Vec<TcpSocket> = Vec::new();
        while !found.iter().any(|cookie| destroyed.iter().any(|socket| socket.cookie == *cookie)) {
            let mut polled = [PollFd::new(sockets.endings.as_ref().unwrap().as_fd(), PollFlags::POLLIN)];
            assert_eq!(poll(&mut polled, PollTimeout::from(10_000_u16)), Ok(1), "{destroyed:?}");
            sockets.ended(|socket| destroyed.push(socket)).unwrap();
        }
    }

    #[test]
    fn a_list_has_the_sockets_of_a_port_at_either_end() {
        let mut sockets = Sockets::open().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server_end, _) = listener.accept().unwrap();
        server_end.write_all(&[7; 300]).unwrap();
        let _other = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut seen = Vec::new();
        sockets.list(Some(port), |socket| seen.push(socket)).unwrap();
        let mut ends: Vec<_> =
            seen.iter().map(|one| (one.local.port(), one.peer.port(), one.state)).collect();
        let client_port = client.local_addr().unwrap().port();
        ends.sort_by_key(|(local, peer, _)| (*local == port, *peer));
        assert_eq!(
            ends,
            [(client_port, port, State::Open), (port, 0, State::Listening), (port, client_port, State::Open)]
        );
        let (one, other) = (client.local_addr().unwrap(), client.peer_addr().unwrap());
        let unused_port = (std::net::Ipv4Addr::LOCALHOST, 1).into();
        let mut found = Vec::new();
        sockets
            .find_all(&[(other, unused_port), (other, one), (one, other)], |socket| found.push(socket))
            .unwrap();
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!((found[0].progress.bytes_sent, found[1].progress.bytes_received), (300, 300));
        assert!(found[0].progress.mss > 500 && found[0].device_queue.is_some(), "{found:?}");
        let mut scanned = Vec::new();
        sockets.scan(Some(port), |socket| scanned.push(socket)).unwrap();
        let summary = |socket: &TcpSocket| (socket.cookie, socket.local, socket.state, socket.send_queue);
        assert_eq!(
            scanned.iter().map(summary).collect::<Vec<_>>(),
            seen.iter().map(summary).collect::<Vec<_>>()
        );
        assert!(scanned.iter().all(|socket| socket.progress == SenderProgress::default()), "{scanned:?}");
        let mut all = Vec::new();
        sockets.list(None, |socket| all.push(socket.cookie)).unwrap();
        assert!(seen.iter().all(|socket| all.contains(&socket.cookie)) && all.len() > seen.len());
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
