//! Batched datagrams: many per system call, and many of one peer per pass through the kernel.
//!
//! `recvmmsg` and `sendmmsg` (their manual pages), and segmentation offload in both directions. A peer's burst is received as
//! one piece and split here (`UDP_GRO`). Datagrams to the same peer leave as one piece, which the kernel or the network card
//! splits (`UDP_SEGMENT`; udp(7)). The buffers are allocated once and never cleared. Not a protocol: bytes in, bytes out, and
//! their addresses.

mod control;
mod errors;
mod name;

use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::ops::Range;
use std::os::fd::AsRawFd;

use crate::socket;
use control::{Control, ControlValues};

pub use errors::refused;

/// Messages in one call; each may be several datagrams.
pub const BATCH: usize = COUNT as usize;
const COUNT: u32 = 64;
/// Maximum length of a request; longer datagrams are dropped.
const MAX_DATAGRAM_BYTES: usize = 2_048;
/// Maximum size of a message that the kernel coalesces.
const RECEIVE_BUFFER_BYTES: usize = 65_536;
/// Distance between the buffers of two messages, in bytes. Not a power of two: all of them would compete for the same sets
/// of the CPU's caches.
const STRIDE: usize = RECEIVE_BUFFER_BYTES + 2_368;
/// udp(7): `UDP_MAX_SEGMENTS`.
const MAX_SEGMENTS: usize = 64;
/// Maximum payload of one piece, whatever the headers.
const MAX_BYTES: usize = 65_000;

/// Addresses of a datagram's two ends: a response from another address than the request went to is discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoints {
    /// Address of the peer.
    pub peer: SocketAddr,
    /// Local address, where the socket has several.
    pub local: Option<IpAddr>,
}

/// Enables `UDP_GRO`, and reports of the destination address if the socket is bound to all addresses. Where the kernel supports
/// neither, datagrams arrive one by one, and responses leave from the address that the route selects.
pub fn prepare(socket: &UdpSocket) {
    let _ = socket::set(socket, libc::SOL_UDP, libc::UDP_GRO, 1);
    if socket.local_addr().is_ok_and(|address| address.ip().is_unspecified()) {
        report_destinations(socket);
    }
}

/// Enables reports of each datagram's destination address, for sockets to which datagrams for other hosts are diverted.
pub fn report_destinations(socket: &UdpSocket) {
    let _ = match socket.local_addr() {
        Ok(SocketAddr::V4(_)) => socket::set(socket, libc::IPPROTO_IP, libc::IP_PKTINFO, 1),
        Ok(SocketAddr::V6(_)) => socket::set(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1),
        Err(_) => Ok(()),
    };
}

/// Creates a client's socket, where many responses may arrive as one piece. [`refused`] returns its ICMP errors.
///
/// # Errors
/// The system's error.
pub fn client(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = socket::udp_of_client(address)?;
    let _ = socket::set(&socket, libc::SOL_UDP, libc::UDP_GRO, 1);
    Ok(socket)
}

/// Received datagrams.
pub struct Inbox {
    /// [`STRIDE`] bytes for each message; pages that no message has reached are not resident.
    buffer: Vec<u8>,
    names: Box<[libc::sockaddr_storage]>,
    controls: Box<[Control]>,
    /// For each message; `None` if it has no valid source address.
    ends: Vec<Option<Endpoints>>,
    /// For each message: its original destination, where the kernel reports it.
    written: Vec<Option<SocketAddr>>,
    /// For each datagram: its message, and its range in the buffer.
    found: Vec<(usize, Range<usize>)>,
}

impl Default for Inbox {
    fn default() -> Self {
        // SAFETY: a `sockaddr_storage` is plain numbers, for which zero is a value.
        let name: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
        Self {
            buffer: vec![0; STRIDE * BATCH],
            names: vec![name; BATCH].into(),
            controls: vec![Control::EMPTY; BATCH].into(),
            ends: Vec::with_capacity(BATCH),
            written: Vec::with_capacity(BATCH),
            found: Vec::with_capacity(BATCH),
        }
    }
}

