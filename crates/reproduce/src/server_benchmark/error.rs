//! Errors of the server benchmark: each variant names the culprit.
//!
//! Not those of the users' requests: they are counted in the outcomes.

use std::fmt;
use std::io;

/// Reason why a server was not benchmarked.
#[derive(Debug)]
pub enum Error {
    /// The hosts or the link between them failed, or the kernel refused them.
    Testbed(testbed::Error),
    /// A server is not installed.
    NotInstalled {
        /// Name of the server.
        server: &'static str,
        /// Debian's package that contains it.
        package: &'static str,
    },
    /// The system refused something.
    System {
        /// The refused action, as in "could not ...".
        doing: String,
        /// The system's error.
        error: io::Error,
    },
    /// The load did not run.
    Load(load::run::Error),
}

impl Error {
    /// For `map_err`: the system's error in `begin_measurement`.
    pub fn system(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |error| Self::System { doing, error }
    }
}

impl From<testbed::Error> for Error {
    fn from(error: testbed::Error) -> Self {
        Self::Testbed(error)
    }
}

impl From<load::run::Error> for Error {
    fn from(error: load::run::Error) -> Self {
        Self::Load(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Testbed(error) => error.fmt(f),
            Self::NotInstalled { server, package } => {
                write!(f, "{server} is not installed; install it (Debian's {package}), and try again")
            }
            Self::System { doing, error } => write!(f, "could not {doing}: {error}"),
            Self::Load(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}
