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
    /// A file of qlog has nothing to diagnose.
    #[error("{}: {fault}", named(.path))]
    Qlog {
        /// Path of the file; `-` is standard input.
        path: PathBuf,
        /// Reason.
        fault: qlog::Fault,
    },
    /// A file is not a key log.
    #[error("{}: {fault}", named(.path))]
    KeyLog {
        /// Path of the file; `-` is standard input.
        path: PathBuf,
        /// Reason.
        fault: KeyLogFault,
    },
    /// Packets cannot be stored until the key log is complete.
    #[error("cannot store packets in {}: {}; TMPDIR names another directory", std::env::temp_dir().display(), .0)]
    Spool(io::Error),
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

/// Reason why a key log is not used.
#[derive(Debug, thiserror::Error)]
pub enum KeyLogFault {
    /// No line has a secret.
    #[error(
        "it is not a key log with secrets of TLS{}; give the file that SSLKEYLOGFILE names for curl, a browser or a library",
        .0.as_ref().map_or_else(String::new, |left_out| format!(" ({left_out})"))
    )]
    NoSecrets(Option<String>),
    /// More bytes than a key log may have.
    #[error("it has more than 64 MiB; give the lines of the captured connections")]
    Long,
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
