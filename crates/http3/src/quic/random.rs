//! Connection ids from a seed.

use std::sync::{Arc, Mutex, PoisonError};

use quinn_proto::{ConnectionId, ConnectionIdGenerator};
use wire::{Random, Seed};

/// A generator of ids of this length.
#[derive(Clone)]
pub(crate) struct SeededIds {
    random: Arc<Mutex<Random>>,
    bytes: usize,
}

impl SeededIds {
    pub(crate) fn new(seed: Seed, purpose: &str, bytes: usize) -> Self {
        Self { random: Arc::new(Mutex::new(seed.stream(purpose, 0))), bytes }
    }

    /// The next id.
    pub(crate) fn next(&self) -> ConnectionId {
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = std::iter::repeat_with(|| random.next_u64().to_be_bytes())
            .take(3)
            .flatten()
            .take(self.bytes)
            .collect();
        ConnectionId::new(&bytes)
    }
}

impl ConnectionIdGenerator for SeededIds {
    fn generate_cid(&mut self) -> ConnectionId {
        self.next()
    }

    fn cid_len(&self) -> usize {
        self.bytes
    }

    fn cid_lifetime(&self) -> Option<core::time::Duration> {
        None
    }
}

/// Seed of the library's own random numbers.
pub(crate) fn library_seed(seed: Seed) -> [u8; 32] {
    let mut random = seed.stream("quic", 0);
    let mut bytes = [0; 32];
    for part in bytes.chunks_mut(8) {
        part.copy_from_slice(&random.next_u64().to_be_bytes());
    }
    bytes
}
