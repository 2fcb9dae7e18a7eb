//! Fingerprint of a workload, which distinguishes shards of one run from those of another.
//!
//! It does not resist malicious changes.

use std::fmt::{self, Write as _};

use crate::plan::Plan;
use crate::text;

/// Returns the fingerprint of a plan: 64-bit FNV-1a, in 16 hexadecimal digits.
pub fn of_plan(plan: &Plan) -> String {
    let mut hash = Fnv::default();
    text::write(plan, &mut hash).expect("hashing does not fail");
    hash.hex()
}

/// Returns the fingerprint of a text.
pub fn of(text: fmt::Arguments<'_>) -> String {
    let mut hash = Fnv::default();
    hash.write_fmt(text).expect("hashing does not fail");
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
