//! HAR entries that are not objects of the page, counted by reason, and the page's share of the visit.
//!
//! They are no errors: a recording of a visit contains these as well.

use std::collections::BTreeMap;

use super::entry::Entry;

/// Numbers of entries, by reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Entries of later pages in the file.
    pub pages: usize,
    /// Entries of other hosts than the document's, by host.
    pub hosts: BTreeMap<String, usize>,
    /// Entries from the browser's cache, without validation.
    pub cached: usize,
    /// Responses with status 304 Not Modified.
    pub unchanged: usize,
    /// Other responses with status 3xx.
    pub redirects: usize,
    /// Responses with status 400 and above, by status.
    pub errors: BTreeMap<i64, usize>,
    /// Entries without a response.
    pub failed: usize,
    /// Entries not fetched by HTTP.
    pub inline: usize,
    /// Responses without a body.
    pub empty: usize,
    /// Invalid entries.
    pub odd: UnparsedEntries,
    /// Size on the wire of all their bodies.
    pub bytes: u64,
}

/// Entries that cannot be parsed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnparsedEntries {
    /// Their number.
    pub count: usize,
    /// The first of them, and what is wrong with it.
    pub first: String,
}

impl LeftOut {
    /// The counter for an entry of the page that transferred no body, or none of the page's.
    pub(super) fn by_status(&mut self, entry: &Entry) -> Option<&mut usize> {
        if entry.is_cached {
            return Some(&mut self.cached);
        }
        match entry.status {
            200..300 => None,
            304 => Some(&mut self.unchanged),
            300..400 => Some(&mut self.redirects),
            400.. => Some(self.errors.entry(entry.status).or_default()),
            // Browsers record 0 for requests that were blocked or ended without a response.
            _ => Some(&mut self.failed),
        }
    }

    /// The page's share of the visit, and the reasons for the other entries; `None` if nothing is left out.
    pub fn sentence(&self, fetched_entries: usize, fetched_bytes: u64) -> Option<String> {
        let Self { pages, hosts, cached, unchanged, redirects, errors, failed, inline, empty, odd, bytes } =
            self;
        let other_hosts = match hosts.len() {
            1 => "from another host, because other hosts are not modelled".to_owned(),
            count => format!("from {count} other hosts, because other hosts are not modelled"),
        };
        let statuses: Vec<String> = errors.iter().map(|(status, count)| times(*status, *count)).collect();
        let error = if errors.values().sum::<usize>() == 1 { "an error status" } else { "error statuses" };
        let counted = [
            (hosts.values().sum(), other_hosts),
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
        count => format!("{status} {count} times"),
    }
}
