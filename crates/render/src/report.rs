//! `--report`: one HTML page that presents results to other people.
//!
//! One file that needs no network: style and charts are inside. The same rows as the table, drawn and with their
//! provenance; nothing is computed here. Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`chart`] | bars: time of each protocol, by each engine |
//! | [`lines`] | curves over an axis |
//! | [`html`] | text escaped for HTML, and the frame of a page |

pub mod chart;
pub mod html;
pub mod lines;

use crate::output::Outcome;
use crate::output::grid::{Grid, Side};
use crate::output::table::{self, Footnotes, Layout};
use crate::provenance::{Fact, Group, Provenance};

use html::{Document, escaped};

/// Contents of a report page.
#[derive(Debug)]
pub struct Report<'a> {
    /// The results.
    pub outcomes: &'a [Outcome],
    /// Layout of the tables.
    pub layout: Layout,
    /// Provenance of the results.
    pub provenance: Provenance,
}

impl Report<'_> {
    /// The page.
    pub fn page(&self) -> String {
        let Self { outcomes, layout, provenance } = self;
        let mut footnotes = Footnotes::default();
        let sections: String =
            table::groups(outcomes).map(|group| section(group, *layout, &mut footnotes)).collect();
        let sections = sections + &notes(&footnotes);
        page(&title(outcomes), &layout.conclusions(outcomes), &sections, provenance)
    }
}

/// A page of any results: a title, its conclusion in sentences, sections as HTML, and the provenance.
pub fn page(title: &str, lead: &[String], sections: &str, provenance: &Provenance) -> String {
    let lead: String = lead.iter().map(|sentence| format!("<p>{}</p>\n", escaped(sentence))).collect();
    let lead = format!("<div class=\"lead\">\n{lead}</div>\n");
    let main = format!("{sections}{}", origin(provenance));
    Document { title, heading: title, style: STYLE, lead: &lead, main: &main, end: "" }.text()
}

const STYLE: &str = include_str!("report/style.css");

/// Title that lists the networks and pages, as long as they fit one line.
fn title(outcomes: &[Outcome]) -> String {
    let mut pages: Vec<&str> = Vec::new();
    let mut networks: Vec<&str> = Vec::new();
    for scenario in outcomes.iter().map(|outcome| &outcome.scenario) {
        for (names, name) in [(&mut pages, &scenario.page.name), (&mut networks, &scenario.network.name)] {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
    }
    format!("{} over {}", listed(&pages, "pages"), listed(&networks, "networks"))
}

fn listed(names: &[&str], plural: &str) -> String {
    match names {
        [] => format!("no {plural}"),
        [one] => (*one).to_owned(),
        [one, other] => format!("{one} and {other}"),
        [one, other, third] => format!("{one}, {other} and {third}"),
        many => format!("{} {plural}", many.len()),
    }
}

/// One network and page: description, chart, table.
fn section(group: &[Outcome], layout: Layout, footnotes: &mut Footnotes) -> String {
    let scenario = &group[0].scenario;
    // The page's notes have the first numbers.
    let marks = footnotes.marks(&scenario.page.notes);
    let about = table::about(group.iter().map(|outcome| &outcome.scenario));
    let about: String = about.iter().map(|fact| format!("<li>{}</li>", escaped(fact))).collect();
    format!(
        "<section>
<h2>{title} {marks}</h2>
<ul class=\"about\">{about}</ul>
{chart}<div class=\"scroll\">
{table}</div>
</section>
",
        title = escaped(&table::title(scenario)),
        chart = chart::bars(group),
        table = table_of(&layout.grid(group, footnotes)),
    )
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

fn notes(footnotes: &Footnotes) -> String {
    let items: String = footnotes
        .iter()
        .map(|(number, note)| format!("<li value=\"{number}\">{}</li>\n", escaped(note)))
        .collect();
    if items.is_empty() {
        return String::new();
    }
    format!("<section>\n<h2>Notes</h2>\n<ol class=\"notes\">\n{items}</ol>\n</section>\n")
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

#[cfg(test)]
mod tests {
    use scenario::Spec;
    use scenario::spec::{Defaults, Key};

    use super::*;
    use crate::test_outcomes;

    /// Outcomes of a comparison, the measurement a little above its prediction.
    fn outcomes() -> Vec<Outcome> {
        let mut spec = Spec::default();
        spec.set(Key::Network, "fast-internet").unwrap();
        let predicted = test_outcomes::outcomes(&spec.plan(&Defaults::compare()).unwrap());
        let mut measured = predicted.clone();
        for Outcome { row, interval95_ms, .. } in &mut measured {
            *interval95_ms = Some(15.0);
            row.engine = "measure".to_owned();
            row.elapsed_ms = row.elapsed_ms.map(|elapsed_ms| elapsed_ms * 1.04);
            row.elapsed_ms_stddev = Some(21.0);
            row.runs = 10;
            row.stalls.clear();
            row.notes = vec!["a <b>note</b> & more".to_owned()];
        }
        [predicted, measured].concat()
    }

    #[test]
    fn a_page_shows_every_engine_the_conclusion_the_notes_and_the_provenance() {
        let provenance = Provenance::fact("kernel", "Linux 6.12".to_owned());
        let page = Report { outcomes: &outcomes(), layout: Layout::Comparison, provenance }.page();
        for part in [
            "1,160 ms",
            "fill=\"var(--measured)\"",
            "class=\"deviation\"",
            "lost to slow start",
            "Linux 6.12",
        ] {
            assert!(page.contains(part), "{part} is missing");
        }
        assert!(page.contains("<p>Measured, keep-alive saves"));
        assert!(page.contains("a &lt;b&gt;note&lt;/b&gt; &amp; more"));
    }
}
