//! Reassembly of a response from the parts that have arrived.
//!
//! Not the timers: those are the client's, which requests missing parts once no more arrive.

use wire::{Duration, Time};

use http1::message::head::write_decimal;
use http1::message::range::Part;
use http1::message::{Fields, ResponseHead, Version};

/// Parts of one response: of one object, with one entity tag.
#[derive(Debug)]
pub(super) struct Reassembly {
    tag: Vec<u8>,
    /// Header section of the part that begins the object.
    head: Option<ResponseHead>,
    bytes: Vec<u8>,
    /// Ranges received, as (start, end): sorted and disjoint.
    have: Vec<(usize, usize)>,
    /// Time from the request to the first part.
    first_after: Duration,
    last: Time,
    /// Longest time between two consecutive parts.
    gap: Option<Duration>,
}

/// Time by which parts that were sent together may arrive apart, and out of order.
const MIN_GAP: Duration = Duration::from_millis(20);

/// Not below what delayed acknowledgements and busy servers take.
const MIN_WAIT: Duration = Duration::from_millis(300);

/// Label of a part: its range, and the entity tag and length of its object.
#[derive(Debug)]
pub(super) struct PartLabel {
    tag: Vec<u8>,
    first: usize,
    length: usize,
    of: usize,
}

impl PartLabel {
    /// Reads the header section of a 206, if it is a part of an object of at most `max` bytes.
    pub(super) fn of(head: &ResponseHead, max: usize) -> Option<Self> {
        let tag = head.fields.get("ETag").filter(|tag| tag.starts_with(b"\""))?.to_vec();
        let Part { first, length, total: of } = Part::of(&head.fields)?;
        let number = |number: u64| usize::try_from(number).ok();
        let of = number(of?).filter(|of| *of <= max)?;
        Some(Self { tag, first: number(first)?, length: number(length)?, of })
    }

    /// Returns its length in bytes.
    pub(super) const fn length(&self) -> usize {
        self.length
    }
}

impl Reassembly {
    /// Empty reassembly of the object of this part; `requested` is the time of the request.
    pub(super) fn new(now: Time, requested: Time, label: &PartLabel) -> Self {
        Self {
            tag: label.tag.clone(),
            head: None,
            bytes: vec![0; label.of],
            have: Vec::new(),
            first_after: now.since(requested),
            last: now,
            gap: None,
        }
    }

    /// Whether a part is of the same object.
    pub(super) fn is_of(&self, label: &PartLabel) -> bool {
        self.tag == label.tag && self.bytes.len() == label.of
    }

    /// Adds a part; returns whether it had new bytes.
    pub(super) fn take(&mut self, now: Time, label: &PartLabel, head: ResponseHead, part: &[u8]) -> bool {
        let end = label.first.saturating_add(label.length);
        let Some(capacity) =
            self.bytes.get_mut(label.first..end).filter(|capacity| capacity.len() == part.len())
        else {
            return false;
        };
        capacity.copy_from_slice(part);
        if label.first == 0 {
            self.head.get_or_insert(head);
        }
        if !self.have.is_empty() {
            let gap = now.since(self.last);
            self.gap = Some(self.gap.map_or(gap, |longest| longest.max(gap)));
        }
        self.last = now;
        let missed = self.missing_bytes();
        self.have.push((label.first, end));
        self.have.sort_unstable();
        self.have.dedup_by(|next, before| {
            let touches = next.0 <= before.1;
            if touches {
                before.1 = before.1.max(next.1);
            }
            touches
        });
        self.missing_bytes() < missed
    }

    /// Returns the timeout for other parts: after one part, as long as that took; then three times the longest gap. At
    /// least a quarter of the time of the first part, and [`MIN_GAP`].
    pub(super) fn timeout(&self) -> Duration {
        let gap = self.gap.map_or(self.first_after, |gap| gap * 3);
        gap.max(self.first_after / 4).max(MIN_GAP)
    }

    /// Returns the timeout for missing parts, once they were requested: two round trips, as a response on a new connection
    /// takes, and one more.
    pub(super) fn timeout_when_asked(&self) -> Duration {
        (self.first_after * 3).max(MIN_WAIT)
    }

    /// Whether all bytes have arrived, and the header section.
    pub(super) fn is_whole(&self) -> bool {
        self.missing_bytes() == 0 && self.head.is_some()
    }

    /// The whole response, as if it had arrived in one message.
    pub(super) fn into_response(self) -> Option<(ResponseHead, Vec<u8>)> {
        let head = self.head?;
        let mut fields = Fields::new();
        let is_own = |name: &[u8]| ["Content-Range", "Content-Length"].iter().any(|own| is(name, own));
        let others = head.fields.iter().filter(|(name, _)| !is_own(name));
        others.for_each(|(name, value)| fields.push_checked(name, value));
        let mut length = Vec::new();
        write_decimal(self.bytes.len() as u64, &mut length);
        fields.push_checked(b"Content-Length", &length);
        Some((ResponseHead { version: Version::Http11, status: 200, fields }, self.bytes))
    }

