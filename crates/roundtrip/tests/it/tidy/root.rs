//! The root of the checkout stays short, so that a newcomer can read all of it.

use std::fs;

use super::tree;

const ENTRIES: [&str; 26] = [
    ".cargo",
    ".ci",
    ".git",
    ".github",
    ".gitignore",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "browser",
    "ci.sh",
    "clippy.toml",
    "crates",
    "deny.toml",
    "docs",
    "fuzz",
    "packaging",
    "papers",
    "python",
    "rustfmt.toml",
    "scenarios",
    "studies",
];

#[test]
fn the_root_holds_what_is_listed_and_nothing_else() {
    let ignored = tree::text(".gitignore");
    let mut found: Vec<String> = fs::read_dir(tree::root())
        .expect("the root is readable")
        .map(|entry| entry.expect("a readable entry").file_name().to_string_lossy().into_owned())
        .filter(|name| !ignored.lines().any(|line| line.trim_start_matches('/') == name))
        .collect();
    found.sort();
    assert_eq!(found, ENTRIES, "left: what is there; right: what {} lists", file!());
}
