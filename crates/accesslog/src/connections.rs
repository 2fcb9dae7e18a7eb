//! Connections that a server holds and opens, for every timeout in one pass (`papers/dhttp#section-vi-a`).
//!
//! **The rule.** A request opens a connection while its client has fewer than K open; at K it reuses the
//! oldest. A connection closes T after its last use (at T after it, it is still open). With DHTTP, responses
//! smaller than a threshold go by UDP and use no connection.
//!
//! **One pass.** With "oldest" as the least recently used, the K connections of a client were last used by its last K
//! requests. So request *i* opens a connection exactly if `t(i) - t(i-K) > T`. The connection that request *i* uses
//! is open from `t(i)` until request *i+K* takes it over, or T has passed. One histogram of these gaps gives the
//! connections opened for every T; the number open simultaneously is counted for every T from the same gaps. Nothing
//! depends on events more than the longest T ago, so that a log can be split anywhere and its parts counted separately,
//! each after a warm-up of that length.
//!
//! In flow [`Request`](crate::Request)s in order of time; out flow [`Counts`]. Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`query`] | timeouts, limits, thresholds and the rule |
//! | [`counts`] | the result, and sums of partial results |
//! | [`counter`] | the one pass |
//! | [`client_table`] | the last uses of each client, while they matter |
//! | [`clock`] | the resolution of a log's timestamps |
//! | [`second_counter`] | connections open at each second, for every timeout |
//! | [`response_batch`] | connections open at any time, from the uses that still matter |
//! | [`gap`] | a gap's index among the timeouts |
//! | [`amount_histogram`] | a histogram over connections |
//! | [`connection_loads`] | requests and bytes of each connection, on demand |
//! | [`rule_counter`] | every other rule, by simulating each connection |
//!
//! No bandwidth is modelled. A request takes no time, unless the query trusts the log's durations.

pub mod amount_histogram;
pub mod client_table;
pub mod clock;
pub mod connection_loads;
pub mod counter;
pub mod counts;
pub mod gap;
pub mod query;
pub mod response_batch;
pub mod rule_counter;
pub mod second_counter;

pub use amount_histogram::{AmountHistogram, Load};
pub use clock::TimeUnit;
pub use connection_loads::{ConnectionLoads, LoadCounter};
pub use counter::Counter;
pub use counts::{Counts, Curve, LimitCounts, Peak, PriorFacts, Stream, TimeoutCounts};
pub use query::{Query, QueryError, Rule};
pub use rule_counter::RuleCounter;
