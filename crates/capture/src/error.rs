//! Errors of a capture: the culprit, and the remedy.

use std::io;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use packets::Unreadable;
use quantity::names::shown;

/// Reason why nothing was diagnosed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read.
    #[error("cannot read {}: {error}", shown(.path))]
    Unreadable {
        /// Path of the file; `-` is standard input.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// A file is not a capture.
    #[error("{}: {error}", named(.path))]
    NotACapture {
        /// Path of the file; `-` is standard input.
        path: PathBuf,
        /// Reason.
        error: Unreadable,
    },
    /// The command cannot be run.
    #[error("{}", not_run(.program, .error))]
    Command {
        /// Program of the command, without control characters.
        program: String,
        /// The system's error.
        error: io::Error,
    },
    /// The system does not permit this process to capture packets.
    #[error("cannot capture here: {missing}; {remedy}")]
    Forbidden {
        /// The missing privilege.
        missing: String,
        /// Remedy for the user.
        remedy: String,
    },
    /// The kernel refused to report packets or sockets.
    #[error(transparent)]
    Kernel(#[from] linux::Error),
    /// Waiting for signals failed.
    #[error("cannot wait for signals: {0}")]
    Signals(Errno),
    /// Waiting for packets failed.
    #[error("cannot wait for packets: {0}")]
    Packets(Errno),
}

fn named(path: &Path) -> String {
    if path.as_os_str() == "-" { "standard input".to_owned() } else { shown(path) }
}

fn not_run(program: &str, error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::NotFound {
        return format!("no such program: `{program}`; give one that is in PATH, or its path");
    }
    format!("cannot run `{program}`: {error}")
}
