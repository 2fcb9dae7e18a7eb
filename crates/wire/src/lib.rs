//! Vocabulary of all other crates: packets, sizes, rates, times.
//!
//! Input: values with units. Output: packets with timestamps. Read in this order:
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`time`] | [`Time`] and [`Duration`], integer nanoseconds since an arbitrary zero |
//! | [`calendar`] | dates for people and for HTTP, from the time since 1970 |
//! | [`size`] | [`Bytes`] |
//! | [`rate`] | [`Rate`], in thousandths of a bit per second |
//! | [`probability`] | [`Probability`], from never to always |
//! | [`seed`] | [`Seed`] and the random streams that are derived from it |
//! | [`packet`] | the headers of IP packets, read and written |
//! | [`link`] | one direction of an emulated link: queue, rate, delay, loss |
//! | [`modem`] | a modem that compresses what a link carries |
//!
//! It knows no socket, no clock, no HTTP and no file format. It imports no other crate of this project and builds for
//! `wasm32-unknown-unknown`.
//!
//! ```
//! use roundtrip_wire::{Bytes, Duration, Rate, Time};
//!
//! let isdn = Rate::from_bits_per_second(128_000).ok_or("a rate above zero")?;
//! let sent = Time::ZERO + isdn.time_for(Bytes::new(512));
//! assert_eq!(sent.since(Time::ZERO), Duration::from_millis(32));
//! # Ok::<(), &str>(())
//! ```

pub mod calendar;
pub mod link;
pub mod modem;
pub mod packet;
pub mod probability;
pub mod rate;
pub mod seed;
pub mod size;
pub mod time;

pub use probability::Probability;
pub use rate::Rate;
pub use seed::{Random, Seed};
pub use size::Bytes;
pub use time::{Duration, Time};
