//! One step over one network: what is sent, and what that saves. The field names are the JSON's.

use scenario::{Page, Scenario};
use serde::Serialize;
use simulate::Hosts;
use wire::Bytes;

use super::Content;
use super::css::Replaced;
use super::step::Step;
use crate::failure::Failure;

/// A page in one form, fetched.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The page's name.
    pub page: String,
    /// The network's name.
    pub network: String,
    /// The protocol's name.
    pub protocol: String,
    /// What was changed, in kebab-case.
    pub step: String,
    /// Objects, each a request.
    pub objects: usize,
    /// All bodies together.
    pub bytes: u64,
    /// Bodies against those of the page as it is; negative for more.
    pub saved_bytes: i64,
    /// The same in percent.
    pub saved_percent: f64,
    /// Packets, both ways, in the simulator; `None` where it cannot run this.
    pub packets: Option<f64>,
    /// From the first packet to the last byte, in the simulator.
    pub elapsed_ms: Option<f64>,
    /// Against the page as it is.
    pub saved_ms: Option<f64>,
    /// Why there is no time.
    pub notes: Vec<String>,
}

/// Every step over every network: packets and times from the simulator.
pub fn rows(content: &Content, scenarios: &[Scenario]) -> Result<Vec<Row>, Failure> {
    let replaced = Replaced::of(content);
    let mut pages = Vec::new();
    for step in Step::ALL {
        let sizes = step.sizes(content, &replaced).into_iter().map(Bytes::new);
        let page = Page::from_sizes(&content.name, sizes);
        pages.push((step, page.map_err(|error| Failure::Value(format!("{}: {error}", content.name)))?));
    }
    let mut rows: Vec<Row> = Vec::new();
    for scenario in scenarios {
        let mut before: Option<Row> = None;
        for (step, page) in &pages {
            let row = row(*step, Scenario { page: page.clone(), ..scenario.clone() }, before.as_ref());
            before.get_or_insert_with(|| row.clone());
            rows.push(row);
        }
    }
    Ok(rows)
}

fn row(step: Step, scenario: Scenario, before: Option<&Row>) -> Row {
    let bytes = scenario.page.size().get();
    let whole = before.map_or(bytes, |before| before.bytes);
    let saved_bytes = i64::try_from(whole).unwrap_or(i64::MAX) - i64::try_from(bytes).unwrap_or(i64::MAX);
    let (packets, elapsed_ms, notes) = match simulate::simulate(&scenario, Hosts::default()) {
        Ok(row) => {
            (row.packets_up.zip(row.packets_down).map(|(up, down)| up + down), row.elapsed_ms, row.notes)
        }
        Err(error) => (None, None, vec![error.to_string()]),
    };
    let as_it_is = if before.is_none() { elapsed_ms } else { before.and_then(|before| before.elapsed_ms) };
    Row {
        page: scenario.page.name,
        network: scenario.network.name,
        protocol: scenario.protocol.name().to_owned(),
        step: step.name().to_owned(),
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
