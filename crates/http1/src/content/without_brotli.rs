//! Brotli where there is none: in WebAssembly, whose module its tables would make larger by almost half. Scenarios refuse it there.
//!
//! The encoder leaves bodies as they are; the decoder refuses them.

use std::io::{self, Write};

/// An encoder without a coding.
pub(super) struct CompressorWriter<W>(W);

impl<W> CompressorWriter<W> {
    /// Writes to `sink`.
    pub(super) const fn new(sink: W, _buffer: usize, _quality: u32, _window: u32) -> Self {
        Self(sink)
    }

    /// The sink.
    pub(super) fn into_inner(self) -> W {
        self.0
    }
}

impl<W: Write> Write for CompressorWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// A decoder that refuses every byte.
pub(super) struct DecompressorWriter<W>(W);

impl<W> DecompressorWriter<W> {
    /// Writes nothing to `sink`.
    pub(super) const fn new(sink: W, _buffer: usize) -> Self {
        Self(sink)
    }

    /// The sink.
    pub(super) const fn get_mut(&mut self) -> &mut W {
        &mut self.0
    }

    /// Refuses the end, too.
    pub(super) fn close(&mut self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl<W> Write for DecompressorWriter<W> {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
