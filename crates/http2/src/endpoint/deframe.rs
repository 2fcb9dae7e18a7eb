//! Frames of a peer, whole except for DATA, whose bytes are passed on as they arrive.

use crate::frame::{FrameHeader, FrameType, HEADER_BYTES};
use crate::write::MAX_FRAME_BYTES;

/// A part of the peer's frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part<'a> {
    /// A whole frame other than DATA.
    Frame(FrameHeader, &'a [u8]),
    /// Bytes of DATA, and whether they end the stream.
    Data { stream: u32, bytes: &'a [u8], ends: bool },
}

/// Reader of one direction.
#[derive(Clone, Debug, Default)]
pub(super) struct Deframer {
    header: Vec<u8>,
    current: Option<(FrameHeader, usize)>,
    payload: Vec<u8>,
}

/// A frame that is larger than allowed, or DATA with padding, which no end here sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InvalidFrame;

impl Deframer {
    /// Takes the next part of `input`; `None` if that is empty.
    pub(super) fn next<'a, 'b: 'a>(
        &'a mut self,
        input: &mut &'b [u8],
    ) -> Result<Option<Part<'a>>, InvalidFrame> {
        while !input.is_empty() {
            let Some((header, left)) = self.current else {
                if self.begin(input)?.is_some_and(|header| header.length == 0) {
                    self.payload.clear();
                    return Ok(self.finish());
                }
                continue;
            };
            let (here, rest) = input.split_at(left.min(input.len()));
            *input = rest;
            let left = left - here.len();
            if header.kind == FrameType::Data {
                self.current = (left > 0).then_some((header, left));
                let ends = left == 0 && header.ends_stream();
                return Ok(Some(Part::Data { stream: header.stream, bytes: here, ends }));
            }
            self.payload.extend_from_slice(here);
            self.current = Some((header, left));
            if left == 0 {
                return Ok(self.finish());
            }
        }
        Ok(None)
    }

    /// Reads a header, as far as it has arrived.
    fn begin(&mut self, input: &mut &[u8]) -> Result<Option<FrameHeader>, InvalidFrame> {
        let (here, rest) = input.split_at((HEADER_BYTES - self.header.len()).min(input.len()));
        self.header.extend_from_slice(here);
        *input = rest;
        let Some(bytes) = self.header.first_chunk() else { return Ok(None) };
        let header = FrameHeader::read(*bytes);
        self.header.clear();
        let is_padded_data = header.kind == FrameType::Data && header.has(FrameHeader::PADDED);
        if header.length as usize > MAX_FRAME_BYTES || is_padded_data {
            return Err(InvalidFrame);
        }
        self.payload.clear();
        self.current = Some((header, header.length as usize));
        Ok(Some(header))
    }

    fn finish(&mut self) -> Option<Part<'_>> {
        let (header, _) = self.current.take()?;
        Some(match header.kind {
            FrameType::Data => Part::Data { stream: header.stream, bytes: &[], ends: header.ends_stream() },
            _ => Part::Frame(header, &self.payload),
        })
    }
}
