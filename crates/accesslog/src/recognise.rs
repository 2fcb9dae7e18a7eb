//! Which format a log is in, from its beginning.
//!
//! Every format that has no string of its own is tried on the same lines; the one that reads most of them is it, if
//! that is at least every other line. Not a guess at format strings: those must be given.

use crate::format::{Format, Reader, Who};
use crate::w3c::Columns;

/// So much of the beginning is looked at, in bytes.
const LOOKED_AT: usize = 64 << 10;

/// The format of a log that begins so; `None` if it is none that is known.
pub fn recognise(beginning: &[u8], who: &Who) -> Option<Format> {
    let looked_at = whole_lines(&beginning[..beginning.len().min(LOOKED_AT)]);
    let candidates = [Format::W3c(Columns::default()), Format::Json, Format::Alb, Format::Clf];
    let tried = candidates.into_iter().map(|format| {
        let tally = Reader::new(format.clone(), who.clone()).read(looked_at, |_| {});
        (tally.records, tally.bad(), format)
    });
    let (records, bad, format) = tried.max_by_key(|(records, _, _)| *records)?;
    (records > 0 && records >= bad).then_some(format)
}

/// Without the line that was cut off, unless it is the only one.
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
        recognise(beginning.as_bytes(), &Who::default()).map(|format| format.name())
    }

    #[test]
    fn each_format_is_known_by_its_lines() {
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
    fn what_is_no_log_has_no_format() {
        for text in ["", "\n\n", "dear diary,\n", "\u{0}\u{1}", "{\"a\":1}", "time,bytes\n1,2\n"] {
            assert_eq!(name(text), None, "{text}");
        }
    }
}
