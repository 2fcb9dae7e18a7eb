//! A response in several datagrams: its division, the header sections of its parts, and the accepted number of parts.
//!
//! The paper names this as future work (`papers/dhttp#section-iii-c`: several packets, and range requests for lost
//! data). A part is a complete HTTP message after the id of the request: a 206 (RFC 9110, section 15.3.7). It needs
//! no new parser. A client indicates with a field that it accepts parts; a server that does not know the field sends
//! none. Not when parts are sent: [`super::server`] decides that; not their reassembly: [`super::client`] does that.

use super::Id;
use http1::message::head::{write_decimal, write_status_line};
use http1::message::range::Part;
use http1::message::{Fields, Version};

/// Request field of a client that accepts parts; its value is the maximum number of them.
pub const PARTS_FIELD: &str = "DHTTP-Parts";

/// Maximum number of parts of a response, whatever a client accepts: an initial window of TCP (RFC 6928).
pub const MAX_PARTS: u8 = 10;

/// Whether a response datagram holds one part of a response.
pub fn is_part(datagram: &[u8]) -> bool {
    datagram.get(Id::BYTES..).is_some_and(|message| message.starts_with(b"HTTP/1.1 206 "))
}

/// Parses the value of a [`PARTS_FIELD`], limited to [`MAX_PARTS`]; 0 if it is not a number below 256.
pub(super) fn read(value: &[u8]) -> u8 {
    let number =
        std::str::from_utf8(value).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    number.and_then(|text| text.parse::<u8>().ok()).unwrap_or(0).min(MAX_PARTS)
}

/// A response that may be divided: the sizes of its parts' header sections, and the range of the object that it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DivisibleResponse {
    /// Bytes of id and header section of the part that begins the object.
    first_head: u64,
    /// The same for any other part.
    other_head: u64,
    part: Part,
    of: u64,
}

/// A divided response: an iterator over its parts, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DividedResponse {
    response: DivisibleResponse,
    /// Maximum size of a datagram, in bytes.
    max: u64,
    /// Offset of the next byte in the object.
    at: u64,
}

impl DivisibleResponse {
    /// A response to GET with this status, these fields and a body of `length` bytes; `None` if it cannot be divided.
    /// It must be a 200, or a 206 with one range, and have a strong entity tag, by which lost parts can be requested.
    pub fn of<'a>(
        status: u16,
        fields: impl Iterator<Item = (&'a [u8], &'a [u8])>,
        length: u64,
    ) -> Option<Self> {
        let (mut tag, mut range, mut all) = (None, Fields::new(), 0);
        for (name, value) in fields {
            let line = (name.len() + value.len() + 4) as u64;
            if name.eq_ignore_ascii_case(b"Content-Range") {
                range.push_checked(name, value);
                continue;
            }
            if name.eq_ignore_ascii_case(b"ETag") {
                tag = Some((line, value));
            }
            all += line;
        }
        let (tag, _) = tag.filter(|(_, value)| value.starts_with(b"\""))?;
        let part = match status {
            200 => Part { first: 0, length, total: Some(length) },
            206 => Part::of(&range).filter(|part| part.length == length)?,
            _ => return None,
        };
        let of = part.total.filter(|_| length > 0)?;
        let mut digits = Vec::new();
        write_decimal(of, &mut digits);
        let own = (Id::BYTES + OPENING.len() + RANGE.len() + 3 * digits.len() + "-/\r\n\r\n".len()) as u64;
        Some(Self { first_head: own + all, other_head: own + tag, part, of })
    }

    /// Divides the response into datagrams of at most `max` bytes; `None` if more than `parts` are needed.
    pub(super) fn divide(self, max: u64, parts: u8) -> Option<DividedResponse> {
        let division = DividedResponse { response: self, max, at: self.part.first };
        let fits = self.first_head.max(self.other_head) < max;
        (fits && division.take(usize::from(parts) + 1).count() <= usize::from(parts)).then_some(division)
    }

    fn head(&self, at: u64) -> u64 {
        if at == 0 { self.first_head } else { self.other_head }
    }
}

impl DividedResponse {
    /// Upper bound of the bytes of all its datagrams.
    pub fn bytes(self) -> u64 {
        self.map(|part| self.response.head(part.first) + part.length).sum()
    }

    /// Offset of a part in the body of the divided response.
    pub const fn offset(&self, part: Part) -> u64 {
        part.first.saturating_sub(self.response.part.first)
    }
}

impl Iterator for DividedResponse {
    type Item = Part;

    fn next(&mut self) -> Option<Part> {
        let (at, end) = (self.at, self.response.part.first + self.response.part.length);
        let capacity = self.max.saturating_sub(self.response.head(at));
        let length = capacity.min(end.saturating_sub(at));
        self.at += length;
        (length > 0).then_some(Part { first: at, length, total: Some(self.response.of) })
    }
}

const OPENING: &str = "HTTP/1.1 206 Partial Content\r\n";
const RANGE: &str = "Content-Range: bytes ";

