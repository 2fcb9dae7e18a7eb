//! How many connections a server holds, and how many it opens, for every time-out at once (`papers/dhttp#section-vi-a`).
//!
//! **The rule.** A request opens a connection while its client has fewer than K open; at K it takes the oldest over; a
//! connection closes T after its last use (at T after it, it is still open). With DHTTP, answers smaller than a
//! threshold go by UDP and touch no connection.
//!
//! **One pass.** With "oldest" as the least recently used, the K connections of a client were last used by its last K
//! requests. So request *i* opens a connection exactly if `t(i) - t(i-K) > T`, and the connection that request *i* uses
//! is open from `t(i)` until request *i+K* takes it over, or T has passed. One histogram of these gaps gives the
//! connections opened for every T; the number open at once is kept up for every T from the same gaps; and nothing
//! depends on what happened more than the longest T ago, so that a log can be cut anywhere and its parts counted apart,
//! each after a warm-up of that length.
//!
//! In flow [`Request`](crate::Request)s in order of time; out flow [`Counts`]. Read in this order:
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`question`] | which time-outs, limits and thresholds, under which rule |
//! | [`counts`] | the answer, and how those of parts add up |
//! | [`counter`] | the one pass |
//! | [`client_table`] | what is remembered of each client, for as long as it matters |
//! | [`clock`] | how finely a stretch of a log tells time |
//! | [`by_second`] | how many connections are open at each second, for every time-out |
//! | [`uses`] | the same at any time: which requests' connections are still open |
//! | [`gap`] | a gap's place among the time-outs |
//! | [`spread`] | how something is spread over connections |
//! | [`loads`] | what each connection carries, on demand |
//! | [`by_rule`] | every other rule: connection by connection |
//!
//! What it is not: it knows no bandwidth. A request takes no time, unless the question says to believe the log's
//! durations.

pub mod by_rule;
pub mod by_second;
pub mod client_table;
pub mod clock;
pub mod counter;
pub mod counts;
pub mod gap;
pub mod loads;
pub mod question;
pub mod spread;
pub mod uses;

pub use by_rule::ByRule;
pub use clock::Clock;
pub use counter::Counter;
pub use counts::{Counts, Curve, Known, Line, Opened, Peak, Stream};
pub use loads::{Carried, Loads};
pub use question::{BadQuestion, Question, Rule};
pub use spread::{Load, Spread};
