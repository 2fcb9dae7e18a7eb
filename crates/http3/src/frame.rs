//! Frames of a stream (RFC 9114, section 7): bytes in order, cut anywhere, in; frames out.

use crate::varint;

/// Type of DATA.
pub const DATA: u64 = 0;
/// Type of HEADERS.
pub const HEADERS: u64 = 1;
/// Type of SETTINGS.
pub const SETTINGS: u64 = 4;
/// Type of GOAWAY.
pub const GOAWAY: u64 = 7;
/// Maximum bytes of a frame that is read as a whole.
pub const MAX_FRAME_BYTES: usize = 1 << 18;
/// Maximum bytes of a frame's type and length.
const MAX_HEADER_BYTES: usize = 16;

/// Part of a stream.
#[derive(Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// Bytes of DATA.
    Data(&'a [u8]),
    /// A complete frame that is no DATA: its type and payload.
    Frame(u64, &'a [u8]),
}

/// A frame that is larger than [`MAX_FRAME_BYTES`], or reserved for HTTP/2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameError;

/// Reader of a stream's frames. Frames of unknown types are skipped (section 9).
#[derive(Clone, Debug, Default)]
pub struct FrameReader {
    /// Bytes of a header that is not complete.
    header: Vec<u8>,
    state: State,
}

#[derive(Clone, Debug, Default)]
enum State {
    #[default]
    Header,
    /// Remaining bytes of DATA.
    Data(u64),
    /// Remaining bytes of an unknown frame.
    Skipped(u64),
    /// A frame that is read as a whole: its type and length.
    Frame(u64, usize, Vec<u8>),
}

impl FrameReader {
    /// Reads bytes; passes each part on.
    ///
    /// # Errors
    /// [`FrameError`]: the connection has failed.
    pub fn read(&mut self, mut bytes: &[u8], on: &mut impl FnMut(Part<'_>)) -> Result<(), FrameError> {
        while !bytes.is_empty() {
            match &mut self.state {
                State::Header => self.read_header(&mut bytes, on)?,
                State::Data(rest) => {
                    let (here, after) = split(bytes, *rest);
                    *rest -= here.len() as u64;
                    let is_complete = *rest == 0;
                    bytes = after;
                    on(Part::Data(here));
                    if is_complete {
                        self.state = State::Header;
                    }
                }
                State::Skipped(rest) => {
                    let (here, after) = split(bytes, *rest);
                    *rest -= here.len() as u64;
                    bytes = after;
                    if *rest == 0 {
                        self.state = State::Header;
                    }
                }
                State::Frame(kind, length, begun) => {
                    let (here, after) = bytes.split_at((*length - begun.len()).min(bytes.len()));
                    begun.extend_from_slice(here);
                    bytes = after;
                    if begun.len() == *length {
                        let (kind, payload) = (*kind, std::mem::take(begun));
                        self.state = State::Header;
                        on(Part::Frame(kind, &payload));
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether a stream may end here.
    pub fn is_between_frames(&self) -> bool {
        self.header.is_empty() && matches!(self.state, State::Header)
    }

    fn read_header(&mut self, bytes: &mut &[u8], on: &mut impl FnMut(Part<'_>)) -> Result<(), FrameError> {
        let known = self.header.len();
        self.header.extend(bytes.iter().take(MAX_HEADER_BYTES - known));
        let mut rest = &self.header[..];
        let (Some(kind), Some(length)) = (varint::take(&mut rest), varint::take(&mut rest)) else {
            *bytes = &[];
            return Ok(());
        };
        *bytes = &bytes[self.header.len() - rest.len() - known..];
        self.header.clear();
        self.state = match (kind, usize::try_from(length)) {
            (DATA, _) if length == 0 => State::Header,
            (DATA, _) => State::Data(length),
            // PRIORITY, PING, WINDOW_UPDATE and CONTINUATION of HTTP/2 (section 11.2.1).
            (2 | 6 | 8 | 9, _) => return Err(FrameError),
            (HEADERS | SETTINGS | GOAWAY, Ok(length)) if length <= MAX_FRAME_BYTES => {
                if length == 0 {
                    on(Part::Frame(kind, &[]));
                    State::Header
                } else {
                    State::Frame(kind, length, Vec::new())
                }
            }
            (HEADERS | SETTINGS | GOAWAY, _) => return Err(FrameError),
            _ if length == 0 => State::Header,
            _ => State::Skipped(length),
        };
        Ok(())
    }
}

fn split(bytes: &[u8], rest: u64) -> (&[u8], &[u8]) {
    bytes.split_at(usize::try_from(rest).unwrap_or(usize::MAX).min(bytes.len()))
}

/// Appends a frame's type and length.
pub fn header(kind: u64, length: usize, into: &mut Vec<u8>) {
    varint::put(kind, into);
    varint::put(length as u64, into);
}

/// Appends a frame.
pub fn frame(kind: u64, payload: &[u8], into: &mut Vec<u8>) {
    header(kind, payload.len(), into);
    into.extend_from_slice(payload);
}

/// Appends SETTINGS: identifiers and values.
pub fn settings(settings: &[(u64, u64)], into: &mut Vec<u8>) {
    let mut payload = Vec::new();
    for (id, value) in settings {
        varint::put(*id, &mut payload);
        varint::put(*value, &mut payload);
    }
    frame(SETTINGS, &payload, into);
}

/// Iterates over the identifiers and values of SETTINGS, up to a cut.
pub fn read_settings(payload: &[u8]) -> impl Iterator<Item = (u64, u64)> {
    let mut rest = payload;
    std::iter::from_fn(move || Some((varint::take(&mut rest)?, varint::take(&mut rest)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of DATA, and the other frames with their lengths.
    type Parts = (Vec<u8>, Vec<(u64, usize)>);

    fn parts(pieces: &[&[u8]]) -> Result<Parts, FrameError> {
        let (mut reader, mut data, mut frames) = (FrameReader::default(), Vec::new(), Vec::new());
        for piece in pieces {
            reader.read(piece, &mut |part| match part {
                Part::Data(bytes) => data.extend_from_slice(bytes),
                Part::Frame(kind, payload) => frames.push((kind, payload.len())),
            })?;
        }
        assert!(reader.is_between_frames());
        Ok((data, frames))
    }

    #[test]
    fn frames_are_read_whatever_the_cut() {
        let mut stream = Vec::new();
        frame(HEADERS, &[7; 300], &mut stream);
        frame(0x21, &[9; 70], &mut stream);
        frame(DATA, &[5; 90], &mut stream);
        settings(&[(6, 1 << 20)], &mut stream);
        for cut in 0..stream.len() {
            let (data, frames) = parts(&[&stream[..cut], &stream[cut..]]).unwrap();
            assert_eq!((data, frames), (vec![5; 90], vec![(HEADERS, 300), (SETTINGS, 5)]), "{cut}");
        }
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(parts(&bytes).unwrap().0, [5; 90]);
    }

    #[test]
    fn frames_of_http2_and_of_absurd_length_are_errors() {
        assert_eq!(parts(&[&[8, 0]]), Err(FrameError));
        let mut absurd = Vec::new();
        header(HEADERS, MAX_FRAME_BYTES + 1, &mut absurd);
        assert_eq!(parts(&[&absurd]), Err(FrameError));
    }
}
