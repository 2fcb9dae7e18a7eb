//! ARCHITECTURE.md's table of crates against the manifests: the permitted imports, and that the table is complete.

use std::collections::{BTreeMap, BTreeSet};

use super::tree;

type Imports = BTreeMap<String, BTreeSet<String>>;

#[test]
fn the_architecture_table_names_every_crate() {
    let (written, built) = (permitted(), manifests());
    assert_eq!(
        written.keys().collect::<Vec<_>>(),
        built.keys().collect::<Vec<_>>(),
        "left: ARCHITECTURE.md's table; right: the directories below crates/"
    );
}

#[test]
fn no_crate_imports_what_the_architecture_table_forbids() {
    let permitted = permitted();
    let complaints: Vec<String> = manifests()
        .iter()
        .flat_map(|(name, imports)| {
            let allowed = permitted.get(name).cloned().unwrap_or_default();
            imports
                .iter()
                .filter(move |import| !allowed.contains(*import))
                .map(move |import| format!("{name} imports {import}"))
        })
        .collect();
    tree::expect_none("ARCHITECTURE.md's table does not allow:", &complaints);
}

#[test]
fn the_architecture_table_allows_no_unused_import() {
    let built = manifests();
    let complaints: Vec<String> = permitted()
        .iter()
        .flat_map(|(name, allowed)| {
            let used = built.get(name).cloned().unwrap_or_default();
            allowed
                .iter()
                .filter(move |import| !used.contains(*import))
                .map(move |import| format!("{name} may import {import}, and does not"))
        })
        .collect();
    tree::expect_none("ARCHITECTURE.md's table is wider than the manifests:", &complaints);
}

/// The rows `| `name` | what it holds | a, b |` of the table below the heading "Crates".
fn permitted() -> Imports {
    let document = tree::text("ARCHITECTURE.md");
    let table = document.split("## Crates").nth(1).expect("ARCHITECTURE.md has a heading `## Crates`");
    table
        .lines()
        .skip_while(|line| !line.starts_with("| `"))
        .take_while(|line| line.starts_with("| `"))
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let imports = cells.last().expect("a row has cells").split(',').map(str::trim);
            let imports =
                imports.filter(|name| *name != "nothing of ours").map(|name| name.trim_matches('`'));
            (cells[0].trim_matches('`').to_owned(), imports.map(str::to_owned).collect())
        })
        .collect()
}

/// Imports of our crates in each manifest below crates/, for building or for testing. A crate is named as its directory.
fn manifests() -> Imports {
    let tables: BTreeMap<String, toml::Table> = tree::files("crates", &["Cargo.toml"])
        .into_iter()
        .map(|file| {
            let table = tree::text(&file).parse().unwrap_or_else(|error| panic!("{file}: {error}"));
            (directory(&file).to_owned(), table)
        })
        .collect();
    let imports = |table: &toml::Table| -> BTreeSet<String> {
        ["dependencies", "dev-dependencies", "build-dependencies"]
            .iter()
            .filter_map(|section| table.get(*section)?.as_table())
            .flat_map(|section| section.keys().cloned())
            .filter(|import| tables.contains_key(import))
            .collect()
    };
    tables.iter().map(|(name, table)| (name.clone(), imports(table))).collect()
}

/// `http1` of `crates/http1/Cargo.toml`.
fn directory(manifest: &str) -> &str {
    manifest.split('/').nth(1).expect("a manifest stands in a directory below crates/")
}

#[test]
fn every_package_has_the_prefix_and_is_imported_by_the_name_of_its_directory() {
    let workspace: toml::Table = tree::text("Cargo.toml").parse().expect("the root manifest is TOML");
    let dependencies = &workspace["workspace"]["dependencies"];
    let complaints: Vec<String> = tree::files("crates", &["Cargo.toml"])
        .into_iter()
        .filter(|file| directory(file) != "roundtrip")
        .filter(|file| {
            let table: toml::Table = tree::text(file).parse().expect("a manifest is TOML");
            let (name, package) = (directory(file), table["package"]["name"].as_str().unwrap_or_default());
            let entry = |key| dependencies.get(name).and_then(|entry| entry.get(key)?.as_str());
            let is_named_so = package == format!("roundtrip-{name}") && entry("package") == Some(package);
            // `cargo package` needs both.
            !is_named_so || entry("version").is_none() || entry("path") != Some(&format!("crates/{name}"))
        })
        .collect();
    tree::expect_none(
        "Not `roundtrip-` and its directory, with path and version in the root manifest:",
        &complaints,
    );
}
