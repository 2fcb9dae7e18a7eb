//! Bytes that nobody can foresee, from the kernel: ids, keys of tokens and of tables.
//!
//! Not for choices that must be repeatable; there are none in this crate.

use std::io;

use rustix::rand::{GetRandomFlags, getrandom};

/// So many bytes.
///
/// # Errors
/// If the kernel gives none.
pub(crate) fn bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        let rest = bytes.get_mut(filled..).unwrap_or_default();
        filled += getrandom(rest, GetRandomFlags::empty())?;
    }
    Ok(bytes)
}
