//! What can go wrong between a scenario and its measurement: each variant names the culprit and the remedy.
//!
//! Not the peer's faults inside a run: those are `http1`'s, and a run that failed carries them as a sentence.

use std::fmt;
use std::io;
use std::path::PathBuf;

use nix::errno::Errno;
use scenario::serving::Unserved;
use wire::link::ConfigError;

use crate::fidelity::Unreproducible;

/// Why nothing was measured.
#[derive(Debug)]
pub enum Error {
    /// The system does not let this process have a laboratory of its own.
    Forbidden {
        /// What is missing: a capability, a device, a setting.
        missing: String,
        /// What the user can do about it.
        remedy: String,
    },
    /// The system does not let this process see packets.
    Uncaptured {
        /// What is missing.
        missing: String,
        /// What the user can do about it.
        remedy: String,
    },
    /// The kernel refused one step of building the laboratory.
    Kernel {
        /// What was being done, as in "could not ...".
        doing: String,
        /// The kernel's answer.
        errno: Errno,
    },
    /// The kernel took a setting and holds another: a measurement would be of something else.
    Unpinned {
        /// The setting, as a user would look it up.
        setting: String,
        /// What the stack profile asks for.
        wanted: String,
        /// What the kernel says it holds.
        found: String,
    },
    /// The scenario asks for what a real kernel cannot do.
    Unsuited {
        /// Which part of the scenario.
        part: String,
        /// What to choose instead.
        remedy: String,
    },
    /// The stack profile has what this kernel has not, and the scenario would show it.
    Stack(Unreproducible),
    /// A link cannot be as the scenario has it.
    Link(ConfigError),
    /// A capture could not be written.
    Unwritten {
        /// Where to.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// A run did not end well, and repeating it did not help.
    Run {
        /// Which run, from 1.
        number: u32,
        /// What happened.
        what: String,
    },
    /// A thread of the laboratory ended before its work did.
    Died {
        /// Whose.
        thread: &'static str,
    },
}

impl Error {
    /// For `map_err`: the kernel's refusal of what was being done.
    pub(crate) fn kernel(doing: impl Into<String>) -> impl FnOnce(Errno) -> Self {
        let doing = doing.into();
        move |errno| Self::Kernel { doing, errno }
    }

    /// The same, where the standard library did the asking.
    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
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
