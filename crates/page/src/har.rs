//! A browser's HAR (HTTP Archive 1.2): the objects of one visit, their sizes on the wire, and optionally
//! their bodies.
//!
//! Bytes flow in; a page ([`read`]) or its files ([`files`]), and a sentence on the entries left out of
//! either, flow out. Both use the same responses; cookies, headers and timings are ignored. Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | (here) | selection of the page's responses |
//! | [`left_out`] | entries left out, counted by reason |
//! | `entry` | one entry as browsers write it |
//! | `archive` | the file around them, read one entry at a time |
//!
//! Without bodies, memory grows with the number of entries, which is bounded, and with the largest of them,
//! not with the file. The visit is not replayed: one host's responses are the page, fetched from one server.

mod archive;
mod entry;
pub mod left_out;

use std::fmt;
use std::io;

use wire::Bytes;

use crate::{Object, Page, PageError};

use archive::{Archive, Bodies};
use entry::{Entry, address};
use left_out::LeftOut;

/// A response with its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Path below the host, without the first slash and without a query; a directory's ends with
    /// `index.html`.
    pub path: String,
    /// Media type, without parameters, in lower case; empty where the browser knew none.
    pub mime: String,
    /// Size of the body as transferred, in its content coding.
    pub sent: Bytes,
    /// The decoded body; `None` where the recording has none.
    pub body: Option<Vec<u8>>,
}

/// Reason why a file cannot be used as a page.
#[derive(Debug)]
pub enum HarError {
    /// Not a HAR: the parser's message and its position.
    Malformed(String),
    /// More entries than the maximum.
    TooMany {
        /// The maximum.
        max: usize,
    },
    /// No response came over the network from the document's host; the entries it has instead.
    Empty(Option<String>),
    /// The remaining objects are not a valid page.
    Page(PageError),
}

/// Maximum number of entries, above that of any visit; about a hundred bytes are stored for each while the
/// file is read.
pub const MAX_ENTRIES: usize = 200_000;

/// Reads the sizes of the first page in a HAR, in the order of the file. Only responses that came over the
/// network from the document's host count. The page's notes name the entries left out.
///
/// # Errors
/// [`HarError`]: not a HAR, no usable entry, or too many.
pub fn read(name: &str, from: impl io::Read) -> Result<Page, HarError> {
    let Visit { responses, left_out } = visit(from, Bodies::Skipped)?;
    let objects = responses.iter().map(|(_, _, sent)| Object::sized(Bytes::new(*sent))).collect();
    let page = Page::new(name, objects).map_err(HarError::Page)?;
    let notes = [left_out, coded(&responses), requests(&responses)].into_iter().flatten().collect();
    Ok(Page { notes, ..page })
}

/// Reads the files of the first page in a HAR, and a sentence on the entries left out.
///
/// # Errors
/// As [`read`].
pub fn files(from: impl io::Read) -> Result<(Vec<File>, Option<String>), HarError> {
    let Visit { responses, left_out } = visit(from, Bodies::Retained)?;
    let file = |(entry, path, sent): (Entry, String, u64)| File {
        path: path.replace(char::is_control, "?"),
        mime: entry.mime(),
        sent: Bytes::new(sent),
        body: entry.body,
    };
    Ok((responses.into_iter().map(file).collect(), left_out))
}

/// The page's responses, each with its path and its size on the wire, and a sentence on the others.
struct Visit {
    responses: Vec<(Entry, String, u64)>,
    left_out: Option<String>,
}

