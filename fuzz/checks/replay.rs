//! Replay of the stored inputs of one fuzz target. Not a check.

use std::fs;
use std::path::Path;

/// Checks every stored input. Prints the path of each before, so that a failure names its input.
pub(crate) fn replay(target: &str, check: impl Fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let files = fs::read_dir(&corpus).unwrap_or_else(|error| panic!("{}: {error}", corpus.display()));
    let mut replayed = 0;
    for file in files {
        let path = file.unwrap().path();
        println!("{}", path.display());
        check(&fs::read(&path).unwrap());
        replayed += 1;
    }
    assert!(replayed >= 12, "{} holds only {replayed} inputs", corpus.display());
}
