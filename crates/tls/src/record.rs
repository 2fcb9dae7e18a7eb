//! The record layer (RFC 8446, section 5.1): headers, bodies and holes.
//!
//! A hole within a record of known length costs nothing but its bytes. Beyond that the position of the next header is
//! unknown: records are found again where a chunk of the stream begins with a header, as the first segment of a flight does.

/// Type of a record's content, as its header shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentType {
    /// Keys change; in TLS 1.3 without meaning.
    ChangeCipherSpec,
    /// An alert.
    Alert,
    /// Handshake messages.
    Handshake,
    /// Application data; in TLS 1.3 also encrypted handshake messages and alerts.
    ApplicationData,
    /// A heartbeat (RFC 6520).
    Heartbeat,
}

impl ContentType {
    pub(crate) const fn number(self) -> u8 {
        match self {
            Self::ChangeCipherSpec => 20,
            Self::Alert => 21,
            Self::Handshake => 22,
            Self::ApplicationData => 23,
            Self::Heartbeat => 24,
        }
    }

    pub(crate) const fn of(number: u8) -> Option<Self> {
        match number {
            20 => Some(Self::ChangeCipherSpec),
            21 => Some(Self::Alert),
            22 => Some(Self::Handshake),
            23 => Some(Self::ApplicationData),
            24 => Some(Self::Heartbeat),
            _ => None,
        }
    }
}

/// Bytes of a record's header.
pub const HEADER_BYTES: usize = 5;
/// Maximum length of a record's body: TLS 1.2 allows 2,048 bytes of expansion (RFC 5246, section 6.2.3).
pub const MAX_BODY_BYTES: u16 = 16_384 + 2_048;

/// A record's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Type of the content.
    pub content: ContentType,
    /// Bytes of the body.
    pub length: u16,
}

impl Header {
    /// Reads a header; `None` if these bytes are none.
    pub const fn read(bytes: [u8; HEADER_BYTES]) -> Option<Self> {
        let [content, 3, 0..=4, high, low] = bytes else { return None };
        let length = u16::from_be_bytes([high, low]);
        match ContentType::of(content) {
            Some(content) if length <= MAX_BODY_BYTES => Some(Self { content, length }),
            Some(_) | None => None,
        }
    }

    /// Reads the header at the beginning of `bytes`.
    pub fn at_start_of(bytes: &[u8]) -> Option<Self> {
        Self::read(*bytes.first_chunk()?)
    }
}

/// A part of the stream of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// A record begins.
    Begins(Header),
    /// Bytes of its body.
    Body(Header, &'a [u8]),
    /// Bytes of its body that were not captured, and their number.
    Missing(Header, u16),
    /// The record is complete.
    Ends(Header),
}

/// Reader of one direction.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecordReader {
    /// The beginning of a header, and its length.
    begun: [u8; HEADER_BYTES],
    length: u8,
    /// The record in progress, and the bytes of its body still to come.
    current: Option<(Header, u16)>,
    is_lost: bool,
}

impl RecordReader {
    /// Returns whether the position of the next header is unknown.
    pub const fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Returns whether a record is incomplete.
    pub const fn is_within(&self) -> bool {
        self.current.is_some() || self.length > 0
    }

    /// Reads bytes in order.
    pub fn read<'a>(&mut self, bytes: &'a [u8], on: &mut impl FnMut(Part<'a>)) {
        let mut rest = bytes;
        if self.is_lost && begins_record(rest) {
            *self = Self::default();
        }
        while !rest.is_empty() && !self.is_lost {
            rest = match self.current {
                Some((header, left)) => self.body(header, left, rest, on),
                None => self.header(rest, on),
            };
        }
    }

    /// Reads bytes within the body of a record of application data; returns whether they are.
    pub fn continues(&mut self, bytes: &[u8]) -> bool {
        let Some((Header { content: ContentType::ApplicationData, .. }, left)) = &mut self.current else {
            return false;
        };
        let after = u16::try_from(bytes.len()).ok().and_then(|length| left.checked_sub(length));
        after.filter(|after| *after > 0).map(|after| *left = after).is_some()
    }

