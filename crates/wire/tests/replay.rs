//! Replays the fuzzer's corpus of packets through the fuzz target's own check, without a fuzzer. Not a substitute for
//! fuzzing: that finds the inputs, this checks that they stay fixed.

extern crate roundtrip_wire as wire;

use std::fs;
use std::path::Path;

#[path = "../../../fuzz/checks/packet.rs"]
mod packet;

#[test]
fn every_stored_packet_holds() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/packet");
    let files = fs::read_dir(&corpus).unwrap_or_else(|error| panic!("{}: {error}", corpus.display()));
    let mut replayed = 0;
    for file in files {
        let path = file.unwrap().path();
        println!("{}", path.display());
        packet::check(&fs::read(&path).unwrap());
        replayed += 1;
    }
    assert!(replayed >= 12, "{} holds only {replayed} inputs", corpus.display());
}
