//! Public view of a host: its settings, a connection's address, its counters.

use tcp::Config;
use wire::Duration;

use crate::world::HostId;

/// Settings of a host.
#[derive(Clone, Debug, PartialEq)]
pub struct HostConfig {
    /// TCP configuration.
    pub tcp: Config,
    /// Time from an arrival to the run of the application that sleeps until it. Timers of the application are
    /// exact.
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
    /// The host.
    pub host: HostId,
    /// The port.
    pub port: u16,
}

/// Counters of a host's packets and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets sent.
    pub packets: u64,
    /// Payload sent, including retransmissions.
    pub payload_bytes: u64,
    /// Segments with data or a FIN that had been sent before.
    pub retransmissions: u64,
    /// Connections opened or accepted.
    pub connections: u64,
}

impl Counters {
    /// Sum with those of another host.
    pub const fn plus(&self, other: &Self) -> Self {
        Self {
            packets: self.packets.saturating_add(other.packets),
            payload_bytes: self.payload_bytes.saturating_add(other.payload_bytes),
            retransmissions: self.retransmissions.saturating_add(other.retransmissions),
            connections: self.connections.saturating_add(other.connections),
        }
    }

    /// Difference since `before`.
    pub const fn since(&self, before: &Self) -> Self {
        Self {
            packets: self.packets.saturating_sub(before.packets),
            payload_bytes: self.payload_bytes.saturating_sub(before.payload_bytes),
            retransmissions: self.retransmissions.saturating_sub(before.retransmissions),
            connections: self.connections.saturating_sub(before.connections),
        }
    }
}
