//! ARCHITECTURE.md's table of crates against the manifests: who may import whom, and that the table is whole.

use std::collections::{BTreeMap, BTreeSet};

use crate::tree;

type Imports = BTreeMap<String, BTreeSet<String>>;

#[test]
fn the_architecture_table_names_every_crate() {
    let (written, built) = (permitted(), manifests());
    assert_eq!(
        written.keys().collect::<Vec<_>>(),
        built.keys().collect::<Vec<_>>(),
        "left: ARCHITECTURE.md's table; right: the folders below crates/"
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
fn the_architecture_table_allows_nothing_that_is_not_used() {
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

/// What each manifest below crates/ imports of ours, for building or for testing.
fn manifests() -> Imports {
    let manifests = tree::files("crates", &["Cargo.toml"]);
    let tables: Vec<toml::Table> = manifests
        .iter()
        .map(|file| tree::text(file).parse().unwrap_or_else(|error| panic!("{file}: {error}")))
        .collect();
    let name =
        |table: &toml::Table| table["package"]["name"].as_str().expect("a package has a name").to_owned();
    let ours: BTreeSet<String> = tables.iter().map(name).collect();
    let imports = |table: &toml::Table| -> BTreeSet<String> {
        ["dependencies", "dev-dependencies", "build-dependencies"]
            .iter()
            .filter_map(|section| table.get(*section)?.as_table())
            .flat_map(|section| section.keys().cloned())
            .filter(|import| ours.contains(import))
            .collect()
    };
    tables.iter().map(|table| (name(table), imports(table))).collect()
}
