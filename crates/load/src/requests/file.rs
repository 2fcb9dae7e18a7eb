//! A file of requests, in the text format of vegeta's targets (<https://github.com/tsenart/vegeta>).
//!
//! ```text
//! # Comments and empty lines separate nothing else.
//! GET http://127.0.0.1:3000/users?page=2
//! Accept: application/json
//!
//! POST /orders
//! Content-Type: application/json
//! @order.json
//! ```
//!
//! A request line has a method and a URL, or a path where the server is known; header fields follow, and then the name
//! of a file with the body. The input is untrusted: nothing here panics, and everything has a limit. Bodies are not
//! read here.

use quantity::names::Quoted;

use super::{MAX_LINE_BYTES, MAX_REQUESTS, Request, RequestError};

/// Maximum size of a file, in bytes.
pub const MAX_FILE_BYTES: u64 = 16 << 20;

/// A request of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The line of the file that it begins in, from 1.
    pub line: usize,
    /// The server, as in `http://127.0.0.1:3000`; `None` if the file has only a path.
    pub server: Option<String>,
    /// The request, without its body.
    pub request: Request,
    /// The line and the name of the file with its body.
    pub body: Option<(usize, String)>,
}

/// Reason why a file is not a valid list of requests.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct RequestFileError {
    /// The line, from 1.
    pub line: usize,
    /// The reason.
    pub reason: Reason,
}

/// Reason why a line is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// A file without requests.
    #[error("no request found; write lines such as `GET http://127.0.0.1:3000/`")]
    Empty,
    /// A line that is not a method and a URL.
    #[error(
        "{} is not a request; write a method and a URL, such as `GET http://127.0.0.1:3000/`",
        Quoted(.0)
    )]
    NotARequest(String),
    /// A line longer than any request.
    #[error("it is longer than {MAX_LINE_BYTES} bytes; shorten it")]
    TooLong,
    /// More requests than the maximum.
    #[error("a run has no more than {MAX_REQUESTS} requests; shorten the file")]
    TooMany,
    /// A line after the body of its request.
    #[error("the body is the last line of a request; put an empty line after it")]
    AfterBody,
    /// The name of the body's file is missing.
    #[error("the name of the body's file is missing; write `@FILE`")]
    NoBodyName,
    /// A request that cannot be sent.
    #[error(transparent)]
    Request(RequestError),
}

/// Reads the requests of a file.
///
/// # Errors
/// [`RequestFileError`] with the first line that is wrong.
pub fn parse(text: &str) -> Result<Vec<Entry>, RequestFileError> {
    let mut entries: Vec<Entry> = Vec::new();
    // Whether the last entry may continue.
    let mut is_open = false;
    for (line, text) in (1..).zip(text.lines()) {
        let bad = |reason| RequestFileError { line, reason };
        let text = text.trim_end();
        if text.len() > MAX_LINE_BYTES {
            return Err(bad(Reason::TooLong));
        }
        if text.starts_with('#') {
            continue;
        }
        if text.is_empty() {
            is_open = false;
            continue;
        }
        match entries.last_mut().filter(|_| is_open) {
            Some(entry) if !is_request_line(text) => add(entry, line, text).map_err(bad)?,
            Some(_) | None => {
                if entries.len() == MAX_REQUESTS {
                    return Err(bad(Reason::TooMany));
                }
                entries.push(entry(line, text).map_err(bad)?);
                is_open = true;
            }
        }
    }
    if entries.is_empty() { Err(RequestFileError { line: 1, reason: Reason::Empty }) } else { Ok(entries) }
}

/// Whether a line begins a request, even without an empty line before it: a field has a colon in its first word.
fn is_request_line(text: &str) -> bool {
    let Some((method, url)) = text.split_once(' ') else { return false };
    let is_method = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
    is_method && (url.contains("://") || url.trim_start().starts_with('/'))
}

