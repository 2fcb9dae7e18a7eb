//! What the papers print, held against packets.
//!
//! Their tables and traces, and the numbers in them, are held by `roundtrip reproduce`.

mod limits;
mod pipelining;
mod restart;
mod slow_start;
mod transactions;
