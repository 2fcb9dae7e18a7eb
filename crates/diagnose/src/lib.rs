//! Stage 4, why it was slow: reports, for each connection, where all its time went and what to do about it.
//!
//! Read in this order:
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`table`] | [`Diagnosis`], the state machine: packets in, finished connections out |
//! | [`report`] | what comes out for each |
//! | [`finding`], [`cause`] | a stall, and its name, with what is known of it |
//! | [`account`], [`doubt`] | all time, divided; why some of it is unknown |
//! | `flows`, `retention` | the open connections, found by their sockets; limits on what each retains |
//! | `flow` | one connection: what each segment is to it |
//! | `sender`, `flight`, `mss`, `path`, `pace` | an end as a sender; where the capture was taken; how fast the path is |
//! | `clock`, `tick` | TCP timestamps: when a segment was generated; the capture's clock, if it is coarse |
//! | `http`, `tls` | messages and exchanges, where they can be read; TLS handshakes |
//! | `turns` | whether a client waited for its server, where messages cannot be read |
//! | `hosts` | hosts and ports that responded |
//! | `gap`, `judge`, `causes/` | the time between two events, and the rules that name its cause |
//! | `program` | fixes that are one program's, by its port |
//! | `dhttp` | requests in datagrams, and their responses |
//! | [`plot`] | points of a time-sequence plot |
//!
//! It reads no file (`trace` does), prints nothing (`roundtrip` does), and supports TCP and DHTTP: other datagrams are
//! counted and skipped. It imports `trace` and `wire`, and builds for `wasm32-unknown-unknown`.
//!
//! ```
//! use roundtrip_diagnose::{Diagnosis, Options, PacketPosition};
//! use wire::packet::{Flags, Packet, TcpBuilder};
//! use wire::{Duration, Time};
//!
//! let (client, server) = ("192.0.2.1:50000".parse()?, "192.0.2.2:80".parse()?);
//! let mut bytes = Vec::new();
//! let syn = TcpBuilder {
//!     source: client, destination: server, seq: 1, ack: 0, flags: Flags::SYN, window: 64_240, options: &[]
//! };
//! syn.write(&[], &mut bytes)?;
//! let mut diagnosis = Diagnosis::new(Options::default());
//! for (frame, at_s) in [(1, 0), (2, 1), (3, 3)] {
//!     let now = Time::ZERO + Duration::from_secs(at_s);
//!     diagnosis.handle(now, PacketPosition { frame, interface: 0 }, &Packet::read(&bytes)?);
//! }
//! diagnosis.end();
//! let report = diagnosis.poll().ok_or("a connection")?;
//! assert_eq!((report.server, report.packets), (server, 3));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod account;
pub mod cause;
mod causes;
mod clock;
mod dhttp;
pub mod doubt;
#[cfg(test)]
mod families;
pub mod finding;
mod flight;
mod flow;
mod flows;
mod gap;
mod hosts;
mod http;
mod judge;
mod mss;
mod pace;
mod path;
pub mod plot;
mod program;
pub mod report;
mod retention;
#[cfg(test)]
mod script;
mod segment;
mod sender;
pub mod side;
pub mod table;
mod tick;
mod tls;
mod turns;

pub use account::{Account, Share};
pub use cause::Cause;
pub use doubt::{Doubt, Doubts};
pub use finding::{Finding, Severity};
pub use report::FlowReport;
pub use side::Side;
pub use table::{Diagnosis, Options, PacketPosition};
