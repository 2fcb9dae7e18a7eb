//! HARs for tests: entries with a few members each.

/// An entry with these members of the response, without times.
pub(super) fn entry(url: &str, response: &str) -> String {
    format!(r#"{{"request":{{"url":"{url}","headersSize":400}},"response":{{"status":200,{response}}}}}"#)
}

/// A HAR of these entries, without pages.
pub(super) fn archive(entries: &[String]) -> String {
    format!(r#"{{"log":{{"entries":[{}]}}}}"#, entries.join(","))
}

/// A HAR of pages with these ids.
pub(super) fn archive_of_pages(ids: &[&str], entries: &[String]) -> String {
    let pages: Vec<String> = ids.iter().map(|id| format!(r#"{{"id":"{id}"}}"#)).collect();
    format!(r#"{{"log":{{"pages":[{}],"entries":[{}]}}}}"#, pages.join(","), entries.join(","))
}

/// An entry with times in milliseconds: a body of 1,000 bytes that takes 100 ms to arrive.
#[derive(Clone, Copy)]
pub(super) struct Recorded<'a> {
    pub(super) url: &'a str,
    /// Start within the minute.
    pub(super) start: u64,
    pub(super) connect: f64,
    /// Part of `connect`.
    pub(super) ssl: f64,
    pub(super) wait: f64,
    pub(super) receive: f64,
    /// Further members of the entry, each with a comma after it.
    pub(super) more: &'a str,
    /// Further members of the response, each with a comma after it.
    pub(super) response: &'a str,
}

impl<'a> Recorded<'a> {
    pub(super) fn at(start: u64, url: &'a str) -> Self {
        Self { url, start, connect: -1.0, ssl: -1.0, wait: 100.0, receive: 100.0, more: "", response: "" }
    }

    pub(super) fn json(self) -> String {
        let Self { url, start, connect, ssl, wait, receive, more, response } = self;
        let (second, milli) = (start / 1_000, start % 1_000);
        format!(
            r#"{{{more}"startedDateTime":"2026-11-24T12:00:{second:02}.{milli:03}Z","timings":{{"blocked":0,"connect":{connect},"ssl":{ssl},"send":0,"wait":{wait},"receive":{receive}}},"request":{{"url":"{url}"}},"response":{{{response}"httpVersion":"http/1.1","status":200,"bodySize":1000}}}}"#
        )
    }
}
