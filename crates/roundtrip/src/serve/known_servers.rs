//! The servers that are known to speak DHTTP, and their tokens, in a file of the user's cache directory.
//!
//! A cache: a failure to read or write it is ignored.

use std::fs;
use std::path::PathBuf;

use dhttp::client::KnownServers;

/// The servers of earlier runs.
pub fn load() -> KnownServers {
    let Some(path) = path() else { return KnownServers::default() };
    KnownServers::load(&path).unwrap_or_else(|damaged| {
        eprintln!("roundtrip: {damaged}");
        KnownServers::default()
    })
}

/// Writes them to the file, if they changed.
pub fn save(before: &KnownServers, now: &KnownServers) {
    if let Some(path) = path().filter(|_| before != now) {
        let _ = path.parent().map(fs::create_dir_all);
        let _ = now.save(&path);
    }
}

/// Directory of the file, created if it does not exist.
pub fn directory() -> Option<PathBuf> {
    let directory = path()?.parent()?.to_owned();
    let _ = fs::create_dir_all(&directory);
    Some(directory)
}

fn path() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
    Some(folder.join("roundtrip").join("dhttp-servers"))
}
