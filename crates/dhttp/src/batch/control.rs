//! Ancillary data of a datagram: the address it is for or from, and the number of datagrams in it.
//!
//! `IP_PKTINFO` and `IP_ORIGDSTADDR` (ip(7)), `IPV6_PKTINFO` (RFC 3542, section 6) and `IPV6_ORIGDSTADDR`, `UDP_SEGMENT` and
//! `UDP_GRO` (udp(7)). Not the bytes.

use std::mem::{size_of, zeroed};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::field_length;

/// Buffer for ancillary data, aligned as control messages are.
#[derive(Clone, Copy)]
pub(super) struct Control([u64; 16]);

/// Ancillary data that the kernel reported for a datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ControlValues {
    /// Destination address.
    pub(super) local: Option<IpAddr>,
    /// Original destination address and port, where the socket also receives datagrams for other hosts.
    pub(super) written: Option<SocketAddr>,
    /// Length in bytes of each coalesced datagram but the last.
    pub(super) segment: Option<usize>,
}

impl Control {
    pub(super) const EMPTY: Self = Self([0; 16]);

    /// Attaches this buffer to a header that the kernel is to fill.
    pub(super) fn offer(&mut self, header: &mut libc::msghdr) {
        header.msg_control = self.0.as_mut_ptr().cast();
        header.msg_controllen = field_length(size_of::<Self>());
    }

    /// Attaches a source address, and the length in bytes of each datagram to split off.
    pub(super) fn write(&mut self, header: &mut libc::msghdr, local: Option<IpAddr>, segment: Option<u16>) {
        self.offer(header);
        let mut used = 0;
        match local {
            None => {}
            Some(IpAddr::V4(address)) => {
                let address = libc::in_addr { s_addr: u32::from(address).to_be() };
                let none = libc::in_addr { s_addr: 0 };
                let info = libc::in_pktinfo { ipi_ifindex: 0, ipi_spec_dst: address, ipi_addr: none };
                used += put(header, used, (libc::IPPROTO_IP, libc::IP_PKTINFO), info);
            }
            Some(IpAddr::V6(address)) => {
                let address = libc::in6_addr { s6_addr: address.octets() };
                let info = libc::in6_pktinfo { ipi6_addr: address, ipi6_ifindex: 0 };
                used += put(header, used, (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO), info);
            }
        }
        if let Some(bytes) = segment {
            used += put(header, used, (libc::SOL_UDP, libc::UDP_SEGMENT), bytes);
        }
        header.msg_controllen = field_length(used);
        if used == 0 {
            header.msg_control = std::ptr::null_mut();
        }
    }
}

/// Reads the ancillary data that the kernel attached to a datagram.
///
/// # Safety
/// The header's control bytes must be valid, as the kernel left them.
pub(super) unsafe fn read(header: &libc::msghdr) -> ControlValues {
    let mut reported = ControlValues::default();
    // SAFETY: the caller's promise.
    let mut message = unsafe { libc::CMSG_FIRSTHDR(header) };
    // SAFETY: not null, so it points at a whole control message.
    while let Some(control_header) = unsafe { message.as_ref() } {
        // SAFETY: it is one that the kernel has written.
        let data = unsafe { libc::CMSG_DATA(message) };
        match (control_header.cmsg_level, control_header.cmsg_type) {
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                // SAFETY: a message of this kind holds this structure, at any alignment.
                let info = unsafe { data.cast::<libc::in_pktinfo>().read_unaligned() };
                reported.local = Some(Ipv4Addr::from(u32::from_be(info.ipi_spec_dst.s_addr)).into());
            }
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                // SAFETY: the same.
                let info = unsafe { data.cast::<libc::in6_pktinfo>().read_unaligned() };
                reported.local = Some(Ipv6Addr::from(info.ipi6_addr.s6_addr).into());
            }
            (libc::IPPROTO_IP, libc::IP_ORIGDSTADDR) => {
                // SAFETY: the same.
                let name = unsafe { data.cast::<libc::sockaddr_in>().read_unaligned() };
                let address = Ipv4Addr::from(u32::from_be(name.sin_addr.s_addr));
                reported.written = Some((address, u16::from_be(name.sin_port)).into());
            }
            (libc::IPPROTO_IPV6, libc::IPV6_ORIGDSTADDR) => {
                // SAFETY: the same.
                let name = unsafe { data.cast::<libc::sockaddr_in6>().read_unaligned() };
                let address = Ipv6Addr::from(name.sin6_addr.s6_addr);
                reported.written = Some((address, u16::from_be(name.sin6_port)).into());
            }
            (libc::SOL_UDP, libc::UDP_GRO) => {
                // SAFETY: a message of this kind holds a number.
                let bytes = unsafe { data.cast::<i32>().read_unaligned() };
                reported.segment = usize::try_from(bytes).ok().filter(|bytes| *bytes > 0);
            }
            // The kernel may report more than was requested.
            (_, _) => {}
        }
        // SAFETY: the header and the message are those of above.
        message = unsafe { libc::CMSG_NXTHDR(header, message) };
    }
    reported
}

/// Adds a message after the first `used` bytes; returns the number of bytes added.
fn put<T>(header: &libc::msghdr, used: usize, (level, kind): (i32, i32), value: T) -> usize {
    let length = u32::try_from(size_of::<T>()).unwrap_or(0);
    // SAFETY: these only compute sizes.
    let (space, length) = unsafe { (libc::CMSG_SPACE(length) as usize, libc::CMSG_LEN(length) as usize) };
    assert!(used + space <= size_of::<Control>(), "there is room for one address and one length");
    // SAFETY: the header's control bytes are a `Control`'s, which has space for this, as was just checked. The positions are
    // aligned for control messages: every space is a multiple of their alignment.
    unsafe {
        let message = header.msg_control.cast::<u8>().add(used).cast::<libc::cmsghdr>();
        let mut control_header: libc::cmsghdr = zeroed();
        control_header.cmsg_len = field_length(length);
        control_header.cmsg_level = level;
        control_header.cmsg_type = kind;
        message.write(control_header);
        libc::CMSG_DATA(message).cast::<T>().write_unaligned(value);
    }
    space
}
