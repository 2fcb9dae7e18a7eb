//! A page from a browser's HAR (HTTP Archive 1.2): what one visit fetched, and how large each body was on the wire.
//!
//! In flow bytes, out flows a page and what was left out of it. Only sizes and addresses are read; bodies, cookies and
//! timings pass by. Memory grows with the entries, of which there are a bounded number, and not with the file.
//!
//! Not a replay of the visit: heads, redirects and hosts are told in notes, and the page is fetched from one server.

use std::collections::BTreeSet;
use std::fmt;
use std::io;

use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use wire::Bytes;

use crate::page::{Object, Page, PageError};

/// A page as it was recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// What came over the network from the document's host, in the order of the file.
    pub page: Page,
    /// What was left out and what to know, in sentences.
    pub notes: Vec<String>,
}

/// Why a file is no page.
#[derive(Debug)]
pub enum HarError {
    /// It is no HAR: what the parser found, and where.
    Malformed(String),
    /// It holds more than is read.
    TooMany {
        /// Entries, at most.
        most: usize,
    },
    /// Nothing of it came over the network.
    Empty,
    /// What is left is no page.
    Page(PageError),
}

/// More than any visit has; of each some hundred bytes are kept while the file is read.
pub const ENTRIES_MOST: usize = 200_000;

/// Reads the first page of a HAR.
///
/// # Errors
/// [`HarError`]: no HAR, nothing in it, or too much.
pub fn read(name: &str, from: impl io::Read) -> Result<Recorded, HarError> {
    let file: File = serde_json::from_reader(from).map_err(|error| {
        let error = error.to_string();
        if error.contains(TOO_MANY) {
            HarError::TooMany { most: ENTRIES_MOST }
        } else {
            HarError::Malformed(error)
        }
    })?;
    let Log { pages, entries: Entries(entries) } = file.log;
    let first = pages.first().and_then(|page| page.id.as_deref());
    let is_of_page =
        |entry: &&Entry| first.is_none() || entry.pageref.is_none() || entry.pageref.as_deref() == first;
    let of_page: Vec<&Entry> = entries.iter().filter(is_of_page).collect();
    let mut left_out = LeftOut { pages: entries.len() - of_page.len(), ..LeftOut::default() };

    let host = of_page.iter().find_map(|entry| host(&entry.request.url)).unwrap_or_default();
    let (mut objects, mut hosts, mut requests) = (Vec::new(), BTreeSet::new(), Vec::new());
    for entry in of_page {
        let Some(of) = self::host(&entry.request.url) else {
            left_out.inline += 1;
            continue;
        };
        match entry.on_wire() {
            _ if of != host => {
                hosts.insert(of);
                left_out.elsewhere += 1;
            }
            OnWire::Cached => left_out.cached += 1,
            OnWire::Bytes(0) => left_out.empty += 1,
            OnWire::Bytes(size) => {
                objects.push(Object::sized(Bytes::new(size)));
                requests.extend(entry.request.headers_size.filter(|size| *size > 0));
            }
        }
    }
    if objects.is_empty() {
        return Err(HarError::Empty);
    }
    let notes = left_out.notes(hosts.len(), &requests);
    let page = Page::new(name, objects).map_err(HarError::Page)?;
    Ok(Recorded { page, notes })
}

/// Entries that are no objects of the page, by why.
#[derive(Default)]
struct LeftOut {
    pages: usize,
    inline: usize,
    elsewhere: usize,
    cached: usize,
    empty: usize,
}

impl LeftOut {
    fn notes(&self, hosts: usize, requests: &[i64]) -> Vec<String> {
        let Self { pages, inline, elsewhere, cached, empty } = *self;
        let counted = [
            (pages, "of later pages".to_owned()),
            (elsewhere, format!("from {hosts} other hosts")),
            (cached, "from the browser's cache".to_owned()),
            (inline, "that are no http (data:, blob:)".to_owned()),
            (empty, "without a body".to_owned()),
        ];
        let some = counted.into_iter().filter(|(count, _)| *count > 0);
        let mut notes: Vec<String> =
            some.map(|(count, what)| format!("left out {count} entries {what}")).collect();
        if !requests.is_empty() {
            let mean = requests.iter().fold(0_i64, |sum, size| sum.saturating_add(*size))
                / i64::try_from(requests.len()).unwrap_or(i64::MAX);
            notes
                .push(format!("its requests had {mean} bytes in the mean; --request-size {mean} sends such"));
        }
        notes
    }
}

/// What of an entry came over the network.
enum OnWire {
    Cached,
    Bytes(u64),
}

#[derive(Deserialize)]
struct File {
    log: Log,
}

#[derive(Deserialize)]
struct Log {
    #[serde(default)]
    pages: Vec<PageId>,
    entries: Entries,
}

#[derive(Deserialize)]
struct PageId {
    id: Option<String>,
}

struct Entries(Vec<Entry>);

