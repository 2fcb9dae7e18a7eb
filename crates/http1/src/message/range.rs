//! Parts of an object (RFC 9110, section 14): the range of a request, and the part in a response.
//!
//! A request for several ranges gets the whole, as section 14.2 allows: multipart
//! responses cost more in boundaries and memory than a second request.

use super::{Fields, Method, RequestHead, Validator};

/// The part of an object that a request selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestedRange {
    /// All of it.
    Whole,
    /// From the byte `first` to the byte `last`, both included: 206.
    Part {
        /// Counted from 0.
        first: u64,
        /// Below the object's length, and not before `first`.
        last: u64,
    },
    /// A part beyond its end: 416.
    Nowhere,
}

/// Returns the part that a request selects of an object with this length, entity tag and date. Only GET has ranges; an
/// invalid range is ignored.
pub fn wanted(request: &RequestHead, tag: Option<&str>, last_modified: &str, length: u64) -> RequestedRange {
    let fields = &request.fields;
    let mut ranges = fields.all("Range");
    let (Method::Get, Some(range), None) = (&request.method, ranges.next(), ranges.next()) else {
        return RequestedRange::Whole;
    };
    // The strong comparison: a weak tag never matches (RFC 9110, section 13.1.5).
    let is_same = |condition: &[u8]| {
        condition == last_modified.as_bytes()
            || tag.is_some_and(|tag| condition == tag.as_bytes() && !condition.starts_with(b"W/"))
    };
    if fields.all("If-Range").any(|condition| !is_same(condition)) {
        return RequestedRange::Whole;
    }
    parse(range, length).unwrap_or(RequestedRange::Whole)
}

/// Parses `bytes=0-99`, `bytes=100-` or `bytes=-100`; `None` for anything else.
pub(crate) fn parse(range: &[u8], length: u64) -> Option<RequestedRange> {
    let (unit, spec) = range.split_at_checked(6)?;
    if !unit.eq_ignore_ascii_case(b"bytes=") {
        return None;
    }
    let spec = spec.trim_ascii();
    let dash = spec.iter().position(|byte| *byte == b'-')?;
    let (first, last) = (spec.get(..dash)?, spec.get(dash + 1..)?);
    Some(match (number(first), number(last)) {
        (None, Some(0)) if first.is_empty() => RequestedRange::Nowhere,
        (None, Some(_)) if first.is_empty() && length == 0 => RequestedRange::Nowhere,
        (None, Some(suffix)) if first.is_empty() => {
            RequestedRange::Part { first: length.saturating_sub(suffix), last: length - 1 }
        }
        (Some(first), None) if last.is_empty() && first < length => {
            RequestedRange::Part { first, last: length - 1 }
        }
        (Some(first), Some(last)) if first <= last && first < length => {
            RequestedRange::Part { first, last: last.min(length - 1) }
        }
        (Some(_), None) if last.is_empty() => RequestedRange::Nowhere,
        (Some(first), Some(last)) if first <= last => RequestedRange::Nowhere,
        _ => return None,
    })
}

/// Parses a number that has only digits; overflow saturates.
fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit <= 9)?;
        Some(number.saturating_mul(10).saturating_add(u64::from(digit)))
    })
}

/// The part in a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Offset of its first byte.
    pub first: u64,
    /// Its length.
    pub length: u64,
    /// The length of the whole object; `None` if the server reports none.
    pub total: Option<u64>,
}

impl Part {
    /// Reads the part in a 206: `Content-Range: bytes 0-99/1234`. `None` if it is missing or invalid.
    pub fn of(fields: &Fields) -> Option<Self> {
        let mut ranges = fields.all("Content-Range");
        let (range, None) = (ranges.next()?, ranges.next()) else { return None };
        let (unit, spec) = range.split_at_checked(6)?;
        let slash = spec.iter().position(|byte| *byte == b'/')?;
        let (part, total) = (spec.get(..slash)?, spec.get(slash + 1..)?);
        let dash = part.iter().position(|byte| *byte == b'-')?;
        let (first, last) = (number(part.get(..dash)?)?, number(part.get(dash + 1..)?)?);
        let length = last.checked_sub(first)?.checked_add(1)?;
        let total = if total == b"*" { None } else { Some(number(total)?) };
        let is_possible = unit.eq_ignore_ascii_case(b"bytes ") && total.is_none_or(|total| last < total);
        is_possible.then_some(Self { first, length, total })
    }
}

