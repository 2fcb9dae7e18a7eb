//! Mounts that only one thread and its programs see; they vanish with the thread.
//!
//! Everything else in the file system is the caller's.

use std::thread;

use nix::mount::MsFlags;
use nix::sched::{CloneFlags, unshare};

use crate::Error;

/// Runs `job` in a thread with mounts of its own, in the calling thread's network namespace. Requires root.
///
/// # Errors
/// If the system refuses the thread or its mount namespace; and errors of `job`.
pub fn apart<T: Send>(job: impl FnOnce() -> Result<T, Error> + Send) -> Result<T, Error> {
    let in_namespace = || {
        unshare(CloneFlags::CLONE_NEWNS).map_err(Error::kernel("create a mount namespace for a thread"))?;
        // Mounts from here on are private to the thread.
        change("none", "/", MsFlags::MS_REC | MsFlags::MS_PRIVATE, None)?;
        job()
    };
    thread::scope(|scope| scope.spawn(in_namespace).join()).map_err(|_| Error::Died { thread: "mounts" })?
}

/// Mounts a file system of this kind at a directory, such as `tmpfs` with `size=4k`.
///
/// # Errors
/// The kernel's error.
pub fn mount(kind: &str, directory: &str, options: &str) -> Result<(), Error> {
    change(kind, directory, MsFlags::empty(), Some((kind, options)))
}

fn change(source: &str, directory: &str, flags: MsFlags, kind: Option<(&str, &str)>) -> Result<(), Error> {
    let (kind, options) = kind.unzip();
    nix::mount::mount(Some(source), directory, kind, flags, options)
        .map_err(Error::kernel(format!("mount {source} at {directory}")))
}
