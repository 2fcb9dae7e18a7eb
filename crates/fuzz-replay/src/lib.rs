//! Stored inputs of the fuzz targets (`fuzz/corpus`), for the test program that replays all of them through the targets' checks
//! (`fuzz/checks`), without a fuzzer. Not a substitute for fuzzing: that finds the inputs, this retains them.
//!
//! In: the name of a target. Out: its inputs, as they are, damaged, or as pieces for `proptest`. One module of `tests/it` for
//! each checked crate.
//!
//! ```
//! roundtrip_fuzz_replay::replay("packet", |input| assert!(input.len() < 1 << 20));
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

/// The fewest inputs that a corpus may hold: an empty directory must not pass.
const MIN_INPUTS: usize = 12;

/// Checks every stored input. Prints the path of each before, so that a failure names its input.
///
/// # Panics
/// Where the corpus holds fewer than a dozen inputs, or the check fails.
pub fn replay(target: &str, check: impl Fn(&[u8])) {
    for path in paths(target) {
        println!("{}", path.display());
        check(&read(&path));
    }
}

/// As [`replay`], and each input also truncated at every `step`th byte, and with a bit of it flipped.
///
/// # Panics
/// As [`replay`].
pub fn replay_damaged(target: &str, step: usize, check: impl Fn(&[u8])) {
    replay(target, |input| {
        check(input);
        for index in (0..input.len()).step_by(step) {
            check(&input[..index]);
            let mut damaged = input.to_vec();
            damaged[index] ^= 1 << (index % 8);
            check(&damaged);
        }
    });
}

/// The stored inputs with a descriptive name, without those that the fuzzer added.
///
/// # Panics
/// Where the corpus holds fewer than a dozen inputs.
pub fn corpus(target: &str) -> Vec<Vec<u8>> {
    let named = |path: &PathBuf| path.file_name().is_some_and(|name| name.len() != 40);
    let inputs: Vec<_> = paths(target).iter().filter(|path| named(path)).map(|path| read(path)).collect();
    assert!(inputs.len() >= MIN_INPUTS, "{target} holds only {} inputs", inputs.len());
    inputs
}

/// Lines of the corpus and single bytes, in any order.
pub fn pieces(target: &str) -> impl Strategy<Value = Vec<u8>> + use<> {
    let lines: Vec<Vec<u8>> = corpus(target)
        .iter()
        .flat_map(|input| input.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec))
        .collect();
    let piece = prop_oneof![9 => prop::sample::select(lines), 1 => any::<u8>().prop_map(|byte| vec![byte])];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

/// Files of a corpus, sorted.
fn paths(target: &str) -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let entries = fs::read_dir(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    assert!(paths.len() >= MIN_INPUTS, "{} holds only {} inputs", directory.display(), paths.len());
    paths
}

fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
