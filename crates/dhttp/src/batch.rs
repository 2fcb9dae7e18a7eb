//! Many datagrams with one system call: `recvmmsg` and `sendmmsg`.
//!
//! The buffers are made once and never cleared. Not a protocol: bytes in, bytes out, and who they are from or for.

use std::io;
use std::mem::{size_of, zeroed};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::os::fd::AsRawFd;

/// Datagrams in one call.
pub(crate) const BATCH: usize = COUNT as usize;
const COUNT: u32 = 64;
/// No request is longer; what is, is cut off and thrown away.
const RECEIVED_BYTES: usize = 2_048;

/// Datagrams that came in.
pub(crate) struct Inbox {
    buffers: Box<[[u8; RECEIVED_BYTES]]>,
    names: Box<[libc::sockaddr_storage]>,
    lengths: [Option<usize>; BATCH],
}

impl Inbox {
    pub(crate) fn new() -> Self {
        // SAFETY: a `sockaddr_storage` is plain numbers, for which zero is a value.
        let name: libc::sockaddr_storage = unsafe { zeroed() };
        Self {
            buffers: vec![[0; RECEIVED_BYTES]; BATCH].into(),
            names: vec![name; BATCH].into(),
            lengths: [None; BATCH],
        }
    }

    /// Takes what waits at a socket: how many datagrams.
    pub(crate) fn receive(&mut self, socket: &UdpSocket) -> io::Result<usize> {
        // SAFETY: both are plain numbers and pointers, for which zero is a value.
        let (mut parts, mut headers): ([libc::iovec; BATCH], [libc::mmsghdr; BATCH]) =
            unsafe { (zeroed(), zeroed()) };
        for (((part, header), buffer), name) in
            parts.iter_mut().zip(&mut headers).zip(&mut self.buffers).zip(&mut self.names)
        {
            *part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
            header.msg_hdr.msg_name = (&raw mut *name).cast();
            header.msg_hdr.msg_namelen = NAME_BYTES;
            header.msg_hdr.msg_iov = part;
            header.msg_hdr.msg_iovlen = 1;
        }
        // SAFETY: every header points at a name and a part, and each part at a buffer, of the length given; all of
        // them outlive the call, and nothing else refers to them.
        let result = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                headers.as_mut_ptr(),
                COUNT,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        };
        let count = usize::try_from(result).map_err(|_| io::Error::last_os_error())?;
        for (length, header) in self.lengths.iter_mut().zip(&headers).take(count) {
            let is_whole = header.msg_hdr.msg_flags & libc::MSG_TRUNC == 0;
            *length = is_whole.then_some(header.msg_len as usize);
        }
        Ok(count)
    }

    /// One of those that came in last, and whom it is from; `None` if it was cut off.
    pub(crate) fn datagram(&self, index: usize) -> Option<(SocketAddr, &[u8])> {
        let length = (*self.lengths.get(index)?)?;
        Some((address(self.names.get(index)?)?, self.buffers.get(index)?.get(..length)?))
    }
}

/// Datagrams that are to go out.
pub(crate) struct Outbox {
    slots: Vec<(Vec<u8>, SocketAddr)>,
    used: usize,
}

