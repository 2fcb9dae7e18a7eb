//! The stored inputs of one fuzz target, and inputs made from pieces of them. Not a check.

use std::fs;
use std::path::Path;

use proptest::prelude::*;

/// The stored inputs with a descriptive name, without those that the fuzzer added.
pub(crate) fn corpus(target: &str) -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let entries = fs::read_dir(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.file_name().is_some_and(|name| name.len() != 40));
    paths.sort();
    assert!(paths.len() >= 12, "{} holds only {} inputs", directory.display(), paths.len());
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// Lines of the corpus and single bytes, in any order.
pub(crate) fn pieces(target: &str) -> impl Strategy<Value = Vec<u8>> {
    let lines: Vec<Vec<u8>> = corpus(target)
        .iter()
        .flat_map(|input| input.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec))
        .collect();
    let piece = prop_oneof![9 => prop::sample::select(lines), 1 => any::<u8>().prop_map(|byte| vec![byte])];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}