impl Inbox {
    /// Receives the pending messages of a socket, at most [`BATCH`], and returns their number. They may hold more datagrams.
    ///
    /// # Errors
    /// The system's error, `WouldBlock` if nothing is pending.
    pub fn receive(&mut self, socket: &UdpSocket) -> io::Result<usize> {
        let mut parts = [const { MaybeUninit::<libc::iovec>::uninit() }; BATCH];
        let mut headers = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; BATCH];
        for ((((part, header), buffer), name), control) in parts
            .iter_mut()
            .zip(&mut headers)
            .zip(self.buffer.chunks_exact_mut(STRIDE))
            .zip(&mut self.names)
            .zip(&mut self.controls)
        {
            let part = part
                .write(libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: RECEIVE_BUFFER_BYTES });
            let header = header.write(message(name, part, 1));
            header.msg_hdr.msg_namelen = name::NAME_BYTES;
            control.offer(&mut header.msg_hdr);
        }
        self.ends.clear();
        self.written.clear();
        self.found.clear();
        // SAFETY: every header points at a name, control bytes and a part, and each part at a buffer, of the length
        // given. All of them outlive the call, and nothing else refers to them.
        let result = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                headers.as_mut_ptr().cast(),
                COUNT,
                libc::MSG_DONTWAIT as _,
                std::ptr::null_mut(),
            )
        };
        let count = usize::try_from(result).map_err(|_| io::Error::last_os_error())?;
        for (index, header) in headers.iter().take(count).enumerate() {
            // SAFETY: all headers were written above; the kernel has filled in this one and its control bytes.
            let (header, reported) = unsafe {
                let header = header.assume_init_ref();
                (header, control::read(&header.msg_hdr))
            };
            self.split_segments(index, header.msg_len as usize, reported);
        }
        Ok(count)
    }

    fn split_segments(
        &mut self,
        index: usize,
        length: usize,
        ControlValues { local, written, segment }: ControlValues,
    ) {
        let peer = self.names.get(index).and_then(name::read);
        self.ends.push(peer.map(|peer| Endpoints { peer, local }));
        self.written.push(written);
        let (start, size) = (index * STRIDE, segment.unwrap_or(RECEIVE_BUFFER_BYTES));
        // An empty datagram counts, too.
        for first in (0..length.max(1)).step_by(size) {
            self.found.push((index, start + first..start + length.min(first + size)));
        }
    }

    /// Returns the number of datagrams received last.
    pub fn len(&self) -> usize {
        self.found.len()
    }

    /// Whether none was received.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Returns the destination of a datagram received last, where the socket also receives datagrams for other hosts.
    pub(crate) fn written_to(&self, index: usize) -> Option<SocketAddr> {
        let (message, _) = self.found.get(index)?;
        *self.written.get(*message)?
    }

    /// Returns a datagram received last, and its endpoints; `None` if it is longer than any request.
    pub fn datagram(&self, index: usize) -> Option<(Endpoints, &[u8])> {
        let (message, range) = self.found.get(index)?;
        let ends = (*self.ends.get(*message)?)?;
        Some((ends, self.buffer.get(range.clone()).filter(|bytes| bytes.len() <= MAX_DATAGRAM_BYTES)?))
    }
}

/// Outgoing datagrams.
pub struct Outbox {
    slots: Vec<(Vec<u8>, Endpoints)>,
    used: usize,
    /// Datagrams too large for the link, from the last send.
    too_large: Vec<(Vec<u8>, Endpoints)>,
}

impl Default for Outbox {
    fn default() -> Self {
        let unspecified = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));
        let unspecified = Endpoints { peer: unspecified, local: None };
        let slots = (0..BATCH).map(|_| (Vec::with_capacity(MAX_DATAGRAM_BYTES), unspecified)).collect();
        Self { slots, used: 0, too_large: Vec::new() }
    }
}

impl Outbox {
    /// Adds an empty datagram to a peer, and returns its buffer.
    pub fn slot(&mut self, ends: Endpoints) -> &mut Vec<u8> {
        if self.used == self.slots.len() {
            self.slots.push((Vec::with_capacity(MAX_DATAGRAM_BYTES), ends));
        }
        let (bytes, endpoints) = &mut self.slots[self.used];
        self.used += 1;
        bytes.clear();
        *endpoints = ends;
        bytes
    }

    /// Removes the datagram that was added last.
    pub const fn take_back(&mut self) {
        self.used = self.used.saturating_sub(1);
    }

    /// Returns the number of waiting datagrams.
    pub const fn len(&self) -> usize {
        self.used
    }

