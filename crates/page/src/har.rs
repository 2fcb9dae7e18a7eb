//! A browser's recording, a HAR (HTTP Archive 1.2) or a trace: its pages as graphs, and optionally their bodies.
//!
//! Bytes flow in; pages ([`pages`]), or the files of the document's host ([`files`]), and sentences on the entries that
//! are not used, flow out. Sources: Chromium, chrome-har (sitespeed.io, browsertime), WebPageTest, Firefox, Safari,
//! mitmproxy; Chromium's traces. Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | (here) | the two results |
//! | `archive` | the file around the entries, read one entry at a time |
//! | `trace_events` | Chromium's traces, as entries |
//! | `raw`, `entry` | one entry as browsers write it, and what it means |
//! | `phases` | the times of an entry |
//! | `timeline` | entries in order of their starts, with types and priorities |
//! | `origins` | hosts: protocols, addresses, estimated round trips and server times |
//! | `links` | a document's links to hosts that it will need |
//! | `place` | where in a document an element stands |
//! | `discovery` | what each object waited for, and its think time |
//! | `client_time` | the time of the client's threads for requests and responses |
//! | `hints` | hosts to which these links lead |
//! | `recording` | pages made of these, and the account of the entries |
//! | `notes` | sentences on both |
//! | [`left_out`] | entries that are not files of the document's host, counted by reason |
//!
//! Without bodies, memory grows with the number of entries, which is bounded, and with the largest of them,
//! not with the file. Think times are retained; the times of the network are computed anew.

mod account;
mod archive;
mod client_time;
mod discovery;
mod entry;
mod hints;
mod initiators;
pub mod left_out;
mod links;
mod named;
mod notes;
mod origins;
mod parser;
mod phases;
mod place;
mod raw;
mod recording;
mod timeline;
mod trace_events;

use std::io;

use http1::content::Coding;
use wire::Bytes;

use crate::{Page, PageError};

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
#[derive(Debug, thiserror::Error)]
pub enum HarError {
    /// Not a HAR: the parser's message and its position.
    #[error("not a HAR: {0}; save one from a browser's network tools, or a trace of Chromium")]
    Malformed(String),
    /// More entries than the maximum.
    #[error("it has more than {max} entries; save a shorter visit")]
    TooMany {
        /// The maximum.
        max: usize,
    },
    /// No response came over the network from the document's host; the entries it has instead.
    #[error(
        "nothing in it came over the network; save a visit with the cache off{}",
        in_brackets(.0.as_deref())
    )]
    Empty(Option<String>),
    /// No text is recorded with its body.
    #[error("no text in it has its body, to be compressed; export the recording with content")]
    NoText,
    /// The remaining objects are not a valid page.
    #[error(transparent)]
    Page(PageError),
}

fn in_brackets(left_out: Option<&str>) -> String {
    left_out.map_or_else(String::new, |left_out| format!(" ({left_out})"))
}

/// Maximum number of entries, above that of any visit; about a hundred bytes are stored for each while the
/// file is read.
pub const MAX_ENTRIES: usize = 200_000;

/// Endings of the names of recordings.
const ENDINGS: [&str; 6] = [".har", ".har.gz", ".har.zst", ".json", ".json.gz", ".json.zst"];

/// Whether this names a recording, by its ending.
pub fn is_named(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    ENDINGS.iter().any(|ending| path.len() > ending.len() && path.ends_with(ending))
}

/// Name of the pages of a file: the file's, without the ending.
pub fn page_name(file: &str) -> String {
    let (name, _) = file.split_once(".har").or_else(|| file.split_once(".json")).unwrap_or((file, ""));
    name.replace(char::is_control, "?")
}

/// Reads the pages of a HAR, in its order: each with all its hosts, dependencies and think times. Several pages have
/// `#1`, `#2` after the name. Their notes count the entries, and name those left out.
///
/// # Errors
/// [`HarError`]: not a HAR, nothing fetched, too many entries, or an object that is too large.
pub fn pages(name: &str, from: impl io::Read) -> Result<Vec<Page>, HarError> {
    recording::pages(name, archive::read(from, Bodies::Skipped)?)
}

/// The same, with every text whose body is recorded compressed with this coding, if that makes it smaller.
///
/// # Errors
/// As [`pages`], and [`HarError::NoText`] if no text is recorded with its body.
pub fn compressed_pages(name: &str, coding: Coding, from: impl io::Read) -> Result<Vec<Page>, HarError> {
    let archive = archive::read(from, Bodies::Compressed(coding))?;
    match archive.entries.iter().any(|entry| entry.compressed.is_some()) {
        true => recording::pages(name, archive),
        false => Err(HarError::NoText),
    }
}

