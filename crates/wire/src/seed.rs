//! Random seed, and the random streams derived from it by name. Not for cryptography.
//!
//! The same seed gives the same numbers on every host.

use chacha20::ChaCha12Rng;
use chacha20::rand_core::{Rng, SeedableRng};

use crate::Probability;

/// Random seed of a run. `--seed N`; default 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seed(u64);

impl Seed {
    /// Creates a seed with this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Returns the number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns an independent stream of random numbers for one purpose: `("link-up", 0)`, `("loss", 3)`.
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

/// A stream of random numbers: ChaCha with 12 rounds, the same on every host.
#[derive(Debug)]
pub struct Random(ChaCha12Rng);

impl Clone for Random {
    fn clone(&self) -> Self {
        Self(ChaCha12Rng::deserialize_state(&self.0.serialize_state()))
    }
}

impl Random {
    /// Returns a number, uniform over all 64-bit numbers.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns a number, uniform in [0, 1), in steps of 2^-53.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns true with this probability: never at 0, always at 1. One number is sampled for any probability, so that
    /// changing it does not shift later samples.
    pub fn chance(&mut self, probability: Probability) -> bool {
        self.unit() < probability.get()
    }

    /// Returns a number, uniform over the integers from 0 to `max`, both included. One number is sampled; the bias,
    /// under 2^-64 times `max`, is not corrected.
    pub fn up_to(&mut self, max: u64) -> u64 {
        let scaled = u128::from(self.next_u64()) * (u128::from(max) + 1);
        (scaled >> 64) as u64
    }
}

/// Returns the 64-bit Fowler-Noll-Vo hash, variant 1a, which turns names into numbers.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regress_seed_gives_the_same_numbers() {
        let mut stream = Seed::new(1).stream("link", 0);
        assert_eq!([stream.next_u64(), stream.next_u64()], [13556718506326712745, 10847518952151524136]);
        let first = |seed: u64, purpose, index| Seed::new(seed).stream(purpose, index).next_u64();
        assert_eq!(
            [first(1, "link", 1), first(1, "loss", 0), first(2, "link", 0)],
            [16610036559789719729, 11221391956219958470, 18117901779162018818]
        );
    }

    #[test]
    fn clone_continues_with_the_same_numbers() {
        let mut stream = Seed::new(1).stream("link", 0);
        // More than the generator computes ahead.
        for _ in 0..100 {
            let mut clone = stream.clone();
            let next = [stream.next_u64(), stream.next_u64()];
            assert_eq!([clone.next_u64(), clone.next_u64()], next);
        }
    }

    #[test]
    fn paper_hash_of_names_is_fnv_1a() {
        // The test vectors of https://datatracker.ietf.org/doc/html/draft-eastlake-fnv, section 6.
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn chance_is_never_at_zero_and_always_at_one() {
        let mut stream = Seed::default().stream("chance", 0);
        assert!((0..1_000).all(|_| !stream.chance(Probability::NEVER)));
        assert!((0..1_000).all(|_| stream.chance(Probability::ALWAYS)));
        let quarter = Probability::new(0.25).unwrap();
        let heads = (0..10_000).filter(|_| stream.chance(quarter)).count();
        assert!((2_300..2_700).contains(&heads), "{heads}");
    }

    #[test]
    fn up_to_reaches_both_ends_and_nothing_beyond() {
        let mut stream = Seed::default().stream("up-to", 0);
        let mut seen = [0_u32; 4];
        for _ in 0..4_000 {
            seen[usize::try_from(stream.up_to(3)).unwrap()] += 1;
        }
        assert!(seen.iter().all(|count| (900..1_100).contains(count)), "{seen:?}");
        assert_eq!(stream.up_to(0), 0);
        stream.up_to(u64::MAX);
    }
}
