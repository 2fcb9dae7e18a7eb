//! Packets, links, sizes, rates and times: the types that all other crates share. In reading order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`time`] | [`Time`] and [`Duration`], integer nanoseconds since an arbitrary zero |
//! | [`calendar`] | dates for users, access logs and HTTP |
//! | [`size`] | [`Bytes`] |
//! | [`rate`] | [`Rate`], in thousandths of a bit per second |
//! | [`probability`] | [`Probability`], from 0 to 1 |
//! | [`seed`] | [`Seed`] and the random streams that are derived from it |
//! | [`packet`] | parser and builder of IP packets |
//! | [`varint`] | integers of variable length, as QUIC has them |
//! | [`link`] | one direction of an emulated link: queue, rate, delay, loss |
//! | [`modem`] | a modem with V.42 bis and header compression |
//!
//! There is no socket, no clock, no HTTP and no file format here. The crate depends on no other crate of the project,
//! and builds for `wasm32-unknown-unknown`.
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
pub mod varint;

pub use probability::Probability;
pub use rate::Rate;
pub use seed::{Random, Seed};
pub use size::Bytes;
pub use time::{Duration, Time};
