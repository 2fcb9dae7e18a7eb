//! Errors of measuring: each variant names the culprit and the remedy.
//!
//! Protocol errors of the peer inside a run are `http1`'s, and a failed run carries them as a sentence.

use std::fmt;
use std::io;
use std::path::PathBuf;

use nix::errno::Errno;
use scenario::serving::Unserved;
use wire::link::ConfigError;

use crate::fidelity::Unreproducible;

/// Reason why nothing was measured.
#[derive(Debug)]
pub enum Error {
    /// The system does not allow this process a laboratory of its own.
    Forbidden {
        /// The missing capability, device or setting.
        missing: String,
        /// Remedy for the user.
        remedy: String,
    },
    /// The system does not allow this process to capture packets.
    Uncaptured {
        /// The missing right.
        missing: String,
        /// Remedy for the user.
        remedy: String,
    },
    /// The kernel refused one step of building the laboratory.
    Kernel {
        /// The refused step, as in "could not ...".
        doing: String,
        /// The kernel's error.
        errno: Errno,
    },
    /// The kernel accepted a setting and reports another value: a measurement would be of something else.
    Unpinned {
        /// Name of the setting, as documented.
        setting: String,
        /// Value of the stack profile.
        wanted: String,
        /// Value that the kernel reports.
        found: String,
    },
    /// The scenario requires something that a real kernel cannot do.
    Unsuited {
        /// The part of the scenario.
        part: String,
        /// Alternative for the user.
        remedy: String,
    },
    /// The stack profile has a part that this kernel lacks, and the scenario would show it.
    Stack(Unreproducible),
    /// An invalid link of the scenario.
    Link(ConfigError),
    /// A capture could not be written.
    Unwritten {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// A run failed, and repeating it did not help.
    Run {
        /// Number of the run, from 1.
        number: u32,
        /// The failure.
        what: String,
    },
    /// A thread of the laboratory ended before its work was done.
    Died {
        /// The thread.
        thread: &'static str,
    },
}

impl Error {
    /// For `map_err`: the kernel's refusal of `doing`.
    pub fn kernel(doing: impl Into<String>) -> impl FnOnce(Errno) -> Self {
        let doing = doing.into();
        move |errno| Self::Kernel { doing, errno }
    }

    /// The same, for errors of the standard library.
    pub fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |error| Self::Kernel { doing, errno: error.raw_os_error().map_or(Errno::EIO, Errno::from_raw) }
    }
}

impl From<Unreproducible> for Error {
    fn from(unreproducible: Unreproducible) -> Self {
        Self::Stack(unreproducible)
    }
}

impl From<Unserved> for Error {
    fn from(unserved: Unserved) -> Self {
        let Unserved { what, remedy } = unserved;
        Self::Unsuited { part: what, remedy: remedy.to_owned() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forbidden { missing, remedy } => write!(f, "cannot measure here: {missing}; {remedy}"),
            Self::Uncaptured { missing, remedy } => write!(f, "cannot capture here: {missing}; {remedy}"),
            Self::Kernel { doing, errno } => {
                write!(
                    f,
                    "could not {doing}: {} ({errno:?}); the kernel may be too old or a sandbox may forbid it",
                    errno.desc()
                )
            }
            Self::Unpinned { setting, wanted, found } => write!(
                f,
                "the kernel holds {setting} at {found} and the stack profile needs {wanted}; choose another --profile or another kernel"
            ),
            Self::Unsuited { part, remedy } => write!(f, "cannot measure {part}; {remedy}"),
            Self::Stack(unreproducible) => unreproducible.fmt(f),
            Self::Link(error) => error.fmt(f),
            Self::Unwritten { path, error } => write!(
                f,
                "the capture {} could not be written ({error}); make room, or name another file",
                path.display()
            ),
            Self::Run { number, what } => write!(f, "run {number} failed: {what}"),
            Self::Died { thread } => write!(
                f,
                "the {thread} thread ended before its work did; run again, and report it if it recurs"
            ),
        }
    }
}

impl std::error::Error for Error {}

impl From<ConfigError> for Error {
    fn from(error: ConfigError) -> Self {
        Self::Link(error)
    }
}
