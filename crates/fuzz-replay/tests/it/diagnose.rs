//! Replays the fuzzer's corpora of captures and of segments through the checks that the fuzz targets run, without a
//! fuzzer. Each input is also truncated and bit-flipped. Not a substitute for fuzzing: that finds the inputs, this
//! checks that they stay fixed.

#[path = "../../../../fuzz/checks/capture.rs"]
mod capture;

#[path = "../../../../fuzz/checks/segments.rs"]
mod segments;

use roundtrip_fuzz_replay::replay;

#[test]
fn every_stored_capture_holds_whole_cut_and_damaged() {
    replay("capture", |bytes| whole_cut_and_damaged(bytes, capture::check));
}

#[test]
fn every_stored_sequence_of_segments_holds_whole_cut_and_damaged() {
    replay("segments", |bytes| whole_cut_and_damaged(bytes, segments::check));
}

fn whole_cut_and_damaged(bytes: &[u8], check: fn(&[u8])) {
    check(bytes);
    for cut in (0..bytes.len()).step_by(37) {
        check(&bytes[..cut]);
    }
    for index in (0..bytes.len()).step_by(11) {
        let mut damaged = bytes.to_vec();
        damaged[index] ^= 1 << (index % 8);
        check(&damaged);
    }
}
