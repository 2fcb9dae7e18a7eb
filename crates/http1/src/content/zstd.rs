//! Zstandard in pieces (RFC 8878): finds the ends of headers and blocks, so that the decoder gets only complete ones.
//!
//! Not the decoder, which would read beyond them. One frame is one body. Skippable frames and dictionaries are rejected, as is
//! a window above RFC 9659's limit for content codings.

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// Decodes one frame.
pub(super) struct Zstd {
    decoder: FrameDecoder,
    /// Received part of the next header or block.
    waiting: Vec<u8>,
    at: FrameState,
    /// Whether a checksum follows the last block.
    is_checked: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FrameState {
    Header,
    Block,
    End,
}

/// Invalid zstd data.
#[derive(Debug)]
pub(super) struct Corrupt;

/// RFC 9659, section 3.
const MAX_WINDOW_BYTES: u64 = 8 << 20;
/// RFC 8878, section 3.1.1.2.4.
const MAX_BLOCK_BYTES: usize = 128 << 10;
const MAGIC: [u8; 4] = 0xFD2F_B528_u32.to_le_bytes();

impl Zstd {
    pub(super) fn new() -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(MAX_WINDOW_BYTES);
        Self { decoder, waiting: Vec::new(), at: FrameState::Header, is_checked: false }
    }

    /// Decodes bytes, a block at a time; `sink` gets each block, and its error stops the decoding.
    pub(super) fn take<Fault: From<Corrupt>>(
        &mut self,
        input: &[u8],
        mut sink: impl FnMut(&[u8]) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        self.waiting.extend_from_slice(input);
        while let Some(length) = self.whole()? {
            let mut part = self.waiting.get(..length).unwrap_or_default();
            match self.at {
                FrameState::Header => {
                    self.decoder.init(&mut part).map_err(|_| Corrupt)?;
                    self.at = FrameState::Block;
                }
                FrameState::Block => {
                    let one_block = BlockDecodingStrategy::UptoBlocks(1);
                    if self.decoder.decode_blocks(&mut part, one_block).map_err(|_| Corrupt)? {
                        self.at = FrameState::End;
                    }
                    sink(&self.decoder.collect().unwrap_or_default())?;
                }
                FrameState::End => {}
            }
            self.waiting.drain(..length);
        }
        match self.at {
            FrameState::End if !self.waiting.is_empty() || !self.is_valid() => Err(Corrupt.into()),
            FrameState::End | FrameState::Header | FrameState::Block => Ok(()),
        }
    }

    pub(super) fn is_finished(&self) -> bool {
        self.at == FrameState::End
    }

    fn is_valid(&self) -> bool {
        !self.is_checked || self.decoder.get_checksum_from_data() == self.decoder.get_calculated_checksum()
    }

    /// Returns the length of the next header or block, if it is complete.
    fn whole(&mut self) -> Result<Option<usize>, Corrupt> {
        let length = match self.at {
            FrameState::Header => self.header()?,
            FrameState::Block => self.block()?,
            FrameState::End => None,
        };
        Ok(length.filter(|length| *length <= self.waiting.len()))
    }

    /// Length of the frame header (RFC 8878, section 3.1.1.1).
    fn header(&mut self) -> Result<Option<usize>, Corrupt> {
        let known = self.waiting.iter().zip(MAGIC).all(|(byte, magic)| *byte == magic);
        if !known {
            return Err(Corrupt);
        }
        let Some(descriptor) = self.waiting.get(4) else { return Ok(None) };
        let is_single = descriptor & 0x20 != 0;
        self.is_checked = descriptor & 0x04 != 0;
        let window = usize::from(!is_single);
        let content = match descriptor >> 6 {
            0 => usize::from(is_single),
            1 => 2,
            2 => 4,
            _ => 8,
        };
        // A dictionary would have to be known to both sides.
        if descriptor & 0x03 == 0 { Ok(Some(5 + window + content)) } else { Err(Corrupt) }
    }

    /// Length of the block (RFC 8878, section 3.1.1.2).
    fn block(&self) -> Result<Option<usize>, Corrupt> {
        let Some([low, middle, high]) = self.waiting.first_chunk::<3>() else { return Ok(None) };
        let header = u32::from_le_bytes([*low, *middle, *high, 0]);
        let size = usize::try_from(header >> 3).map_err(|_| Corrupt)?;
        if size > MAX_BLOCK_BYTES {
            return Err(Corrupt);
        }
        let content = match header >> 1 & 0x03 {
            0 | 2 => size,
            1 => 1,
            _ => return Err(Corrupt),
        };
        let checksum = if header & 1 == 1 && self.is_checked { 4 } else { 0 };
        Ok(Some(3 + content + checksum))
    }
}
