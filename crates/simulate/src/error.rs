//! Why a scenario cannot be simulated, in sentences for its user.

use std::fmt;

use scenario::serving::Unserved;

use tcp::config::ConfigError;

/// Why a scenario cannot be simulated.
#[derive(Clone, Debug, PartialEq)]
pub enum Error {
    /// A part of it that this engine cannot honour.
    Unsuited {
        /// Which.
        what: String,
        /// What to do instead.
        remedy: String,
    },
    /// A network that cannot be.
    Network(scenario::network::NetworkError),
    /// A link that cannot be.
    Link(wire::link::ConfigError),
    /// A stack that cannot be.
    Stack(ConfigError),
    /// A page that cannot be asked for.
    Plan(pageload::robot::PlanError),
}

impl Error {
    pub(crate) fn unsuited(what: &str, remedy: &str) -> Self {
        Self::Unsuited { what: what.to_owned(), remedy: remedy.to_owned() }
    }
}

impl From<Unserved> for Error {
    fn from(unserved: Unserved) -> Self {
        let Unserved { what, remedy } = unserved;
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