    /// Whether no datagram is waiting.
    pub const fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Sends all datagrams. Returns the number of bytes sent, and of datagrams that the socket did not accept. Those are lost,
    /// as on a full link; the client resends its request.
    pub fn send(&mut self, socket: &UdpSocket) -> (u64, u64) {
        let (mut sent_bytes, mut lost) = (0, 0);
        // Those before `alone` are sent one by one.
        let (mut first, mut alone) = (0, 0);
        while let Some(waiting) = self.slots.get(first..self.used).filter(|waiting| !waiting.is_empty()) {
            match send_some(socket, waiting, first >= alone) {
                Ok(count) => {
                    let sent = waiting.iter().take(count);
                    sent_bytes += sent.map(|(bytes, _)| bytes.len() as u64).sum::<u64>();
                    first += count.max(1);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    lost += waiting.len() as u64;
                    first = self.used;
                }
                // The kernel or the network card does not accept them as one piece.
                Err(error) if first >= alone && is_about_grouping(&error) => {
                    alone = first + group(waiting, true);
                }
                // One cannot be sent to its destination; the others may be.
                Err(error) => {
                    if error.raw_os_error() == Some(libc::EMSGSIZE) {
                        self.too_large.extend(waiting.first().cloned());
                    }
                    lost += 1;
                    first += 1;
                }
            }
        }
        self.used = 0;
        (sent_bytes, lost)
    }

    /// Takes the datagrams that were too large for the link when they were sent.
    pub fn too_large(&mut self) -> Vec<(Vec<u8>, Endpoints)> {
        std::mem::take(&mut self.too_large)
    }
}

fn is_about_grouping(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EIO | libc::EINVAL | libc::EMSGSIZE))
}

/// Returns the number of datagrams at the front that may leave as one piece. They go to the same peer and have the length of
/// the first; the last may be shorter.
fn group(waiting: &[(Vec<u8>, Endpoints)], is_grouping: bool) -> usize {
    let Some((first, ends)) = waiting.first().filter(|_| is_grouping) else { return 1 };
    let max = MAX_SEGMENTS.min(MAX_BYTES / first.len().max(1)).max(1);
    let whole = waiting.iter().take(max);
    let equal = whole.take_while(|(bytes, to)| to == ends && bytes.len() == first.len()).count();
    let is_shorter =
        |(bytes, to): &(Vec<u8>, Endpoints)| to == ends && !bytes.is_empty() && bytes.len() < first.len();
    equal + usize::from(equal < max && waiting.get(equal).is_some_and(is_shorter))
}

/// Maximum number of datagrams in one call, in whatever number of pieces.
const PARTS: usize = 4 * BATCH;

fn send_some(socket: &UdpSocket, waiting: &[(Vec<u8>, Endpoints)], is_grouping: bool) -> io::Result<usize> {
    let mut names = [const { MaybeUninit::<libc::sockaddr_storage>::uninit() }; BATCH];
    let mut parts = [const { MaybeUninit::<libc::iovec>::uninit() }; PARTS];
    let mut headers = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; BATCH];
    let mut controls = [const { MaybeUninit::<Control>::uninit() }; BATCH];
    let mut sizes = [0; BATCH];
    let waiting = waiting.get(..PARTS).unwrap_or(waiting);
    for ((bytes, _), part) in waiting.iter().zip(&mut parts) {
        part.write(libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() });
    }
    let (mut count, mut rest, mut rest_parts) = (0, waiting, &mut parts[..]);
    for (((name, header), control), size) in
        names.iter_mut().zip(&mut headers).zip(&mut controls).zip(&mut sizes)
    {
        let Some((bytes, ends)) = rest.first() else { break };
        *size = group(rest, is_grouping);
        let (group_parts, other_parts) = std::mem::take(&mut rest_parts).split_at_mut(*size);
        // SAFETY: plain numbers, for which zero is a value.
        let name = name.write(unsafe { std::mem::zeroed() });
        let header = header.write(message(name, group_parts.as_mut_ptr().cast(), *size));
        header.msg_hdr.msg_namelen = name::write(ends.peer, name);
        let segment = u16::try_from(bytes.len()).ok().filter(|_| *size > 1);
        control.write(Control::EMPTY).write(&mut header.msg_hdr, ends.local, segment);
        (rest, rest_parts) = (rest.get(*size..).unwrap_or_default(), other_parts);
        count += 1;
    }
    // SAFETY: `count` headers point at names, control bytes, parts and, by those, bytes that outlive the call; the
    // kernel only reads what they point at.
    let result = unsafe {
        libc::sendmmsg(socket.as_raw_fd(), headers.as_mut_ptr().cast(), count, libc::MSG_DONTWAIT as _)
    };
    let count = usize::try_from(result).map_err(|_| io::Error::last_os_error())?;
    Ok(sizes.iter().take(count).sum())
}

