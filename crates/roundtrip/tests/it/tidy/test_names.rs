//! Every test that a document names exists under that name.
//!
//! A name is inline code of lower-case words joined by at least three underscores, with or without its module, or its
//! beginning before `...`. Names of fields and metrics have that form, too: they must occur in the code or in the
//! generated reference.

use std::collections::BTreeSet;

use super::tree;

#[test]
fn every_test_that_a_document_names_exists() {
    let known = known();
    let mut files = tree::files("docs", &[".md"]);
    files.retain(|file| !file.starts_with("docs/reference/"));
    files.extend(tree::files("papers", &[".md"]));
    files.extend(tree::files("studies", &[".md"]));
    files.extend(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(str::to_owned));
    let mut complaints = Vec::new();
    let mut count = 0;
    for file in files {
        for name in names(&tree::text(&file)) {
            count += 1;
            if !exists(&known, &name) {
                complaints.push(format!("{file}: {name}"));
            }
        }
    }
    tree::expect_none("Tests that do not exist:", &complaints);
    assert!(count > 30, "only {count} names were found");
}

/// Identifiers of the code: names of functions, and fields and metrics in literals.
fn known() -> BTreeSet<String> {
    let mut known = BTreeSet::new();
    let mut files = tree::files("", &[".rs", ".py"]);
    files.extend(tree::files("docs/reference", &[".md"]));
    for file in files {
        let text = tree::text(&file);
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        for line in code {
            let words = line.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
            known.extend(words.filter(|word| is_name(word)).map(str::to_owned));
        }
    }
    known
}

fn is_name(word: &str) -> bool {
    word.matches('_').count() >= 3 && word.starts_with(|letter: char| letter.is_ascii_lowercase())
}

fn exists(known: &BTreeSet<String>, name: &str) -> bool {
    match name.strip_suffix("...") {
        Some(start) => known.range(start.to_owned()..).next().is_some_and(|name| name.starts_with(start)),
        None => known.contains(name),
    }
}

/// Names in inline code, without their modules. The filter of a `cargo test` is the beginning of names.
fn names(text: &str) -> Vec<String> {
    let code = text.split('`').skip(1).step_by(2);
    code.flat_map(|code| {
        let end = if code.starts_with("cargo test") { "..." } else { "" };
        code.split_whitespace().filter_map(name_in).map(move |name| name + end)
    })
    .collect()
}

/// The name that a word is, without its module.
fn name_in(word: &str) -> Option<String> {
    let name = word.rsplit("::").next().unwrap_or(word).trim_end_matches(',');
    let stem = name.trim_end_matches('.');
    let is_plain =
        stem.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_');
    (is_plain && is_name(stem)).then(|| name.to_owned())
}

#[test]
fn names_are_found_with_and_without_modules() {
    let text = "`dhttp_hosts bounce::no_syn_goes_to_an_address`, `a_b_c_d...`, `x_y`, `worldcup98_a_b_c.csv`, `cargo test -- e_f_g_h`";
    assert_eq!(names(text), ["no_syn_goes_to_an_address", "a_b_c_d...", "e_f_g_h..."]);
    let known = BTreeSet::from(["a_b_c_d_e".to_owned()]);
    assert!(exists(&known, "a_b_c_d...") && !exists(&known, "a_b_c_d") && !exists(&known, "b_c_d_e..."));
}