impl Outbox {
    pub(crate) fn new() -> Self {
        let nobody = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));
        Self { slots: (0..BATCH).map(|_| (Vec::with_capacity(RECEIVED_BYTES), nobody)).collect(), used: 0 }
    }

    /// An empty datagram to somebody. There is room for as many as one batch brings in.
    pub(crate) fn slot(&mut self, to: SocketAddr) -> &mut Vec<u8> {
        if self.used == self.slots.len() {
            self.slots.push((Vec::new(), to));
        }
        let (bytes, whom) = &mut self.slots[self.used];
        self.used += 1;
        bytes.clear();
        *whom = to;
        bytes
    }

    /// Sends all: how many bytes went, and how many datagrams the socket did not take. Those are lost, as on a full
    /// link; whoever asked will ask again.
    pub(crate) fn send(&mut self, socket: &UdpSocket) -> (u64, u64) {
        let (mut sent_bytes, mut lost) = (0, 0);
        let mut first = 0;
        while first < self.used {
            let waiting = self.slots.get(first..self.used.min(first + BATCH)).unwrap_or_default();
            match send_some(socket, waiting) {
                Ok(count) => {
                    sent_bytes +=
                        waiting.iter().take(count).map(|(bytes, _)| bytes.len() as u64).sum::<u64>();
                    first += count.max(1);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    lost += (self.used - first) as u64;
                    first = self.used;
                }
                // One that cannot go, because of where to; the others may.
                Err(_) => {
                    lost += 1;
                    first += 1;
                }
            }
        }
        self.used = 0;
        (sent_bytes, lost)
    }
}

fn send_some(socket: &UdpSocket, waiting: &[(Vec<u8>, SocketAddr)]) -> io::Result<usize> {
    // SAFETY: all three are plain numbers and pointers, for which zero is a value.
    let (mut names, mut parts, mut headers): (
        [libc::sockaddr_storage; BATCH],
        [libc::iovec; BATCH],
        [libc::mmsghdr; BATCH],
    ) = unsafe { (zeroed(), zeroed(), zeroed()) };
    for ((((bytes, to), name), part), header) in
        waiting.iter().zip(&mut names).zip(&mut parts).zip(&mut headers)
    {
        *part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        header.msg_hdr.msg_namelen = write_address(*to, name);
        header.msg_hdr.msg_name = (&raw mut *name).cast();
        header.msg_hdr.msg_iov = part;
        header.msg_hdr.msg_iovlen = 1;
    }
    let count = u32::try_from(waiting.len().min(BATCH)).unwrap_or(0);
    // SAFETY: `count` headers point at names, parts and, by those, bytes that outlive the call; the kernel only reads
    // what the parts point at.
    let result =
        unsafe { libc::sendmmsg(socket.as_raw_fd(), headers.as_mut_ptr(), count, libc::MSG_DONTWAIT) };
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Whom ICMP says not to listen, of those that this socket has sent to; `None` when there is no more of such news.
/// Other errors are passed over: a way that is broken now may not be in a moment.
pub(crate) fn refused(socket: &UdpSocket) -> Option<SocketAddr> {
    loop {
        let (name, error) = next_error(socket)?;
        if error == libc::ECONNREFUSED {
            return address(&name);
        }
    }
}

/// The next of a socket's errors: the address that was sent to, and which it is.
fn next_error(socket: &UdpSocket) -> Option<(libc::sockaddr_storage, i32)> {
    // SAFETY: both are plain numbers and pointers, for which zero is a value.
    let (mut name, mut header): (libc::sockaddr_storage, libc::msghdr) = unsafe { (zeroed(), zeroed()) };
    // Of words, so that it is aligned as control messages are.
    let mut control = [0_u64; 64];
    header.msg_name = (&raw mut name).cast();
    header.msg_namelen = NAME_BYTES;
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = size_of_val(&control);
    // SAFETY: the header points at a name and at control bytes of the lengths given, which outlive the call; no part
    // is given for the datagram itself, whose bytes are cut off.
    let result = unsafe {
        libc::recvmsg(socket.as_raw_fd(), &raw mut header, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT)
    };
    if result < 0 {
        return None;
    }
    // SAFETY: the kernel has filled in the header and its control bytes, which are still there.
    let mut message = unsafe { libc::CMSG_FIRSTHDR(&raw const header) };
    // SAFETY: not null, so it points at a whole control message.
    while let Some(about) = unsafe { message.as_ref() } {
        let kind = (about.cmsg_level, about.cmsg_type);
        if kind == (libc::SOL_IP, libc::IP_RECVERR) || kind == (libc::SOL_IPV6, libc::IPV6_RECVERR) {
            // SAFETY: a message of this kind holds this structure, at any alignment.
            let error =
                unsafe { libc::CMSG_DATA(message).cast::<libc::sock_extended_err>().read_unaligned() };
            return Some((name, i32::try_from(error.ee_errno).unwrap_or(0)));
        }
        // SAFETY: the header and the message are those of above.
        message = unsafe { libc::CMSG_NXTHDR(&raw const header, message) };
    }
    Some((name, 0))
}

const NAME_BYTES: libc::socklen_t = length_of::<libc::sockaddr_storage>();

#[expect(clippy::cast_possible_truncation, reason = "names are at most 128 bytes")]
const fn length_of<Name>() -> libc::socklen_t {
    size_of::<Name>() as libc::socklen_t
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "families are small numbers")]
const fn family(family: i32) -> libc::sa_family_t {
    family as libc::sa_family_t
}

