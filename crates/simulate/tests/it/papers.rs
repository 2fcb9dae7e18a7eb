//! The papers' statements, compared with simulated packets.
//!
//! Their tables, traces and numbers are compared by `roundtrip reproduce`.

mod limits;
mod pipelining;
mod restart;
mod sessions;
mod slow_start;
mod transactions;
