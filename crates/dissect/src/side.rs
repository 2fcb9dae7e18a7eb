//! The two ends of a connection.

use std::fmt;

/// Side of a connection: the one that opened it, or the one that accepted it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The side that opened it. (Where the opening was not captured: the one that sends requests, or has the higher
    /// port.)
    Client,
    /// The side that accepted it.
    Server,
}

impl Side {
    /// Returns the other side.
    pub const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Client => "client",
            Self::Server => "server",
        })
    }
}

/// A value for each side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Both<T> {
    /// The client's.
    pub client: T,
    /// The server's.
    pub server: T,
}

impl<T> Both<T> {
    /// Returns the value of `side`.
    pub const fn of(&self, side: Side) -> &T {
        match side {
            Side::Client => &self.client,
            Side::Server => &self.server,
        }
    }

    /// Returns the value of `side`, to be changed.
    pub const fn of_mut(&mut self, side: Side) -> &mut T {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }
}