#[derive(Deserialize)]
struct Entry {
    pageref: Option<String>,
    request: Request,
    response: Response,
    /// Chromium's: where it was cached.
    #[serde(rename = "_fromCache")]
    from_cache: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Request {
    url: String,
    #[serde(rename = "headersSize")]
    headers_size: Option<i64>,
}

#[derive(Deserialize)]
struct Response {
    #[serde(default)]
    status: i64,
    #[serde(rename = "headersSize")]
    headers_size: Option<i64>,
    /// As transferred; -1 where the browser does not know.
    #[serde(rename = "bodySize")]
    body_size: Option<i64>,
    #[serde(default)]
    content: Content,
    /// Chromium's: head and body as transferred.
    #[serde(rename = "_transferSize")]
    transfer_size: Option<i64>,
}

#[derive(Default, Deserialize)]
struct Content {
    /// After decoding.
    size: Option<i64>,
    /// What decoding added.
    compression: Option<i64>,
}

impl Entry {
    /// The body as it was transferred: as the browser says, or head and body without the head, or what was decoded
    /// without what decoding added.
    fn on_wire(&self) -> OnWire {
        let Response { status, headers_size, body_size, content, transfer_size } = &self.response;
        let known = |size: &Option<i64>| size.filter(|size| *size >= 0);
        if self.from_cache.is_some() || *status == 0 {
            return OnWire::Cached;
        }
        let transferred =
            known(transfer_size).zip(known(headers_size)).map(|(all, head)| all.saturating_sub(head));
        let decoded = known(&content.size).map(|size| size.saturating_sub(content.compression.unwrap_or(0)));
        let size = known(body_size).filter(|size| *size > 0).or(transferred).or(decoded).unwrap_or(0);
        OnWire::Bytes(u64::try_from(size).unwrap_or(0))
    }
}

/// The host and port of a URL of http or https.
fn host(url: &str) -> Option<&str> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
    rest.split(['/', '?', '#']).next()
}

const TOO_MANY: &str = "too many entries";

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bounded;
        impl<'de> Visitor<'de> for Bounded {
            type Value = Entries;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of entries")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = list.next_element()? {
                    if entries.len() >= ENTRIES_MOST {
                        return Err(serde::de::Error::custom(TOO_MANY));
                    }
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_seq(Bounded)
    }
}

impl fmt::Display for HarError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(what) => {
                write!(f, "this is no HAR: {what}; save one from a browser's network tools")
            }
            Self::TooMany { most } => write!(f, "it has more than {most} entries; save a shorter visit"),
            Self::Empty => {
                f.write_str("nothing in it came over the network; save a visit with the cache off")
            }
            Self::Page(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for HarError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(url: &str, response: &str) -> String {
        format!(r#"{{"request":{{"url":"{url}","headersSize":400}},"response":{{"status":200,{response}}}}}"#)
    }

    fn recorded(entries: &[String]) -> Result<Recorded, HarError> {
        read("visit", format!(r#"{{"log":{{"entries":[{}]}}}}"#, entries.join(",")).as_bytes())
    }

    #[test]
    fn sizes_are_what_was_transferred_however_the_browser_says_it() {
        let page = recorded(&[
            entry("https://h/", r#""bodySize":1000,"content":{"size":5000,"text":"..."}"#),
            entry("https://h/a", r#""bodySize":-1,"headersSize":200,"_transferSize":700"#),
            entry("https://h/b", r#""bodySize":-1,"content":{"size":900,"compression":600}"#),
        ])
        .unwrap();
        let sizes: Vec<u64> = page.page.objects.iter().map(|object| object.size.get()).collect();
        assert_eq!(sizes, [1_000, 500, 300]);
        assert_eq!(page.notes, ["its requests had 400 bytes in the mean; --request-size 400 sends such"]);
    }

    #[test]
    fn what_is_no_object_of_the_page_is_counted() {
        let cached = entry("http://h/c", r#""bodySize":10"#)
            .replace("\"request\"", "\"_fromCache\":\"disk\",\"request\"");
        let found = recorded(&[
            entry("http://h/", r#""bodySize":10"#),
            entry("http://other/x", r#""bodySize":10"#),
            entry("data:image/gif;base64,AA", r#""bodySize":10"#),
            entry("http://h/empty", r#""bodySize":0"#),
            cached,
        ])
        .unwrap();
        assert_eq!(found.page.objects.len(), 1);
        assert_eq!(
            found.notes[..4],
            [
                "left out 1 entries from 1 other hosts",
                "left out 1 entries from the browser's cache",
                "left out 1 entries that are no http (data:, blob:)",
                "left out 1 entries without a body"
            ]
        );
    }

    #[test]
    fn what_is_no_har_is_told_in_a_sentence() {
        let sentence = |text: &str| read("x", text.as_bytes()).unwrap_err().to_string();
        assert!(sentence("{").starts_with("this is no HAR: EOF"));
        assert!(sentence(r#"{"log":{"entries":[]}}"#).starts_with("nothing in it came"));
        assert!(sentence(r#"{"log":{"entries":[{"request":{}}]}}"#).contains("missing field `url`"));
    }
}
