//! Replays the fuzzer's corpus through the check that the fuzz target runs, without a fuzzer; each input is also truncated and
//! bit-flipped.

extern crate roundtrip_http2 as http2;

#[path = "../../../fuzz/checks/http2_frames.rs"]
mod http2_frames;
#[path = "../../../fuzz/checks/replay.rs"]
mod replay;

#[test]
fn every_stored_input_holds_whole_cut_and_damaged() {
    replay::replay("http2_frames", |bytes| {
        http2_frames::check(bytes);
        for index in (0..bytes.len()).step_by(5) {
            http2_frames::check(&bytes[..index]);
            let mut damaged = bytes.to_vec();
            damaged[index] ^= 1 << (index % 8);
            http2_frames::check(&damaged);
        }
    });
}
