//! What `roundtrip serve`, `gateway`, `cache`, `nat` and `get` need beside the crate `dhttp`: settings, signals, what is told
//! to Prometheus and on standard error, and the servers that are remembered.
//!
//! Not the server: that is the crate `dhttp`.

pub mod keeping;
pub mod known;
pub mod metrics;
pub mod networks;
pub mod served;
pub mod settings;
pub mod signals;
pub mod tracing;
