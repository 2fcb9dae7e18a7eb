//! Replays the fuzzer's corpus through the check that the fuzz target runs, without a fuzzer; each input is also truncated and
//! bit-flipped.

#[path = "../../../../fuzz/checks/http2_frames.rs"]
mod http2_frames;

#[test]
fn every_stored_input_holds_whole_cut_and_damaged() {
    roundtrip_fuzz_replay::replay_damaged("http2_frames", 5, http2_frames::check);
}
