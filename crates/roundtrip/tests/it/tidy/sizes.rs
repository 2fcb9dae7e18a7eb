//! A ratchet on sizes. Files of more than [`FILE`] lines of production code, functions of more than [`FUNCTION`], and crates of
//! more than [`CRATE`] lines with unit tests, are listed with their length, and may only shrink. Files are split by purpose; the
//! limit only triggers a review.

use std::collections::BTreeMap;

use super::tree;

/// Longest file that needs no entry, in lines without its unit tests.
const FILE: usize = 700;

/// Files that are longer, with the length they must not exceed. Shorten the entry when the file shrinks.
const LONGER: [(&str, usize); 0] = [];

/// Largest crate that needs no entry, in all lines below its `src`.
const CRATE: usize = 12_000;

/// The same for crates; the command line is allowed less than a library, 10,200 lines at most.
///
/// `roundtrip`: the kernel's engine is called here, as no pure library can. It also reads pages and network traces from files, runs
/// commands behind a link, and serves the laboratory's page.
/// `diagnose`: one rule for each cause, of TCP, QUIC and DHTTP, with scripted packets of a fault and its healthy twin beside it.
const LARGER: [(&str, usize); 2] = [("roundtrip", 10_200), ("diagnose", 14_140)];

/// Longest function that needs no entry, in lines with its signature.
const FUNCTION: usize = 70;

/// Functions that are longer, with the length they must not exceed.
const LONGER_FUNCTIONS: [(&str, usize); 16] = [
    ("crates/accesslog/src/connections/counter.rs process_batch", 74),
    ("crates/dhttp-proxy/src/cache/exchange.rs respond", 73),
    ("crates/dhttp-proxy/src/gateway/receive.rs receive", 96),
    ("crates/dhttp-proxy/src/nat/rules.rs content", 99),
    ("crates/diagnose/src/flow.rs handle_data", 139),
    ("crates/diagnose/src/flow/facts.rs gap", 114),
    ("crates/diagnose/src/flow/ledger.rs judge", 85),
    ("crates/load/src/run.rs run_until", 125),
    ("crates/measure/src/fidelity.rs missing_anywhere", 71),
    ("crates/measure/src/run.rs fetch", 75),
    ("crates/model/src/notes.rs fmt", 89),
    ("crates/page/src/html/tokens.rs step", 75),
    ("crates/roundtrip/src/loading/traffic.rs list", 75),
    ("crates/roundtrip/src/verb/cache.rs read", 76),
    ("crates/scenario/src/spec/key.rs info", 92),
    ("crates/simulate/src/profile.rs config", 75),
];

#[test]
fn no_function_grows_beyond_its_limit() {
    let complaints = beyond(&functions(), &LONGER_FUNCTIONS, FUNCTION);
    tree::expect_none("Longer than allowed; is each of these one idea?", &complaints);
}

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
fn the_lists_of_longer_files_crates_and_functions_are_no_longer_than_they_must_be() {
    let complaints = [
        not_needed(&lengths(), &LONGER, FILE),
        not_needed(&crates(), &LARGER, CRATE),
        not_needed(&functions(), &LONGER_FUNCTIONS, FUNCTION),
    ]
    .concat();
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

/// Lines of each function of production code, by `file name`; the longest where a file has several of that name.
fn functions() -> BTreeMap<String, usize> {
    let mut functions = BTreeMap::new();
    for file in tree::files("crates", &[".rs"]).iter().filter(|file| file.contains("/src/")) {
        let text = tree::text(file);
        let lines: Vec<&str> = text.lines().take(production(&text)).collect();
        for (start, line) in lines.iter().enumerate() {
            let Some(name) = function_name(line) else { continue };
            let end = format!("{}}}", &line[..line.len() - line.trim_start().len()]);
            let length = lines[start..].iter().position(|line| *line == end).map_or(1, |last| last + 1);
            let is_declaration = lines[start..start + length].iter().take(8).any(|line| line.ends_with(';'))
                && !lines[start..start + length].iter().take(8).any(|line| line.contains('{'));
            if !is_declaration && !line.ends_with('}') {
                let longest: &mut usize = functions.entry(format!("{file} {name}")).or_default();
                *longest = length.max(*longest);
            }
        }
    }
    functions
}

/// The name of a function whose signature begins in this line.
fn function_name(line: &str) -> Option<&str> {
    let code = line.trim_start();
    let (before, after) = match code.strip_prefix("fn ") {
        Some(after) => ("", after),
        None => code.split_once(" fn ")?,
    };
    let is_signature = before.split(' ').all(|word| {
        word.is_empty() || word.starts_with("pub") || ["async", "const", "unsafe", "in"].contains(&word)
    });
    let end = after.find(|letter: char| !letter.is_alphanumeric() && letter != '_')?;
    is_signature.then(|| &after[..end])
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

#[test]
fn a_signature_is_told_from_prose_and_from_a_type() {
    assert_eq!(function_name("    pub(crate) const fn parse<T>(text: T) {"), Some("parse"));
    assert_eq!(function_name("/// Calls fn parse(text)"), None);
    assert_eq!(function_name("    handler: fn(&str) -> bool,"), None);
}