fn address(name: &libc::sockaddr_storage) -> Option<SocketAddr> {
    let pointer = &raw const *name;
    match i32::from(name.ss_family) {
        libc::AF_INET => {
            // SAFETY: the kernel says that this is an IPv4 name; the storage is large enough and aligned for it.
            let name: libc::sockaddr_in = unsafe { pointer.cast::<libc::sockaddr_in>().read() };
            let address = Ipv4Addr::from(u32::from_be(name.sin_addr.s_addr));
            Some(SocketAddrV4::new(address, u16::from_be(name.sin_port)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: the same for IPv6.
            let name: libc::sockaddr_in6 = unsafe { pointer.cast::<libc::sockaddr_in6>().read() };
            let address = Ipv6Addr::from(name.sin6_addr.s6_addr);
            Some(SocketAddrV6::new(address, u16::from_be(name.sin6_port), 0, name.sin6_scope_id).into())
        }
        _ => None,
    }
}

fn write_address(address: SocketAddr, name: &mut libc::sockaddr_storage) -> libc::socklen_t {
    let pointer = &raw mut *name;
    match address {
        SocketAddr::V4(address) => {
            let value = libc::sockaddr_in {
                sin_family: family(libc::AF_INET),
                sin_port: address.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from(*address.ip()).to_be() },
                sin_zero: [0; 8],
            };
            // SAFETY: the storage is large enough and aligned for any name.
            unsafe { pointer.cast::<libc::sockaddr_in>().write(value) };
            length_of::<libc::sockaddr_in>()
        }
        SocketAddr::V6(address) => {
            let value = libc::sockaddr_in6 {
                sin6_family: family(libc::AF_INET6),
                sin6_port: address.port().to_be(),
                sin6_flowinfo: 0,
                sin6_addr: libc::in6_addr { s6_addr: address.ip().octets() },
                sin6_scope_id: address.scope_id(),
            };
            // SAFETY: the same.
            unsafe { pointer.cast::<libc::sockaddr_in6>().write(value) };
            length_of::<libc::sockaddr_in6>()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_arrives_as_it_was_sent_over_either_family() {
        for loopback in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(receiver) = UdpSocket::bind(loopback) else { continue };
            let sender = UdpSocket::bind(loopback).unwrap();
            let mut outbox = Outbox::new();
            for number in 0..3_u8 {
                outbox.slot(receiver.local_addr().unwrap()).extend([number; 5]);
            }
            outbox.slot(receiver.local_addr().unwrap()).extend([9; 3_000]);
            assert_eq!(outbox.send(&sender), (3_015, 0));
            let mut inbox = Inbox::new();
            assert_eq!(inbox.receive(&receiver).unwrap(), 4);
            let from = sender.local_addr().unwrap();
            assert_eq!(inbox.datagram(1), Some((from, &[1; 5][..])));
            assert_eq!(inbox.datagram(3), None, "longer than any request");
            assert_eq!(inbox.receive(&receiver).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        }
    }
}
