//! `--report`: one HTML page that presents results to other people.
//!
//! One file that needs no network: style and charts are inside. The same rows as the table, drawn and with their
//! provenance; nothing is computed here. Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`lines`] | curves over an axis |
//! | [`html`] | text escaped for HTML, and the frame of a page |

pub mod html;
pub mod lines;

use crate::output::grid::{Grid, Side};
use crate::provenance::{Fact, Group, Provenance};

use html::{Document, escaped};

/// A page of any results: a title, its conclusion in sentences, sections as HTML, and the provenance.
pub fn page(title: &str, lead: &[String], sections: &str, provenance: &Provenance) -> String {
    let lead: String = lead.iter().map(|sentence| format!("<p>{}</p>\n", escaped(sentence))).collect();
    let lead = format!("<div class=\"lead\">\n{lead}</div>\n");
    let main = format!("{sections}{}", origin(provenance));
    Document { title, heading: title, lead: &lead, main: &main, end: "" }.text()
}

/// Rows and columns as an HTML table.
pub fn table_of(grid: &Grid) -> String {
    let present: Vec<usize> = grid.present().collect();
    let class_of = |column: usize| match grid.columns[column].side {
        Side::Left => "",
        Side::Right => " class=\"number\"",
    };
    let headings: String = present
        .iter()
        .map(|&column| {
            // A ratio's title may break after its slash, so that the table fits the page.
            let title = escaped(&grid.columns[column].title()).replace('/', "/<wbr>");
            format!("<th{}>{title}</th>", class_of(column))
        })
        .collect();
    let row = |row: &Vec<String>| {
        let cells = present
            .iter()
            .map(|&column| format!("<td{}>{}</td>", class_of(column), escaped(grid.cell(row, column))));
        format!("<tr>{}</tr>\n", cells.collect::<String>())
    };
    let rows: String = grid.rows.iter().map(row).collect();
    format!("<table>\n<thead><tr>{headings}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n")
}

fn origin(provenance: &Provenance) -> String {
    let Provenance { facts, groups } = provenance;
    let groups: String = groups.iter().map(details).collect();
    format!("<section>\n<h2>Where this comes from</h2>\n{}{groups}</section>\n", list(facts))
}

fn details(group: &Group) -> String {
    let Group { title, facts } = group;
    format!("<details>\n<summary>{}</summary>\n{}</details>\n", escaped(title), list(facts))
}

fn list(facts: &[Fact]) -> String {
    let items =
        facts.iter().map(|(name, value)| format!("<dt>{}</dt><dd>{}</dd>\n", escaped(name), escaped(value)));
    format!("<dl>\n{}</dl>\n", items.collect::<String>())
}