/// Reads the files of the first page in a HAR, and a sentence on the entries left out.
///
/// # Errors
/// [`HarError`]: not a HAR, no usable entry, or too many.
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
    let Archive { pages, entries, odd } = archive::read(from, bodies)?;
    let first_page = pages.into_iter().next().and_then(|page| page.id);
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

/// Sentence on the savings by content codings, from sizes decoded and as transferred.
fn coded(sizes: impl Iterator<Item = (Option<u64>, u64)>) -> Option<String> {
    let coded: Vec<(u64, u64)> =
        sizes.filter_map(|(decoded, sent)| Some((decoded.filter(|size| *size > sent)?, sent))).collect();
    let (decoded, sent) = coded.iter().fold((0_u64, 0_u64), |(decoded, sent), (decoded_size, sent_size)| {
        (decoded.saturating_add(*decoded_size), sent.saturating_add(*sent_size))
    });
    (!coded.is_empty()).then(|| {
        let bodies = if coded.len() == 1 { "body was" } else { "bodies were" };
        let count = coded.len();
        format!("{count} {bodies} transferred compressed, {sent} bytes of {decoded}; fetched at that size")
    })
}

/// Sentence on the mean size of the requests' headers.
fn requests(sizes: impl Iterator<Item = u64>) -> Option<String> {
    let sizes: Vec<u64> = sizes.collect();
    let sum = sizes.iter().fold(0_u64, |sum, size| sum.saturating_add(*size));
    let mean = sum.checked_div(sizes.len() as u64)?;
    Some(format!("requests have the sizes of the recording: {mean} bytes on average"))
}

#[cfg(test)]
mod test_archive;

#[cfg(test)]
mod tests {
    use super::test_archive::{Recorded, archive, archive_of_pages, entry};
    use super::*;

    fn page_of(entries: &[String]) -> Page {
        let mut pages = pages("visit", archive(entries).as_bytes()).unwrap();
        assert_eq!(pages.len(), 1);
        pages.remove(0)
    }

    fn sizes(page: &Page) -> Vec<u64> {
        page.objects.iter().map(|object| object.size.get()).collect()
    }

