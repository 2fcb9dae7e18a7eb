//! A host from outside: how it behaves, where a connection ends, what was counted.

use tcp::Config;
use wire::Duration;

use crate::world::HostId;

/// How a host behaves.
#[derive(Clone, Debug, PartialEq)]
pub struct HostConfig {
    /// Its TCP.
    pub tcp: Config,
    /// From an arrival to the run of the application that sleeps until it. Timers it is told to wait for are exact.
    pub wake_up: Duration,
}

impl HostConfig {
    /// A host whose application runs at the instant of an arrival.
    pub const fn immediate(tcp: Config) -> Self {
        Self { tcp, wake_up: Duration::ZERO }
    }
}

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address {
    /// Which host.
    pub host: HostId,
    /// Which port there.
    pub port: u16,
}

/// What a host has sent and received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets sent.
    pub packets: u64,
    /// Payload sent, what was sent again included.
    pub payload_bytes: u64,
    /// Segments with data or a FIN that had been sent before.
    pub retransmissions: u64,
    /// Connections opened, or accepted.
    pub connections: u64,
}

impl Counters {
    /// What was added since `before`.
    pub const fn since(&self, before: &Self) -> Self {
        Self {
            packets: self.packets.saturating_sub(before.packets),
            payload_bytes: self.payload_bytes.saturating_sub(before.payload_bytes),
            retransmissions: self.retransmissions.saturating_sub(before.retransmissions),
            connections: self.connections.saturating_sub(before.connections),
        }
    }
}
