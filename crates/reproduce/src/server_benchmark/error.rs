//! Errors of the server benchmark: each variant names the culprit.
//!
//! Not those of the users' requests: they are counted in the outcomes.

use std::io;

/// Reason why a server was not benchmarked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The hosts or the link between them failed, or the kernel refused them.
    #[error(transparent)]
    Testbed(#[from] testbed::Error),
    /// A server is not installed.
    #[error("{server} is not installed; install it (Debian's {package}), and try again")]
    NotInstalled {
        /// Name of the server.
        server: &'static str,
        /// Debian's package that contains it.
        package: &'static str,
    },
    /// The system refused something.
    #[error("could not {doing}: {error}")]
    System {
        /// The refused action, as in "could not ...".
        doing: String,
        /// The system's error.
        error: io::Error,
    },
    /// The load did not run.
    #[error(transparent)]
    Load(#[from] load::run::Error),
}

impl Error {
    /// Returns a function for `map_err`, which names what was being done.
    pub fn system(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |error| Self::System { doing, error }
    }
}