/// Returns the validator for a request of the rest of the very same object: a strong entity tag or a date.
pub fn condition_for_rest(fields: &Fields) -> Option<Validator> {
    let text = |name| fields.get(name).and_then(|value| std::str::from_utf8(value).ok()).map(str::to_owned);
    let tag = text("ETag").filter(|tag| !tag.starts_with("W/"));
    tag.map(Validator::EntityTag).or_else(|| text("Last-Modified").map(Validator::LastModified))
}

#[cfg(test)]
mod tests {
    use super::super::Version;
    use super::*;

    const DATE: &str = "Tue, 24 Jun 1997 00:00:00 GMT";

    fn of_hundred(method: Method, fields: &[(&str, &str)]) -> RequestedRange {
        let mut request =
            RequestHead { method, target: "/".to_owned(), version: Version::Http11, fields: Fields::new() };
        fields.iter().for_each(|(name, value)| request.fields.push(name, value).unwrap());
        wanted(&request, Some("\"t\""), DATE, 100)
    }

    #[test]
    fn a_range_is_a_part_or_the_whole_or_nowhere() {
        let part = |first, last| RequestedRange::Part { first, last };
        for (range, expected) in [
            ("bytes=0-0", part(0, 0)),
            ("bytes=0-99", part(0, 99)),
            ("BYTES=10-19", part(10, 19)),
            ("bytes=90-", part(90, 99)),
            ("bytes=90-1000", part(90, 99)),
            ("bytes=-1", part(99, 99)),
            ("bytes=-1000", part(0, 99)),
            ("bytes=0-99999999999999999999999", part(0, 99)),
            ("bytes=100-", RequestedRange::Nowhere),
            ("bytes=100-200", RequestedRange::Nowhere),
            ("bytes=-0", RequestedRange::Nowhere),
            ("bytes=0-1,3-4", RequestedRange::Whole),
            ("bytes=1-0", RequestedRange::Whole),
            ("bytes=-", RequestedRange::Whole),
            ("bytes=+1-2", RequestedRange::Whole),
            ("bytes 0-1", RequestedRange::Whole),
            ("lines=0-1", RequestedRange::Whole),
            ("", RequestedRange::Whole),
        ] {
            assert_eq!(of_hundred(Method::Get, &[("Range", range)]), expected, "{range}");
        }
        assert_eq!(of_hundred(Method::Head, &[("Range", "bytes=0-0")]), RequestedRange::Whole);
        assert_eq!(
            of_hundred(Method::Get, &[("Range", "bytes=0-0"), ("Range", "bytes=1-1")]),
            RequestedRange::Whole
        );
        assert_eq!(parse(b"bytes=-5", 0), Some(RequestedRange::Nowhere));
    }

    #[test]
    fn if_range_mismatch_gets_the_whole() {
        for (condition, is_same) in
            [("\"t\"", true), (DATE, true), ("\"u\"", false), ("W/\"t\"", false), ("", false)]
        {
            let requested_range = of_hundred(Method::Get, &[("Range", "bytes=1-"), ("If-Range", condition)]);
            assert_eq!(requested_range != RequestedRange::Whole, is_same, "{condition}");
        }
    }

    #[test]
    fn reads_the_part_of_a_response() {
        let parsed = |value: &str| {
            let mut fields = Fields::new();
            fields.push("Content-Range", value).unwrap();
            Part::of(&fields)
        };
        assert_eq!(parsed("bytes 0-99/1234"), Some(Part { first: 0, length: 100, total: Some(1_234) }));
        assert_eq!(parsed("bytes 5-5/*"), Some(Part { first: 5, length: 1, total: None }));
        for wrong in
            ["bytes */9", "bytes 5-4/9", "bytes 0-9/9", "bytes=0-1/9", "bytes 0-18446744073709551615/*", "x"]
        {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
    }
}
