//! What `load` prints and writes: plans, and what came of a run.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`plan`] | a plan as a file, and how well it fits |
//! | [`result`] | what came of a run |
//!
//! Not the load itself: that is the crate `load`.

pub mod plan;
pub mod result;
