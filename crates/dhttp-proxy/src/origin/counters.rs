//! Counters of an origin's failures.
//!
//! Responses are counted by the server.

use dhttp::counters::counters;

counters! {
    /// Whether the origin is considered up.
    up = "roundtrip_origin_up", "Whether the origin responds: 1, or 0 while only probes are sent.";
    /// Connections that failed.
    unreachable = "roundtrip_origin_failures_total{reason=\"unreachable\"}", "Requests without a response from the origin, by reason.";
    /// Responses that timed out before they began.
    silent = "roundtrip_origin_failures_total{reason=\"silent\"}", "";
    /// Invalid responses.
    broken = "roundtrip_origin_failures_total{reason=\"broken\"}", "";
    /// Requests not sent because the origin is down.
    spared = "roundtrip_origin_failures_total{reason=\"down\"}", "";
}
