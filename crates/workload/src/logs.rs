//! Synthetic access logs: request rate by a curve, clients of unequal popularity, sizes by a distribution.
//!
//! In flow a curve and a seed; out flow lines in Common Log Format. The same seed gives the same lines. Read in this
//! order:
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`curve`] | number of requests in each minute |
//! | [`visitor`] | clients: visits that overlap, by clients that return |
//! | [`responses`] | statuses and sizes |
//! | [`synthesize`] | the lines |
//!
//! They are not logs of a site: the requested paths mean nothing, and no client waits for a response.

pub mod curve;
pub mod responses;
pub mod synthesize;
pub mod visitor;
