//! Common and Combined Log Format: `host ident user [time] "request" status bytes`, and optional further
//! fields.
//!
//! The format of NCSA httpd, which Apache and nginx still write. Built for speed: one pass over each byte of
//! the line's middle, none over the fields after the size. The request is not parsed; a quote in it ends it
//! only if a status and a size follow. Most lines of most logs are plain, and are parsed without a search for
//! their end first.

use memchr::{memchr, memchr2};

use crate::client::ClientDefinition;
use crate::clock::{self, Clock};
use crate::tally::Reason;
use crate::target::LoggedRequest;
use crate::{Record, SizeScope, number};

/// Parses one line, without its line ending.
///
/// # Errors
/// The reason why the line gives no record.
#[inline]
pub fn read(line: &[u8], clock: &mut Clock, definition: &ClientDefinition) -> Result<Record, Reason> {
    let space = memchr(b' ', line).ok_or(Reason::Shape)?;
    let (host, rest) = line.split_at(space);
    let (date, rest) = date(rest).ok_or(Reason::Shape)?;
    let (status, size) = respond(rest)?;
    // A quote at the beginning wraps the whole line.
    if host.is_empty() || host.starts_with(b"\"") {
        return Err(Reason::Client);
    }
    let time = clock.read(date).ok_or(Reason::Time)?;
    Ok(Record { time, client: definition.client(host), status, size, covers: SizeScope::Body, taken: None })
}

/// The request of a line; `None` where it is not recorded.
pub(super) fn request(line: &[u8]) -> Option<LoggedRequest<'_>> {
    LoggedRequest::quoted(line, b"] \"")
}

/// Parses the line at the start of `rest` if it is plain, as most are: no user name, no quote in the request.
/// Returns its record and its length with the line ending; `None` if it needs [`read`], which returns the
/// same for a plain line.
#[inline]
pub fn read_plain(rest: &[u8], clock: &mut Clock, definition: &ClientDefinition) -> Option<(Record, usize)> {
    let (host, named) = rest.split_at(memchr2(b' ', b'\n', rest)?);
    let (date, dated) = named.strip_prefix(b" - - [")?.split_first_chunk()?;
    let request = dated.strip_prefix(b"] \"")?;
    let [b'"', b' ', h, t, o, b' ', sized @ ..] = &request[memchr2(b'"', b'\n', request)?..] else {
        return None;
    };
    if host.is_empty() || host.starts_with(b"\"") {
        return None;
    }
    let (size, after) = match sized {
        [b'-', after @ ..] => (None, after),
        _ => {
            let (number, count) = number::digits(sized).filter(|(_, count)| *count > 0)?;
            (number::known_size(number), &sized[count..])
        }
    };
    let end = match after {
        [b'\n', ..] => 1,
        [b'\r', b'\n', ..] => 2,
        [b' ', ..] => memchr(b'\n', after)? + 1,
        _ => return None,
    };
    let status = number::status(&[*h, *t, *o]).ok()?;
    let time = clock.read(date)?;
    let record =
        Record { time, client: definition.client(host), status, size, covers: SizeScope::Body, taken: None };
    Some((record, rest.len() - after.len() + end))
}

/// The time between brackets, and the text after the request's opening quote.
#[inline]
fn date(mut rest: &[u8]) -> Option<(&[u8; clock::LENGTH], &[u8])> {
    loop {
        // A user's name may contain a bracket, too: the right one is followed by a time.
        let open = memchr(b'[', rest)?;
        rest = &rest[open + 1..];
        if let Some((date, [b']', b' ', b'"', request @ ..])) = rest.split_first_chunk() {
            return Some((date, request));
        }
    }
}

/// Status and size, after the quote that ends the request.
#[inline]
fn respond(mut request: &[u8]) -> Result<(u16, Option<wire::Bytes>), Reason> {
    loop {
        let quote = memchr(b'"', request).ok_or(Reason::Shape)?;
        request = &request[quote + 1..];
        if let [b' ', h, t, o, rest @ ..] = request
            && let Ok(status) = number::status(&[*h, *t, *o])
        {
            return match size(rest) {
                Some(size) => Ok((status, size)),
                None if memchr(b'"', rest).is_some() => continue,
                None => Err(Reason::Size),
            };
        }
        if memchr(b'"', request).is_none() {
            return Err(Reason::Status);
        }
    }
}

