//! Entries of a HAR that are no objects of its page, counted by why, and said in sentences.
//!
//! Not an error: whoever recorded a visit recorded these as well.

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

    /// One for each reason that there was.
    pub fn sentences(&self) -> Vec<String> {
        let Self { pages, hosts, cached, unchanged, redirects, errors, failed, inline, empty, odd } = self;
        let from = match hosts.len() {
            1 => "from another host".to_owned(),
            many => format!("from {many} other hosts"),
        };
        let statuses: Vec<String> = errors.iter().map(|(status, count)| times(*status, *count)).collect();
        let counted = [
            (*pages, "of later pages".to_owned()),
            (hosts.values().sum(), from),
            (*cached, "from the browser's cache".to_owned()),
            (*unchanged, "that the browser had already (304)".to_owned()),
            (
                *redirects,
                "that only led elsewhere (a redirect: a round trip before what it leads to)".to_owned(),
            ),
            (errors.values().sum(), format!("that were errors ({})", statuses.join(", "))),
            (*failed, "that failed or was blocked (no status)".to_owned()),
            (*inline, "without http (data:, blob:, wss:)".to_owned()),
            (*empty, "without a body".to_owned()),
            (odd.count, format!("that cannot be read ({})", odd.first)),
        ];
        let some = counted.into_iter().filter(|(count, _)| *count > 0);
        some.map(|(count, what)| {
            let entries = if count == 1 { "entry" } else { "entries" };
            format!("left out {count} {entries} {what}")
        })
        .collect()
    }
}

fn times(status: i64, count: usize) -> String {
    match count {
        1 => status.to_string(),
        2 => format!("{status} twice"),
        many => format!("{status} {many} times"),
    }
}
