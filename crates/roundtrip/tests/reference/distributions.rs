//! SURGE's distributions, from the sets that plans are sampled from, and the documentation of their modules.

use std::fs;

use workload::set::{DistributionSet, SetName};

use super::{cell, root, table};

/// The page.
pub fn page() -> String {
    let [first, second] = SetName::ALL.map(column);
    let rows = first.into_iter().zip(second);
    let rows: Vec<Vec<String>> =
        rows.map(|((name, first), (_, second))| vec![name.to_owned(), first, second]).collect();
    let sources: String = SetName::ALL
        .map(|name| {
            let listing = name.listing();
            format!("- `{}`: {}; {}\n", listing.name, listing.source, listing.description)
        })
        .concat();
    let header = ["", "`surge-1998`", "`surge-1999`"];
    format!(
        "# Distributions of SURGE\n\nGenerated from `crates/workload/src/set.rs`; for `--laws`. Times are in seconds, sizes \
         in bytes. [load.md](../load.md#the-laws) explains their use.\n\n{sources}\n{}\n## Requests, order and sizes\n\n{}\n## A \
         site's own log\n\n{}",
        table(&header, &rows),
        module_documentation("crates/workload/src/popularity.rs"),
        module_documentation("crates/workload/src/site.rs"),
    )
}

fn column(name: SetName) -> [(&'static str, String); 10] {
    let DistributionSet {
        documents,
        embedded,
        popularity,
        objects,
        active_off,
        inactive_off,
        session,
        depth,
    } = name.set();
    let distribution = |distribution: workload::distribution::Distribution| cell(&distribution.to_string());
    let or_else = |text: Option<String>, absent: &str| text.unwrap_or_else(|| absent.to_owned());
    [
        ("sizes of documents", distribution(documents.sizes)),
        (
            "sizes of requested documents",
            or_else(documents.requests.map(distribution), "as the files, at random"),
        ),
        ("sizes of embedded files", or_else(embedded.map(|files| distribution(files.sizes)), "as documents")),
        (
            "sizes of requested embedded files",
            or_else(
                embedded.map(|files| or_else(files.requests.map(distribution), "as the files, at random")),
                "as documents",
            ),
        ),
        ("requests for the file of rank r", format!("floor(C / r^{popularity})")),
        ("depth in the LRU stack", distribution(depth)),
        ("objects of a page, rounded", distribution(objects)),
        ("pause between objects", distribution(active_off)),
        ("pause between pages", distribution(inactive_off)),
        ("pages until a user's connections close", or_else(session.map(distribution), "unlimited")),
    ]
}

/// The text at the beginning of a source file, without its links.
fn module_documentation(file: &str) -> String {
    let source = fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    let lines = source.lines().map_while(|line| line.strip_prefix("//!"));
    let text: String = lines.map(|line| format!("{}\n", line.strip_prefix(' ').unwrap_or(line))).collect();
    text.replace("[`", "`").replace("`]", "`")
}