/// The size at the end of the line, or before a space and further fields; a missing one is unknown.
#[inline]
fn size(rest: &[u8]) -> Option<Option<wire::Bytes>> {
    let rest = match rest {
        [] => return Some(None),
        [b' ', rest @ ..] => rest,
        _ => return None,
    };
    match rest {
        [] | [b'-'] | [b'-', b' ', ..] => return Some(None),
        _ => {}
    }
    let (number, count) = number::digits(rest)?;
    let ends = matches!(rest.get(count), None | Some(b' '));
    (ends && count > 0).then(|| number::known_size(number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Client;

    fn read(line: &str) -> Result<Record, Reason> {
        super::read(line.as_bytes(), &mut Clock::default(), &ClientDefinition::default())
    }

    #[test]
    fn common_and_combined_give_the_same_record() {
        let common = r#"h - - [01/Aug/1995:02:00:00 -0400] "GET /a.gif HTTP/1.0" 200 1713"#;
        let record = read(common).unwrap();
        assert_eq!(record.time.as_nanos(), 807_256_800_000_000_000);
        assert_eq!((record.client, record.status), (Client::of(b"h"), 200));
        assert_eq!(record.size.unwrap().get(), 1_713);
        assert_eq!(read(&format!("{common} \"http://ref\" \"Mozilla (x; y) 200 5\"")), Ok(record));
    }

    #[test]
    fn tolerates_misplaced_quotes_and_brackets() {
        let sizes = [
            r#"h - a [b] [01/Aug/1995:02:00:00 -0400] "GET /"x" HTTP/1.0" 200 7"#,
            r#"h - - [01/Aug/1995:02:00:00 -0400] "GET /\" 200 \"x HTTP/1.0" 404 7 "-" "-""#,
            r#"h - - [01/Aug/1995:02:00:00 -0400] "" 400 7 "-" "-""#,
        ]
        .map(|line| read(line).unwrap().size.unwrap().get());
        assert_eq!(sizes, [7, 7, 7]);
    }

    #[test]
    fn a_plain_line_gives_the_same_record_wherever_it_stands() {
        let plain = r#"192.0.2.100 - - [01/Aug/1995:02:00:00 -0400] "GET /a.gif HTTP/1.0" 200 1713"#;
        let tails = ["", " \"-\" \"curl\"", " 5\r", "\r"];
        let lines = tails.map(|tail| format!("{plain}{tail}")).into_iter().chain([
            plain.replace("1713", "-"),
            plain.replace("1713", "4294967295"),
            plain.replace("1713", "12x"),
            plain.replace("1713", ""),
            plain.replace("200", "2x0"),
            plain.replace("- -", "- me"),
            plain.replace("/a", "/\"a"),
            plain.replace("Aug", "Agu"),
            plain.replace("192.0.2.100", ""),
            plain.replace("192.0.2.100", "\""),
            "192.0.2.100".to_owned(),
            String::new(),
        ]);
        for line in lines {
            let block = format!("{line}\n{plain}\n");
            let read_plain =
                super::read_plain(block.as_bytes(), &mut Clock::default(), &ClientDefinition::default());
            let trimmed = line.strip_suffix('\r').unwrap_or(&line);
            match read_plain {
                Some((record, length)) => assert_eq!((Ok(record), length), (read(trimmed), line.len() + 1)),
                None => assert!(
                    read(trimmed).is_err()
                        || line.contains("- me")
                        || line.contains("/\"a")
                        || line.ends_with("200 "),
                    "{line}"
                ),
            }
        }
    }

    #[test]
    fn a_size_may_be_missing() {
        for end in ["-", "- \"-\" \"-\"", "", "4294967295"] {
            let line = format!("h - - [01/Aug/1995:02:00:00 -0400] \"GET / HTTP/1.0\" 304 {end}");
            assert_eq!(read(&line).unwrap().size, None, "{line}");
        }
        assert_eq!(read("h - - [01/Aug/1995:02:00:00 -0400] \"GET / HTTP/1.0\" 304").unwrap().size, None);
    }

    #[test]
    fn bad_lines_are_rejected_by_reason() {
        let cases = [
            ("", Reason::Shape),
            ("hello world", Reason::Shape),
            (r#" - - [01/Aug/1995:02:00:00 -0400] "GET /" 200 1"#, Reason::Client),
            (r#"h - - [99/Aug/1995:02:00:00 -0400] "GET /" 200 1"#, Reason::Time),
            (r#"h - - [01/Aug/1995:02:00:00 -0400] "GET /" abc 1"#, Reason::Status),
            (r#"h - - [01/Aug/1995:02:00:00 -0400] "GET /" 200 12x"#, Reason::Size),
            (r#"h - - [01/Aug/1995:02:00:00 -0400] "GET /"#, Reason::Shape),
        ];
        for (line, reason) in cases {
            assert_eq!(read(line), Err(reason), "{line}");
        }
    }
}
