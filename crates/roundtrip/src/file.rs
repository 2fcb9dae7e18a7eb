//! Output files: whole or not at all.
//!
//! A file is written under a temporary name beside its target and renamed, so that whoever looks sees the old one
//! or the new one. What is not a regular file (a pipe, `/dev/stdout`) is written to as it is.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process;

use crate::failure::Failure;

/// Puts `contents` at `path`, replacing what was there. On failure nothing is left behind.
pub fn write(path: &Path, contents: &[u8]) -> Result<(), Failure> {
    put(path, contents).map_err(|error| Failure::Write { path: path.to_owned(), error })
}

fn put(path: &Path, contents: &[u8]) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(there) if there.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(there) if !there.is_file() => File::options().write(true).open(path)?.write_all(contents),
        // Through a symbolic link: what it points to is replaced, not the link.
        Ok(there) => replace(&fs::canonicalize(path)?, contents, Some(there.permissions())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => replace(path, contents, None),
        Err(error) => Err(error),
    }
}

fn replace(target: &Path, contents: &[u8], permissions: Option<fs::Permissions>) -> io::Result<()> {
    let temporary = beside(target)?;
    let written = fill(&temporary, contents, permissions).and_then(|()| fs::rename(&temporary, target));
    if written.is_err() {
        // It may not even exist: the first error is the one to tell.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// A name in the target's folder that no other process of this program uses.
fn beside(target: &Path) -> io::Result<PathBuf> {
    let name = target.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    Ok(target.with_file_name(format!(".{}.{}", name.to_string_lossy(), process::id())))
}

fn fill(path: &Path, contents: &[u8], permissions: Option<fs::Permissions>) -> io::Result<()> {
    let mut file = File::options().write(true).create_new(true).open(path)?;
    file.write_all(contents)?;
    if let Some(permissions) = permissions {
        file.set_permissions(permissions)?;
    }
    // Some file systems say only here that the disk is full.
    file.sync_all()
}
