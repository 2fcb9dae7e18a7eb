//! Counters of a gateway.
//!
//! The log is [`dhttp::log`].

use std::sync::atomic::AtomicU64;

use dhttp::counters::counters;
use dhttp::log::Channel;

counters! {
    /// Idle connections closed for others.
    evicted = "roundtrip_gateway_connections_closed_total{reason=\"idle\"}", "Client connections closed early, by reason.";
    /// Exchanges, tunnels and unread responses that ended for newcomers.
    aborted = "roundtrip_gateway_connections_closed_total{reason=\"newcomer\"}", "";
    /// Uploads below the minimum rate, and responses that clients do not read.
    slow = "roundtrip_gateway_connections_closed_total{reason=\"slow\"}", "";
    /// Connections refused by a limit.
    turned_away = "roundtrip_gateway_connections_refused_total", "Client connections refused because of a limit.";
    /// Requests beyond the limit for one server.
    origin_full = "roundtrip_gateway_requests_refused_total{reason=\"origin\"}", "Requests refused (503), by the limit.";
    /// Responses in one datagram.
    udp = "roundtrip_gateway_responses_total{channel=\"udp\"}", "Responses forwarded, by the channel to the server.";
    /// Responses on connections that servers opened.
    tcp_opened = "roundtrip_gateway_responses_total{channel=\"tcp-opened\"}", "";
    /// Responses on connections that the gateway opened.
    tcp_client = "roundtrip_gateway_responses_total{channel=\"tcp-client\"}", "";
    /// Responses from the cache.
    cache = "roundtrip_gateway_responses_total{channel=\"cache\"}", "";
    /// Responses of the gateway itself.
    own = "roundtrip_gateway_own_responses_total", "Responses of the gateway itself: proxy.pac and errors.";
    /// Tunnels (CONNECT).
    tunnels = "roundtrip_gateway_tunnels_total", "Tunnels opened (CONNECT).";
    /// Responses that failed or were cut short.
    failed = "roundtrip_gateway_failed_total", "Requests whose response failed or was cut short.";
    /// Reused connections to servers.
    reused = "roundtrip_gateway_connections_reused_total", "Requests sent on a persistent connection.";
    /// Client connections accepted.
    accepted = "roundtrip_gateway_connections_accepted_total", "Client connections accepted.";
    /// Open connections of programs.
    open_now = "roundtrip_gateway_connections_open", "Open client connections.";
    /// Open connections of programs that wait for a server.
    busy_now = "roundtrip_gateway_connections_busy", "Open client connections whose request waits for a server.";
    /// Open tunnels.
    tunnels_now = "roundtrip_gateway_tunnels_open", "Open tunnels (CONNECT).";
}

impl Counters {
    /// Returns the counter of responses by this channel.
    pub(super) const fn responses(&self, channel: Channel) -> &AtomicU64 {
        match channel {
            Channel::Udp => &self.udp,
            Channel::TcpOpened => &self.tcp_opened,
            Channel::Cache => &self.cache,
            Channel::TcpClient | Channel::Overload => &self.tcp_client,
        }
    }

    /// Renders the counters in Prometheus' text format.
    pub fn metrics(&self) -> String {
        Self::text(&[self])
    }
}
