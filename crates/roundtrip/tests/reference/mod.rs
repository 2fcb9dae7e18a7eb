//! The pages of `docs/reference`, generated from the definitions that the program uses.
//!
//! A test compares each with its file. After an intended change, `ROUNDTRIP_BLESS=1 cargo test --workspace --bin
//! roundtrip reference` writes them. It is a module of the program's unit tests, since it reads private definitions.

mod causes;
mod distributions;
mod flags;
mod json;
mod metrics;
mod settings;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

/// The pages by file name.
fn pages() -> [(&'static str, String); 6] {
    [
        ("causes.md", causes::page()),
        ("distributions.md", distributions::page()),
        ("flags.md", flags::page()),
        ("json.md", json::page()),
        ("metrics.md", metrics::page()),
        ("settings.md", settings::page()),
    ]
}

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Text in the cell of a Markdown table: one line, without column separators and HTML tags.
fn cell(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.replace('|', "\\|").replace('<', "&lt;")
}

/// A Markdown table.
fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let line = |cells: Vec<&str>| format!("| {} |\n", cells.join(" | "));
    let rule = vec!["---"; header.len()];
    let rows = rows.iter().map(|row| line(row.iter().map(String::as_str).collect()));
    format!("{}{}{}", line(header.to_vec()), line(rule), rows.collect::<String>())
}

#[test]
fn every_reference_page_equals_the_definitions() {
    let directory = root().join("docs/reference");
    let mut differences = Vec::new();
    for (name, page) in pages() {
        let path = directory.join(name);
        let before = fs::read_to_string(&path).unwrap_or_default();
        if before == page {
            continue;
        }
        if std::env::var_os("ROUNDTRIP_BLESS").is_some() {
            fs::write(&path, page).unwrap();
            continue;
        }
        let line = before.lines().zip(page.lines()).take_while(|(old, new)| old == new).count();
        let shown = |text: &str| text.lines().nth(line).unwrap_or("(end)").to_owned();
        differences.push(format!(
            "docs/reference/{name}:{}:\n  - {}\n  + {}",
            line + 1,
            shown(&before),
            shown(&page)
        ));
    }
    assert!(
        differences.is_empty(),
        "{}\nROUNDTRIP_BLESS=1 cargo test --workspace --bin roundtrip reference writes them.",
        differences.join("\n")
    );
}

#[test]
fn the_directory_has_no_page_that_is_not_generated() {
    let names = fs::read_dir(root().join("docs/reference")).unwrap();
    let present: BTreeSet<String> =
        names.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    let generated: BTreeSet<String> = pages().into_iter().map(|(name, _)| name.to_owned()).collect();
    assert_eq!(present, generated);
}