    /// Skips bytes that were not captured.
    pub fn skip(&mut self, missing: u64, on: &mut impl FnMut(Part<'_>)) {
        match self.current {
            Some((header, left)) if missing <= u64::from(left) => {
                let missing = u16::try_from(missing).unwrap_or(left);
                on(Part::Missing(header, missing));
                self.go_on(header, left - missing, on);
            }
            _ if missing > 0 => *self = Self { is_lost: true, ..Self::default() },
            _ => {}
        }
    }

    fn header<'a>(&mut self, bytes: &'a [u8], on: &mut impl FnMut(Part<'a>)) -> &'a [u8] {
        let begun = usize::from(self.length);
        let here = (HEADER_BYTES - begun).min(bytes.len());
        let (head, rest) = bytes.split_at(here);
        if let Some(place) = self.begun.get_mut(begun..begun + here) {
            place.copy_from_slice(head);
        }
        self.length += u8::try_from(here).unwrap_or_default();
        if usize::from(self.length) < HEADER_BYTES {
            return rest;
        }
        self.length = 0;
        match Header::read(self.begun) {
            Some(header) => {
                on(Part::Begins(header));
                self.go_on(header, header.length, on);
            }
            None => self.is_lost = true,
        }
        rest
    }

    fn body<'a>(
        &mut self,
        header: Header,
        left: u16,
        bytes: &'a [u8],
        on: &mut impl FnMut(Part<'a>),
    ) -> &'a [u8] {
        let (body, rest) = bytes.split_at(usize::from(left).min(bytes.len()));
        on(Part::Body(header, body));
        self.go_on(header, left - u16::try_from(body.len()).unwrap_or(left), on);
        rest
    }

    fn go_on<'a>(&mut self, header: Header, left: u16, on: &mut impl FnMut(Part<'a>)) {
        self.current = (left > 0).then_some((header, left));
        if left == 0 {
            on(Part::Ends(header));
        }
    }
}

/// Returns whether a chunk begins with a record, and the next one follows it, as far as they are there.
fn begins_record(bytes: &[u8]) -> bool {
    let Some(header) = Header::at_start_of(bytes) else { return false };
    let next = bytes.get(HEADER_BYTES + usize::from(header.length)..).unwrap_or_default();
    header.length > 0 && (next.len() < HEADER_BYTES || Header::at_start_of(next).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORDS: &[u8] =
        &[22, 3, 1, 0, 2, 8, 9, 20, 3, 3, 0, 1, 1, 23, 3, 3, 0, 0, 23, 3, 3, 0, 3, 1, 2, 3];

    /// Content and length of each complete record.
    fn read(chunks: &[&[u8]]) -> Vec<(ContentType, u16)> {
        let mut reader = RecordReader::default();
        let mut ended = Vec::new();
        for chunk in chunks {
            reader.read(chunk, &mut |part| {
                if let Part::Ends(header) = part {
                    ended.push((header.content, header.length));
                }
            });
        }
        ended
    }

    #[test]
    fn records_are_the_same_at_every_cut() {
        let expected = [
            (ContentType::Handshake, 2),
            (ContentType::ChangeCipherSpec, 1),
            (ContentType::ApplicationData, 0),
            (ContentType::ApplicationData, 3),
        ];
        for cut in 0..=RECORDS.len() {
            let (one, other) = RECORDS.split_at(cut);
            assert_eq!(read(&[one, other]), expected, "cut at {cut}");
        }
    }

    #[test]
    fn hole_within_a_record_does_not_lose_the_next() {
        let mut reader = RecordReader::default();
        let mut ended = 0;
        let mut count = |part: Part<'_>| ended += u32::from(matches!(part, Part::Ends(_)));
        reader.read(&[23, 3, 3, 1, 0, 7], &mut count);
        reader.skip(255, &mut count);
        reader.read(&[23, 3, 3, 0, 1, 7], &mut count);
        assert_eq!(ended, 2);
    }

    #[test]
    fn records_are_found_again_at_a_chunk_that_begins_with_one() {
        let mut reader = RecordReader::default();
        reader.read(&[23, 3, 3, 1, 0, 7], &mut |_| {});
        reader.skip(300, &mut |_| {});
        assert!(reader.is_lost());
        reader.read(&[7, 7, 7, 7, 7, 7], &mut |_| {});
        assert!(reader.is_lost());
        reader.read(&[23, 3, 3, 0, 1, 7], &mut |_| {});
        assert!(!reader.is_lost());
    }
}