/// Writes what precedes the bytes of a part: id and header section. `fields` are all fields of the response; a part
/// that does not begin the object carries only the entity tag of them.
pub(super) fn write_head<'a>(
    out: &mut Vec<u8>,
    id: Id,
    part: Part,
    fields: impl Iterator<Item = (&'a [u8], &'a [u8])>,
) {
    out.extend_from_slice(&id.to_bytes());
    write_status_line(Version::Http11, 206, out);
    for (name, value) in fields {
        let is = |other: &[u8]| name.eq_ignore_ascii_case(other);
        if (part.first == 0 && !is(b"Content-Range")) || is(b"ETag") {
            [name, b": ", value, b"\r\n"].into_iter().for_each(|part| out.extend_from_slice(part));
        }
    }
    out.extend_from_slice(RANGE.as_bytes());
    write_decimal(part.first, out);
    out.push(b'-');
    write_decimal(part.first + part.length.saturating_sub(1), out);
    out.push(b'/');
    match part.total {
        Some(of) => write_decimal(of, out),
        None => out.push(b'*'),
    }
    out.extend_from_slice(b"\r\n\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::read_response;
    use http1::message::{Limits, Method};

    const FIELDS: [(&[u8], &[u8]); 3] =
        [(b"Content-Type", b"text/plain"), (b"ETag", b"\"t\""), (b"DHTTP-Token", b"0123")];

    fn divisible(
        status: u16,
        fields: &[(&'static [u8], &'static [u8])],
        length: u64,
    ) -> Option<DivisibleResponse> {
        DivisibleResponse::of(status, fields.iter().copied(), length)
    }

    #[test]
    fn parts_are_whole_messages_of_no_more_than_s_and_together_the_response() {
        for length in [1, 999, 1_232, 5_000, 8_192, 11_000] {
            let body: Vec<u8> = (0..length).map(|at| u8::try_from(at % 251).unwrap()).collect();
            let division = divisible(200, &FIELDS, length).unwrap().divide(1_232, 10).unwrap();
            let (mut again, mut bytes) = (Vec::new(), 0);
            for (number, part) in division.enumerate() {
                let mut datagram = Vec::new();
                write_head(&mut datagram, Id(7), part, FIELDS.into_iter());
                let [first, length] =
                    [division.offset(part), part.length].map(|at| usize::try_from(at).unwrap());
                datagram.extend_from_slice(&body[first..first + length]);
                assert!(datagram.len() <= 1_232);
                bytes += datagram.len() as u64;
                let (head, rest) = read_response(&datagram[8..], &Method::Get, &Limits::default()).unwrap();
                let fields = head.to_head().fields;
                assert_eq!((head.status, Part::of(&fields)), (206, Some(part)));
                assert_eq!(fields.get("ETag"), Some(&b"\"t\""[..]));
                assert_eq!(fields.get("Content-Type").is_some(), number == 0);
                again.extend_from_slice(rest);
            }
            assert_eq!(again, body);
            assert!((bytes..bytes + 100).contains(&division.bytes()), "{bytes} {}", division.bytes());
        }
    }

    #[test]
    fn a_part_of_an_object_is_divided_as_well() {
        let mut fields = FIELDS.to_vec();
        fields.push((b"Content-Range", b"bytes 1000-3999/8000"));
        let division = divisible(206, &fields, 3_000).unwrap().divide(1_232, 3).unwrap();
        let parts: Vec<Part> = division.collect();
        assert_eq!((parts[0].first, parts.iter().map(|part| part.length).sum::<u64>()), (1_000, 3_000));
        assert_eq!((division.offset(parts[0]), division.offset(parts[1])), (0, parts[0].length));
        assert!(parts.iter().all(|part| part.total == Some(8_000)));
    }

    #[test]
    fn unrepeatable_or_oversized_responses_are_not_divided() {
        assert_eq!(divisible(200, &FIELDS[..1], 5_000), None, "no entity tag");
        assert_eq!(divisible(200, &[(b"ETag", b"W/\"t\"")], 5_000), None, "a weak one");
        assert_eq!(divisible(404, &FIELDS, 5_000), None);
        assert_eq!(divisible(206, &FIELDS, 5_000), None, "it does not say which part it is");
        assert_eq!(divisible(200, &FIELDS, 0), None);
        let large = divisible(200, &FIELDS, 5_000).unwrap();
        assert_eq!(large.divide(1_232, 4), None);
        assert!(large.divide(1_232, 5).is_some());
        assert_eq!(large.divide(100, 255), None, "the heads alone are larger");
    }

    #[test]
    fn a_number_of_parts_is_a_number() {
        for (value, parts) in
            [("10", 10), ("3", 3), ("200", 10), ("0", 0), ("", 0), ("-1", 0), ("+3", 0), ("999", 0), ("a", 0)]
        {
            assert_eq!(read(value.as_bytes()), parts, "{value}");
        }
    }
}
