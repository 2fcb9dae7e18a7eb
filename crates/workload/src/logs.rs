//! Synthetic access logs: request rate by a curve, clients of unequal popularity, sizes by a distribution.
//!
//! Input: a curve and a seed. Output: lines in Common Log Format. The same seed gives the same lines. In reading order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`curve`] | number of requests in each minute |
//! | [`visitor`] | clients: visits that overlap, by clients that return |
//! | [`responses`] | statuses and sizes |
//! | [`synthesize`] | the lines |
//!
//! The requested paths are random, and no client waits for a response.

pub mod curve;
pub mod responses;
pub mod synthesize;
pub mod visitor;
