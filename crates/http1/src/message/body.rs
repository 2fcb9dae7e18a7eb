//! Reads a body off a stream, by its framing (RFC 9112, sections 6 and 7).
//!
//! Not the choice of the framing: that is [`super::framing`]. Chunk extensions are checked, counted and dropped; trailers are
//! stored for the caller.

use super::framing::Framing;
use super::head::trailers_from;
use super::scan::{FirstLine, Rules, Scan};
use super::{Fields, Limits, PeerFault};

/// Remainder of a body that is being received.
#[derive(Debug)]
pub(crate) enum Body {
    /// This many bytes remain; 0 at the end.
    Length(u64),
    /// Chunks.
    Chunked(Box<Chunks>),
    /// Everything until the stream ends; at most this many more bytes.
    UntilClose(u64),
}

/// Next item of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyItem<'a> {
    /// Bytes of the body, at least one.
    Part(&'a [u8]),
    /// Its end.
    End,
    /// Nothing until more input arrives.
    Nothing,
}

impl Body {
    pub(crate) fn new(framing: Framing, limits: &Limits) -> Self {
        match framing {
            Framing::Length(length) => Self::Length(length),
            Framing::Chunked => Self::Chunked(Box::new(Chunks::new(limits))),
            Framing::UntilClose => Self::UntilClose(limits.body_bytes),
        }
    }

    /// Takes the next item off the front of `input`.
    pub(crate) fn take<'a>(&mut self, input: &mut &'a [u8]) -> Result<BodyItem<'a>, PeerFault> {
        match self {
            Self::Length(0) => Ok(BodyItem::End),
            Self::Length(remaining) => Ok(take_up_to(input, remaining)),
            Self::Chunked(chunks) => chunks.take(input),
            Self::UntilClose(0) if !input.is_empty() => Err(PeerFault::BodyTooLarge),
            Self::UntilClose(remaining) => Ok(take_up_to(input, remaining)),
        }
    }

    /// Returns the trailers, once the body has ended.
    pub(crate) fn into_trailers(self) -> Fields {
        match self {
            Self::Length(_) | Self::UntilClose(_) => Fields::new(),
            Self::Chunked(chunks) => chunks.trailers,
        }
    }

    /// Whether the end of the stream is the end of this body.
    pub(crate) const fn ends_with_stream(&self) -> bool {
        match self {
            Self::Length(remaining) => *remaining == 0,
            Self::Chunked(_) => false,
            Self::UntilClose(_) => true,
        }
    }
}

/// Takes the available bytes of data, at most `remaining`.
fn take_up_to<'a>(input: &mut &'a [u8], remaining: &mut u64) -> BodyItem<'a> {
    let max = usize::try_from(*remaining).unwrap_or(usize::MAX);
    let (part, rest) = input.split_at(input.len().min(max));
    *input = rest;
    *remaining -= part.len() as u64;
    if part.is_empty() { BodyItem::Nothing } else { BodyItem::Part(part) }
}

/// A chunked body (RFC 9112, section 7.1): size lines, data, and trailers.
#[derive(Debug)]
pub(crate) struct Chunks {
    at: ChunkState,
    section: Scan,
    trailers: Fields,
    limits: Limits,
    /// Bytes by which the body may still grow.
    allowance: u64,
    /// Bytes that chunk extensions may still use.
    extensions: usize,
}

/// Position in the coding; a number alone is the size of the chunk.
#[derive(Clone, Copy, Debug)]
enum ChunkState {
    /// In the size; `digits` of it so far.
    Size { size: u64, digits: u8 },
    /// In the white space before an extension's semicolon.
    BeforeExtension(u64),
    /// In an extension.
    Extension(u64),
    /// After the carriage return of the size line.
    SizeEnd(u64),
    /// In the data; this many bytes remain.
    Data(u64),
    /// After the data, before the carriage return.
    DataEnd,
    /// After that carriage return.
    DataEndLf,
    /// After the last chunk.
    Trailers,
}

/// Maximum digits of a chunk size: those of 64 bits; more is an overflow, or an attempt at smuggling.
const SIZE_DIGITS: u8 = 16;

