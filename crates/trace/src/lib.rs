//! Stage 3, results: the rows that every engine returns, and the packets themselves.
//!
//! Read in this order: [`row`] is one protocol over one network by one engine, as in the JSON; [`statistics`]
//! summarises several runs; [`pcapng`] writes packets, for Wireshark and similar tools; [`capture`] reads
//! what such tools write; [`har`] writes fetched pages, for browsers' tools.
//!
//! It judges nothing. Causes of slowness are for `diagnose`, presentation for `roundtrip`.

pub mod capture;
pub mod har;
pub mod pcapng;
pub mod row;
pub mod statistics;

pub use row::{Row, Stall};
pub use statistics::Summary;
