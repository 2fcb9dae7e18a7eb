//! Unpredictable bytes from the kernel: ids, and keys of tokens and tables.
//!
//! Not for choices that must be reproducible; there are none in this crate.

use std::cell::RefCell;
use std::io;

use rustix::rand::{GetRandomFlags, getrandom};

/// Returns `N` bytes.
///
/// # Errors
/// The system's error if the kernel provides none.
pub fn bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        let rest = bytes.get_mut(filled..).unwrap_or_default();
        filled += getrandom(rest, GetRandomFlags::empty())?;
    }
    Ok(bytes)
}

/// Returns a number from a batch that one system call filled, for use with every request.
///
/// # Errors
/// The system's error if the kernel provides none.
pub fn number() -> io::Result<u64> {
    thread_local! {
        static NUMBERS: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
    }
    NUMBERS.with_borrow_mut(|numbers| {
        if numbers.is_empty() {
            let drawn: [u8; 256] = bytes()?;
            numbers.extend(drawn.as_chunks().0.iter().map(|bytes| u64::from_be_bytes(*bytes)));
        }
        // Each number is returned once.
        numbers.pop().ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn numbers_never_repeat() {
        let numbers: BTreeSet<u64> = (0..1_000).map(|_| number().unwrap()).collect();
        assert_eq!(numbers.len(), 1_000);
    }
}
