//! Numbers of requests, servers and connections.

/// A request of a policy; numbered from 0, in the order in which they are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestId(pub u32);

/// A server of a page, by its index in the plan's origins.
pub type Endpoint = usize;

/// A connection; numbered from 0. Those that servers open have numbers from 2^31, which the driver assigns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionId(pub u32);

impl ConnectionId {
    const FIRST_ACCEPTED: u32 = 1 << 31;

    /// The connection with this number among those that servers opened.
    pub const fn accepted(number: u32) -> Self {
        Self(number | Self::FIRST_ACCEPTED)
    }

    /// Its number among the connections that servers opened, if it is one.
    pub const fn accepted_number(self) -> Option<u32> {
        if self.0 < Self::FIRST_ACCEPTED { None } else { Some(self.0 - Self::FIRST_ACCEPTED) }
    }
}
