//! Errors of a capture: the culprit, and the remedy.

use std::fmt;
use std::io;
use std::path::PathBuf;

use nix::errno::Errno;
use packets::Unreadable;
use quantity::names::shown;

/// Reason why nothing was diagnosed.
#[derive(Debug)]
pub enum Error {
    /// A file cannot be read.
    Unreadable {
        /// Path of the file; `-` is standard input.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// A file is not a capture.
    NotACapture {
        /// Path of the file; `-` is standard input.
        path: PathBuf,
        /// Reason.
        error: Unreadable,
    },
    /// The command cannot be run.
    Command {
        /// Program of the command, without control characters.
        program: String,
        /// The system's error.
        error: io::Error,
    },
    /// The system does not permit this process to capture packets.
    Forbidden {
        /// The missing privilege.
        missing: String,
        /// Remedy for the user.
        remedy: String,
    },
    /// The kernel refused to report packets or sockets.
    Kernel(linux::Error),
    /// Waiting for signals failed.
    Signals(Errno),
    /// Waiting for packets failed.
    Packets(Errno),
}

impl From<linux::Error> for Error {
    fn from(error: linux::Error) -> Self {
        Self::Kernel(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { path, error } => write!(f, "cannot read {}: {error}", shown(path)),
            Self::NotACapture { path, error } if path.as_os_str() == "-" => {
                write!(f, "standard input: {error}")
            }
            Self::NotACapture { path, error } => write!(f, "{}: {error}", shown(path)),
            Self::Command { program, error } => match error.kind() {
                io::ErrorKind::NotFound => {
                    write!(f, "no such program: `{program}`; give one that is in PATH, or its path")
                }
                // The system's error kinds are open-ended.
                _ => write!(f, "cannot run `{program}`: {error}"),
            },
            Self::Forbidden { missing, remedy } => write!(f, "cannot capture here: {missing}; {remedy}"),
            Self::Kernel(error) => error.fmt(f),
            Self::Signals(error) => write!(f, "cannot wait for signals: {error}"),
            Self::Packets(error) => write!(f, "cannot wait for packets: {error}"),
        }
    }
}

impl std::error::Error for Error {}
