//! Invariants for any datagram read as QUIC: packets lie within it, one after the other, none is opened by chance, and frames of any
//! bytes end.

use quic::frame::{Frame, frames};
use quic::initial::ClientInitials;
use quic::opener::Opener;
use quic::packet::packets;
use quic::parameters::Parameters;
use tls::decrypt::Sender;

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
    let mut opener = Opener::default();
    for sender in [Sender::Client, Sender::Server, Sender::Client] {
        opener.read(sender, bytes, None, &mut |packet| assert!(packet.length <= bytes.len()));
    }
    assert!(!opener.has_read(), "only Initial packets have public keys");
    for frame in frames(bytes) {
        if let Frame::Ack(ack) = frame {
            assert!(ack.ranges.array_windows().all(|[one, next]| next.end() < one.start()));
        }
    }
    assert!(Parameters::read(bytes).ack_delay_exponent <= 20);
}
