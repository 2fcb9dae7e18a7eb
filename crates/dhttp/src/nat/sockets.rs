//! Sockets that receive what is for others, and send as others (`IP_TRANSPARENT`; ip(7)).
//!
//! Not what is sent.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};

use socket2::{Domain, Protocol, Socket, Type};

use crate::batch;
use crate::socket;

/// Where diverted datagrams arrive, and whence answers go, as from whoever sent them: the port is the servers'.
pub(super) fn diverted(port: u16) -> io::Result<UdpSocket> {
    let socket = transparent()?;
    socket.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)).into())?;
    let socket = UdpSocket::from(socket);
    // It says for whom each datagram was.
    batch::prepare(&socket);
    Ok(socket)
}

/// One that sends as that address, whosever it is.
pub(super) fn spoken_by(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = transparent()?;
    socket.set_reuse_port(true)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// A port of the router's own, by UDP; it hears what ICMP says about those it sent to.
pub(super) fn own(address: SocketAddr) -> io::Result<UdpSocket> {
    socket::udp_of_client(address)
}

/// Keeps the same port of TCP from others: nobody listens there, as long as no hole leads elsewhere.
pub(super) fn kept(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    socket.bind(&address.into())?;
    Ok(socket)
}

/// What ICMP messages are sent from.
pub(super) fn icmp() -> io::Result<Socket> {
    Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4))
}

/// That nobody listens at `server`, as `client` would have heard it: the message quotes the head of what it sent
/// (RFC 792).
pub(super) fn nobody_listens(client: SocketAddrV4, server: SocketAddrV4) -> Vec<u8> {
    // Destination unreachable: port.
    let mut message = vec![3, 3, 0, 0, 0, 0, 0, 0];
    // IPv4 without options, of UDP; then the ports and a length.
    message.extend([0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0]);
    message.extend(client.ip().octets());
    message.extend(server.ip().octets());
    if let Some(quoted) = message.get(8..28) {
        let sum = checksum(quoted).to_be_bytes();
        message.splice(18..20, sum);
    }
    message.extend(client.port().to_be_bytes());
    message.extend(server.port().to_be_bytes());
    message.extend([0, 8, 0, 0]);
    let sum = checksum(&message).to_be_bytes();
    message.splice(2..4, sum);
    message
}

fn transparent() -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    socket.set_ip_transparent_v4(true)?;
    Ok(socket)
}

/// RFC 1071.
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
        let message = nobody_listens("10.0.0.2:40000".parse().unwrap(), "192.0.2.1:80".parse().unwrap());
        assert_eq!(message.len(), 36);
        assert_eq!((checksum(&message), checksum(&message[8..28])), (0, 0));
        assert_eq!(message[28..32], [0x9c, 0x40, 0, 80]);
    }
}
