//! Keys of tokens: rotated, and the same in every thread without communication between the threads.
//!
//! Each key is derived from the server's one secret and the key's number. Not the tokens: those are [`dhttp_proto::token`].

use std::io;

use dhttp_proto::server::Secrets;
use dhttp_proto::server::Validation;
use dhttp_proto::{Key, ServerConfig};
use wire::{Duration, Time};

use crate::random;

/// The secret of a server.
#[derive(Clone, Copy)]
pub(super) struct Keys {
    master: [u8; 32],
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keys")
    }
}

/// Lifetime of a key, unless tokens live longer.
const USUAL: Duration = Duration::from_secs(3_600);

impl Keys {
    pub(super) fn draw() -> io::Result<Self> {
        Ok(Self { master: random::bytes()? })
    }

    pub(super) fn secrets(&self) -> io::Result<Secrets> {
        Ok(Secrets { token: self.of_epoch(0), tables: random::bytes()? })
    }

    /// Returns the number of the key in use.
    pub(super) fn epoch(config: &ServerConfig, now: Time) -> u64 {
        let each = match config.validation {
            Validation::Trusting => USUAL,
            Validation::Tokens { factor: _, lifetime, limiter: _, rate: _ } => lifetime.max(USUAL),
        };
        now.as_nanos() / each.as_nanos().max(1)
    }

    pub(super) fn of_epoch(&self, epoch: u64) -> Key {
        // SipHash does not reveal its key, so the two halves are as good as independent random numbers.
        let (left, right) = self.master.split_at(16);
        let half = |key: &[u8]| {
            let key = key.try_into().unwrap_or([0; 16]);
            siphasher::sip::SipHasher24::new_with_key(&key).hash(&epoch.to_be_bytes()).to_be_bytes()
        };
        let mut secret = [0; 16];
        let (first, second) = secret.split_at_mut(8);
        first.copy_from_slice(&half(left));
        second.copy_from_slice(&half(right));
        Key { generation: u8::try_from(epoch % 256).unwrap_or(0), secret }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_has_the_same_key_and_every_hour_another() {
        let keys = Keys { master: std::array::from_fn(|byte| u8::try_from(byte).unwrap()) };
        let (first, again, next) = (keys.of_epoch(0), keys.of_epoch(0), keys.of_epoch(1));
        assert_eq!(first.secret, again.secret);
        assert_ne!((first.generation, first.secret), (next.generation, next.secret));
        assert_ne!(first.secret[..8], first.secret[8..]);
        let config = ServerConfig::internet();
        let at = |seconds| Keys::epoch(&config, Time::ZERO + Duration::from_secs(seconds));
        assert_eq!([at(0), at(3_599), at(3_600)], [0, 0, 1]);
    }
}