fn entry(line: usize, text: &str) -> Result<Entry, Reason> {
    let not_a_request = || Reason::NotARequest(text.to_owned());
    let (method, url) = text.split_once(' ').ok_or_else(not_a_request)?;
    let (server, target) = split(url.trim()).ok_or_else(not_a_request)?;
    let request = Request::new(method, &target).map_err(Reason::Request)?;
    Ok(Entry { line, server, request, body: None })
}

/// The server of a URL, and its path with the query; `None` if it is neither a URL nor a path.
pub fn split(url: &str) -> Option<(Option<String>, String)> {
    let url = url.split('#').next().unwrap_or_default();
    if url.starts_with('/') {
        return Some((None, url.to_owned()));
    }
    let (scheme, rest) = url.split_once("://")?;
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, target) = rest.split_at_checked(end)?;
    if authority.is_empty() || !authority.bytes().all(|byte| byte.is_ascii_graphic()) {
        return None;
    }
    let slash = if target.starts_with('/') { "" } else { "/" };
    Some((Some(format!("{scheme}://{authority}")), format!("{slash}{target}")))
}

fn add(entry: &mut Entry, line: usize, text: &str) -> Result<(), Reason> {
    if entry.body.is_some() {
        return Err(Reason::AfterBody);
    }
    match text.strip_prefix('@') {
        Some(name) if name.trim().is_empty() => Err(Reason::NoBodyName),
        Some(name) => {
            entry.body = Some((line, name.trim().to_owned()));
            Ok(())
        }
        None => entry.request.add_field(text).map_err(Reason::Request),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_methods_urls_fields_and_bodies() {
        let text = "# two\n\nGET http://127.0.0.1:3000?a=b#c\nAccept: */*\nPOST /orders\r\nContent-Type: text/plain\r\n\
                    # the body\n@order.txt\n\nDELETE HTTPS://[::1]/x\n";
        let entries = parse(text).unwrap();
        let names: Vec<_> =
            entries.iter().map(|entry| (entry.line, entry.server.as_deref(), entry.request.name())).collect();
        assert_eq!(
            names,
            [
                (3, Some("http://127.0.0.1:3000"), "GET /?a=b".to_owned()),
                (5, None, "POST /orders".to_owned()),
                (10, Some("HTTPS://[::1]"), "DELETE /x".to_owned()),
            ]
        );
        assert_eq!(entries[0].request.fields.get("accept"), Some(&b"*/*"[..]));
        assert_eq!(entries[1].body, Some((8, "order.txt".to_owned())));
    }

    #[test]
    fn a_bad_line_is_refused_with_its_number() {
        for (text, line, message) in [
            ("", 1, "no request found"),
            ("# nothing\n", 1, "no request found"),
            ("GET\n", 1, "`GET` is not a request"),
            ("GET /a\n\nAccept: x\n", 3, "`Accept: x` is not a request"),
            ("get /a\n", 1, "`get` is not a method"),
            ("GET /a\nnonsense\n", 2, "`nonsense` is not a header field"),
            ("GET /a\nContent-Length: 3\n", 2, "Content-Length is set by the load itself"),
            ("POST /a\n@x\nAccept: y\n", 3, "the body is the last line"),
            ("POST /a\n@ \n", 2, "name of the body's file is missing"),
            ("GET http:///\n", 1, "is not a request"),
        ] {
            let bad = parse(text).unwrap_err();
            assert_eq!(bad.line, line, "{text}: {bad}");
            assert!(bad.to_string().contains(message), "{text}: {bad}");
        }
        let long = format!("GET /{}\n", "a".repeat(MAX_LINE_BYTES));
        assert_eq!(parse(&long).unwrap_err().reason, Reason::TooLong);
        let many = "GET /a\n".repeat(MAX_REQUESTS + 1);
        assert_eq!(parse(&many), Err(RequestFileError { line: MAX_REQUESTS + 1, reason: Reason::TooMany }));
    }
}
