//! Output files: whole or not at all.
//!
//! A file is written under a temporary name beside its target and renamed, so that whoever looks sees the old one
//! or the new one. What is not a regular file (a pipe, `/dev/stdout`) is written to as it is.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process;

use nix::sys::statvfs::statvfs;

use crate::failure::{Failure, shown};
use crate::output::number;

/// Puts `contents` at `path`, replacing what was there. On failure nothing is left behind.
pub fn write(path: &Path, contents: &[u8]) -> Result<(), Failure> {
    write_with(path, |out| out.write_all(contents))
}

/// The same, for what is better written piece by piece.
pub fn write_with(path: &Path, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    put(path, true, fill).map_err(|error| Failure::Write { path: path.to_owned(), error })
}

/// One of many files that can be made again: the disk is not waited for, which takes longer than making them.
pub fn write_one_of_many(path: &Path, contents: &[u8]) -> Result<(), Failure> {
    put(path, false, |out| out.write_all(contents))
        .map_err(|error| Failure::Write { path: path.to_owned(), error })
}

/// Whether a file can be put there at all: to be asked before something that takes long. Nothing is left behind.
pub fn check(path: &Path) -> Result<(), Failure> {
    probe(path).map_err(|error| Failure::Write { path: path.to_owned(), error })
}

/// Refuses what the disk has no room for, before anything is written: with what it is, and what else there is to do. A folder or
/// file that is not there yet will be on the disk of what it is in; a pipe takes whatever there is.
pub fn check_room(path: &Path, bytes: u64, what: &str, remedy: &str) -> Result<(), Failure> {
    let there = path.ancestors().map(|path| if path.as_os_str().is_empty() { Path::new(".") } else { path });
    let there = there.into_iter().find(|path| path.exists()).unwrap_or(Path::new("/"));
    let is_disk = there.is_dir() || there.is_file();
    let Some(disk) = is_disk.then(|| statvfs(there).ok()).flatten() else { return Ok(()) };
    let free = disk.blocks_available().saturating_mul(disk.fragment_size());
    if bytes <= free {
        return Ok(());
    }
    let count = |bytes: u64| number::count(bytes as f64);
    Err(Failure::Value(format!(
        "{what} has {} bytes and the disk of {} has room for {}; {remedy}",
        count(bytes),
        shown(path),
        count(free)
    )))
}

fn put(
    path: &Path,
    is_waited_for: bool,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    match Target::of(path)? {
        Target::Other => fill_file(File::options().write(true).open(path)?, is_waited_for, fill),
        Target::File { path, permissions } => replace(&path, permissions, is_waited_for, fill),
    }
}

fn probe(path: &Path) -> io::Result<()> {
    match Target::of(path)? {
        Target::Other => File::options().write(true).open(path).map(drop),
        Target::File { path, permissions: _ } => {
            let temporary = beside(&path)?;
            File::options().write(true).create_new(true).open(&temporary)?;
            fs::remove_file(&temporary)
        }
    }
}

/// What there is at a path.
enum Target {
    /// A regular file, or nothing yet.
    File {
        /// Through a symbolic link: what it points to is replaced, not the link.
        path: PathBuf,
        /// Those of the file that is replaced.
        permissions: Option<fs::Permissions>,
    },
    /// A pipe, a device.
    Other,
}

impl Target {
    fn of(path: &Path) -> io::Result<Self> {
        match fs::metadata(path) {
            Ok(there) if there.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            Ok(there) if there.is_file() => {
                Ok(Self::File { path: fs::canonicalize(path)?, permissions: Some(there.permissions()) })
            }
            Ok(_) => Ok(Self::Other),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok(Self::File { path: path.to_owned(), permissions: None })
            }
            Err(error) => Err(error),
        }
    }
}

fn replace(
    target: &Path,
    permissions: Option<fs::Permissions>,
    is_waited_for: bool,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let temporary = beside(target)?;
    let written = File::options()
        .write(true)
        .create_new(true)
        .open(&temporary)
        .and_then(|file| permissions.map_or(Ok(()), |same| file.set_permissions(same)).map(|()| file))
        .and_then(|file| fill_file(file, is_waited_for, fill))
        .and_then(|()| fs::rename(&temporary, target));
    if written.is_err() {
        // It may not even exist: the first error is the one to tell.
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn fill_file(
    file: File,
    is_waited_for: bool,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut out = BufWriter::new(file);
    fill(&mut out)?;
    let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    match is_waited_for && file.metadata()?.is_file() {
        // Some file systems say only here that the disk is full.
        true => file.sync_all(),
        false => Ok(()),
    }
}

/// A name in the target's folder that no other process of this program uses.
fn beside(target: &Path) -> io::Result<PathBuf> {
    let name = target.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    Ok(target.with_file_name(format!(".{}.{}", name.to_string_lossy(), process::id())))
}
