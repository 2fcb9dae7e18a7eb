//! Fingerprint of a workload: distinguishes shards of one run from those of another.
//!
//! Neither a checksum of a file nor resistant to malicious changes.

use std::fmt::{self, Write as _};

use crate::plan::Plan;
use crate::text;

/// Fingerprint of a plan, in 16 hexadecimal digits: FNV-1a of 64 bits, which detects accidental differences, not malicious
/// ones.
pub fn of_plan(plan: &Plan) -> String {
    let mut hash = Fnv::default();
    text::write(plan, &mut hash).expect("a number accepts all text");
    hash.hex()
}

/// The same of a text.
pub fn of(text: fmt::Arguments<'_>) -> String {
    let mut hash = Fnv::default();
    hash.write_fmt(text).expect("a number accepts all text");
    hash.hex()
}

/// FNV-1a of 64 bits.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn hex(&self) -> String {
        let Self(hash) = self;
        format!("{hash:016x}")
    }
}

impl fmt::Write for Fnv {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let Self(hash) = self;
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        *hash = text.bytes().fold(*hash, step);
        Ok(())
    }
}
