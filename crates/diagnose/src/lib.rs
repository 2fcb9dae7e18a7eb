//! Stage 4, diagnosis: an account of each connection's time, the causes of its stalls, and their fixes.
//!
//! Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`table`] | [`Diagnosis`], the state machine: packets in, finished connections out |
//! | [`report`] | report of each connection |
//! | [`finding`], [`cause`] | a stall; its cause, described |
//! | [`account`], [`doubt`] | all time, divided (`trace`); why some of it is unknown |
//! | `retention` | limits on the memory of each connection |
//! | `flow` | one connection: interpretation of each segment |
//! | `tick` | findings that a coarse clock of the capture cannot have measured |
//! | `gap`, `ruling`, `causes/`, `judge` | the time between two events, and the rules that name its cause |
//! | `failure`, `whole` | facts about openings and connections that failed, and about a connection as a whole, for the other rules |
//! | `program`, `runtime` | fixes that are one program's, by its port or by its name |
//! | [`host`] | the kernel's counters and the programs, in a live capture |
//! | `alternative` | addresses without a response, after which a client used another one |
//! | `shared_link` | losses in a queue that several connections fill |
//! | `dhttp` | requests in datagrams, and their responses |
//! | `quic` | openings of QUIC connections |
//!
//! It reads no file (`packets` does) and no packet (`dissect` does: each end as a sender, the path, messages), prints nothing
//! (`report` does), and supports TCP, DHTTP and QUIC's openings: other datagrams are counted and skipped.
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

mod alternative;
pub mod cause;
mod causes;
mod dhttp;
pub mod doubt;
mod failure;
#[cfg(test)]
#[path = "../tests/support/faults.rs"]
mod faults;
pub mod finding;
mod flow;
mod gap;
pub mod host;
mod judge;
mod options;
mod program;
mod quic;
pub mod report;
mod retention;
mod ruling;
mod runtime;
#[cfg(test)]
#[path = "../tests/support/script.rs"]
mod script;
mod shared_link;
pub mod table;
mod tick;
mod whole;

pub use alternative::find_alternatives;
pub use cause::Cause;
pub use dissect::MAX_KEY_LOG_BYTES;
pub use dissect::connections::shard_of;
pub use dissect::exchange::KeyUse;
pub use dissect::{KeyLog, Side, Unread, plot, serial, side};
pub use doubt::{Doubt, Doubts};
pub use finding::{Finding, Severity};
pub use options::Options;
pub use report::FlowReport;
pub use shared_link::weigh_shared_links;
pub use table::{Diagnosis, PacketPosition};
pub use trace::account::{self, Account, Share};
use trace::text;
