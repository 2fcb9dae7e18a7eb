//! Invariants for any bytes as an IP packet: an unreadable packet has a reason, and the fields of a readable one do not
//! contradict one another. Not a generator: the bytes are a packet, IP header first.

use wire::Bytes;
use wire::packet::icmp::Unreachable;
use wire::packet::{Packet, Transport};

/// Panics if these bytes violate an invariant.
pub(crate) fn check(bytes: &[u8]) {
    let packet = match Packet::read(bytes) {
        Ok(packet) => packet,
        Err(reason) => {
            assert!(!reason.to_string().is_empty());
            return;
        }
    };
    let captured = match packet.transport {
        Transport::Tcp(segment) => {
            assert!(segment.options.iter().count() <= 20, "40 bytes hold at most 20 options");
            assert!(segment.sequence_length() >= segment.payload_length.get());
            segment.payload
        }
        Transport::Udp(datagram) => datagram.payload,
        Transport::Fragment | Transport::Other { .. } => {
            let _ = Unreachable::read(&packet);
            &[]
        }
    };
    assert!(Bytes::new(captured.len() as u64) <= packet.payload_length());
    assert!(packet.payload_length() < packet.ip_length);
    let has_ports = matches!(packet.transport, Transport::Tcp(_) | Transport::Udp(_));
    assert_eq!(packet.sockets().is_some(), has_ports);
}
