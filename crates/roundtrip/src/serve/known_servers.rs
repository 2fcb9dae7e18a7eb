//! The servers that are known to speak DHTTP, and their tokens, in files of the user's cache directory.
//!
//! A cache: a failure to read or write it is ignored.

use std::fs;
use std::path::PathBuf;

use dhttp::client::KnownServers;

/// A file. Tokens are valid for one TCP port, so that programs that run all the time do not share theirs.
#[derive(Clone, Copy, Debug)]
pub enum ServersFile {
    /// That of `get` and `gateway`.
    Programs,
    /// That of `cache --intercept`.
    Interception,
}

/// The servers of earlier runs.
pub fn load(file: ServersFile) -> KnownServers {
    let Some(path) = path(file) else { return KnownServers::default() };
    KnownServers::load(&path).unwrap_or_else(|damaged| {
        eprintln!("roundtrip: {damaged}");
        KnownServers::default()
    })
}

/// Writes them to the file, if they changed.
pub fn save(file: ServersFile, before: &KnownServers, now: &KnownServers) {
    if let Some(path) = path(file).filter(|_| before != now) {
        let _ = path.parent().map(fs::create_dir_all);
        let _ = now.save(&path);
    }
}

/// Directory of the files, created if it does not exist.
pub fn directory() -> Option<PathBuf> {
    let directory = path(ServersFile::Programs)?.parent()?.to_owned();
    let _ = fs::create_dir_all(&directory);
    Some(directory)
}

fn path(file: ServersFile) -> Option<PathBuf> {
    let name = match file {
        ServersFile::Programs => "dhttp-servers",
        ServersFile::Interception => "dhttp-servers-of-cache",
    };
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
    Some(folder.join("roundtrip").join(name))
}