fn visit(from: impl io::Read, bodies: Bodies) -> Result<Visit, HarError> {
    let Archive { first_page, entries, odd } = archive::read(from, bodies)?;
    let mut left_out = LeftOut { odd, ..LeftOut::default() };
    let mut responses = Vec::new();
    let mut host = None;
    for entry in entries {
        if entry.is_transferred() {
            left_out.bytes = left_out.bytes.saturating_add(entry.on_wire());
        }
        if first_page.is_some() && entry.page.is_some() && entry.page != first_page {
            left_out.pages += 1;
            continue;
        }
        let Some((entry_host, path)) = entry.url.as_deref().and_then(address) else {
            left_out.inline += 1;
            continue;
        };
        if let Some(count) = left_out.by_status(&entry) {
            *count += 1;
            continue;
        }
        if *host.get_or_insert_with(|| entry_host.to_owned()) != entry_host {
            *left_out.hosts.entry(entry_host.to_owned()).or_default() += 1;
            continue;
        }
        match entry.on_wire() {
            0 => left_out.empty += 1,
            sent => responses.push((entry, path, sent)),
        }
    }
    let fetched = responses.iter().fold(0_u64, |sum, (_, _, sent)| sum.saturating_add(*sent));
    left_out.bytes = left_out.bytes.saturating_sub(fetched);
    let left_out = left_out.sentence(responses.len(), fetched);
    match responses.is_empty() {
        true => Err(HarError::Empty(left_out)),
        false => Ok(Visit { responses, left_out }),
    }
}

/// Sentence on the savings by content codings during the visit.
fn coded(responses: &[(Entry, String, u64)]) -> Option<String> {
    let decoded =
        |(entry, _, sent): &(Entry, String, u64)| entry.size.filter(|size| size > sent).zip(Some(*sent));
    let coded: Vec<(u64, u64)> = responses.iter().filter_map(decoded).collect();
    let (decoded, sent) = coded.iter().fold((0_u64, 0_u64), |(decoded, sent), (decoded_size, sent_size)| {
        (decoded.saturating_add(*decoded_size), sent.saturating_add(*sent_size))
    });
    (!coded.is_empty()).then(|| {
        let bodies = if coded.len() == 1 { "body was" } else { "bodies were" };
        let count = coded.len();
        format!("{count} {bodies} transferred compressed, {sent} bytes of {decoded}; fetched at that size")
    })
}

fn requests(responses: &[(Entry, String, u64)]) -> Option<String> {
    let sizes: Vec<u64> =
        responses.iter().filter_map(|(entry, ..)| entry.request).filter(|size| *size > 0).collect();
    let sum = sizes.iter().fold(0_u64, |sum, size| sum.saturating_add(*size));
    let mean = sum.checked_div(sizes.len() as u64)?;
    Some(format!(
        "requests in the recording had {mean} bytes on average; --request-size {mean} uses that size"
    ))
}

