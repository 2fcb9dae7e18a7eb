//! Secret key of tables that are looked up by bytes from peers. Without it a peer can neither choose the slot of its
//! entry nor learn anything from the time of a look-up.
//!
//! Not the key of tokens, which changes and has a number: [`super::token::Key`].

use std::fmt;

use siphasher::sip::SipHasher13;

/// The key; never printed.
#[derive(Clone, Copy)]
pub(super) struct Secret(pub(super) [u8; 16]);

impl Secret {
    /// SipHash-1-3 of `bytes`, as in Rust's own hash tables; sufficient because no peer sees a hash.
    pub(super) fn hash(&self, bytes: &[u8]) -> u64 {
        SipHasher13::new_with_key(&self.0).hash(bytes)
    }

    /// Slot of `bytes` in a table of `count` slots.
    pub(super) fn index(&self, bytes: &[u8], count: usize) -> usize {
        // The hash as a fraction of all hashes: as uniform as the remainder, without a division.
        let index = (u128::from(self.hash(bytes)) * count as u128) >> 64;
        usize::try_from(index).unwrap_or(0)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}
