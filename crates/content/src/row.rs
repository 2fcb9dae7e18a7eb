//! One step over one network: transferred objects and bytes, and the saving. The field names are the JSON's.

use scenario::{Page, Scenario};
use serde::Serialize;
use simulate::{Hosts, Simulation};
use wire::Bytes;

use crate::Content;
use crate::Error;
use crate::css::Replacements;
use crate::step::{Part, Step};

/// A page in one form, loaded.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The page's name.
    pub page: String,
    /// The network's name.
    pub network: String,
    /// The protocol's name.
    pub protocol: String,
    /// The change, in kebab-case.
    pub step: String,
    /// Objects to fetch, in order; `objects` and `bytes` are their number and total size.
    pub files: Vec<Part>,
    /// Number of objects, each a request.
    pub objects: usize,
    /// Bytes of all bodies.
    pub bytes: u64,
    /// Bytes of bodies saved relative to the original page; negative for more.
    pub saved_bytes: i64,
    /// The same in percent.
    pub saved_percent: f64,
    /// Packets in both directions, in the simulator; null if it does not support the scenario.
    pub packets: Option<f64>,
    /// Milliseconds from the first packet to the last byte, in the simulator.
    pub elapsed_ms: Option<f64>,
    /// Milliseconds saved relative to the original page.
    pub saved_ms: Option<f64>,
    /// Reasons for a missing time, and missing forms.
    pub notes: Vec<String>,
}

/// Rows of every step over every network, with packets and times from the simulator. Lossy steps need a quality.
pub fn rows(
    content: &Content,
    replaced: &Replacements,
    scenarios: &[Scenario],
    has_quality: bool,
) -> Result<Vec<Row>, Error> {
    let mut pages = Vec::new();
    for step in Step::all(has_quality) {
        let parts = step.parts(content, replaced);
        let page = Page::from_sizes(&content.name, parts.iter().map(|part| Bytes::new(part.bytes)));
        let page = page.map_err(|error| Error::Form { name: content.name.clone(), error })?;
        pages.push((step, parts, page));
    }
    let mut rows: Vec<Row> = Vec::new();
    for scenario in scenarios {
        let mut before: Option<Row> = None;
        for (step, parts, page) in &pages {
            let scenario = Scenario { page: page.clone(), ..scenario.clone() };
            let row = row(*step, parts, scenario, before.as_ref());
            before.get_or_insert_with(|| row.clone());
            rows.push(row);
        }
    }
    Ok(rows)
}

fn row(step: Step, parts: &[Part], scenario: Scenario, before: Option<&Row>) -> Row {
    let bytes = scenario.page.size().get();
    let whole = before.map_or(bytes, |before| before.bytes);
    let saved_bytes = i64::try_from(whole).unwrap_or(i64::MAX) - i64::try_from(bytes).unwrap_or(i64::MAX);
    let (packets, elapsed_ms, notes) = match simulate::simulate(&scenario, Hosts::default()) {
        Ok(Simulation { metrics, stalls: _, remarks }) => {
            let packets = metrics.packets_up.zip(metrics.packets_down).map(|(up, down)| up + down);
            let notes = remarks.iter().map(ToString::to_string).collect();
            (packets, metrics.elapsed_ms, notes)
        }
        Err(error) => (None, None, vec![error.to_string()]),
    };
    let as_it_is = if before.is_none() { elapsed_ms } else { before.and_then(|before| before.elapsed_ms) };
    Row {
        page: scenario.page.name,
        network: scenario.network.name,
        protocol: scenario.protocol.name().to_owned(),
        step: step.name().to_owned(),
        files: parts.to_vec(),
        objects: scenario.page.objects.len(),
        bytes,
        saved_bytes,
        saved_percent: if whole == 0 { 0.0 } else { saved_bytes as f64 / whole as f64 * 100.0 },
        packets,
        elapsed_ms,
        saved_ms: as_it_is.zip(elapsed_ms).map(|(before, now)| before - now),
        notes,
    }
}

#[cfg(test)]
mod tests {
    use scenario::{Network, Protocol, Stack};

    use super::*;
    use crate::make::{self, Source};

    #[test]
    fn every_row_is_the_sum_of_its_files_and_is_saved_from_the_first() {
        let html =
            "<html><head></head><P>".to_owned() + &"the same words ".repeat(300) + "<img src=s.gif></html>";
        let spacer = b"GIF89a\x01\x00\x01\x00\x80\x00\x00\xff\x00\x00\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;";
        let sources =
            [("index.html", html.into_bytes()), ("s.gif", spacer.to_vec()), ("x.bin", vec![7; 3_000])];
        let sources = sources.map(|(path, bytes)| Source::of(path.to_owned(), bytes)).to_vec();
        let content = Content {
            name: "p".to_owned(),
            files: make::files(sources, None, &|_, _| ()),
            left_out: Vec::new(),
        };
        let scenario = Scenario::new(
            Network::named("modem").unwrap(),
            Page::named("small-page").unwrap(),
            Protocol::Http11,
            Stack::named("linux").unwrap(),
        );
        let rows = rows(&content, &Replacements::of(&content), &[scenario], false).unwrap();
        let before = &rows[0];
        for row in &rows {
            assert_eq!(row.bytes, row.files.iter().map(|file| file.bytes).sum::<u64>(), "{}", row.step);
            assert_eq!(row.objects, row.files.len(), "{}", row.step);
            assert_eq!(i128::from(row.saved_bytes), i128::from(before.bytes) - i128::from(row.bytes));
            assert_eq!(row.saved_ms.unwrap(), before.elapsed_ms.unwrap() - row.elapsed_ms.unwrap());
            // The packets carry the bodies, at most 1,500 bytes each.
            assert!(row.packets.unwrap() * 1_500.0 > row.bytes as f64);
        }
        let css = rows.iter().find(|row| row.step == "css").unwrap();
        assert_eq!((before.objects, css.objects), (3, 2));
        assert_eq!(css.files[0].form, "rewritten");
    }
}
