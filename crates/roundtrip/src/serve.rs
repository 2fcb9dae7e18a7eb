//! Parts of `roundtrip serve`, `gateway`, `cache`, `nat` and `get` outside the crate `dhttp`: settings, signals,
//! Prometheus metrics, logging on standard error, and the store of servers known to speak DHTTP.
//!
//! Not the server: that is the crate `dhttp`.

pub mod cache_storage;
pub mod known_servers;
pub mod layers;
pub mod limits;
pub mod metrics;
pub mod networks;
pub mod privileges;
pub mod response_source;
pub mod settings;
pub mod signals;
pub mod tracing;
