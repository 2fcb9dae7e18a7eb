//! `roundtrip list`: every name with its description and the source of its values.
//!
//! The lists themselves are in `scenario`, with the named values.

use quantity::names::Listing;
use render::output::grid::{Column, Grid, wrap};
use render::output::{csv, number};
use render::terminal::Terminal;
use scenario::{Network, Page, Protocol, Stack};
use serde::Serialize;

use crate::cli::flags::Format;
use crate::cli::{List, NameKind};
use crate::failure::Failure;

/// Prints the requested lists.
pub fn run(list: &List) -> Result<(), Failure> {
    let kinds = list.kind.map_or_else(|| ALL.to_vec(), |kind| vec![kind]);
    let text = match list.format {
        Format::Table => tables(&kinds, crate::terminal::of_stdout()),
        Format::Json => render::output::json(&names(&kinds)),
        Format::Csv => lines(&names(&kinds)),
    };
    crate::output::to_stdout(&text)
}

const ALL: [NameKind; 4] = [NameKind::Networks, NameKind::Pages, NameKind::Protocols, NameKind::Stacks];

/// Name, as a row of JSON and CSV.
#[derive(Serialize)]
struct Name {
    /// `network`, `page`, `protocol` or `stack`.
    kind: &'static str,
    /// Name for the flag.
    name: &'static str,
    /// Description.
    description: &'static str,
    /// Source of its values.
    source: &'static str,
}

fn names(kinds: &[NameKind]) -> Vec<Name> {
    let of_kind = |&kind: &NameKind| {
        let (singular, _, listings) = names_of_kind(kind);
        listings.into_iter().map(move |listing| {
            let Listing { name, description, source } = listing;
            Name { kind: singular, name, description, source }
        })
    };
    kinds.iter().flat_map(of_kind).collect()
}

/// Returns the singular of a kind, the title of its list, and all names.
fn names_of_kind(kind: NameKind) -> (&'static str, &'static str, Vec<Listing>) {
    match kind {
        NameKind::Networks => ("network", "Networks (--network)", Network::listings().collect()),
        NameKind::Pages => ("page", "Pages (--page)", Page::listings().collect()),
        NameKind::Protocols => {
            ("protocol", "Protocols (--protocol)", Protocol::ALL.map(Protocol::listing).to_vec())
        }
        NameKind::Stacks => ("stack", "Stacks (--stack)", Stack::listings().collect()),
    }
}

fn tables(kinds: &[NameKind], terminal: Terminal) -> String {
    let table = |&kind: &NameKind| {
        let (_, title, listings) = names_of_kind(kind);
        format!("{}\n{}", terminal.bold(title), entries(kind, &listings, terminal))
    };
    kinds.iter().map(table).collect::<Vec<_>>().join("\n")
}

/// Renders one line for each name if all columns fit the terminal.
fn entries(kind: NameKind, listings: &[Listing], terminal: Terminal) -> String {
    let descriptions = |listing: &Listing| vec![listing.description.to_owned(), listing.source.to_owned()];
    let lines = grid(kind, listings, descriptions).render(Terminal { width: None, ..terminal });
    let widest = lines.lines().map(str::len).max().unwrap_or_default();
    if terminal.width.is_none_or(|width| widest <= width) { lines } else { narrow(kind, listings, terminal) }
}

/// Renders wrapped descriptions; the sources are in the other formats.
fn narrow(kind: NameKind, listings: &[Listing], terminal: Terminal) -> String {
    let columns = grid(kind, listings, |_| Vec::new()).render(Terminal { width: None, colour: false });
    let widest = columns.lines().map(str::len).max().unwrap_or_default();
    let headings = columns.lines().count().saturating_sub(listings.len());
    let mut text: String = columns.lines().take(headings).map(|line| terminal.dim(line) + "\n").collect();
    for (line, Listing { name: _, description, source: _ }) in columns.lines().skip(headings).zip(listings) {
        text += &wrap(&format!("{line:widest$}  "), description, terminal.prose_width());
    }
    text
}

/// Grid of names, numbers, and the text that follows them.
fn grid(kind: NameKind, listings: &[Listing], descriptions: impl Fn(&Listing) -> Vec<String>) -> Grid {
    let rows = listings.iter().zip(figures(kind)).map(|(listing, figures)| {
        let columns = [vec![listing.name.to_owned()], figures.to_vec(), descriptions(listing)];
        columns.concat()
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let mut columns = columns(kind);
    columns.resize(rows.first().map_or(0, Vec::len), Column::name(["", ""]));
    Grid { columns, rows }
}

fn columns(kind: NameKind) -> Vec<Column> {
    let figures = match kind {
        NameKind::Networks => ["rtt", "rate", "mss"],
        NameKind::Pages => ["objects", "bytes", ""],
        NameKind::Protocols | NameKind::Stacks => ["", "", ""],
    };
    std::iter::once(Column::name(["", ""]))
        .chain(figures.map(|heading| Column::number([heading, ""], 1)))
        .collect()
}

/// Returns the numbers of each name, in the order of the listings.
fn figures(kind: NameKind) -> Vec<[String; 3]> {
    match kind {
        NameKind::Networks => Network::all().iter().map(network_figures).collect(),
        NameKind::Pages => Page::all().iter().map(page_figures).collect(),
        NameKind::Protocols => Protocol::ALL.map(|_| Default::default()).to_vec(),
        NameKind::Stacks => Stack::listings().map(|_| Default::default()).collect(),
    }
}

fn network_figures(network: &Network) -> [String; 3] {
    [network.rtt.to_string(), number::rate(network.rate), network.mss.get().to_string()]
}

fn page_figures(page: &Page) -> [String; 3] {
    [page.objects.len().to_string(), number::count(page.size().as_f64()), String::new()]
}

fn lines(names: &[Name]) -> String {
    let cells = |&Name { kind, name, description, source }: &Name| {
        [kind, name, description, source].map(str::to_owned)
    };
    csv::table(["kind", "name", "description", "source"], names.iter().map(cells))
}
