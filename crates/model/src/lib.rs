//! Stage 2a, what the formulas say: a scenario in, a prediction out, in microseconds.
//!
//! The closed forms of `papers/heidemann-model`, equation by equation, and of DHTTP in the same terms. In flows a
//! [`scenario::Scenario`]; out flows a [`Prediction`]: how long, in how many round trips, stalled where, and which
//! assumptions of the formulas the scenario breaks. Read in this order:
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`path`] | the five characteristics of a network that the formulas use (Table I) |
//! | [`slow_start`] | the appendix: segments between stalls, and what each stall wastes |
//! | [`transaction`] | one request and its answer as a sum of parts, and a series of them: equations (2), (6), (15) |
//! | [`minimum`] | what no protocol can beat: equation (1) |
//! | [`simple`] | round trip over reply, before any protocol: equations (3) and (4) |
//! | [`tcp`] | a connection for every object: equation (5) |
//! | [`caching`] | connections, or what TCP learnt on them, kept: equations (8) to (11) |
//! | [`parallel`] | several connections at once: the paper's approximation |
//! | [`ardp`] | request and response over UDP with slow start: equation (14) |
//! | [`dhttp`] | small answers in a datagram, large ones over TCP that the server opens: ours |
//! | [`mod@predict`] | the front door: a scenario to its formula |
//! | [`notes`] | what the formulas assume and the scenario does not keep |
//! | [`refusal`] | what they cannot say at all |
//!
//! What it is not: it sends nothing, loses nothing and queues nothing. Loss, congestion avoidance, Nagle, delayed
//! ACK timers and queues are outside the formulas; `simulate` and `measure` have them.

pub mod ardp;
pub mod caching;
pub mod dhttp;
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
