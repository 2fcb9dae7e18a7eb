//! Invariants of any bytes that are given as a file of requests for `load`: they are read, or refused with their line; and
//! what is read can be sent: no part of a request begins a line of its own.

use load::requests::file::{MAX_FILE_BYTES, parse};
use load::requests::{MAX_LINE_BYTES, MAX_REQUESTS};

/// Panics if it does not hold.
pub(crate) fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    assert!(data.len() as u64 <= MAX_FILE_BYTES, "the caller reads no more");
    match parse(&text) {
        Ok(entries) => {
            assert!((1..=MAX_REQUESTS).contains(&entries.len()));
            let mut before = 0;
            for entry in entries {
                assert!(entry.line > before && entry.line <= text.lines().count());
                before = entry.line;
                let name = entry.request.name();
                assert!(name.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' '), "{name:?}");
                assert_eq!(name.split(' ').count(), 2, "{name:?}");
                assert!(
                    name.len() <= 2 * MAX_LINE_BYTES && entry.request.target().starts_with('/'),
                    "{name:?}"
                );
                assert!(entry.body.is_none_or(|(line, name)| line > entry.line && !name.is_empty()));
            }
        }
        Err(bad) => {
            assert!(bad.line >= 1 && bad.line <= text.lines().count().max(1), "{bad}");
            assert!(!bad.to_string().contains(char::is_control), "{bad:?}");
        }
    }
}
