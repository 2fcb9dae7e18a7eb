//! Frames (RFC 9113, section 4): headers, payloads and holes.
//!
//! The payload of DATA is counted, not stored; of other frames the first bytes are stored. A hole within a frame costs its
//! bytes; beyond that the position of the next header is unknown, and the reader stops.

/// Type of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameType {
    /// DATA.
    Data,
    /// HEADERS.
    Headers,
    /// PRIORITY.
    Priority,
    /// RST_STREAM.
    Reset,
    /// SETTINGS.
    Settings,
    /// PUSH_PROMISE.
    PushPromise,
    /// PING.
    Ping,
    /// GOAWAY.
    GoAway,
    /// WINDOW_UPDATE.
    WindowUpdate,
    /// CONTINUATION.
    Continuation,
    /// An extension's frame, such as ALTSVC or PRIORITY_UPDATE.
    Other(u8),
}

impl FrameType {
    const fn of(number: u8) -> Self {
        match number {
            0 => Self::Data,
            1 => Self::Headers,
            2 => Self::Priority,
            3 => Self::Reset,
            4 => Self::Settings,
            5 => Self::PushPromise,
            6 => Self::Ping,
            7 => Self::GoAway,
            8 => Self::WindowUpdate,
            9 => Self::Continuation,
            other => Self::Other(other),
        }
    }

    /// Returns whether it carries a part of a message: DATA, HEADERS, CONTINUATION or PUSH_PROMISE.
    pub const fn is_of_message(self) -> bool {
        matches!(self, Self::Data | Self::Headers | Self::Continuation | Self::PushPromise)
    }
}

/// Bytes of a frame's header.
pub const HEADER_BYTES: usize = 9;
/// Bytes of a payload that are stored.
const MAX_STORED_BYTES: usize = 256;

/// A frame's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// Bytes of the payload.
    pub length: u32,
    /// Its type.
    pub kind: FrameType,
    /// Its flags.
    pub flags: u8,
    /// The stream; 0 for the connection.
    pub stream: u32,
}

impl FrameHeader {
    /// END_STREAM of DATA and HEADERS.
    pub const END_STREAM: u8 = 0x1;
    /// ACK of SETTINGS and PING.
    pub const ACK: u8 = 0x1;
    /// PADDED.
    pub const PADDED: u8 = 0x8;
    /// PRIORITY of HEADERS.
    pub const PRIORITY: u8 = 0x20;

    /// Reads a header.
    pub const fn read(bytes: [u8; HEADER_BYTES]) -> Self {
        let [a, b, c, kind, flags, e, f, g, h] = bytes;
        Self {
            length: u32::from_be_bytes([0, a, b, c]),
            kind: FrameType::of(kind),
            flags,
            stream: u32::from_be_bytes([e, f, g, h]) & 0x7fff_ffff,
        }
    }

    /// Returns whether it has the flag.
    pub const fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Returns whether it ends its stream's direction.
    pub const fn ends_stream(self) -> bool {
        matches!(self.kind, FrameType::Data | FrameType::Headers) && self.has(Self::END_STREAM)
    }

    /// Returns whether it obeys the rules on lengths and streams (RFC 9113, section 6), with frames of the default maximum
    /// size. Few other bytes do.
    pub const fn is_plausible(self) -> bool {
        const MAX_FRAME_BYTES: u32 = 16_384;
        let is_of_stream = self.stream != 0;
        let fits = match self.kind {
            FrameType::Data => is_of_stream && self.flags & !0x9 == 0,
            FrameType::Headers => is_of_stream && self.flags & !0x2d == 0 && self.length > 0,
            FrameType::Continuation => is_of_stream && self.flags & !0x4 == 0,
            FrameType::PushPromise => is_of_stream && self.length > 4,
            FrameType::Priority => is_of_stream && self.length == 5,
            FrameType::Reset => is_of_stream && self.length == 4,
            FrameType::Settings => !is_of_stream && self.length.is_multiple_of(6),
            FrameType::Ping => !is_of_stream && self.length == 8,
            FrameType::GoAway => !is_of_stream && self.length >= 8,
            FrameType::WindowUpdate => self.length == 4,
            FrameType::Other(_) => false,
        };
        fits && self.length <= MAX_FRAME_BYTES && self.stream < 1 << 24
    }
}

/// A complete frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its header.
    pub header: FrameHeader,
    /// The first bytes of its payload, at most 256.
    pub payload: &'a [u8],
}

/// A part of the stream of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// A frame begins; its header is complete.
    Begins(FrameHeader),
    /// A frame is complete.
    Frame(Frame<'a>),
}