impl fmt::Display for HarError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(what) => {
                write!(f, "not a HAR: {what}; save one from a browser's network tools")
            }
            Self::TooMany { max } => write!(f, "it has more than {max} entries; save a shorter visit"),
            Self::Empty(left_out) => {
                f.write_str("nothing in it came over the network; save a visit with the cache off")?;
                left_out.as_ref().map_or(Ok(()), |left_out| write!(f, " ({left_out})"))
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

    fn archive(entries: &[String]) -> String {
        format!(r#"{{"log":{{"entries":[{}]}}}}"#, entries.join(","))
    }

    fn page_of(entries: &[String]) -> Result<Page, HarError> {
        read("visit", archive(entries).as_bytes())
    }

    fn sizes(page: &Page) -> Vec<u64> {
        page.objects.iter().map(|object| object.size.get()).collect()
    }

    #[test]
    fn sizes_are_transferred_bytes_in_every_browser_s_notation() {
        let page = page_of(&[
            entry("https://h/", r#""bodySize":1000,"content":{"size":5000,"text":"..."}"#),
            entry("https://h/a", r#""bodySize":-1,"headersSize":200,"_transferSize":700"#),
            entry("https://h/b", r#""bodySize":-1,"content":{"size":900,"compression":600}"#),
            entry(
                "https://h/c",
                r#""bodySize":-1,"headersSize":-1,"_transferSize":450,"content":{"size":2000}"#,
            ),
            entry(
                "https://h/d",
                r#""bodySize":-1,"headersSize":-1,"_transferSize":450,"content":{"size":400}"#,
            ),
        ])
        .unwrap();
        assert_eq!(sizes(&page), [1_000, 500, 300, 450, 400]);
        assert_eq!(
            page.notes,
            [
                "3 bodies were transferred compressed, 1750 bytes of 7900; fetched at that size",
                "requests in the recording had 400 bytes on average; --request-size 400 uses that size"
            ]
        );
    }

    #[test]
    fn entries_left_out_are_counted_by_reason() {
        let ten = r#""bodySize":10"#;
        let status = |status: u16| entry("http://h/s", ten).replace("200", &status.to_string());
        let page = page_of(&[
            entry("http://www/", ten).replace("200", "301"),
            entry("http://h/", ten),
            entry("http://other/x", ten),
            entry("data:image/gif;base64,AA", ten),
            entry("http://h/empty", r#""bodySize":0"#),
            entry("http://h/c", ten).replace("\"request\"", "\"_fromCache\":\"disk\",\"request\""),
            status(404),
            status(404),
            status(503),
            status(304),
            status(0),
            "17".to_owned(),
        ])
        .unwrap();
        assert_eq!(sizes(&page), [10]);
        let left_out = "fetched: 1 of 12 entries, 14% of the bytes; left out: \
             1 from another host, because other hosts are not modelled; 1 from the browser's cache; \
             1 not modified (304); 1 redirected; 3 with error statuses (404 twice, 503); \
             1 without a response; 1 not fetched by HTTP (data:, blob:, wss:); 1 without a body; \
             1 unreadable (number 12: invalid type: integer `17`, expected an entry at line 1 column 2)";
        assert_eq!(page.notes[0], left_out);
    }

    #[test]
    fn tolerates_a_byte_order_mark_and_an_odd_entry() {
        let odd = [
            r#"{"request":"GET","response":{}}"#.to_owned(),
            entry("http://h/", r#""bodySize":"many""#),
            entry("http://h/", r#""bodySize":7.0,"content":{"size":null,"text":["no text"]}"#),
            "17".to_owned(),
            entry("http://h/", r#""bodySize":3"#),
        ];
        let file = format!("\u{feff}{}", archive(&odd));
        assert_eq!(sizes(&read("x", file.as_bytes()).unwrap()), [7, 3]);
    }

    #[test]
    fn bodies_are_decoded_and_missing_ones_are_none() {
        let (files, notes) = files(
            archive(&[
                entry("https://a", r#""bodySize":2,"content":{"size":3,"mimeType":"Text/HTML; charset=utf-8","text":"<P>"}"#),
                entry("https://a/f/?y", r#""bodySize":6,"content":{"mimeType":"image/gif","text":"R0lGODlh","encoding":"base64"}"#),
                entry("https://a/x", r#""bodySize":6,"content":{"text":"\ud800?"}"#),
                entry("https://a/big.js", r#""bodySize":9"#),
                entry("https://b/z", r#""bodySize":9"#),
                entry("https://c/z", r#""bodySize":9"#),
            ])
            .as_bytes(),
        )
        .unwrap();
        let decoded: Vec<_> =
            files.iter().map(|file| (file.path.as_str(), file.mime.as_str(), file.body.as_deref())).collect();
        assert_eq!(
            decoded[..2],
            [("index.html", "text/html", Some(&b"<P>"[..])), ("f/index.html", "image/gif", Some(b"GIF89a")),]
        );
        assert_eq!(
            decoded[2].2.map(<[u8]>::len),
            Some("\u{fffd}\u{fffd}\u{fffd}?".len()),
            "half a pair is not lost"
        );
        assert_eq!(decoded[3], ("big.js", "", None));
        assert_eq!(files[0].sent, Bytes::new(2));
        let left_out = "fetched: 4 of 6 entries, 56% of the bytes; left out: \
             2 from 2 other hosts, because other hosts are not modelled";
        assert_eq!(notes.as_deref(), Some(left_out));
    }

    #[test]
    fn rejects_other_files_with_a_sentence() {
        let sentence = |text: &str| read("x", text.as_bytes()).unwrap_err().to_string();
        assert!(sentence("{").starts_with("not a HAR: EOF"));
        assert!(sentence(r#"{"log":{"entries":[]}}"#).starts_with("nothing in it came"));
        assert!(sentence(r#"{"log":{"entries":[{"request":{}}]}}"#).contains("missing field `url`"));
        assert!(sentence(r#"{"log":{"entries":{}}}"#).contains("expected a list of entries"));
    }
}
