//! Extensions beyond the paper, each optional, by its name (`papers/dhttp#section-iii-c`, and the sections on
//! connections and size thresholds, name them as future work).
//!
//! Not their behaviour: that is set by the values of [`super::ServerConfig`] and [`super::ClientConfig`], which their
//! `with` changes.

use core::fmt;

/// Extension beyond the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Extension {
    /// Loss is tracked for each prefix of clients, not in aggregate.
    LossByPrefix,
    /// More than one connection to a client while few are open.
    MoreConnections,
    /// The size threshold adapts to the path to each prefix.
    AdaptiveSize,
    /// A response may be sent in several datagrams; its lost parts are requested as a range.
    Parts,
}

impl Extension {
    /// All extensions.
    pub const ALL: [Self; 4] = [Self::LossByPrefix, Self::MoreConnections, Self::AdaptiveSize, Self::Parts];

    /// Name on the command line and in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LossByPrefix => "loss-by-prefix",
            Self::MoreConnections => "more-connections",
            Self::AdaptiveSize => "adaptive-size",
            Self::Parts => "parts",
        }
    }
}

impl fmt::Display for Extension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
