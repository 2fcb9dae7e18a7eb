//! A ratchet on file sizes: a file of more than [`LIMIT`] lines is listed with its length, and may only shrink.

use std::collections::BTreeMap;

use crate::tree;

/// Longest file that needs no entry, in lines, tests included.
const LIMIT: usize = 500;

/// Files that are longer, with the length they must not exceed. Shorten the entry when the file shrinks.
const LONGER: [(&str, usize); 0] = [];

#[test]
fn no_file_grows_beyond_its_limit() {
    let longer: BTreeMap<&str, usize> = LONGER.into_iter().collect();
    let complaints: Vec<String> = lengths()
        .into_iter()
        .filter(|(file, lines)| *lines > longer.get(file.as_str()).copied().unwrap_or(LIMIT))
        .map(|(file, lines)| format!("{file}: {lines} lines"))
        .collect();
    tree::expect_none("Longer than allowed; is each of these one thought?", &complaints);
}

#[test]
fn the_list_of_longer_files_is_no_longer_than_it_must_be() {
    let lengths = lengths();
    let complaints: Vec<String> = LONGER
        .iter()
        .filter(|(file, allowed)| lengths.get(*file).is_none_or(|lines| lines < allowed || *lines <= LIMIT))
        .map(|(file, allowed)| format!("{file}: {allowed} allowed, {:?} found", lengths.get(*file)))
        .collect();
    tree::expect_none("Turn the ratchet: write the shorter length, or drop the entry.", &complaints);
}

fn lengths() -> BTreeMap<String, usize> {
    tree::files("", &[".rs", ".sh"])
        .into_iter()
        .map(|file| (file.clone(), tree::text(&file).lines().count()))
        .collect()
}
