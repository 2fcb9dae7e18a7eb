//! Operation of `roundtrip serve`, `gateway`, `cache`, `nat` and `get`.
//!
//! Settings, signals, Prometheus metrics, logging on standard error, and the file of servers known to speak DHTTP. The
//! servers themselves are in the crates `dhttp` and `dhttp_proxy`.

#[cfg(feature = "all-verbs")]
pub mod cache_storage;
#[cfg(feature = "all-verbs")]
pub mod known_servers;
#[cfg(feature = "all-verbs")]
pub mod layers;
#[cfg(feature = "all-verbs")]
pub mod limits;
pub mod metrics;
#[cfg(feature = "all-verbs")]
pub mod networks;
#[cfg(feature = "all-verbs")]
pub mod privileges;
#[cfg(feature = "all-verbs")]
pub mod response_source;
#[cfg(feature = "all-verbs")]
pub mod settings;
#[cfg(feature = "all-verbs")]
pub mod signals;
#[cfg(feature = "all-verbs")]
pub mod tracing;
