//! Invariants for any bytes read as qlog: whatever is read of them is a capture of the same packets, which a reader of captures opens
//! with the keys in it, and of bounded length.

use std::io::Read as _;

use packets::Reader;
use qlog::Replay;
use quic::opener::Opener;
use tls::KeyLog;
use tls::decrypt::Sender;
use wire::packet::{Packet, Transport};

/// Maximum bytes of a capture that is checked.
const MAX_BYTES: u64 = 1 << 22;

/// Panics if these bytes violate an invariant.
pub(crate) fn check(bytes: &[u8]) {
    let Ok(log) = qlog::read(bytes) else { return };
    for trace in &log.traces {
        assert!(trace.events.array_windows().all(|[one, next]| one.at <= next.at));
    }
    let count: usize = log.traces.iter().map(|trace| trace.events.len()).sum();
    let replay = Replay::new(log).expect("memory takes everything");
    let mut reader = Reader::new(replay.take(MAX_BYTES)).expect("it begins as a capture");
    let (mut keys, mut datagrams) = (KeyLog::default(), 0);
    let mut opener = Opener::default();
    while let Ok(Some(frame)) = reader.read_with(&mut |secrets| keys.read(secrets)) {
        datagrams += 1;
        let packet = frame.ip().map(Packet::read).expect("an IP packet").expect("a valid one");
        let Transport::Udp(udp) = packet.transport else { panic!("not a datagram") };
        for sender in [Sender::Client, Sender::Server] {
            opener.read(sender, udp.payload, Some(&keys), &mut |packet| {
                assert!(packet.length <= udp.payload.len());
            });
        }
    }
    assert!(datagrams <= count);
}
