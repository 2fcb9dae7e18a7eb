//! Stage 3, results: the rows that every engine returns, and the packets themselves.
//!
//! Read in this order: [`row`] is one protocol over one network by one engine, as in the JSON; [`statistics`]
//! summarises several runs; [`cause`] names the causes of stalls; [`pcapng`] writes packets, for Wireshark and similar
//! tools; [`capture`] reads what such tools write; [`har`] writes fetched pages, for browsers' tools.
//!
//! It makes no diagnosis: `diagnose` finds the causes of slowness, `roundtrip` presents results.
//!
//! ```
//! use roundtrip_trace::capture::Reader;
//! use roundtrip_trace::pcapng::{Packet, Writer};
//! use wire::Duration;
//!
//! let mut file = Vec::new();
//! let mut writer = Writer::new(&mut file, "example 1.0", None)?;
//! let interface = writer.interface("link")?;
//! let bytes = &[0x45, 0, 0, 20];
//! writer.packet(&Packet { interface, at: Duration::ZERO, bytes, original_length: 20, comment: None })?;
//! let mut reader = Reader::new(file.as_slice())?;
//! let frame = reader.read()?.ok_or("a packet")?;
//! assert_eq!((frame.number, frame.bytes), (1, &bytes[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod capture;
pub mod cause;
pub mod har;
pub mod pcapng;
pub mod row;
pub mod statistics;

pub use cause::Cause;
pub use row::{Row, Stall};
pub use statistics::Summary;
