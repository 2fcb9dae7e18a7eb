//! Counters of an origin's failures.
//!
//! Responses are counted by the server.

use dhttp::counters::counters;

counters! {
    /// Whether the origin is considered up.
    up = "origin_up", "Whether the origin responds: 1, or 0 while only probes are sent.";
    /// Connections that failed.
    unreachable = "origin_failures_total{why=\"unreachable\"}", "Requests without a response from the origin, by reason.";
    /// Responses that timed out before they began.
    silent = "origin_failures_total{why=\"silent\"}", "";
    /// Invalid responses.
    broken = "origin_failures_total{why=\"broken\"}", "";
    /// Requests not sent because the origin is down.
    spared = "origin_failures_total{why=\"down\"}", "";
}
