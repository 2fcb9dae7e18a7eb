//! The two ends of a path, and values for each.
//!
//! The hosts themselves are [`crate::Namespace`]s.

/// One end of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The client's host.
    Client,
    /// The server's host.
    Server,
}

/// Direction of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketDirection {
    /// From the client to the server.
    Up,
    /// From the server to the client.
    Down,
}

/// A value for each end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerEnd<T> {
    /// The client's.
    pub client: T,
    /// The server's.
    pub server: T,
}

impl<T> PerEnd<T> {
    /// Calls `value` for each end.
    pub fn of(mut value: impl FnMut(End) -> T) -> Self {
        Self { client: value(End::Client), server: value(End::Server) }
    }

    /// The value of one end.
    pub const fn at(&self, end: End) -> &T {
        match end {
            End::Client => &self.client,
            End::Server => &self.server,
        }
    }
}
