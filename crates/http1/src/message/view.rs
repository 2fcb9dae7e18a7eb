//! Header sections parsed in place, for messages that arrive whole: borrowed, without allocation.
//!
//! Not a second parser: it uses the scan and the checks of [`super::read`], and a test compares the results of the two. A view
//! is for a server of datagrams; to store it, convert it to a [`RequestHead`].

use memchr::memchr;

use super::field::Fields;
use super::head::{RequestLine, StatusLine, field_room, request_parts, response_parts};
use super::scan::{FirstLine, Rules, Scan};
use super::{Limits, Method, PeerFault, RequestHead, ResponseHead, Version};

/// The head of a request, borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestView<'a> {
    /// Method as written: a token.
    pub method: &'a str,
    /// Request target: visible ASCII, at least one character.
    pub target: &'a str,
    /// The highest version the client speaks.
    pub version: Version,
    /// Header fields.
    pub fields: FieldLines<'a>,
}

impl<'a> RequestView<'a> {
    /// Takes the head off the front of a message; no empty line may precede it.
    ///
    /// # Errors
    /// The peer's fault; [`PeerFault::Truncated`] if the header section does not end in this message.
    pub fn read(message: &mut &'a [u8], limits: &Limits) -> Result<Self, PeerFault> {
        Self::read_each(message, limits, |_, _| {})
    }

    /// Does the same, and calls `field` with the name and value of every field.
    ///
    /// # Errors
    /// As [`RequestView::read`].
    pub fn read_each(
        message: &mut &'a [u8],
        limits: &Limits,
        mut field: impl FnMut(&'a [u8], &'a [u8]),
    ) -> Result<Self, PeerFault> {
        let head = split_head(message, FirstLine::RequestLine { blank_lines: 0 }, limits)?;
        let mut buffer = field_room();
        let (RequestLine { method, target, version }, headers) = request_parts(head, &mut buffer, limits)?;
        for httparse::Header { name, value } in headers {
            field(name.as_bytes(), value);
        }
        Ok(Self { method, target, version, fields: FieldLines::behind_first_line(head) })
    }

    /// Copies it into an owned header section.
    pub fn to_head(&self) -> RequestHead {
        let Self { method, target, version, fields } = *self;
        let method = Method::from_name(method);
        RequestHead { method, target: target.to_owned(), version, fields: fields.to_fields() }
    }
}

/// The head of a response, borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseView<'a> {
    /// The version of the server's response.
    pub version: Version,
    /// Status code, 100 to 999.
    pub status: u16,
    /// Header fields.
    pub fields: FieldLines<'a>,
}

impl<'a> ResponseView<'a> {
    /// Takes the head off the front of a message.
    ///
    /// # Errors
    /// The peer's fault; [`PeerFault::Truncated`] if the header section does not end in this message.
    pub fn read(message: &mut &'a [u8], limits: &Limits) -> Result<Self, PeerFault> {
        let head = split_head(message, FirstLine::StatusLine, limits)?;
        let (StatusLine { version, status }, _) = response_parts(head, &mut field_room(), limits)?;
        Ok(Self { version, status, fields: FieldLines::behind_first_line(head) })
    }

    /// Copies it into an owned header section.
    pub fn to_head(&self) -> ResponseHead {
        let Self { version, status, fields } = *self;
        ResponseHead { version, status, fields: fields.to_fields() }
    }
}

/// The field lines of a checked head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldLines<'a>(&'a [u8]);

impl<'a> FieldLines<'a> {
    /// Wraps lines that were checked before, as [`FieldLines::as_bytes`] returned them.
    pub const fn of_checked(lines: &'a [u8]) -> Self {
        Self(lines)
    }

