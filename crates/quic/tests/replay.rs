//! Replays the fuzzer's corpus through the check that the fuzz target runs, without a fuzzer; each input is also truncated and
//! bit-flipped.

extern crate roundtrip_quic as quic;

#[path = "../../../fuzz/checks/quic_packets.rs"]
mod quic_packets;
#[path = "../../../fuzz/checks/replay.rs"]
mod replay;

#[test]
fn every_stored_input_holds_whole_cut_and_damaged() {
    replay::replay("quic_packets", |bytes| {
        quic_packets::check(bytes);
        for index in (0..bytes.len()).step_by(5) {
            quic_packets::check(&bytes[..index]);
            let mut damaged = bytes.to_vec();
            damaged[index] ^= 1 << (index % 8);
            quic_packets::check(&damaged);
        }
    });
}
