//! The closed formulas compared with packets, over every network and page of the model paper.
//!
//! Not a test of either alone: where they are more than 5% apart, the reasons are computed ([`super::reasons`]) and
//! must account for all but 2%.

use scenario::{Network, Page, Protocol, Scenario, Stack};

use super::Study;
use super::reasons::Reasons;
use crate::published::{Cell, Column, Table};
use crate::verdict::Verdict;

/// Maximum difference of results that count as equal, relative to the model's time.
const NEAR: f64 = 0.05;
/// Maximum unexplained difference, relative to the model's time.
const UNEXPLAINED: f64 = 0.02;
/// Number of networks of the paper's own tables; those after them belong to its validation.
const NETWORKS: usize = 10;
/// Number of the paper's pages; those after them belong to other papers.
const PAGES: usize = 6;

/// Both sides of every cell.
///
/// # Errors
/// When an engine refuses a scenario.
pub fn study(mut table: Table) -> Result<Study, String> {
    let columns = table.columns.clone();
    let mut compared = Vec::new();
    for network in Network::all().into_iter().take(NETWORKS) {
        for page in Page::all().into_iter().take(PAGES) {
            let mut row = vec![network.name.clone(), page.name.clone()];
            for column in &columns {
                let reasons = compare(&network, &page, protocol(column)?)?;
                row.push(column.digits.print(reasons.model_ms));
                compared.push(reasons);
            }
            table.rows.push(row);
        }
    }
    let mut compared = compared.into_iter();
    Study::of(table, Some(UNEXPLAINED), |cell: &Cell| {
        let reasons = compared.next().ok_or_else(|| format!("nothing was computed for {}", cell.name()))?;
        let (verdict, note) = judge(&reasons);
        Ok((reasons.simulated_ms, verdict, note))
    })
}

fn protocol(column: &Column) -> Result<Protocol, String> {
    Protocol::named(&column.name).map_err(|unknown| unknown.to_string())
}

fn compare(network: &Network, page: &Page, protocol: Protocol) -> Result<Reasons, String> {
    let period = Stack::named("period").map_err(|unknown| unknown.to_string())?;
    Reasons::of(&Scenario::new(network.clone(), page.clone(), protocol, period))
}

fn judge(reasons: &Reasons) -> (Verdict, Option<String>) {
    if reasons.share(reasons.simulated_ms - reasons.model_ms).abs() <= NEAR {
        return (Verdict::WithinTolerance, Some("within 5% of what the model says".to_owned()));
    }
    let is_explained = reasons.share(reasons.unexplained_ms()).abs() <= UNEXPLAINED;
    let verdict = if is_explained { Verdict::Explained } else { Verdict::Differs };
    (verdict, Some(reasons.to_string()))
}
