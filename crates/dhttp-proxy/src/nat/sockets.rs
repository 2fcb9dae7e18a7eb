//! Sockets that receive datagrams for other hosts, and send from their addresses (`IP_TRANSPARENT`; ip(7)).
//!
//! The datagrams are `driver`'s.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use socket2::{Domain, Protocol, Socket, Type};

use crate::nft::Family;
use dhttp::batch;
use dhttp::socket;

/// Socket on which diverted datagrams arrive, and from which responses are sent with the server's address: its port is the
/// servers'.
///
/// It is bound to a loopback address, to which only the rules divert: datagrams to an address of the router itself do not
/// arrive here.
pub(super) fn diverted(family: Family, port: u16) -> io::Result<UdpSocket> {
    let loopback: IpAddr = match family {
        Family::Ip => Ipv4Addr::LOCALHOST.into(),
        Family::Ip6 => Ipv6Addr::LOCALHOST.into(),
    };
    let socket = transparent(family)?;
    socket.bind(&SocketAddr::new(loopback, port).into())?;
    let socket = UdpSocket::from(socket);
    batch::prepare(&socket);
    batch::report_destinations(&socket);
    Ok(socket)
}

/// Opens a socket that sends from that address, even if it belongs to another host.
pub(super) fn bind_as(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = transparent(Family::of(address.ip()))?;
    socket.set_reuse_port(true)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// Opens a UDP port of the router's own; it reports ICMP errors for what it sent.
pub(super) fn own(address: SocketAddr) -> io::Result<UdpSocket> {
    socket::udp_of_client(address)
}

/// Reserves the same TCP port: nothing listens there, as long as no pinhole leads elsewhere.
pub(super) fn reserve_tcp(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.bind(&address.into())?;
    Ok(socket)
}

/// Opens the socket that sends ICMP messages.
pub(super) fn icmp(family: Family) -> io::Result<Socket> {
    let (domain, protocol) = match family {
        Family::Ip => (Domain::IPV4, Protocol::ICMPV4),
        Family::Ip6 => (Domain::IPV6, Protocol::ICMPV6),
    };
    Socket::new(domain, Type::RAW, Some(protocol))
}

/// Returns the ICMP message "port unreachable" of `server`, as `client` would have received it. It quotes the beginning of
/// the client's datagram (RFC 792; RFC 4443, section 3.1).
pub(super) fn port_unreachable(client: SocketAddr, server: SocketAddr) -> Vec<u8> {
    let mut message = match (client.ip(), server.ip()) {
        (IpAddr::V4(client), IpAddr::V4(server)) => {
            // Destination unreachable: port. Then an IPv4 header without options, of UDP.
            let mut message = vec![3, 3, 0, 0, 0, 0, 0, 0];
            let mut quoted = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0];
            quoted.extend([client.octets(), server.octets()].concat());
            let sum = checksum(&quoted).to_be_bytes();
            quoted.splice(10..12, sum);
            message.extend(quoted);
            message
        }
        (client, server) => {
            // The same, and an IPv6 header with eight bytes of UDP.
            let mut message = vec![1, 4, 0, 0, 0, 0, 0, 0, 0x60, 0, 0, 0, 0, 8, 17, 64];
            message.extend([octets(client), octets(server)].concat());
            message
        }
    };
    message.extend(client.port().to_be_bytes());
    message.extend(server.port().to_be_bytes());
    message.extend([0, 8, 0, 0]);
    // The kernel computes ICMPv6 checksums itself.
    if client.is_ipv4() {
        let sum = checksum(&message).to_be_bytes();
        message.splice(2..4, sum);
    }
    message
}

fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

fn transparent(family: Family) -> io::Result<Socket> {
    let domain = match family {
        Family::Ip => Domain::IPV4,
        Family::Ip6 => Domain::IPV6,
    };
    let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    match family {
        Family::Ip => socket.set_ip_transparent_v4(true)?,
        Family::Ip6 => {
            socket.set_only_v6(true)?;
            socket::set(&socket, libc::IPPROTO_IPV6, libc::IPV6_TRANSPARENT, 1)?;
        }
    }
    Ok(socket)
}

/// Internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| match *pair {
        [high, low] => u32::from(u16::from_be_bytes([high, low])),
        [high] => u32::from(high) << 8,
        _ => 0,
    });
    let sum = words.sum::<u32>();
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    !u16::try_from(folded).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_about_a_server_is_one_that_a_kernel_believes() {
        let message = port_unreachable("10.0.0.2:40000".parse().unwrap(), "192.0.2.1:80".parse().unwrap());
        assert_eq!(message.len(), 36);
        assert_eq!((checksum(&message), checksum(&message[8..28])), (0, 0));
        assert_eq!(message[28..32], [0x9c, 0x40, 0, 80]);
        let message = port_unreachable("[fd00::2]:40000".parse().unwrap(), "[fd00::1]:80".parse().unwrap());
        assert_eq!(
            (message.len(), &message[..2], &message[48..52]),
            (56, &[1, 4][..], &[0x9c, 0x40, 0, 80][..])
        );
    }
}
