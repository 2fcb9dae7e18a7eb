//! Invariants for any datagram read as QUIC: packets lie within it, one after the other, and none is opened by chance.

use quic::initial::ClientInitials;
use quic::packet::packets;

/// Panics if these bytes violate an invariant.
pub(crate) fn check(bytes: &[u8]) {
    let mut total = 0;
    let mut initials = ClientInitials::default();
    for packet in packets(bytes) {
        total += packet.bytes.len();
        assert!(packet.number_at <= packet.bytes.len());
        assert!(packet.destination.len() <= 20 && packet.source.len() <= 20);
        let hello = initials.read(&packet, packet.destination);
        assert!(hello.is_none_or(|hello| hello.server_name.is_none_or(|name| name.len() <= 255)));
    }
    assert!(total <= bytes.len());
}
