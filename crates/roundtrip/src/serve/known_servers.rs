//! The servers that are known to speak DHTTP, and their tokens, from earlier runs.

use dhttp::client::{KnownServers, ServersFile};

/// Reads a file; a damaged one is reported.
pub fn load(file: ServersFile) -> KnownServers {
    file.load().unwrap_or_else(|damaged| {
        eprintln!("roundtrip: {damaged}");
        KnownServers::default()
    })
}
