//! Output files, written atomically.
//!
//! A file is written under a temporary name in its target's directory and renamed, so that readers see the old contents
//! or the new ones. A target that is not a regular file (a pipe, `/dev/stdout`) is written directly.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process;

use nix::sys::statvfs::statvfs;
use render::output::number;

use crate::failure::{Failure, shown};

/// Writes `contents` to `path`, replacing what was there. On failure nothing is left behind.
pub fn write(path: &Path, contents: &[u8]) -> Result<(), Failure> {
    write_with(path, |out| out.write_all(contents))
}

/// Writes contents piece by piece to `path`, otherwise as [`write()`].
pub fn write_with(path: &Path, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    write_target(path, true, fill).map_err(|error| Failure::Write { path: path.to_owned(), error })
}

/// Writes one of many reproducible files without `fsync`, which takes longer than producing them.
pub fn write_unsynced(path: &Path, contents: &[u8]) -> Result<(), Failure> {
    write_target(path, false, |out| out.write_all(contents))
        .map_err(|error| Failure::Write { path: path.to_owned(), error })
}

/// Checks that files can be written there, before a long command. Nothing is left behind.
pub fn check<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Result<(), Failure> {
    let check = |path: &PathBuf| probe(path).map_err(|error| Failure::Write { path: path.clone(), error });
    paths.into_iter().try_for_each(check)
}

/// Refuses a file for which the disk lacks space, before anything is written. `content` and `remedy` are parts of the
/// error. A path that does not exist yet is on the disk of its parent. A pipe has no limit.
pub fn check_space(path: &Path, bytes: u64, content: &str, remedy: &str) -> Result<(), Failure> {
    let existing =
        path.ancestors().map(|path| if path.as_os_str().is_empty() { Path::new(".") } else { path });
    let existing = existing.into_iter().find(|path| path.exists()).unwrap_or(Path::new("/"));
    let is_disk = existing.is_dir() || existing.is_file();
    let Some(disk) = is_disk.then(|| statvfs(existing).ok()).flatten() else { return Ok(()) };
    let free = disk.blocks_available().saturating_mul(disk.fragment_size());
    if bytes <= free {
        return Ok(());
    }
    let count = |bytes: u64| number::count(bytes as f64);
    Err(Failure::Value(format!(
        "{content} has {} bytes and the disk of {} has {} free; {remedy}",
        count(bytes),
        shown(path),
        count(free)
    )))
}

/// File that is written piece by piece and gets its name when it is complete. Without [`Self::commit`] nothing is left
/// behind.
#[derive(Debug)]
pub struct PendingFile {
    path: PathBuf,
    file: PartialFile,
}

impl PendingFile {
    /// Opens a file that will be `path`.
    pub fn create(path: &Path) -> Result<Self, Failure> {
        let file = PartialFile::create(path);
        let file = file.map_err(|error| Failure::Write { path: path.to_owned(), error })?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Gives the file its name.
    pub fn commit(self) -> Result<(), Failure> {
        let Self { path, file } = self;
        file.commit(true).map_err(|error| Failure::Write { path, error })
    }

    /// The failure of an error that a write returned.
    pub fn failure(&self, error: io::Error) -> Failure {
        Failure::Write { path: self.path.clone(), error }
    }
}

impl Write for PendingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.out.flush()
    }
}

fn write_target(
    path: &Path,
    is_synced: bool,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut file = PartialFile::create(path)?;
    fill(&mut file.out)?;
    file.commit(is_synced)
}

fn probe(path: &Path) -> io::Result<()> {
    match Target::of(path)? {
        Target::Other => File::options().write(true).open(path).map(drop),
        Target::File { path, permissions: _ } => {
            let temporary = temporary_path(&path)?;
            File::options().write(true).create_new(true).open(&temporary)?;
            fs::remove_file(&temporary)
        }
    }
}

/// Kind of a target path.
enum Target {
    /// A regular file, or nothing yet.
    File {
        /// The path after symbolic links: their target is replaced, not the link.
        path: PathBuf,
        /// Permissions of the file that is replaced.
        permissions: Option<fs::Permissions>,
    },
    /// A pipe, a device.
    Other,
}

impl Target {
    fn of(path: &Path) -> io::Result<Self> {
        match fs::metadata(path) {
            Ok(existing) if existing.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            Ok(existing) if existing.is_file() => {
                Ok(Self::File { path: fs::canonicalize(path)?, permissions: Some(existing.permissions()) })
            }
            Ok(_) => Ok(Self::Other),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok(Self::File { path: path.to_owned(), permissions: None })
            }
            Err(error) => Err(error),
        }
    }
}

/// A target while it is written.
#[derive(Debug)]
struct PartialFile {
    out: BufWriter<File>,
    /// The temporary name, and the target; `None` for a pipe.
    rename: Option<(PathBuf, PathBuf)>,
}

impl PartialFile {
    fn create(path: &Path) -> io::Result<Self> {
        let (target, permissions) = match Target::of(path)? {
            Target::Other => {
                let out = BufWriter::new(File::options().write(true).open(path)?);
                return Ok(Self { out, rename: None });
            }
            Target::File { path, permissions } => (path, permissions),
        };
        let temporary = temporary_path(&target)?;
        let file = File::options().write(true).create_new(true).open(&temporary)?;
        let created = Self { out: BufWriter::new(file), rename: Some((temporary, target)) };
        permissions.map_or(Ok(()), |mode| created.out.get_ref().set_permissions(mode))?;
        Ok(created)
    }

    fn commit(mut self, is_synced: bool) -> io::Result<()> {
        self.out.flush()?;
        let file = self.out.get_ref();
        if is_synced && file.metadata()?.is_file() {
            // Some file systems report only here that the disk is full.
            file.sync_all()?;
        }
        if let Some((temporary, target)) = &self.rename {
            fs::rename(temporary, target)?;
            self.rename = None;
        }
        Ok(())
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        if let Some((temporary, _)) = &self.rename {
            // The first error has been reported.
            let _ = fs::remove_file(temporary);
        }
    }
}

/// Returns a name in the target's directory that no other process of this program uses.
fn temporary_path(target: &Path) -> io::Result<PathBuf> {
    let name = target.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    Ok(target.with_file_name(format!(".{}.{}", name.to_string_lossy(), process::id())))
}
