//! Replays the fuzzer's corpus through the check that the fuzz target runs, without a fuzzer; each input is also truncated and
//! bit-flipped.

#[path = "../../../../fuzz/checks/qlog_file.rs"]
mod qlog_file;

#[test]
fn every_stored_input_holds_whole_cut_and_damaged() {
    roundtrip_fuzz_replay::replay_damaged("qlog_file", 41, qlog_file::check);
}
