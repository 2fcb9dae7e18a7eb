//! Invariants for any bytes as a file of requests for `load`: they are accepted, or rejected with the line; every accepted
//! request can be sent, and no part of it contains a line break.

use load::requests::file::{MAX_FILE_BYTES, parse};
use load::requests::{MAX_LINE_BYTES, MAX_REQUESTS};

/// Panics if these bytes violate an invariant.
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
