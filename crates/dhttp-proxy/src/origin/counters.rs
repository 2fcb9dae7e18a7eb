//! Counters of an origin's failures.
//!
//! Not the answers: the server counts these.

use dhttp::counters::counters;

counters! {
    /// Whether it is believed to answer.
    up = "origin_up", "Whether the origin answers, as far as is known (1), or is asked no more until it does (0).";
    /// Connections that could not be had.
    unreachable = "origin_failures_total{why=\"unreachable\"}", "Requests that the origin did not answer, by reason.";
    /// Answers that did not begin.
    silent = "origin_failures_total{why=\"silent\"}", "";
    /// Invalid responses.
    broken = "origin_failures_total{why=\"broken\"}", "";
    /// Requests that it was spared.
    spared = "origin_failures_total{why=\"down\"}", "";
}
