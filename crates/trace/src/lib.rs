//! Stage 3, results: the rows that every engine returns.
//!
//! Read in this order: [`metrics`] is the result of one scenario by one engine; [`statistics`] summarises several runs;
//! [`cause`] names the causes of stalls, [`account`] divides time among them; [`text`] formats counts and times for
//! sentences; [`har`] writes fetched pages, for browsers' tools.
//!
//! It makes no diagnosis: `diagnose` finds the causes of slowness, `roundtrip` presents results. Packets are `packets`'s.
//!
//! ```
//! use roundtrip_trace::Cause;
//!
//! assert_eq!(Cause::NagleDelayedAck.name(), "nagle-delayed-ack");
//! ```

pub mod account;
pub mod cause;
pub mod har;
pub mod metrics;
pub mod statistics;
pub mod text;

pub use account::{Account, Share};
pub use cause::Cause;
pub use metrics::{Metrics, Stall};
pub use statistics::Summary;