    #[test]
    fn recordings_are_known_by_their_endings_and_name_their_pages() {
        for name in ["visit.har", "visit.HAR.gz", "trace.json", "trace.json.zst"] {
            assert!(is_named(name), "{name}");
        }
        assert!([".har", "page.toml", "visit.har#2", "json"].iter().all(|name| !is_named(name)));
        let names = ["visit.har.gz", "Trace-2026.json", "a.json.har", "b"].map(page_name);
        assert_eq!(names, ["visit", "Trace-2026", "a.json", "b"]);
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
            entry("https://h/e", r#""bodySize":-1,"headers":[{"name":"content-length","value":"17"}]"#),
        ]);
        assert_eq!(sizes(&page), [1_000, 500, 300, 450, 400, 17]);
        assert_eq!(
            page.notes,
            [
                "6 of 6 entries are fetched, from 1 host",
                "3 bodies were transferred compressed, 1750 bytes of 7900; fetched at that size",
                "requests have the sizes of the recording: 400 bytes on average",
                "objects are discovered: 5 without a recorded start after the document",
            ]
        );
    }

    #[test]
    fn every_entry_is_fetched_or_keeps_its_time_or_is_named() {
        let ten = r#""bodySize":10"#;
        let status = |status: u16| entry("http://h/s", ten).replace("200", &status.to_string());
        let page = page_of(&[
            entry("http://www/", ten).replace("200", "301"),
            entry("http://h/", ten),
            entry("https://other/x", ten),
            entry("data:image/gif;base64,AA", ten),
            entry("http://h/empty", r#""bodySize":0"#),
            entry("http://h/c", ten).replace("\"request\"", "\"_fromCache\":\"disk\",\"request\""),
            entry("wss://h/socket", r#""bodySize":-1"#).replace("200", "101"),
            status(404),
            status(304),
            status(0),
            "17".to_owned(),
        ]);
        assert_eq!(sizes(&page), [10, 10, 10, 1, 1, 1, 1, 10, 1, 1]);
        let hosts: Vec<&str> = page.hosts.iter().map(|host| host.name.as_str()).collect();
        assert_eq!(hosts, ["www", "h:80", "other", "h"]);
        assert_eq!(
            page.notes[0],
            "7 of 11 entries are fetched, from 4 hosts; 3 without a body, which count as 1 byte; \
             3 as time without network: 1 from the browser's cache (first //h/c), \
             1 not fetched by HTTP (first data:image/gif;base64,AA), 1 without a response (first //h/s); \
             left out: 1 unreadable (number 11: invalid type: integer `17`, expected an entry at line 1 column 2)"
        );
        assert_eq!(page.clone().over_network().objects.len(), 7);
        let counts: Vec<bool> = page.objects.iter().map(|object| object.counts_for_load).collect();
        assert!(
            !counts[6] && counts[..6].iter().all(|counts| *counts),
            "WebSockets do not delay the load event"
        );
    }

    #[test]
    fn every_page_of_a_recording_is_a_page() {
        let entries = ["a", "b", "a", "c", "none"].map(|id| {
            entry("https://h/", r#""bodySize":10"#).replacen('{', &format!(r#"{{"pageref":"{id}","#), 1)
        });
        let text = archive_of_pages(&["a", "b", "c"], &entries);
        let read = pages("visit", text.as_bytes()).unwrap();
        let found: Vec<_> = read.iter().map(|page| (page.name.as_str(), page.objects.len())).collect();
        assert_eq!(found, [("visit#1", 3), ("visit#2", 1), ("visit#3", 1)]);
    }

    #[test]
    fn round_trips_and_server_times_are_those_of_the_recording() {
        // One after another: time in which others arrive is not the server's.
        let at = |start, url: &'static str, connect, wait| {
            let ssl = if connect > 0.0 { 30.0 } else { -1.0 };
            Recorded { connect: connect + ssl, ssl, wait, ..Recorded::at(start, url) }
        };
        let page = page_of(&[
            at(0, "https://near/", 20.0, 80.0).json(),
            at(1_000, "https://near/a.png", -1.0, 25.0).json(),
            at(2_000, "https://near/b.png", -1.0, 31.0).json(),
            at(3_000, "https://near/c.png", -1.0, 28.0).json(),
            at(3_500, "https://near/g.png", -1.0, 45.0).json(),
            at(4_000, "https://far/d.png", 50.0, 55.0).json(),
            at(5_000, "https://unknown/e.png", -1.0, 30.0).json(),
            // TLS is not recorded apart: the time until the first byte is the better bound.
            Recorded { connect: 90.0, wait: 45.0, ..Recorded::at(6_000, "https://whole/f.png") }.json(),
        ]);
        let ms = |host: usize| {
            [page.hosts[host].extra_rtt, page.hosts[host].processing].map(|time| time.as_millis_f64())
        };
        assert_eq!([ms(0), ms(1), ms(2), ms(3)], [[0.0, 8.0], [30.0, 5.0], [0.0, 10.0], [25.0, 0.0]]);
        let own: Vec<Option<f64>> =
            page.objects.iter().map(|object| object.processing.map(|time| time.as_millis_f64())).collect();
        assert_eq!(own[..2], [Some(60.0), None]);
        assert_eq!(
            page.notes.last().unwrap(),
            "hosts without a recorded handshake, which count as near as the nearest: 1 of 4"
        );
    }

    #[test]
    fn a_load_event_long_after_the_last_byte_is_no_work_of_the_browser() {
        let at = |load: u32| {
            let text = archive(&[Recorded::at(0, "https://h/").json()]);
            let pages_of = format!(
                r#""log":{{"pages":[{{"startedDateTime":"2026-11-24T12:00:00.000Z","pageTimings":{{"onLoad":{load}}}}}],"#
            );
            pages("visit", text.replacen("\"log\":{", &pages_of, 1).as_bytes()).unwrap()[0].recorded.unwrap()
        };
        let (soon, late) = (at(400), at(15_000));
        assert!(soon.load.is_some() && soon.before_load.is_some());
        assert!(late.load.is_some() && late.before_load.is_none());
    }

    #[test]
    fn objects_that_end_after_the_load_event_do_not_count_for_it() {
        let entries = [
            Recorded::at(0, "https://h/"),
            Recorded::at(300, "https://h/a.png"),
            Recorded::at(900, "https://h/b.png"),
        ];
        let text = archive(&entries.map(Recorded::json));
        let text = text.replacen("\"log\":{", r#""log":{"pages":[{"startedDateTime":"2026-11-24T12:00:00.000Z","pageTimings":{"onLoad":600}}],"#, 1);
        let page = pages("visit", text.as_bytes()).unwrap().remove(0);
        let counts: Vec<bool> = page.objects.iter().map(|object| object.counts_for_load).collect();
        assert_eq!(counts, [true, true, false]);
        let recorded = page.recorded.unwrap();
        assert_eq!(recorded.load, Some(wire::Duration::from_millis(600)));
        let ends: Vec<_> =
            (0..page.objects.len()).map(|object| (object, wire::Duration::from_secs(2))).collect();
        let work = recorded.before_load.unwrap();
        assert_eq!(page.load(ends), Some(wire::Duration::from_secs(2) + work));
    }

    #[test]
    fn text_with_a_body_is_compressed_if_that_makes_it_smaller() {
        let text =
            format!(r#""bodySize":900,"content":{{"mimeType":"text/css","text":"{}"}}"#, "a{}".repeat(300));
        let small = r#""bodySize":9,"content":{"mimeType":"text/css","text":"abcdefghi"}"#;
        let image = r#""bodySize":900,"content":{"mimeType":"image/gif","text":"aaaa"}"#;
        let entries = [entry("https://h/", &text), entry("https://h/a", small), entry("https://h/b", image)];
        let read = |entries: &[String]| compressed_pages("x", Coding::Brotli, archive(entries).as_bytes());
        let page = read(&entries).unwrap().remove(0);
        assert!(page.objects[0].size.get() < 50, "{}", page.objects[0].size);
        assert_eq!(sizes(&page)[1..], [9, 900]);
        assert!(
            page.notes
                .iter()
                .any(|note| note.starts_with("bodies that the compression makes smaller: 1, 900"))
        );
        let without = [entry("https://h/", image)];
        assert!(matches!(read(&without), Err(HarError::NoText)));
    }

    #[test]
    fn entries_left_out_of_files_are_counted_by_reason() {
        let ten = r#""bodySize":10"#;
        let (read, left_out) = files(
            archive(&[
                entry("http://h/", ten),
                entry("http://other/x", ten),
                entry("http://h/e", r#""bodySize":0"#),
            ])
            .as_bytes(),
        )
        .unwrap();
        assert_eq!(read.len(), 1);
        let expected = "fetched: 1 of 3 entries, 50% of the bytes; left out: \
             1 from another host, because other hosts are not modelled; 1 without a body";
        assert_eq!(left_out.as_deref(), Some(expected));
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
        assert_eq!(sizes(&pages("x", file.as_bytes()).unwrap()[0]), [7, 3]);
    }

    #[test]
    fn entry_with_a_body_beyond_all_sizes_is_left_out_and_named() {
        let entries = [
            entry("http://h/", r#""bodySize":3"#),
            entry("http://h/x", r#""bodySize":9223372036854775807"#),
            r#"{"request":{"method":"POST","url":"http://h/y","bodySize":1e13},"response":{"status":204}}"#
                .to_owned(),
        ];
        let page = pages("x", archive(&entries).as_bytes()).unwrap().remove(0);
        assert_eq!((sizes(&page), page.check()), (vec![3], Ok(())));
        let notes = page.notes.join("\n");
        assert!(notes.contains("2 unreadable (number 2: a body of 9223372036854775807 bytes"), "{notes}");
    }

    #[test]
    fn entries_of_safari_from_a_cache_take_no_network() {
        let from = |url, source: &str| entry(url, r#""bodySize":10"#).replacen('{', source, 1);
        let entries = [
            from("http://h/", r#"{"_fetchType":"Network Load","_priority":"high","#),
            from("http://h/a.png", r#"{"_fetchType":"Memory Cache","#),
            from("http://h/b.png", r#"{"_fetchType":"Network Load","_priority":"medium","#),
        ];
        let page = pages("x", archive(&entries).as_bytes()).unwrap().remove(0);
        let fetched: Vec<bool> = page.objects.iter().map(|object| object.local.is_none()).collect();
        assert_eq!(fetched, [true, false, true]);
        assert_eq!(page.objects[2].priority, crate::Priority::Medium);
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
        let sentence = |text: &str| pages("x", text.as_bytes()).unwrap_err().to_string();
        assert!(sentence("{").starts_with("not a HAR: EOF"));
        assert!(sentence(r#"{"log":{"entries":[]}}"#).starts_with("nothing in it came"));
        assert!(sentence(r#"{"log":{"entries":[{"request":{}}]}}"#).contains("missing field `url`"));
        assert!(sentence(r#"{"log":{"entries":{}}}"#).contains("expected a list of entries"));
    }
}
