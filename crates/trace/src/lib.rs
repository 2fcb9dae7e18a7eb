//! Stage 3, what happened: the rows every engine returns, and the packets themselves.
//!
//! Read in this order: [`row`] is one protocol over one network by one engine, as the JSON shows it; [`statistics`] is
//! what several runs say together; [`pcapng`] writes the packets themselves, for Wireshark and its kin; [`capture`]
//! reads what such tools write; [`har`] writes what was fetched, for browsers' tools.
//!
//! What it is not: it decides nothing. Why something was slow is for `diagnose`, how it looks for `roundtrip`.

pub mod capture;
pub mod har;
pub mod pcapng;
pub mod row;
pub mod statistics;

pub use row::{Row, Stall};
pub use statistics::Summary;
