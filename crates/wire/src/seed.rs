//! Where randomness comes from: one number the user can see, and streams derived from it by name.
//!
//! Not a source of entropy, and not for cryptography: the same seed gives the same bytes on every machine.

use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// The number that makes a run repeatable. `--seed N`; 1 unless told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seed(u64);

impl Seed {
    /// The seed that `number` names.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// An independent stream of random numbers for one purpose: `("link-up", 0)`, `("loss", 3)`.
    ///
    /// The purpose is part of the derivation, so that a new use of randomness does not shift the old ones.
    pub fn stream(self, purpose: &str, index: u64) -> Random {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&self.0.to_le_bytes());
        key[8..16].copy_from_slice(&index.to_le_bytes());
        key[16..24].copy_from_slice(&fnv1a(purpose.as_bytes()).to_le_bytes());
        Random(ChaCha12Rng::from_seed(key))
    }
}

impl Default for Seed {
    fn default() -> Self {
        Self(1)
    }
}

/// A stream of random numbers: ChaCha with 12 rounds, the same on every machine.
#[derive(Clone, Debug)]
pub struct Random(ChaCha12Rng);

impl Random {
    /// Uniform over all 64-bit numbers.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in [0, 1), in steps of 2^-53.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// True with this probability: never at 0, always at 1.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }
}

/// The 64-bit Fowler-Noll-Vo hash, variant 1a: names to numbers, nothing more.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regress_a_seed_gives_the_same_numbers_for_ever() {
        let mut stream = Seed::new(1).stream("link", 0);
        let drawn = [stream.next_u64(), stream.next_u64()];
        let mut again = Seed::new(1).stream("link", 0);
        assert_eq!(drawn, [again.next_u64(), again.next_u64()]);
        assert_ne!(drawn[0], Seed::new(1).stream("link", 1).next_u64());
        assert_ne!(drawn[0], Seed::new(1).stream("loss", 0).next_u64());
        assert_ne!(drawn[0], Seed::new(2).stream("link", 0).next_u64());
    }

    #[test]
    fn chance_is_never_at_zero_and_always_at_one() {
        let mut stream = Seed::default().stream("chance", 0);
        assert!((0..1_000).all(|_| !stream.chance(0.0)));
        assert!((0..1_000).all(|_| stream.chance(1.0)));
        let heads = (0..10_000).filter(|_| stream.chance(0.25)).count();
        assert!((2_300..2_700).contains(&heads), "{heads}");
    }
}
