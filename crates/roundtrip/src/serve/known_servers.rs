//! The servers that are known to speak DHTTP, and their tokens, in a file of the user's cache directory.
//!
//! A cache: a failure to read or write it is ignored, and a damaged file is set aside. Tokens let their owner have the servers
//! send to this host, so only the user may read the file.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use dhttp::client::KnownServers;

/// Maximum size of the file, in bytes: ten thousand servers with names of 253 bytes, and their tokens.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// The servers of earlier runs.
pub fn load() -> KnownServers {
    path().map(|path| load_from(&path)).unwrap_or_default()
}

fn load_from(path: &Path) -> KnownServers {
    let why = match read(path) {
        Err(error) if error.kind() == io::ErrorKind::InvalidData => error.to_string(),
        Err(_) => return KnownServers::default(),
        Ok(text) => match KnownServers::from_text(&text) {
            Ok(known) => return known,
            Err(damaged) => damaged.to_string(),
        },
    };
    let aside = path.with_extension("damaged");
    if fs::rename(path, &aside).is_ok() {
        eprintln!("roundtrip: {}: {why}; set aside as {}", path.display(), aside.display());
    }
    KnownServers::default()
}

fn read(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    let invalid = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why.to_owned());
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(invalid("more than 4 MiB"));
    }
    String::from_utf8(bytes).map_err(|_| invalid("not text"))
}

/// Writes them to the file, if they changed.
pub fn save(before: &KnownServers, now: &KnownServers) {
    if let Some(path) = path().filter(|_| before != now) {
        let _ = path.parent().map(fs::create_dir_all);
        let _ = replace(&path, &now.text());
    }
}

/// Replaces the file with one that only the user may read; another process reads the old contents or the new ones.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let temporary = path.with_extension(std::process::id().to_string());
    // A killed process with the same id may have left one, with other permissions.
    let _ = fs::remove_file(&temporary);
    let written = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temporary)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
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
