//! Detection of a log's format from its beginning.
//!
//! Every format without a format string is tried on the same lines. The one that parses most of them is
//! chosen, if it parses at least half. Format strings are not guessed: they must be given.

use crate::client::ClientDefinition;
use crate::format::{Format, Reader};
use crate::w3c::Columns;

/// Bytes at the beginning that are examined.
const EXAMINED_BYTES: usize = 64 << 10;

/// The format of a log with this beginning; `None` if it is unknown.
pub fn recognise(beginning: &[u8], definition: &ClientDefinition) -> Option<Format> {
    let looked_at = whole_lines(&beginning[..beginning.len().min(EXAMINED_BYTES)]);
    let candidates = [Format::W3c(Columns::default()), Format::Json, Format::Alb, Format::Clf];
    let tried = candidates.into_iter().map(|format| {
        let tally = Reader::new(format.clone(), definition.clone()).read(looked_at, |_| {});
        (tally.records, tally.bad(), format)
    });
    let (records, bad, format) = tried.max_by_key(|(records, _, _)| *records)?;
    (records > 0 && records >= bad).then_some(format)
}

/// The text without the truncated last line, unless it is the only one.
fn whole_lines(text: &[u8]) -> &[u8] {
    match memchr::memrchr(b'\n', text) {
        Some(end) => &text[..=end],
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(beginning: &str) -> Option<&'static str> {
        recognise(beginning.as_bytes(), &ClientDefinition::default()).map(|format| format.name())
    }

    #[test]
    fn detects_each_format_by_its_lines() {
        let clf = r#"h - - [01/Aug/1995:02:00:00 -0400] "GET /a.gif HTTP/1.0" 200 1713"#;
        assert_eq!(name(clf), Some("Common Log Format"));
        assert_eq!(name(&format!("garbage\n{clf}\n{clf} \"-\" \"curl\"")), Some("Common Log Format"));
        let w3c =
            "#Software: IIS\r\n#Fields: date time c-ip sc-status\r\n2015-10-25 04:11:25 192.0.2.7 200\r\n";
        assert_eq!(name(w3c), Some("W3C extended"));
        assert_eq!(name(r#"{"ts":1646861401.5,"request":{"remote_ip":"::1"}}"#), Some("JSON lines"));
        let alb = "http 2018-07-02T22:23:00.186641Z app/lb/5 192.0.2.1:2817 10.0.0.1:80 0.0 0.0 0.0 200 200 34 366 \"G\"";
        assert_eq!(name(alb), Some("AWS load balancer"));
    }

    #[test]
    fn detects_no_format_in_other_text() {
        for text in ["", "\n\n", "dear diary,\n", "\u{0}\u{1}", "{\"a\":1}", "time,bytes\n1,2\n"] {
            assert_eq!(name(text), None, "{text}");
        }
    }
}
