//! Counters of an origin's failures.
//!
//! Responses are counted by the server.

use dhttp::counters::counters;

counters! {
    /// Whether it is believed to answer.
    up = "origin_up", "Whether the origin responds: 1, or 0 while only probes are sent.";
    /// Connections that could not be had.
    unreachable = "origin_failures_total{why=\"unreachable\"}", "Requests without a response from the origin, by reason.";
    /// Answers that did not begin.
    silent = "origin_failures_total{why=\"silent\"}", "";
    /// Invalid responses.
    broken = "origin_failures_total{why=\"broken\"}", "";
    /// Requests that it was spared.
    spared = "origin_failures_total{why=\"down\"}", "";
}
