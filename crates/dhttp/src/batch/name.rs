//! Socket addresses in the kernel's format.
//!
//! Not control messages, which may hold addresses too: those are in `control`.

use std::mem::size_of;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// Size of the storage for any name.
pub(super) const NAME_BYTES: libc::socklen_t = length_of::<libc::sockaddr_storage>();

#[expect(clippy::cast_possible_truncation, reason = "names are at most 128 bytes")]
const fn length_of<Name>() -> libc::socklen_t {
    size_of::<Name>() as libc::socklen_t
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "families are small numbers")]
const fn family(family: i32) -> libc::sa_family_t {
    family as libc::sa_family_t
}

/// Reads an address that the kernel wrote.
pub(super) fn read(name: &libc::sockaddr_storage) -> Option<SocketAddr> {
    let pointer = &raw const *name;
    match i32::from(name.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family is IPv4; the storage is large enough and aligned for it.
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

/// Writes an address for the kernel, and returns its length.
pub(super) fn write(address: SocketAddr, name: &mut libc::sockaddr_storage) -> libc::socklen_t {
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
