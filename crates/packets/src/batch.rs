//! Many packets at a time, in a buffer that the caller owns: packets to be handled by other threads.
//!
//! The window over the source is exchanged for an empty one when it is used up. No packet is copied, except the part of
//! one that does not fit.

use wire::Time;

use crate::{Frame, LinkType};

/// Successive packets of a capture.
#[derive(Debug, Default)]
pub struct FrameBatch {
    pub(crate) bytes: Vec<u8>,
    pub(crate) frames: Vec<FrameLocation>,
    /// Key logs of TLS, and the number of the packet before which each comes.
    pub(crate) secrets: Vec<(u64, Vec<u8>)>,
}

/// A packet of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameLocation {
    pub(crate) number: u64,
    pub(crate) at: Time,
    pub(crate) interface: u32,
    pub(crate) link: LinkType,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl FrameBatch {
    /// Returns the number of packets.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Returns the packet at `index`.
    pub fn get(&self, index: usize) -> Option<Frame<'_>> {
        let FrameLocation { number, at, interface, link, start, end } = *self.frames.get(index)?;
        Some(Frame { number, at, interface, link, bytes: self.bytes.get(start..end)? })
    }

    /// Iterates over the key logs of TLS, with the number of the packet before which each comes: of this batch, or the next one's
    /// first.
    pub fn secrets(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.secrets.iter().map(|(before, text)| (*before, text.as_slice()))
    }

    /// Iterates over the packets.
    pub fn iter(&self) -> impl Iterator<Item = Frame<'_>> {
        (0..self.len()).filter_map(|index| self.get(index))
    }
}
