//! Replays the fuzzer's corpus through the check that the fuzz target runs, without a fuzzer; each input is also truncated and
//! bit-flipped.

#[path = "../../../../fuzz/checks/tls_decryption.rs"]
mod tls_decryption;
#[path = "../../../../fuzz/checks/tls_records.rs"]
mod tls_records;

#[test]
fn every_stored_input_holds_whole_cut_and_damaged() {
    roundtrip_fuzz_replay::replay_damaged("tls_records", 5, tls_records::check);
}

#[test]
fn every_stored_transcript_holds_whole_cut_and_damaged() {
    roundtrip_fuzz_replay::replay_damaged("tls_decryption", 211, tls_decryption::check);
}
