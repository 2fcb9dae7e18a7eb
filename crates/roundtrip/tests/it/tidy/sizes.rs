//! A ratchet on sizes. Files of more than [`FILE`] lines of production code, and crates of more than [`CRATE`] lines with unit
//! tests, are listed with their length, and may only shrink. Files are split by purpose; the limit only triggers a review.

use std::collections::BTreeMap;

use super::tree;

/// Longest file that needs no entry, in lines without its unit tests.
const FILE: usize = 700;

/// Files that are longer, with the length they must not exceed. Shorten the entry when the file shrinks.
const LONGER: [(&str, usize); 0] = [];

/// Largest crate that needs no entry, in all lines below its `src`.
const CRATE: usize = 12_000;

/// The same for crates; the command line is allowed less than a library, 10,000 lines at most.
///
/// `diagnose`: one rule for each cause, with scripted packets of a fault and its healthy twin beside it.
const LARGER: [(&str, usize); 2] = [("roundtrip", 8_600), ("diagnose", 14_500)];

#[test]
fn no_file_grows_beyond_its_limit() {
    let complaints = beyond(&lengths(), &LONGER, FILE);
    tree::expect_none("Longer than allowed; has each of these one purpose?", &complaints);
}

#[test]
fn no_crate_grows_beyond_its_limit() {
    let complaints = beyond(&crates(), &LARGER, CRATE);
    tree::expect_none("Larger than allowed; is each of these one library?", &complaints);
}

#[test]
fn the_lists_of_longer_files_and_crates_are_no_longer_than_they_must_be() {
    let complaints = [not_needed(&lengths(), &LONGER, FILE), not_needed(&crates(), &LARGER, CRATE)].concat();
    tree::expect_none("Turn the ratchet: write the shorter length, or drop the entry.", &complaints);
}

fn beyond(lengths: &BTreeMap<String, usize>, listed: &[(&str, usize)], limit: usize) -> Vec<String> {
    let listed: BTreeMap<&str, usize> = listed.iter().copied().collect();
    lengths
        .iter()
        .filter(|(name, lines)| **lines > listed.get(name.as_str()).copied().unwrap_or(limit))
        .map(|(name, lines)| format!("{name}: {lines} lines"))
        .collect()
}

/// Entries that no longer exist, that are within the limit anyway, or that exceed the length by more than a tenth.
fn not_needed(lengths: &BTreeMap<String, usize>, listed: &[(&str, usize)], limit: usize) -> Vec<String> {
    listed
        .iter()
        .filter(|(name, allowed)| {
            lengths
                .get(*name)
                .is_none_or(|lines| (*lines <= limit && *allowed > limit) || *lines < allowed - allowed / 10)
        })
        .map(|(name, allowed)| format!("{name}: {allowed} allowed, {:?} found", lengths.get(*name)))
        .collect()
}

/// Lines of each file before its unit tests, which are at its end.
fn lengths() -> BTreeMap<String, usize> {
    tree::files("", &[".rs", ".sh"])
        .into_iter()
        .map(|file| (file.clone(), production(&tree::text(&file))))
        .collect()
}

fn crates() -> BTreeMap<String, usize> {
    let mut crates = BTreeMap::new();
    for file in tree::files("crates", &[".rs"]) {
        if let ["crates", name, "src", ..] = file.split('/').collect::<Vec<_>>()[..] {
            *crates.entry(name.to_owned()).or_default() += tree::text(&file).lines().count();
        }
    }
    crates
}

fn production(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    let is_tests = |pair: &[&str]| pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod tests {");
    lines.windows(2).position(is_tests).unwrap_or(lines.len())
}

#[test]
fn unit_tests_are_no_production_code() {
    assert_eq!(production("//! A file.\nfn one() {}\n#[cfg(test)]\nmod tests {\n    fn two() {}\n}\n"), 2);
    assert_eq!(production("//! A file.\n#[cfg(test)]\nmod script;\nfn one() {}\n"), 4);
}
