//! Whether an address belongs to this host: a relay must not give access to its own host's services.
//!
//! The kernel is queried for each address, so no list can become out of date. A public address that a router elsewhere
//! translates into this host's (1:1 NAT) is not detected.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// Whether packets to this address stay on this host. An address without a route is not its own.
pub fn is_own(address: IpAddr) -> bool {
    let address = address.to_canonical();
    if address.is_unspecified() || address.is_loopback() {
        return true;
    }
    // Addresses that no interface has: one reserved, one of the discard prefix (RFC 6666).
    let (any, nowhere): (IpAddr, IpAddr) = match address {
        IpAddr::V4(_) => (Ipv4Addr::UNSPECIFIED.into(), Ipv4Addr::new(240, 0, 0, 1).into()),
        IpAddr::V6(_) => (Ipv6Addr::UNSPECIFIED.into(), Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, 0, 1).into()),
    };
    let can_bind = |address| UdpSocket::bind(SocketAddr::new(address, 0)).is_ok();
    if can_bind(address) && !can_bind(nowhere) {
        return true;
    }
    // With `ip_nonlocal_bind` every address can be bound. Connecting a UDP socket sends nothing. The source address that the
    // kernel selects for an interface's first address is that address itself.
    let source = UdpSocket::bind(SocketAddr::new(any, 0)).and_then(|socket| {
        socket.connect(SocketAddr::new(address, 9))?;
        socket.local_addr()
    });
    source.is_ok_and(|source| source.ip().to_canonical() == address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_own_and_the_internet_is_not() {
        for own in ["127.0.0.1", "127.9.9.9", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1"] {
            assert!(is_own(own.parse().unwrap()), "{own}");
        }
        for other in ["192.0.2.1", "8.8.8.8", "2600::1"] {
            assert!(!is_own(other.parse().unwrap()), "{other}");
        }
    }
}
