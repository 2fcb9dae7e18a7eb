//! Replays the fuzzer's corpora of captures and of segments through the checks that the fuzz targets run, without a
//! fuzzer. Each input is also truncated and bit-flipped. Not a substitute for fuzzing: that finds the inputs, this
//! checks that they stay fixed.

extern crate roundtrip_diagnose as diagnose;

use std::fs;
use std::path::Path;

#[path = "../../../fuzz/checks/capture.rs"]
mod capture;

#[path = "../../../fuzz/checks/segments.rs"]
mod segments;

#[test]
fn every_stored_capture_holds_whole_cut_and_damaged() {
    replay("capture", capture::check);
}

#[test]
fn every_stored_sequence_of_segments_holds_whole_cut_and_damaged() {
    replay("segments", segments::check);
}

fn replay(name: &str, check: fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let files = fs::read_dir(&corpus).unwrap_or_else(|error| panic!("{}: {error}", corpus.display()));
    let mut replayed = 0;
    for file in files {
        let path = file.unwrap().path();
        println!("{}", path.display());
        let bytes = fs::read(&path).unwrap();
        check(&bytes);
        for cut in (0..bytes.len()).step_by(37) {
            check(&bytes[..cut]);
        }
        for place in (0..bytes.len()).step_by(11) {
            let mut damaged = bytes.clone();
            damaged[place] ^= 1 << (place % 8);
            check(&damaged);
        }
        replayed += 1;
    }
    assert!(replayed >= 10, "{} holds only {replayed} inputs", corpus.display());
}
