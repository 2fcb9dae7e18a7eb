//! Extensions beyond the paper, each optional, by its name (`papers/dhttp#section-iii-c`, and the sections on
//! connections and size thresholds, name them as work that is left).
//!
//! Not what each does: that is in the values of [`super::ServerConfig`] and [`super::ClientConfig`], which their
//! `with` changes.

use core::fmt;

/// Something that goes beyond the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Extension {
    /// Loss is tracked for each prefix of clients, not in aggregate.
    LossByPrefix,
    /// More than one connection to a client while few are open.
    MoreConnections,
    /// The size threshold adapts to the way to each prefix.
    AdaptiveSize,
    /// An answer may come in several datagrams, and what is lost of it is asked for as a range.
    Parts,
}

impl Extension {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::LossByPrefix, Self::MoreConnections, Self::AdaptiveSize, Self::Parts];

    /// On the command line and in files.
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