    /// The request for the missing bytes, from the first to the last of them: the original request, with a range.
    pub(super) fn request(&self, datagram: &[u8]) -> Option<Vec<u8>> {
        let (first, last) = self.missing()?;
        let mut request = datagram.strip_suffix(b"\r\n")?.to_vec();
        request.extend_from_slice(b"Range: bytes=");
        write_decimal(first as u64, &mut request);
        request.push(b'-');
        write_decimal(last as u64, &mut request);
        request.extend_from_slice(b"\r\nIf-Range: ");
        request.extend_from_slice(&self.tag);
        request.extend_from_slice(b"\r\n\r\n");
        Some(request)
    }

    /// The first and the last missing byte.
    fn missing(&self) -> Option<(usize, usize)> {
        let end = self.bytes.len();
        let first = self.have.first().filter(|(first, _)| *first == 0).map_or(0, |(_, end)| *end);
        let last = self.have.last().filter(|(_, last)| *last == end).map_or(end, |(first, _)| *first);
        (first < last).then(|| (first, last - 1))
    }

    fn missing_bytes(&self) -> usize {
        self.bytes.len() - self.have.iter().map(|(first, end)| end - first).sum::<usize>()
    }
}

fn is(name: &[u8], other: &str) -> bool {
    name.eq_ignore_ascii_case(other.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(range: &str) -> ResponseHead {
        let mut fields = Fields::new();
        for (name, value) in [("ETag", "\"t\""), ("Content-Range", range), ("X", "y")] {
            fields.push(name, value).unwrap();
        }
        ResponseHead { version: Version::Http11, status: 206, fields }
    }

    fn part(gathered: &mut Reassembly, now: Time, range: &str, bytes: &[u8]) -> bool {
        let head = head(range);
        let label = PartLabel::of(&head, 100).unwrap();
        gathered.is_of(&label) && gathered.take(now, &label, head, bytes)
    }

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    fn begun() -> Reassembly {
        Reassembly::new(at(100), at(0), &PartLabel::of(&head("bytes 2-3/10"), 100).unwrap())
    }

    #[test]
    fn parts_in_any_order_and_duplicated_make_the_response() {
        let mut gathered = begun();
        assert!(part(&mut gathered, at(100), "bytes 2-3/10", b"23"));
        assert!(part(&mut gathered, at(101), "bytes 6-9/10", b"6789"));
        assert!(!part(&mut gathered, at(102), "bytes 6-9/10", b"6789"), "a copy");
        let requested = gathered.request(b"id..GET / HTTP/1.1\r\n\r\n").unwrap();
        let requested = String::from_utf8(requested).unwrap();
        assert_eq!(requested, "id..GET / HTTP/1.1\r\nRange: bytes=0-5\r\nIf-Range: \"t\"\r\n\r\n");
        assert!(part(&mut gathered, at(103), "bytes 0-1/10", b"01"));
        assert!(!gathered.is_whole());
        let requested = gathered.request(b"\r\n\r\n").unwrap();
        assert!(requested.starts_with(b"\r\nRange: bytes=4-5\r\n"));
        assert!(part(&mut gathered, at(103), "bytes 3-6/10", b"3456"), "more than is missing");
        assert!(gathered.is_whole() && gathered.request(b"\r\n\r\n").is_none());
        let (head, body) = gathered.into_response().unwrap();
        assert_eq!((head.status, &body[..]), (200, &b"0123456789"[..]));
        assert_eq!(head.fields.get("Content-Range"), None);
        assert_eq!(head.fields.get("Content-Length"), Some(&b"10"[..]));
        assert_eq!(head.fields.get("X"), Some(&b"y"[..]));
    }

    #[test]
    fn mismatched_or_inconsistent_parts_are_rejected() {
        let mut gathered = begun();
        assert!(!part(&mut gathered, at(100), "bytes 0-1/11", b"01"), "another length");
        assert!(!part(&mut gathered, at(100), "bytes 0-1/10", b"012"), "another number of bytes");
        for wrong in ["bytes 0-1/*", "bytes 0-1/101", "bytes 5-4/10", "items 0-1/10"] {
            assert!(PartLabel::of(&head(wrong), 100).is_none(), "{wrong}");
        }
    }

    #[test]
    fn timeout_follows_the_first_part_and_then_the_gaps() {
        let mut gathered = begun();
        part(&mut gathered, at(100), "bytes 2-3/10", b"23");
        assert_eq!(gathered.timeout(), Duration::from_millis(100));
        part(&mut gathered, at(101), "bytes 4-5/10", b"45");
        assert_eq!(gathered.timeout(), Duration::from_millis(25), "a quarter of a round trip");
        part(&mut gathered, at(141), "bytes 6-7/10", b"67");
        assert_eq!(gathered.timeout(), Duration::from_millis(120), "thrice the longest gap");
    }
}
