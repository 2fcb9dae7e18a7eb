//! Logged requests: method, path and query, and their hash. Only `load` uses them; the counting of
//! connections skips them.
//!
//! URLs are not parsed: equal texts are equal targets. As with clients, among a million 64-bit hashes the
//! chance of any collision is 3 in 10^8.

use crate::client::hash;

/// A request target: equal texts are equal targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target(u64);

impl Target {
    /// The target with this text; `None` if it is empty or a hyphen.
    pub fn of(text: &[u8]) -> Option<Self> {
        (!matches!(text, b"" | b"-")).then(|| Self(hash(text)))
    }

    /// The same with a query, where a log records it separately.
    #[must_use]
    pub fn with(self, query: &[u8]) -> Self {
        Self::of(query).map_or(self, |Self(query)| Self(self.0 ^ query.rotate_left(1)))
    }

    /// Stand-in for any target of this size, where a log does not record the target.
    pub fn of_size(size: u64) -> Self {
        Self(hash(&size.to_le_bytes()))
    }
}

/// A logged request, in the log's own bytes: the log's escapes are not decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedRequest<'a> {
    /// The method; `None` where the log does not record it.
    pub method: Option<&'a [u8]>,
    /// The path with its query, or a URL.
    pub path: &'a [u8],
    /// The query, where the log records it separately.
    pub query: Option<&'a [u8]>,
}

impl<'a> LoggedRequest<'a> {
    /// A request whose method is recorded elsewhere or not at all; `None` if the text is not a target.
    pub(super) fn of_path(path: &'a [u8]) -> Option<Self> {
        (!matches!(path, b"" | b"-")).then_some(Self { method: None, path, query: None })
    }

    /// The request of a request line, `GET /a HTTP/1.0` or `GET /a`, which an unescaped quote may end; a text
    /// without a space is not a request line.
    pub(super) fn of_line(line: &'a [u8]) -> Option<Self> {
        let mut words = line.split(|byte| *byte == b' ');
        let method = words.next()?;
        let is_method = !method.is_empty() && method.iter().all(u8::is_ascii_alphabetic);
        let target = words.next().filter(|_| is_method)?;
        let end = if target.ends_with(b"\\\"") { None } else { target.strip_suffix(b"\"") };
        Some(Self { method: Some(method), ..Self::of_path(end.unwrap_or(target))? })
    }

    /// The request of the first quoted request line after `before`.
    pub(super) fn quoted(line: &'a [u8], before: &[u8]) -> Option<Self> {
        let at = memchr::memmem::find(line, before)?;
        Self::of_line(&line[at + before.len()..])
    }

    /// The same with the method from a separate field.
    pub(super) fn with_method(self, method: Option<&'a [u8]>) -> Self {
        Self { method: self.method.or(method.filter(|method| !matches!(*method, b"" | b"-"))), ..self }
    }

    /// The hash of path and query; `None` if the path is empty.
    pub fn target(&self) -> Option<Target> {
        Some(Target::of(self.path)?.with(self.query.unwrap_or(b"-")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn target_is_the_middle_of_the_request_line() {
        let a = Target::of(b"/a?b");
        assert!(a.is_some());
        for line in ["GET /a?b HTTP/1.0\" 200 1", "GET /a?b\" 200 1", "HEAD /a?b HTTP/1.1", "GET /a?b"] {
            let request = LoggedRequest::of_line(line.as_bytes()).unwrap();
            assert_eq!(request.target(), a, "{line}");
            assert_eq!(request.method, line.split(' ').next().map(str::as_bytes), "{line}");
        }
        for none in ["-\" 408 -", "", "\\x16\\x03\\x01\" 400 1", "GET", "GET -"] {
            assert_eq!(LoggedRequest::of_line(none.as_bytes()), None, "{none}");
        }
    }

    #[test]
    fn query_changes_the_target_and_an_absent_one_does_not() {
        let page = Target::of(b"/a").unwrap();
        assert_ne!(page.with(b"b"), page);
        assert_ne!(page.with(b"b"), page.with(b"c"));
        assert_eq!(page.with(b"-"), page);
    }
}
