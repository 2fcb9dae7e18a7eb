//! What was asked for, as a number: a request's path and query, hashed. Only plans of `load` want it; the counting of
//! connections passes it over.
//!
//! Not a reader of URLs: the same text is the same target and any other is another. As with clients, 64 bits tell a million
//! apart with a chance of 3 in 10^8 that any two fall together.

use super::client::hash;

/// A target: equal texts are equal targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target(u64);

impl Target {
    /// The target that this text names; `None` if it names none.
    pub fn of(text: &[u8]) -> Option<Self> {
        (!matches!(text, b"" | b"-")).then(|| Self(hash(text)))
    }

    /// The same with a query, where a log has that apart.
    #[must_use]
    pub fn with(self, query: &[u8]) -> Self {
        Self::of(query).map_or(self, |Self(query)| Self(self.0 ^ query.rotate_left(1)))
    }

    /// Stands for whatever has this size, where a log does not say what was asked for.
    pub fn of_size(size: u64) -> Self {
        Self(hash(&size.to_le_bytes()))
    }
}

/// What a request line asks for, `GET /a HTTP/1.0` or `GET /a`, which a quote may end that is not escaped; text without a blank is no such line.
pub(super) fn of_request(line: &[u8]) -> Option<Target> {
    let mut words = line.split(|byte| *byte == b' ');
    let method = words.next()?;
    let is_method = !method.is_empty() && method.iter().all(u8::is_ascii_alphabetic);
    let target = words.next().filter(|_| is_method)?;
    let end = if target.ends_with(b"\\\"") { None } else { target.strip_suffix(b"\"") };
    Target::of(end.unwrap_or(target))
}

/// What the first quoted text behind `before` asks for.
pub(super) fn quoted(line: &[u8], before: &[u8]) -> Option<Target> {
    let at = memchr::memmem::find(line, before)?;
    of_request(&line[at + before.len()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_line_asks_for_what_stands_in_its_middle() {
        let a = Target::of(b"/a?b");
        assert!(a.is_some());
        for line in ["GET /a?b HTTP/1.0\" 200 1", "GET /a?b\" 200 1", "HEAD /a?b HTTP/1.1", "GET /a?b"] {
            assert_eq!(of_request(line.as_bytes()), a, "{line}");
        }
        for none in ["-\" 408 -", "", "\\x16\\x03\\x01\" 400 1", "GET", "GET -"] {
            assert_eq!(of_request(none.as_bytes()), None, "{none}");
        }
    }

    #[test]
    fn a_query_makes_another_target_and_none_does_not() {
        let page = Target::of(b"/a").unwrap();
        assert_ne!(page.with(b"b"), page);
        assert_ne!(page.with(b"b"), page.with(b"c"));
        assert_eq!(page.with(b"-"), page);
    }
}
