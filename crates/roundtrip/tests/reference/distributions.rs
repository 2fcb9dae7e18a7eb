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
    let law = |law: workload::distribution::Distribution| cell(&law.to_string());
    let or = |text: Option<String>, absent: &str| text.unwrap_or_else(|| absent.to_owned());
    [
        ("sizes of documents", law(documents.sizes)),
        ("sizes of requested documents", or(documents.requests.map(law), "as the files, at random")),
        ("sizes of embedded files", or(embedded.map(|files| law(files.sizes)), "as documents")),
        (
            "sizes of requested embedded files",
            or(embedded.map(|files| or(files.requests.map(law), "as the files, at random")), "as documents"),
        ),
        ("requests for the file of rank r", format!("floor(C / r^{popularity})")),
        ("depth in the LRU stack", law(depth)),
        ("objects of a page, rounded", law(objects)),
        ("pause between objects", law(active_off)),
        ("pause between pages", law(inactive_off)),
        ("pages until a user's connections close", or(session.map(law), "unlimited")),
    ]
}

/// The text at the beginning of a source file, without its links.
fn module_documentation(file: &str) -> String {
    let source = fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    let lines = source.lines().map_while(|line| line.strip_prefix("//!"));
    let text: String = lines.map(|line| format!("{}\n", line.strip_prefix(' ').unwrap_or(line))).collect();
    text.replace("[`", "`").replace("`]", "`")
}
