//! Bytes of the handshake in CRYPTO frames (RFC 9000, section 19.6), in order: pieces may come twice, and in any order.

use std::collections::BTreeMap;

use tls::message::{Message, MessageReader};

/// Bytes of one direction and encryption level.
#[derive(Clone, Debug, Default)]
pub(crate) struct HandshakeBytes {
    /// Pieces by their offset.
    pieces: BTreeMap<u64, Vec<u8>>,
    bytes: usize,
}

/// Maximum number of bytes stored.
const MAX_BYTES: usize = 1 << 14;

impl HandshakeBytes {
    /// Adds a piece; returns whether it was stored.
    pub(crate) fn add(&mut self, offset: u64, piece: &[u8]) -> bool {
        let is_longer = self.pieces.get(&offset).is_none_or(|known| known.len() < piece.len());
        let is_stored = is_longer && !piece.is_empty() && self.bytes + piece.len() <= MAX_BYTES;
        if is_stored {
            self.bytes += piece.len();
            self.pieces.insert(offset, piece.to_vec());
        }
        is_stored
    }

    /// Passes the messages up to the first hole to `on`.
    pub(crate) fn messages(&self, on: &mut impl FnMut(Message<'_>)) {
        let (mut reader, mut next) = (MessageReader::default(), 0);
        for (offset, piece) in &self.pieces {
            let Some(known) = u64::checked_sub(next, *offset) else { return };
            let Some(fresh) = usize::try_from(known).ok().and_then(|known| piece.get(known..)) else {
                continue;
            };
            next += fresh.len() as u64;
            reader.read(fresh, on);
        }
    }
}
