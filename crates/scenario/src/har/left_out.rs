//! HAR entries that are not objects of the page, counted by reason, and the share of the visit that is.
//!
//! Not an error: a recording of a visit holds these as well.

use std::collections::BTreeMap;

use super::entry::Entry;

/// How many, by why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Of later pages in the file.
    pub pages: usize,
    /// From other hosts than the document's, by host.
    pub hosts: BTreeMap<String, usize>,
    /// From the browser's cache, without asking.
    pub cached: usize,
    /// 304: asked, and not changed.
    pub unchanged: usize,
    /// Other answers of the three hundreds.
    pub redirects: usize,
    /// Answers of four hundred and more, by status.
    pub errors: BTreeMap<i64, usize>,
    /// No answer.
    pub failed: usize,
    /// Not fetched by http.
    pub inline: usize,
    /// Answers without a body.
    pub empty: usize,
    /// Not as the format has them.
    pub odd: Odd,
    /// Bodies of all of them on the wire.
    pub bytes: u64,
}

/// Entries that cannot be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Odd {
    /// How many.
    pub count: usize,
    /// Which was the first, and what is wrong with it.
    pub first: String,
}

impl LeftOut {
    /// Where an entry of the page's counts that brought nothing over the network, or nothing that is the page's.
    pub(super) fn by_status(&mut self, entry: &Entry) -> Option<&mut usize> {
        if entry.is_cached {
            return Some(&mut self.cached);
        }
        match entry.status {
            200..300 => None,
            304 => Some(&mut self.unchanged),
            300..400 => Some(&mut self.redirects),
            400.. => Some(self.errors.entry(entry.status).or_default()),
            // 0 is what browsers write for requests that were blocked or ended without an answer.
            _ => Some(&mut self.failed),
        }
    }

    /// The share of the visit that is fetched, and the reasons for the rest; `None` if nothing is left out.
    pub fn sentence(&self, fetched_entries: usize, fetched_bytes: u64) -> Option<String> {
        let Self { pages, hosts, cached, unchanged, redirects, errors, failed, inline, empty, odd, bytes } =
            self;
        let from = match hosts.len() {
            1 => "from another host, because other hosts are not modelled".to_owned(),
            many => format!("from {many} other hosts, because other hosts are not modelled"),
        };
        let statuses: Vec<String> = errors.iter().map(|(status, count)| times(*status, *count)).collect();
        let error = if errors.values().sum::<usize>() == 1 { "an error status" } else { "error statuses" };
        let counted = [
            (hosts.values().sum(), from),
            (*pages, "of later pages".to_owned()),
            (*cached, "from the browser's cache".to_owned()),
            (*unchanged, "not modified (304)".to_owned()),
            (*redirects, "redirected".to_owned()),
            (errors.values().sum(), format!("with {error} ({})", statuses.join(", "))),
            (*failed, "without a response".to_owned()),
            (*inline, "not fetched by HTTP (data:, blob:, wss:)".to_owned()),
            (*empty, "without a body".to_owned()),
            (odd.count, format!("unreadable ({})", odd.first)),
        ];
        let reasons: Vec<String> = counted
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, reason)| format!("{count} {reason}"))
            .collect();
        let all = fetched_entries + counted.iter().map(|(count, _)| count).sum::<usize>();
        (!reasons.is_empty()).then(|| {
            format!(
                "fetched: {fetched_entries} of {all} entries, {} of the bytes; left out: {}",
                percent(fetched_bytes, fetched_bytes.saturating_add(*bytes)),
                reasons.join("; ")
            )
        })
    }
}

/// `98%`, `2.3%`, `0.04%`.
fn percent(part: u64, whole: u64) -> String {
    let percent = if whole == 0 { 0.0 } else { part as f64 / whole as f64 * 100.0 };
    match percent {
        10.0.. => format!("{percent:.0}%"),
        0.1.. => format!("{percent:.1}%"),
        _ => format!("{percent:.2}%"),
    }
}

fn times(status: i64, count: usize) -> String {
    match count {
        1 => status.to_string(),
        2 => format!("{status} twice"),
        many => format!("{status} {many} times"),
    }
}
