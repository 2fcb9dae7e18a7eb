//! Access logs that are made up: as busy as a curve says, by clients of unequal popularity, with sizes by a law.
//!
//! In flow a curve and a seed; out flow lines in Common Log Format. The same seed gives the same lines. Read in this
//! order:
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`curve`] | how many requests in which minute |
//! | [`visitor`] | who asks: visits that overlap, by clients that return |
//! | [`answer`] | statuses and sizes |
//! | [`synthesize`] | the lines |
//!
//! What it is not: a site. What is asked for means nothing, and nobody waits for an answer.

pub mod answer;
pub mod curve;
pub mod synthesize;
pub mod visitor;
