//! Documents refer to existing targets: links between files, paths in backticks, jobs of `ci.sh`, and the papers' tables and
//! figures by their anchors.

use std::collections::BTreeSet;
use std::path::Path;

use super::tree;

#[test]
fn every_link_in_a_document_has_a_target() {
    let mut complaints = Vec::new();
    for document in tree::files("", &[".md"]) {
        let directory = Path::new(&document).parent().unwrap_or(Path::new("")).to_owned();
        for target in links(&tree::text(&document)) {
            let (path, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let target_path =
                if path.is_empty() { Path::new(&document).to_owned() } else { directory.join(path) };
            if !tree::root().join(&target_path).exists() {
                complaints.push(format!("{document}: {target}"));
            } else if !anchor.is_empty()
                && !headings(&tree::text(&target_path.to_string_lossy())).contains(anchor)
            {
                complaints.push(format!("{document}: no heading #{anchor} in {}", target_path.display()));
            }
        }
    }
    tree::expect_none("Links that lead nowhere:", &complaints);
}

/// A reference to a paper's place, such as `papers/w3c` + `#table-3`, must be listed in papers/anchors.txt, so that a
/// typing error in a doc comment is found.
#[test]
fn every_reference_to_a_paper_names_an_existing_anchor() {
    let list = tree::text("papers/anchors.txt");
    let known: BTreeSet<&str> = list.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let mut complaints = Vec::new();
    for file in tree::files("", &[".rs", ".md", ".toml"]) {
        for mention in mentions(&tree::text(&file)) {
            if !known.contains(mention.as_str()) {
                complaints.push(format!("{file}: papers/{mention}"));
            }
        }
    }
    tree::expect_none("Not in papers/anchors.txt:", &complaints);
}

/// A path between backticks that begins with an entry of the root, or a name of a Rust file, exists. The changelog names what
/// existed.
#[test]
fn every_path_in_backticks_exists() {
    let files = tree::files("", &[""]);
    let names: BTreeSet<&str> = files.iter().filter_map(|file| file.rsplit('/').next()).collect();
    let mut complaints = Vec::new();
    for document in tree::files("", &[".md"]).iter().filter(|document| *document != "CHANGELOG.md") {
        for path in paths(&tree::text(document)) {
            let exists = match path.split_once('/') {
                None => !path.ends_with(".rs") || names.contains(path.as_str()),
                Some(("" | "target", _)) => true,
                Some((first, _)) => {
                    !tree::root().join(first).exists() || tree::root().join(without_pattern(&path)).exists()
                }
            };
            if !exists {
                complaints.push(format!("{document}: `{path}`"));
            }
        }
    }
    tree::expect_none("Paths that do not exist:", &complaints);
}

/// The jobs that CONTRIBUTING.md describes are those of `ci.sh`, and the fuzz target that it runs exists.
#[test]
fn the_jobs_and_the_fuzz_target_of_contributing_exist() {
    let (script, text) = (tree::text("ci.sh"), tree::text("CONTRIBUTING.md"));
    let rows = text.lines().filter(|line| line.starts_with("| `"));
    let named: BTreeSet<&str> = rows
        .filter_map(|row| row.split('|').nth(1))
        .flat_map(|names| names.split(", ").map(|name| name.trim().trim_matches('`')))
        .collect();
    let jobs = script.lines().filter_map(|line| line.strip_prefix("job_")?.split_once("()"));
    let missing: Vec<String> =
        jobs.filter(|(job, _)| !named.contains(job)).map(|(job, _)| job.to_owned()).collect();
    tree::expect_none("Jobs of ci.sh without a row in CONTRIBUTING.md:", &missing);
    let target = text.split("fuzz run ").nth(1).and_then(|rest| rest.split_whitespace().next()).unwrap();
    assert!(
        tree::text("fuzz/Cargo.toml").contains(&format!("name = \"{target}\"")),
        "no fuzz target {target}"
    );
}

/// Texts between backticks, outside of code blocks, that look like paths.
fn paths(text: &str) -> Vec<String> {
    let prose = text.split("```").step_by(2).flat_map(str::lines);
    let quoted = prose.flat_map(|line| line.split('`').skip(1).step_by(2));
    let is_path = |word: &&str| {
        (word.contains('/') || word.ends_with(".rs"))
            && word.chars().all(|letter| letter.is_ascii_alphanumeric() || "_.-/*{},<>".contains(letter))
    };
    quoted.filter(is_path).map(str::to_owned).collect()
}

/// The directory before the first placeholder, or the whole path.
fn without_pattern(path: &str) -> &str {
    match path.find(['*', '{', '<']) {
        Some(pattern) => path[..pattern].rsplit_once('/').map_or("", |(directory, _)| directory),
        None => path,
    }
}

/// The targets of `[text](target)`, without those on the web.
fn links(text: &str) -> Vec<String> {
    text.split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .filter(|target| !target.contains("://") && !target.starts_with("mailto:"))
        .map(str::to_owned)
        .collect()
}

/// Headings as anchors: lower case, spaces as hyphens, other marks dropped.
fn headings(text: &str) -> BTreeSet<String> {
    text.lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let retained = title.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
            retained.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
        })
        .collect()
}

/// Every `paper#place` that follows `papers/`.
fn mentions(text: &str) -> Vec<String> {
    text.split("papers/")
        .skip(1)
        .filter_map(|rest| {
            let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric() && !"-#".contains(letter));
            let mention = &rest[..end.unwrap_or(rest.len())];
            mention.contains('#').then(|| mention.trim_end_matches('-').to_owned())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mentions_are_found_in_prose_and_code() {
        let text = format!("see `{0}w3c#table-3`; {0}dhttp/data.toml, ({0}p-http#figure-2).", "papers/");
        assert_eq!(mentions(&text), ["w3c#table-3", "p-http#figure-2"]);
    }

    #[test]
    fn paths_are_found_in_prose_only() {
        assert_eq!(
            paths("a `src/x.rs` and `y.rs`, `two words`, `word`\n```\n`z/z`\n```\n"),
            ["src/x.rs", "y.rs"]
        );
        assert_eq!(without_pattern("papers/<paper>/<table>/"), "papers");
    }

    #[test]
    fn headings_become_anchors_as_forges_make_them() {
        assert!(headings("## What it is, and is not").contains("what-it-is-and-is-not"));
    }
}
