//! Closed-form model of page load time: a scenario in, a prediction out, in microseconds.
//!
//! The formulas are those of `papers/heidemann-model`, equation by equation, and DHTTP's in the same terms. The input is
//! a [`scenario::Scenario`], the output a [`Prediction`]: elapsed time, round trips, stalls, and the formulas'
//! assumptions that the scenario breaks. In reading order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`path`] | the five characteristics of a network that the formulas use (Table I) |
//! | [`slow_start`] | slow start: segments between stalls, and the time wasted by each stall (appendix) |
//! | [`transaction`] | one request and its response as a sum of parts, and a series of them: equations (2), (6), (15) |
//! | [`minimum`] | the lower bound of all protocols: equation (1) |
//! | [`simple`] | ratio of round trip and reply, without a protocol: equations (3) and (4) |
//! | [`tcp`] | a connection for every object: equation (5) |
//! | [`caching`] | persistent connections, or cached TCP state: equations (8) to (11) |
//! | [`parallel`] | several concurrent connections: the paper's approximation |
//! | [`ardp`] | request and response over UDP with slow start: equation (14) |
//! | [`dhttp`] | small responses in a datagram, large ones over TCP that the server opens (no published formula) |
//! | [`graph`] | whole pages: several hosts, dependencies, TLS, HTTP/2 (no published formula) |
//! | [`mod@predict`] | the entry point: a scenario to its formula |
//! | [`notes`] | assumptions of the formulas that the scenario breaks |
//! | [`refusal`] | scenarios without a formula |
//!
//! The formulas have no loss, congestion avoidance, Nagle, delayed-ACK timers and queues; `simulate` and `measure` do.
//!
//! ```
//! use roundtrip_model::{Assumptions, predict};
//! use scenario::{Network, Page, Protocol, Scenario, Stack};
//!
//! let network = Network::named("modem")?;
//! let page = Page::named("small-cluster")?;
//! let scenario = Scenario::new(network, page, Protocol::Http11, Stack::named("linux")?);
//! let prediction = predict(&scenario, &Assumptions::default()).map_err(|refusal| refusal.to_string())?;
//! assert!(prediction.elapsed > scenario.network.rtt);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod ardp;
pub mod caching;
pub mod dhttp;
pub mod graph;
pub mod minimum;
pub mod notes;
pub mod parallel;
pub mod path;
pub mod predict;
pub mod refusal;
pub mod simple;
pub mod slow_start;
pub mod tcp;
pub mod transaction;

pub use notes::Note;
pub use path::Path;
pub use predict::{Assumptions, Prediction, predict};
pub use refusal::Refusal;
pub use slow_start::SlowStart;
pub use transaction::{Exchange, Series, Transaction};
