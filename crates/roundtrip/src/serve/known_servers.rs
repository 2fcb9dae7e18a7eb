//! Loads the servers known to speak DHTTP, and their tokens, from earlier runs.

use dhttp::client::{KnownServers, ServersFile};

/// Reads the file; reports a damaged one on standard error.
pub fn load(file: ServersFile) -> KnownServers {
    file.load().unwrap_or_else(|damaged| {
        eprintln!("roundtrip: {damaged}");
        KnownServers::default()
    })
}
