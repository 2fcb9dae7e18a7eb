//! Errors of measuring: each variant names the culprit and the remedy.
//!
//! Protocol errors of the peer inside a run are `http1`'s, and a failed run carries them as a sentence.

use std::io;

use nix::errno::Errno;
use scenario::serving::ServingError;

use crate::fidelity::Unreproducible;

/// Reason why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The hosts or the link between them failed, or the kernel refused them.
    #[error(transparent)]
    Testbed(#[from] testbed::Error),
    /// The scenario requires something that a real kernel cannot do.
    #[error("cannot measure {part}; {remedy}")]
    Unsuited {
        /// The part of the scenario.
        part: String,
        /// Alternative for the user.
        remedy: String,
    },
    /// The stack profile has a part that this kernel lacks, and the scenario would show it.
    #[error("{0}")]
    Stack(Unreproducible),
    /// A run failed, and repeating it did not help.
    #[error("run {number} failed: {what}")]
    Run {
        /// Number of the run, from 1.
        number: u32,
        /// The failure.
        what: String,
    },
}

impl Error {
    /// A part of a scenario that a real kernel, or a program on it, cannot do.
    pub(crate) fn unsuited(part: &str, remedy: &str) -> Self {
        Self::Unsuited { part: part.to_owned(), remedy: remedy.to_owned() }
    }

    /// For `map_err`: the kernel's refusal of `doing`.
    pub(crate) fn kernel(doing: impl Into<String>) -> impl FnOnce(Errno) -> Self {
        let error = testbed::Error::kernel(doing);
        move |errno| Self::Testbed(error(errno))
    }

    /// For `map_err`: the standard library's error in `doing`.
    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let of_kernel = testbed::Error::io(doing);
        move |error| Self::Testbed(of_kernel(error))
    }
}

impl From<Unreproducible> for Error {
    fn from(unreproducible: Unreproducible) -> Self {
        Self::Stack(unreproducible)
    }
}

impl From<ServingError> for Error {
    fn from(error: ServingError) -> Self {
        let ServingError { what: part, remedy } = error;
        Self::Unsuited { part, remedy: remedy.to_owned() }
    }
}
