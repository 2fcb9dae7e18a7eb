//! Store in memory and on disk, with its counters: common to all caches, whatever their upstream.
//!
//! `http1::cache` decides what may be served.

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
    /// Maximum length of a stored body, in bytes.
    pub(super) largest: u64,
    /// Whether only responses with explicit freshness are stored.
    pub(super) is_sparing: bool,
    /// Its target list (RFC 9213).
    pub(super) targets: Vec<String>,
    pub(super) counters: Arc<Counters>,
}

impl Store {
    /// Creates a store with an empty memory, and the responses on disk.
    ///
    /// # Errors
    /// If the kernel gives no random bytes, or the file cannot be used.
    pub(crate) fn new(config: &CacheConfig) -> io::Result<Self> {
        let CacheConfig { memory, largest, is_sparing, targets, disk, report } = config;
        let memory = Memory::new(*memory, random::bytes()?);
        let disk = disk.as_ref().map(|(path, max)| Disk::open(path, *max, *report)).transpose()?;
        let (largest, is_sparing, targets) = (*largest, *is_sparing, targets.clone());
        Ok(Self { memory, disk, largest, is_sparing, targets, counters: Arc::default() })
    }

    /// Changes the capacities in memory and on the existing disk. All other settings take a new store.
    pub(super) fn resize(&self, config: &CacheConfig) {
        let CacheConfig { memory, largest: _, is_sparing: _, targets: _, disk, report: _ } = config;
        self.memory.resize(*memory);
        if let (Some(open_disk), Some((_, max))) = (&self.disk, disk) {
            open_disk.resize(*max);
        }
    }

    /// Returns the response on disk for this key that matches this request, and stores it in memory, too.
    pub(super) fn find_on_disk(&self, key: &[u8], requested: &ParsedRequest<'_>) -> Option<CacheEntry> {
        let entry = self.disk.as_ref()?.find(key, requested)?;
        self.memory.keep(entry.clone());
        Some(entry)
    }

    /// Whether a look-up may block.
    pub(super) const fn has_disk(&self) -> bool {
        self.disk.is_some()
    }

    pub(super) fn keep(&self, entry: &CacheEntry) {
        self.memory.keep(entry.clone());
        if let Some(disk) = &self.disk {
            disk.keep(entry.clone());
        }
    }

    pub(super) fn drop_all(&self, key: &[u8]) {
        self.memory.drop_all(key);
        if let Some(disk) = &self.disk {
            disk.drop_all(key);
        }
    }

    /// Renders the counters in Prometheus' text format.
    pub(crate) fn metrics(&self) -> String {
        self.counters.metrics(self.memory.size())
    }
}