    /// Returns every line as it is sent, for storage.
    pub const fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// Returns every field: name as written, value without surrounding white space.
    pub fn iter(self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let colon = memchr(b':', rest)?;
            let (name, value) = rest.split_at(colon);
            let end = memchr(b'\n', value).unwrap_or(value.len());
            rest = value.get(end + 1..).unwrap_or_default();
            Some((name, value.get(1..end)?.trim_ascii()))
        })
    }

    /// Returns the values of every field with this name, in any case.
    pub fn all(self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        self.iter()
            .filter(move |(found, _)| found.eq_ignore_ascii_case(name.as_bytes()))
            .map(|(_, value)| value)
    }

    /// Returns the value of the first field with this name, in any case.
    pub fn get(self, name: &str) -> Option<&'a [u8]> {
        self.all(name).next()
    }

    fn behind_first_line(head: &'a [u8]) -> Self {
        let line_end = memchr(b'\n', head).unwrap_or(head.len());
        Self(head.get(line_end + 1..).unwrap_or_default())
    }

    /// Copies them into owned fields.
    pub fn to_fields(self) -> Fields {
        let mut fields = Fields::new();
        for (name, value) in self.iter() {
            fields.push_checked(name, value);
        }
        fields
    }
}

/// Takes a head, including the final empty line, off the front.
fn split_head<'a>(
    message: &mut &'a [u8],
    opening: FirstLine,
    limits: &Limits,
) -> Result<&'a [u8], PeerFault> {
    let rules = Rules { opening, bytes: limits.head_bytes, too_many: PeerFault::HeadTooLarge };
    let mut rest = *message;
    let length = Scan::new(rules).take(&mut rest, |head| Ok(head.len()))?.ok_or(PeerFault::Truncated)?;
    let (head, rest) = message.split_at(length);
    *message = rest;
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Event, RequestReader, ResponseReader};
    use proptest::prelude::*;

    fn line() -> impl Strategy<Value = &'static str> {
        prop::sample::select(vec![
            "GET / HTTP/1.1\r\n",
            "HEAD /a?b HTTP/1.0\r\n",
            "G(T / HTTP/1.1\r\n",
            "HTTP/1.1 200 OK\r\n",
            "HTTP/1.1 99 x\r\n",
            "Host: h\r\n",
            "Host:\th \t\r\n",
            "A: b:c \r\n",
            "Empty:\r\n",
            "Bad : x\r\n",
            " folded\r\n",
            "High: \u{e9}\r\n",
            "\r\n",
            "\n",
            "\r",
            "body",
        ])
    }

    proptest! {
        #[test]
        fn a_view_sees_what_the_reader_sees(lines in prop::collection::vec(line(), 0..8)) {
            let text = lines.concat();
            let limits = Limits { blank_lines: 0, ..Limits::default() };
            let (mut viewed, mut input) = (text.as_bytes(), text.as_bytes());
            match (RequestView::read(&mut viewed, &limits), RequestReader::new(limits).read(&mut input)) {
                (Ok(view), Ok(Some(Event::Head(head, _)))) => prop_assert_eq!((view.to_head(), viewed), (head, input)),
                // The reader also checks the framing, which a view does not.
                (Ok(_), Err(fault)) => prop_assert_eq!(fault, PeerFault::Host),
                (Err(PeerFault::Truncated), Ok(None)) => {}
                (Err(fault), Err(same)) => prop_assert_eq!(fault, same),
                (view, event) => prop_assert!(false, "{view:?} but {event:?}"),
            }
            let (mut viewed, mut input) = (text.as_bytes(), text.as_bytes());
            match (ResponseView::read(&mut viewed, &limits), ResponseReader::new(limits).read(&mut input, &Method::Get)) {
                (Ok(view), Ok(Some(Event::Head(head, _)))) => prop_assert_eq!((view.to_head(), viewed), (head, input)),
                (Err(PeerFault::Truncated), Ok(None)) => {}
                (Err(fault), Err(same)) => prop_assert_eq!(fault, same),
                (view, event) => prop_assert!(false, "{view:?} but {event:?}"),
            }
        }
    }
}
