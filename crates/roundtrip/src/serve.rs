//! What `roundtrip serve` needs beside the server: its settings, and what it tells Prometheus.
//!
//! Not the server: that is the crate `dhttp`.

pub mod metrics;
pub mod settings;
