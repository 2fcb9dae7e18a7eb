//! `--report`: outcomes as an HTML page for other people.
//!
//! The same as the table, drawn by [`chart`] and with its provenance; nothing is computed here.

pub mod chart;

use render::provenance::Provenance;
use render::report::html::escaped;
use render::report::{page, table_of};
use scenario::Scenario;

use crate::Outcome;
use crate::description;
use crate::grid::{self, Footnotes};
use crate::table::Layout;
use crate::waterfall::RunWaterfall;

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
        page(&title(outcomes), &layout.conclusions(outcomes), &self.sections(), provenance)
    }

    /// The page's charts, tables and notes, as HTML.
    pub fn sections(&self) -> String {
        let Self { outcomes, layout, provenance: _ } = self;
        let mut footnotes = Footnotes::default();
        let sections: String =
            grid::groups(outcomes).map(|group| section(group, *layout, &mut footnotes)).collect();
        sections + &notes(&footnotes)
    }
}

fn title(outcomes: &[Outcome]) -> String {
    title_of(outcomes.iter().map(|outcome| &outcome.scenario))
}

/// Title that lists the networks and pages, as long as they fit one line.
pub fn title_of<'a>(scenarios: impl Iterator<Item = &'a Scenario>) -> String {
    let mut pages: Vec<&str> = Vec::new();
    let mut networks: Vec<&str> = Vec::new();
    for scenario in scenarios {
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
    let about = description::about(group.iter().map(|outcome| &outcome.scenario));
    let about: String = about.iter().map(|fact| format!("<li>{}</li>", escaped(fact))).collect();
    format!(
        "<section>
<h2>{title} {marks}</h2>
<ul class=\"about\">{about}</ul>
{chart}<div class=\"scroll\">
{table}</div>
{waterfalls}</section>
",
        title = escaped(&description::title(scenario)),
        chart = chart::bars(group),
        table = table_of(&layout.grid(group, footnotes)),
        waterfalls = waterfalls(group),
    )
}

/// The waterfall of each simulated run; the first is open.
fn waterfalls(group: &[Outcome]) -> String {
    let with_waterfall = group.iter().filter_map(|outcome| Some((outcome, outcome.waterfall.as_deref()?)));
    let section = |(index, (outcome, waterfall)): (usize, (&Outcome, &RunWaterfall))| {
        let open = if index == 0 { " open" } else { "" };
        let (protocol, elapsed) = (outcome.scenario.protocol.name(), outcome.elapsed());
        format!(
            "<details{open}><summary>Waterfall of {protocol}, {elapsed} ms</summary>\n{}</details>\n",
            waterfall.html()
        )
    };
    with_waterfall.enumerate().map(section).collect()
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

#[cfg(test)]
mod tests {
    use scenario::spec::{Defaults, Key};
    use scenario::{Engine, Spec};

    use super::*;
    use crate::{Remark, test_outcomes};

    /// Outcomes of a comparison, the measurement a little above its prediction.
    fn outcomes() -> Vec<Outcome> {
        let mut spec = Spec::default();
        spec.set(Key::Network, "fast-internet").unwrap();
        let predicted = test_outcomes::outcomes(&spec.plan(&Defaults::compare()).unwrap());
        let mut measured = predicted.clone();
        for outcome in &mut measured {
            outcome.interval95_ms = Some(15.0);
            outcome.engine = Engine::Measure;
            let metrics = &mut outcome.metrics;
            metrics.elapsed_ms = metrics.elapsed_ms.map(|elapsed_ms| elapsed_ms * 1.04);
            metrics.elapsed_ms_stddev = Some(21.0);
            metrics.runs = 10;
            outcome.stalls.clear();
            outcome.remarks = vec![Remark::Page("a <b>note</b> & more".to_owned())];
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
