//! Invariants when any bytes are read as an IP packet: a reason is given for what cannot be read, and what
//! could be read does not contradict itself. Not a generator: the bytes are a packet, IP header first.

use wire::Bytes;
use wire::packet::icmp::Unreachable;
use wire::packet::{Packet, Transport};

/// Panics if something does not hold for these bytes.
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
