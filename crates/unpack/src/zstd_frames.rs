//! Zstandard in pure Rust, for WebAssembly: consecutive frames are one stream, skippable ones are left out (RFC 8878, section 3.1).

use std::io::{self, BufRead, ErrorKind, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// Decompressor of frames.
pub(crate) struct ZstdFrames<R> {
    from: R,
    decoder: FrameDecoder,
    /// Whether the decoder is within a frame.
    is_in_frame: bool,
}

impl<R: BufRead> ZstdFrames<R> {
    pub(crate) fn new(from: R) -> Self {
        Self { from, decoder: FrameDecoder::new(), is_in_frame: false }
    }

    /// Begins the next frame; false at the end of the stream.
    fn begin(&mut self) -> io::Result<bool> {
        while !self.from.fill_buf()?.is_empty() {
            match self.decoder.init(&mut self.from) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let skipped = io::copy(&mut self.from.by_ref().take(length.into()), &mut io::sink())?;
                    if skipped < length.into() {
                        return Err(ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(self.failure(error)),
            }
        }
        Ok(false)
    }

    /// Returns the error of a damaged frame, or of one that ends too early.
    fn failure(&mut self, error: FrameDecoderError) -> io::Error {
        match self.from.fill_buf() {
            Ok([]) => ErrorKind::UnexpectedEof.into(),
            Ok(_) => io::Error::other(error),
            Err(error) => error,
        }
    }
}

impl<R: BufRead> Read for ZstdFrames<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.is_in_frame {
                self.is_in_frame = self.begin()?;
                if !self.is_in_frame {
                    return Ok(0);
                }
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let block = self.decoder.decode_blocks(&mut self.from, BlockDecodingStrategy::UptoBlocks(1));
                if let Err(error) = block {
                    return Err(self.failure(error));
                }
            }
            let length = self.decoder.read(into)?;
            if length > 0 || into.is_empty() {
                return Ok(length);
            }
            self.is_in_frame = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unpacked(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        ZstdFrames::new(bytes).read_to_end(&mut out).map(|_| out)
    }

    #[test]
    fn frames_are_one_stream_without_the_skippable_ones() {
        let text: Vec<u8> = (0..=255_u8).cycle().take(300_000).collect();
        let frame = zstd::encode_all(text.as_slice(), 3).unwrap();
        let skippable = [0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 7, 8, 9];
        let stream = [frame.as_slice(), &skippable, &frame].concat();
        assert!(unpacked(&stream).unwrap() == [text.as_slice(), &text].concat());
    }

    #[test]
    fn a_truncated_frame_ends_too_early_and_a_damaged_one_is_damaged() {
        let mut frame = zstd::encode_all(&[7; 10_000][..], 3).unwrap();
        let cut = unpacked(&frame[..frame.len() - 3]).unwrap_err();
        assert_eq!(cut.kind(), ErrorKind::UnexpectedEof);
        // The descriptor's reserved bit (section 3.1.1.1.1.4) and an unknown block type.
        frame[4] |= 0x08;
        frame[6] |= 0x06;
        assert_eq!(unpacked(&frame).unwrap_err().kind(), ErrorKind::Other);
    }
}
