//! Result of an engine for one scenario: means over its runs, and stalls.
//!
//! Values unknown to an engine are `None`. The scenario and its lower bound are not here.

use serde::{Deserialize, Serialize};

use crate::cause::Cause;

/// Means over the runs of a scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Metrics {
    /// Time from the first packet of the first request to the last byte of the last response.
    pub elapsed_ms: Option<f64>,
    /// Standard deviation of `elapsed_ms`; `None` for fewer than two runs.
    pub elapsed_ms_stddev: Option<f64>,
    /// Round trips without useful transmission.
    pub round_trips: Option<f64>,
    /// Packets that the client sent.
    pub packets_up: Option<f64>,
    /// Packets that the server sent.
    pub packets_down: Option<f64>,
    /// Payload of TCP or UDP, both directions.
    pub payload_bytes: Option<f64>,
    /// Connections opened.
    pub connections: Option<f64>,
    /// Number of runs for the means.
    pub runs: u32,
    /// Time of the load event, which waits for part of the objects: their last byte. `None` if it waits for all, or is not known.
    pub load_ms: Option<f64>,
}

impl Metrics {
    /// Share of headers in all bytes, 40 bytes for each packet, in percent (W3C note, `papers/w3c#table-3`).
    pub fn overhead_percent(&self) -> Option<f64> {
        let (packets, payload) = (self.packets_up? + self.packets_down?, self.payload_bytes?);
        let headers = 40.0 * packets;
        Some(100.0 * headers / (payload + headers))
    }
}

/// A time without useful transmission, and its cause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stall {
    /// Cause, in kebab-case in the JSON.
    pub cause: Cause,
    /// Start, in milliseconds since the start of the run.
    pub at_ms: f64,
    /// Lost time, milliseconds.
    pub lost_ms: f64,
}
