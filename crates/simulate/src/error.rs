//! Reasons why a scenario cannot be simulated, in sentences for the user.

use scenario::serving::ServingError;

use tcp::config::ConfigError;

/// Reason why a scenario cannot be simulated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// A part that this engine cannot honour.
    #[error("the simulator cannot do {what}; {remedy}")]
    Unsuited {
        /// The part.
        what: String,
        /// Alternative for the user.
        remedy: String,
    },
    /// An invalid network.
    #[error("{0}")]
    Network(scenario::network::NetworkError),
    /// An invalid link.
    #[error("{0}")]
    Link(wire::link::ConfigError),
    /// An invalid stack.
    #[error("{0}")]
    Stack(ConfigError),
    /// An invalid page plan.
    #[error("{0}")]
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
