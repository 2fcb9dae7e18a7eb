//! The file of known servers: a cache, so a failure to read it means that none are known, and a damaged file is set aside.
//!
//! Tokens let their owner have the servers send to this host, so only the user may read the file.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::KnownServers;

/// Maximum size of the file, in bytes: ten thousand servers with names of 253 bytes, and their tokens.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// A damaged file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {reason}; {}", .path.display(), remedy(.moved_to.as_deref()))]
pub struct DamagedFile {
    path: PathBuf,
    reason: String,
    /// Its new path; `None` if it could not be renamed.
    moved_to: Option<PathBuf>,
}

fn remedy(moved_to: Option<&Path>) -> String {
    moved_to.map_or_else(|| "remove it".to_owned(), |path| format!("set aside as {}", path.display()))
}

impl KnownServers {
    /// Reads a file that [`KnownServers::save`] has written; a file that cannot be read has no servers.
    ///
    /// # Errors
    /// A damaged file. It has been renamed, so that the next call finds none.
    pub fn load(path: &Path) -> Result<Self, DamagedFile> {
        let reason = match read(path) {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => error.to_string(),
            Err(_) => return Ok(Self::default()),
            Ok(text) => match Self::from_text(&text) {
                Ok(known) => return Ok(known),
                Err(damaged) => damaged.to_string(),
            },
        };
        let moved_to = path.with_extension("damaged");
        let moved_to = fs::rename(path, &moved_to).is_ok().then_some(moved_to);
        Err(DamagedFile { path: path.to_owned(), reason, moved_to })
    }

    /// Replaces the file with one that only the user may read. Another process reads the old contents or the new ones.
    ///
    /// # Errors
    /// The system's error; nothing is left behind.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        let temporary = path.with_extension(std::process::id().to_string());
        // A killed process with the same id may have left one, with other permissions.
        let _ = fs::remove_file(&temporary);
        let written = File::options()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&temporary)
            .and_then(|mut file| file.write_all(self.text().as_bytes()))
            .and_then(|()| fs::rename(&temporary, path));
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written
    }
}

/// A file of servers in the user's cache directory. Tokens are valid for one TCP port, so programs that run all the time do not
/// share theirs. It is a cache: a failure to read or write it is ignored.
#[derive(Clone, Copy, Debug)]
pub enum ServersFile {
    /// That of `get` and `gateway`.
    Programs,
    /// That of `cache --intercept`.
    Interception,
}

impl ServersFile {
    /// Returns the servers of earlier runs.
    ///
    /// # Errors
    /// A damaged file, which has been renamed.
    pub fn load(self) -> Result<KnownServers, DamagedFile> {
        self.path().map_or_else(|| Ok(KnownServers::default()), |path| KnownServers::load(&path))
    }

    /// Writes the servers to the file, if they changed.
    pub fn save(self, before: &KnownServers, now: &KnownServers) {
        if let Some(path) = self.path().filter(|_| before != now) {
            let _ = path.parent().map(fs::create_dir_all);
            let _ = now.save(&path);
        }
    }

    /// Returns its directory, created if it does not exist.
    pub fn directory(self) -> Option<PathBuf> {
        let directory = self.path()?.parent()?.to_owned();
        let _ = fs::create_dir_all(&directory);
        Some(directory)
    }

    fn path(self) -> Option<PathBuf> {
        let name = match self {
            Self::Programs => "dhttp-servers",
            Self::Interception => "dhttp-servers-of-cache",
        };
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let directory = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
        Some(directory.join("roundtrip").join(name))
    }
}

fn read(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    let invalid = |reason: &str| io::Error::new(io::ErrorKind::InvalidData, reason.to_owned());
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(invalid("more than 4 MiB"));
    }
    String::from_utf8(bytes).map_err(|_| invalid("not text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_files_are_set_aside_once() {
        let path = std::env::temp_dir().join(format!("dhttp-known-servers-{}", std::process::id()));
        let moved_to = path.with_extension("damaged");
        for contents in [&b"nonsense\n"[..], b"h 80\n\xff", &vec![b'\n'; 5 << 20]] {
            fs::write(&path, contents).unwrap();
            let damaged = KnownServers::load(&path).unwrap_err().to_string();
            assert!(damaged.contains("set aside"), "{damaged}");
            assert_eq!(fs::read(&moved_to).unwrap(), contents);
            assert_eq!(KnownServers::load(&path), Ok(KnownServers::default()));
        }
        fs::remove_file(moved_to).unwrap();
    }

    #[test]
    fn saved_servers_are_loaded() {
        let path = std::env::temp_dir().join(format!("dhttp-saved-servers-{}", std::process::id()));
        let known = KnownServers::from_text("h 80\n@token 192.0.2.1:80 00ff 40001 1600\n").unwrap();
        known.save(&path).unwrap();
        assert_eq!(KnownServers::load(&path), Ok(known));
        fs::remove_file(path).unwrap();
    }
}
