//! The result of one scenario by one engine: the row of a table, the object of a JSON array.
//!
//! It names the scenario and holds the results. Values unknown to an engine are `None`.

use serde::{Deserialize, Serialize};

use crate::cause::Cause;

/// One scenario, one engine, one result. The field names are the JSON's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The network's name.
    pub network: String,
    /// The page's name.
    pub page: String,
    /// `first` or `revalidate`.
    pub visit: String,
    /// The protocol's name.
    pub protocol: String,
    /// `model`, `simulate` or `measure`.
    pub engine: String,
    /// The stack profile's name.
    pub stack: String,
    /// Time from the first packet of the first request to the last byte of the last response; the mean over
    /// the runs.
    pub elapsed_ms: Option<f64>,
    /// `elapsed_ms` over that of the protocol `minimum` in the same scenario, by the model.
    pub overhead: Option<f64>,
    /// Round trips without useful transmission.
    pub round_trips: Option<f64>,
    /// Packets the client sent.
    pub packets_up: Option<f64>,
    /// Packets the server sent.
    pub packets_down: Option<f64>,
    /// Payload of TCP or UDP, both directions.
    pub payload_bytes: Option<f64>,
    /// Share of headers in all bytes: 40 x packets / (payload + 40 x packets), in percent (W3C note).
    pub overhead_percent: Option<f64>,
    /// Connections opened.
    pub connections: Option<f64>,
    /// Number of runs for the means.
    pub runs: u32,
    /// The standard deviation of `elapsed_ms` over the runs; null for fewer than two.
    pub elapsed_ms_stddev: Option<f64>,
    /// Stalls, where the engine knows them.
    pub stalls: Vec<Stall>,
    /// Sentences: assumptions that this scenario breaks, parts of it that the engine does not honour.
    pub notes: Vec<String>,
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