impl Chunks {
    fn new(limits: &Limits) -> Self {
        let rules = Rules {
            opening: FirstLine::Field,
            bytes: limits.trailer_bytes,
            too_many: PeerFault::TrailersTooLarge,
        };
        Self {
            at: ChunkState::Size { size: 0, digits: 0 },
            section: Scan::new(rules),
            trailers: Fields::new(),
            limits: *limits,
            allowance: limits.body_bytes,
            extensions: limits.extension_bytes,
        }
    }

    fn take<'a>(&mut self, input: &mut &'a [u8]) -> Result<BodyItem<'a>, PeerFault> {
        loop {
            match &mut self.at {
                ChunkState::Data(0) => self.at = ChunkState::DataEnd,
                ChunkState::Data(remaining) => return Ok(take_up_to(input, remaining)),
                ChunkState::Trailers => {
                    let limits = self.limits;
                    let ended = self.section.take(input, |section| trailers_from(section, &limits))?;
                    return Ok(ended.map_or(BodyItem::Nothing, |trailers| {
                        self.trailers = trailers;
                        BodyItem::End
                    }));
                }
                ChunkState::Size { size: _, digits: _ }
                | ChunkState::BeforeExtension(_)
                | ChunkState::Extension(_)
                | ChunkState::SizeEnd(_)
                | ChunkState::DataEnd
                | ChunkState::DataEndLf => {
                    let Some((byte, rest)) = input.split_first() else { return Ok(BodyItem::Nothing) };
                    *input = rest;
                    self.at = self.step(*byte)?;
                }
            }
        }
    }

    /// Handles one byte of the lines between the data.
    fn step(&mut self, byte: u8) -> Result<ChunkState, PeerFault> {
        Ok(match (self.at, byte) {
            (ChunkState::Size { digits: 1.., size }, b'\r') => ChunkState::SizeEnd(size),
            (ChunkState::Size { digits: 1.., size }, b';') => ChunkState::Extension(size),
            (ChunkState::Size { digits: 1.., size }, b' ' | b'\t') => {
                self.extend(ChunkState::BeforeExtension(size))?
            }
            (ChunkState::Size { size, digits }, _) => {
                let digit = char::from(byte).to_digit(16).filter(|_| digits < SIZE_DIGITS);
                let digit = u64::from(digit.ok_or(PeerFault::Chunk)?);
                // Sixteen digits fill 64 bits: no bits are lost.
                ChunkState::Size { size: size << 4 | digit, digits: digits + 1 }
            }
            (ChunkState::BeforeExtension(size), b';') => ChunkState::Extension(size),
            (ChunkState::BeforeExtension(size), b' ' | b'\t') => {
                self.extend(ChunkState::BeforeExtension(size))?
            }
            (ChunkState::Extension(size), b'\r') => ChunkState::SizeEnd(size),
            (ChunkState::Extension(_), b'\n') => return Err(PeerFault::BareLineFeed),
            (ChunkState::Extension(size), b'\t' | 0x20..=0x7e | 0x80..) => {
                self.extend(ChunkState::Extension(size))?
            }
            (ChunkState::SizeEnd(size), b'\n') => self.chunk(size)?,
            (ChunkState::SizeEnd(_), _) => return Err(PeerFault::BareCarriageReturn),
            (ChunkState::DataEnd, b'\r') => ChunkState::DataEndLf,
            (ChunkState::DataEndLf, b'\n') => ChunkState::Size { size: 0, digits: 0 },
            (
                ChunkState::BeforeExtension(_)
                | ChunkState::Extension(_)
                | ChunkState::DataEnd
                | ChunkState::DataEndLf,
                _,
            ) => {
                return Err(PeerFault::Chunk);
            }
            // `take` handles these two itself.
            (at @ (ChunkState::Data(_) | ChunkState::Trailers), _) => at,
        })
    }

    fn extend(&mut self, at: ChunkState) -> Result<ChunkState, PeerFault> {
        self.extensions = self.extensions.checked_sub(1).ok_or(PeerFault::ExtensionsTooLarge)?;
        Ok(at)
    }

    fn chunk(&mut self, size: u64) -> Result<ChunkState, PeerFault> {
        if size == 0 {
            return Ok(ChunkState::Trailers);
        }
        self.allowance = self.allowance.checked_sub(size).ok_or(PeerFault::BodyTooLarge)?;
        Ok(ChunkState::Data(size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the body and the number of bytes after it, or the fault; `None` if it did not end.
    fn chunked(text: &str, cut: usize) -> Result<Option<(String, usize)>, PeerFault> {
        let limits = Limits { body_bytes: 100, extension_bytes: 8, trailer_bytes: 32, ..Limits::default() };
        let mut body = Body::new(Framing::Chunked, &limits);
        let mut received = Vec::new();
        let mut seen = 0;
        for mut piece in text.as_bytes().chunks(cut) {
            seen += piece.len();
            loop {
                match body.take(&mut piece)? {
                    BodyItem::Part(part) => received.extend_from_slice(part),
                    BodyItem::End => {
                        let remaining = text.len() - seen + piece.len();
                        return Ok(Some((String::from_utf8(received).unwrap(), remaining)));
                    }
                    BodyItem::Nothing => break,
                }
            }
        }
        assert!(!body.ends_with_stream());
        Ok(None)
    }

    fn at_every_cut(text: &str) -> Result<Option<(String, usize)>, PeerFault> {
        let whole = chunked(text, text.len());
        for cut in 1..text.len() {
            assert_eq!(chunked(text, cut), whole, "cut {cut}: {text:?}");
        }
        whole
    }

    #[test]
    fn chunks_are_joined() {
        let text = "5\r\nhello\r\n6 ;a=b\r\n world\r\n000\r\nX: y\r\n\r\nnext";
        assert_eq!(at_every_cut(text), Ok(Some(("hello world".to_owned(), 4))));
        assert_eq!(at_every_cut("A;\"\r\n0123456789\r\n0\r\n\r\n"), Ok(Some(("0123456789".to_owned(), 0))));
        assert_eq!(at_every_cut("5\r\nhello\r\n0\r\n"), Ok(None));
    }

    #[test]
    fn rejects_malformed_chunks() {
        for (text, fault) in [
            ("\r\n", PeerFault::Chunk),
            ("+5\r\nhello\r\n", PeerFault::Chunk),
            ("0x5\r\nhello\r\n", PeerFault::Chunk),
            (" 5\r\nhello\r\n", PeerFault::Chunk),
            ("5 \r\nhello\r\n", PeerFault::Chunk),
            ("5\nhello\r\n", PeerFault::Chunk),
            ("5\rhello", PeerFault::BareCarriageReturn),
            ("5;a\nhello", PeerFault::BareLineFeed),
            ("5;\0\r\n", PeerFault::Chunk),
            ("5\r\nhelloo", PeerFault::Chunk),
            ("5\r\nhello\n", PeerFault::Chunk),
            ("5\r\nhello\r\r", PeerFault::Chunk),
            ("00000000000000005\r\n", PeerFault::Chunk),
            ("ffffffffffffffff\r\n", PeerFault::BodyTooLarge),
            ("65\r\n", PeerFault::BodyTooLarge),
            ("1\r\nx\r\n64\r\n", PeerFault::BodyTooLarge),
            ("5;12345678\r\nhello\r\n5;1\r\n", PeerFault::ExtensionsTooLarge),
            ("0\r\nX y\r\n\r\n", PeerFault::FieldLine),
            ("0\r\nX: 3456789012345678901234567890123\r\n\r\n", PeerFault::TrailersTooLarge),
        ] {
            assert_eq!(at_every_cut(text), Err(fault), "{text:?}");
        }
    }

    #[test]
    fn a_body_without_length_ends_with_its_stream_or_its_limit() {
        let mut body = Body::new(Framing::UntilClose, &Limits { body_bytes: 3, ..Limits::default() });
        assert_eq!(body.take(&mut &b"abc"[..]), Ok(BodyItem::Part(b"abc")));
        assert!(body.ends_with_stream());
        assert_eq!(body.take(&mut &b""[..]), Ok(BodyItem::Nothing));
        assert_eq!(body.take(&mut &b"d"[..]), Err(PeerFault::BodyTooLarge));
    }
}