/// Reader of one direction.
#[derive(Clone, Debug, Default)]
pub struct FrameReader {
    /// The beginning of a header.
    begun: Vec<u8>,
    /// The frame in progress, and the bytes of its payload still to come.
    current: Option<(FrameHeader, u32)>,
    /// The first bytes of its payload.
    payload: Vec<u8>,
    is_lost: bool,
}

impl FrameReader {
    /// Returns whether the position of the next header is unknown.
    pub const fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Returns whether a frame is incomplete.
    pub const fn is_within(&self) -> bool {
        self.current.is_some() || !self.begun.is_empty()
    }

    /// Reads bytes in order, without the client's preface.
    pub fn read(&mut self, bytes: &[u8], on: &mut impl FnMut(Part<'_>)) {
        let mut rest = bytes;
        while !rest.is_empty() && !self.is_lost {
            rest = match self.current {
                Some((header, left)) => self.payload(header, left, rest, on),
                None => self.header(rest, on),
            };
        }
    }

    /// Skips bytes that were not captured.
    pub fn skip(&mut self, missing: u64, on: &mut impl FnMut(Part<'_>)) {
        match self.current {
            Some((header, left)) if missing <= u64::from(left) => {
                self.advance(header, left - u32::try_from(missing).unwrap_or(left), on);
            }
            _ if missing > 0 => *self = Self { is_lost: true, ..Self::default() },
            _ => {}
        }
    }

    fn header<'a>(&mut self, bytes: &'a [u8], on: &mut impl FnMut(Part<'_>)) -> &'a [u8] {
        let here = (HEADER_BYTES - self.begun.len()).min(bytes.len());
        let (head, rest) = bytes.split_at(here);
        self.begun.extend_from_slice(head);
        let Some(header) = self.begun.first_chunk().map(|bytes| FrameHeader::read(*bytes)) else {
            return rest;
        };
        self.begun.clear();
        self.payload.clear();
        on(Part::Begins(header));
        self.advance(header, header.length, on);
        rest
    }

    fn payload<'a>(
        &mut self,
        header: FrameHeader,
        left: u32,
        bytes: &'a [u8],
        on: &mut impl FnMut(Part<'_>),
    ) -> &'a [u8] {
        let (here, rest) = bytes.split_at(bytes.len().min(left as usize));
        let space = MAX_STORED_BYTES.saturating_sub(self.payload.len());
        self.payload.extend(here.iter().take(space));
        self.advance(header, left - u32::try_from(here.len()).unwrap_or(left), on);
        rest
    }

    fn advance(&mut self, header: FrameHeader, left: u32, on: &mut impl FnMut(Part<'_>)) {
        self.current = (left > 0).then_some((header, left));
        if left == 0 {
            on(Part::Frame(Frame { header, payload: &self.payload }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_the_same_at_every_cut() {
        let bytes =
            [0, 0, 2, 0, 1, 0, 0, 0, 3, 7, 8, 0, 0, 0, 4, 1, 0, 0, 0, 0, 0, 0, 1, 9, 0, 0, 0, 0, 3, 1];
        for cut in 0..=bytes.len() {
            let mut reader = FrameReader::default();
            let mut read = Vec::new();
            for part in [&bytes[..cut], &bytes[cut..]] {
                reader.read(part, &mut |part| {
                    if let Part::Frame(Frame { header, payload }) = part {
                        read.push((header.kind, header.stream, payload.to_vec()));
                    }
                });
            }
            let expected = [
                (FrameType::Data, 3, vec![7, 8]),
                (FrameType::Settings, 0, vec![]),
                (FrameType::Continuation, 3, vec![1]),
            ];
            assert_eq!(read, expected, "cut at {cut}");
        }
    }

    #[test]
    fn hole_within_a_frame_is_tolerated_and_beyond_it_is_not() {
        let mut reader = FrameReader::default();
        let mut ended = 0;
        reader.read(&[0, 0, 9, 0, 0, 0, 0, 0, 1, 7], &mut |_| {});
        reader.skip(8, &mut |part| ended += u32::from(matches!(part, Part::Frame(_))));
        assert_eq!((ended, reader.is_lost(), reader.is_within()), (1, false, false));
        reader.skip(1, &mut |_| {});
        assert!(reader.is_lost());
    }

    #[test]
    fn plausible_headers_obey_the_rules_on_lengths() {
        let is_plausible = |bytes| FrameHeader::read(bytes).is_plausible();
        assert!(is_plausible([0, 0, 4, 8, 0, 0, 0, 0, 0]), "WINDOW_UPDATE");
        assert!(!is_plausible([0, 0, 5, 8, 0, 0, 0, 0, 0]));
        assert!(!is_plausible(*b"GET / HTT"));
        assert!(!is_plausible([0, 0, 4, 3, 0, 0, 0, 0, 0]), "RST_STREAM of the connection");
    }
}
