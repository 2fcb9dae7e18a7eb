//! Files of the checkout, sorted, without `target` and hidden directories.

use std::fs;
use std::path::{Path, PathBuf};

/// The root of the checkout.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("a crate is two levels down").to_owned()
}

/// Every file below `directory` (relative to the root) with one of these extensions, as paths relative to the root.
pub(crate) fn files(directory: &str, endings: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    walk(&root().join(directory), &mut |path| {
        let relative = path.strip_prefix(root()).expect("below the root").to_string_lossy().into_owned();
        if endings.iter().any(|ending| relative.ends_with(ending)) {
            found.push(relative);
        }
    });
    found.sort();
    found
}

/// The text of a file named relative to the root; bytes that are not text (in some inputs of tests) are marked.
pub(crate) fn text(relative: &str) -> String {
    let bytes = fs::read(root().join(relative)).unwrap_or_else(|error| panic!("{relative}: {error}"));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Fails with the complaints, one per line, if there are any.
pub(crate) fn expect_none(rule: &str, complaints: &[String]) {
    assert!(complaints.is_empty(), "{rule}\n  {}\n", complaints.join("\n  "));
}

fn walk(directory: &Path, found: &mut dyn FnMut(&Path)) {
    let entries = fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    for entry in entries {
        let path = entry.expect("a readable entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_of_fuzzer = path.starts_with(root().join("fuzz")) && (name == "corpus" || name == "artifacts");
        let is_skipped = name == "target" || name.starts_with('.') || is_of_fuzzer;
        match (is_skipped, path.is_dir()) {
            (true, _) => {}
            (false, true) => walk(&path, found),
            (false, false) => found(&path),
        }
    }
}