/// Creates a header with a name and parts; the caller sets the lengths of the name and the control bytes.
fn message(name: *mut libc::sockaddr_storage, parts: *mut libc::iovec, count: usize) -> libc::mmsghdr {
    // SAFETY: plain numbers and pointers, for which zero is a value.
    let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
    header.msg_hdr.msg_name = name.cast();
    header.msg_hdr.msg_iov = parts;
    header.msg_hdr.msg_iovlen = field_length(count);
    header
}

/// A length in bytes or parts as the C library's field has it: `usize` with glibc, 32 bits with musl.
fn field_length<T: TryFrom<usize> + Default>(length: usize) -> T {
    T::try_from(length).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(peer: SocketAddr) -> Endpoints {
        Endpoints { peer, local: None }
    }

    #[test]
    fn a_batch_arrives_as_it_was_sent_over_either_family() {
        for loopback in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(receiver) = UdpSocket::bind(loopback) else { continue };
            prepare(&receiver);
            let sender = UdpSocket::bind(loopback).unwrap();
            let ends = to(receiver.local_addr().unwrap());
            let mut outbox = Outbox::default();
            for number in 0..3_u8 {
                outbox.slot(ends).extend([number; 5]);
            }
            outbox.slot(ends).extend([8; 2]);
            outbox.slot(ends).extend([9; 3_000]);
            assert_eq!(outbox.send(&sender), (3_017, 0));
            let mut inbox = Inbox::default();
            assert!(inbox.receive(&receiver).unwrap() >= 2);
            assert_eq!(inbox.len(), 5);
            let from = to(sender.local_addr().unwrap());
            assert_eq!(inbox.datagram(1), Some((from, &[1; 5][..])));
            assert_eq!(inbox.datagram(3), Some((from, &[8; 2][..])));
            assert_eq!(inbox.datagram(4), None, "longer than any request");
            assert_eq!(inbox.receive(&receiver).unwrap_err().kind(), io::ErrorKind::WouldBlock);
            assert!(inbox.is_empty());
        }
    }

    #[test]
    fn response_leaves_from_the_address_of_the_request() {
        for all in ["0.0.0.0:0", "[::]:0"] {
            let Ok(server) = UdpSocket::bind(all) else { continue };
            prepare(&server);
            let client = UdpSocket::bind("127.0.0.1:0").unwrap();
            let requested = SocketAddr::from(([127, 0, 0, 7], server.local_addr().unwrap().port()));
            client.send_to(b"?", requested).unwrap();
            let mut inbox = Inbox::default();
            inbox.receive(&server).unwrap();
            let (ends, _) = inbox.datagram(0).unwrap();
            assert_eq!(ends.local.map(|local| local.to_canonical()), Some(requested.ip()));
            let mut outbox = Outbox::default();
            outbox.slot(ends).extend(b"!");
            outbox.send(&server);
            client.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
            assert_eq!(client.recv_from(&mut [0; 9]).unwrap(), (1, requested));
        }
    }

    #[test]
    fn datagrams_too_large_for_the_link_are_returned() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        let ends = to(receiver.local_addr().unwrap());
        let mut outbox = Outbox::default();
        outbox.slot(ends).resize(66_000, 1);
        outbox.slot(ends).extend([2; 8]);
        assert_eq!(outbox.send(&sender), (8, 1));
        let back = outbox.too_large();
        assert_eq!(
            back.iter().map(|(bytes, ends)| (bytes.len(), *ends)).collect::<Vec<_>>(),
            [(66_000, ends)]
        );
        assert!(outbox.too_large().is_empty());
    }

    #[test]
    fn only_datagrams_of_one_length_to_one_peer_leave_together() {
        let (first_peer, second_peer) = (to(([127, 0, 0, 1], 9).into()), to(([127, 0, 0, 1], 10).into()));
        let slots = |sizes: &[(usize, Endpoints)]| -> Vec<_> {
            sizes.iter().map(|(size, ends)| (vec![0; *size], *ends)).collect()
        };
        assert_eq!(
            group(&slots(&[(5, first_peer), (5, first_peer), (4, first_peer), (4, first_peer)]), true),
            3
        );
        assert_eq!(group(&slots(&[(5, first_peer), (6, first_peer)]), true), 1);
        assert_eq!(group(&slots(&[(5, first_peer), (5, second_peer)]), true), 1);
        assert_eq!(group(&slots(&[(5, first_peer), (0, first_peer)]), true), 1, "nothing is no segment");
        assert_eq!(group(&slots(&[(1_200, first_peer); 80]), true), 54);
        assert_eq!(group(&slots(&[(8, first_peer); 80]), true), 64);
        assert_eq!(group(&slots(&[(8, first_peer); 80]), false), 1);
    }
}
