//! Reasons why a scenario cannot be simulated, in sentences for the user.

use std::fmt;

use scenario::serving::ServingError;

use tcp::config::ConfigError;

/// Reason why a scenario cannot be simulated.
#[derive(Clone, Debug, PartialEq)]
pub enum Error {
    /// A part that this engine cannot honour.
    Unsuited {
        /// The part.
        what: String,
        /// Alternative for the user.
        remedy: String,
    },
    /// An invalid network.
    Network(scenario::network::NetworkError),
    /// An invalid link.
    Link(wire::link::ConfigError),
    /// An invalid stack.
    Stack(ConfigError),
    /// An invalid page plan.
    Plan(fetch::PlanError),
}

impl Error {
    pub(crate) fn unsuited(what: &str, remedy: &str) -> Self {
        Self::Unsuited { what: what.to_owned(), remedy: remedy.to_owned() }
    }
}

impl From<ServingError> for Error {
    fn from(unserved: ServingError) -> Self {
        let ServingError { what, remedy } = unserved;
        Self::unsuited(&what, remedy)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsuited { what, remedy } => write!(f, "the simulator cannot do {what}; {remedy}"),
            Self::Network(error) => error.fmt(f),
            Self::Link(error) => error.fmt(f),
            Self::Stack(error) => error.fmt(f),
            Self::Plan(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}
