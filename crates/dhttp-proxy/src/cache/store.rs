//! Store in memory and on disk, with its counters: common to all caches, whatever their upstream.
//!
//! Not what may be given: that is `http1::cache`'s.

use std::io;
use std::sync::Arc;

use http1::cache::ParsedRequest;

use super::CacheConfig;
use super::counters::Counters;
use super::disk::Disk;
use super::memory::{CacheEntry, Memory};
use dhttp::random;

/// A store that many threads share.
#[derive(Debug)]
pub(crate) struct Store {
    pub(super) memory: Memory,
    disk: Option<Disk>,
    /// No longer body is kept, in bytes.
    pub(super) largest: u64,
    /// Only what says itself how long it is good.
    pub(super) is_sparing: bool,
    /// Its target list (RFC 9213).
    pub(super) targets: Vec<String>,
    pub(super) counters: Arc<Counters>,
}

impl Store {
    /// An empty one, but for what is on disk.
    ///
    /// # Errors
    /// If the kernel gives no random bytes, or the file cannot be used.
    pub(crate) fn new(config: &CacheConfig) -> io::Result<Self> {
        let CacheConfig { memory, largest, is_sparing, targets, disk, tell } = config;
        let memory = Memory::new(*memory, random::bytes()?);
        let disk = disk.as_ref().map(|(path, most)| Disk::open(path, *most, *tell)).transpose()?;
        let (largest, is_sparing, targets) = (*largest, *is_sparing, targets.clone());
        Ok(Self { memory, disk, largest, is_sparing, targets, counters: Arc::default() })
    }

    /// From now on it holds so much in memory, and so much on the disk that it has. What else a configuration says takes a
    /// new one.
    pub(super) fn resize(&self, config: &CacheConfig) {
        let CacheConfig { memory, largest: _, is_sparing: _, targets: _, disk, tell: _ } = config;
        self.memory.resize(*memory);
        if let (Some(ours), Some((_, most))) = (&self.disk, disk) {
            ours.resize(*most);
        }
    }

    /// Returns the response on disk for this key that matches this request; from now on it is in memory, too.
    pub(super) fn find_on_disk(&self, key: &[u8], requested: &ParsedRequest<'_>) -> Option<CacheEntry> {
        let found = self.disk.as_ref()?.find(key, requested)?;
        self.memory.keep(found.clone());
        Some(found)
    }

    /// Whether looking something up may take long.
    pub(super) const fn has_disk(&self) -> bool {
        self.disk.is_some()
    }

    pub(super) fn keep(&self, found: &CacheEntry) {
        self.memory.keep(found.clone());
        if let Some(disk) = &self.disk {
            disk.keep(found.clone());
        }
    }

    pub(super) fn drop_all(&self, key: &[u8]) {
        self.memory.drop_all(key);
        if let Some(disk) = &self.disk {
            disk.drop_all(key);
        }
    }

    /// In Prometheus' text format.
    pub(crate) fn metrics(&self) -> String {
        self.counters.metrics(self.memory.size())
    }
}
