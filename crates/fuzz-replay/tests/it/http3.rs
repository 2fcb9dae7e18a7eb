//! Replays the fuzzer's corpus through the check that the fuzz target runs, without a fuzzer; each input is also truncated and
//! bit-flipped.

#[path = "../../../../fuzz/checks/http3_streams.rs"]
mod http3_streams;

#[test]
fn every_stored_input_holds_whole_cut_and_damaged() {
    roundtrip_fuzz_replay::replay_damaged("http3_streams", 5, http3_streams::check);
}
