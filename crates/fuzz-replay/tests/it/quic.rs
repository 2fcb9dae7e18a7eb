//! Replays the fuzzer's corpus through the check that the fuzz target runs, without a fuzzer; each input is also truncated and
//! bit-flipped.

#[path = "../../../../fuzz/checks/quic_packets.rs"]
mod quic_packets;

#[test]
fn every_stored_input_holds_whole_cut_and_damaged() {
    roundtrip_fuzz_replay::replay_damaged("quic_packets", 5, quic_packets::check);
}
