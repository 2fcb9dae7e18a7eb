//! Errors of the kernel and of the networks made of it: each variant names the culprit and the remedy.
//!
//! One type for this crate and for `testbed`, because both are reported alike. Errors of programs are the caller's.

use std::io;
use std::path::PathBuf;

use nix::errno::Errno;
use wire::link::ConfigError;

/// Reason why a host or a link was not created, or failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system does not allow this process networks of its own.
    #[error("cannot measure here: {missing}; {remedy}")]
    Forbidden {
        /// The missing capability, device or setting.
        missing: String,
        /// Remedy for the user.
        remedy: String,
    },
    /// The kernel refused one step.
    #[error("could not {doing}: {} ({errno:?}); the kernel may be too old or a sandbox may forbid it", .errno.desc())]
    Kernel {
        /// The refused step, as in "could not ...".
        doing: String,
        /// The kernel's error.
        errno: Errno,
    },
    /// The kernel accepted a setting and reports another value: a measurement would be of something else.
    #[error(
        "the kernel holds {setting} at {found} instead of {wanted}; choose another stack profile or another kernel"
    )]
    Unpinned {
        /// Name of the setting, as documented.
        setting: String,
        /// Value that was set.
        wanted: String,
        /// Value that the kernel reports.
        found: String,
    },
    /// An inconsistent topology.
    #[error("no such network can be created: {0}")]
    Topology(String),
    /// An interface cannot have this name.
    #[error(
        "{0:?} is not a name for an interface; use 1 to 15 printable characters without slash, colon, \
                 percent sign or blank"
    )]
    InterfaceName(String),
    /// An invalid link.
    #[error(transparent)]
    Link(#[from] ConfigError),
    /// A capture could not be written.
    #[error("the capture {} could not be written ({error}); free some space, or name another file", .path.display())]
    Unwritten {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// A thread of the testbed stopped early.
    #[error("the {thread} thread stopped early; run again, and report it if it recurs")]
    Died {
        /// The thread.
        thread: &'static str,
    },
}

impl Error {
    /// Converter for `map_err`: the kernel's refusal of `doing`.
    pub fn kernel(doing: impl Into<String>) -> impl FnOnce(Errno) -> Self {
        let doing = doing.into();
        move |errno| Self::Kernel { doing, errno }
    }

    /// Converter for `map_err`: the standard library's error in `doing`.
    pub fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |error| Self::Kernel { doing, errno: error.raw_os_error().map_or(Errno::EIO, Errno::from_raw) }
    }
}
