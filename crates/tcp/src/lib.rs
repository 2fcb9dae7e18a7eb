//! TCP endpoints as state machines without clock or socket, and profiles of real stacks.
//!
//! Input: segments and the application's calls. Output: segments, events and timeouts. A [`Connection`] is one endpoint:
//! call `handle` with an input, then `poll` until it returns a timeout. In reading order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`stack`] | profiles of TCP stacks by name, each value with its source |
//! | [`config`] | configuration of an endpoint |
//! | [`segment`], [`payload`] | segments and their payload |
//! | [`interface`] | inputs and outputs of an endpoint |
//! | [`connection`] | the endpoint: its state and its timers |
//! | `input` | processing of a received segment |
//! | `output` | sending: windows, Nagle, silly-window avoidance |
//! | `send`, `flight` | the send buffer, segments outstanding |
//! | `receive`, `acks` | the receive buffer, delayed acknowledgements |
//! | `ack_info`, `congestion`, `cubic`, `hystart` | congestion control: Reno and CUBIC |
//! | `recovery`, `rack`, `rto`, `idle` | loss recovery, the retransmission timer, restart after idle |
//! | [`host_cache`] | state cached from earlier connections; T/TCP and TCP Fast Open |
//!
//! ```
//! use roundtrip_tcp::Stack;
//!
//! let linux = Stack::named("linux").expect("a stack of that name");
//! assert_eq!(linux.initial_window, 10);
//! let unknown = Stack::named("linus").unwrap_err();
//! assert_eq!(unknown.nearest(), Some("linux"));
//! ```
//!
//! Not modelled: checksums, urgent data, path-MTU discovery; sequence numbers do not wrap.

pub mod config;
pub mod connection;
pub mod host_cache;
pub mod interface;

pub mod payload;
pub mod segment;
pub mod stack;

mod ack_info;
mod acks;
mod congestion;
mod cubic;
mod events;
mod flight;
mod hystart;
mod idle;
mod input;
mod output;
mod rack;
mod ranges;
mod receive;
mod recovery;
mod rto;
mod send;

pub use config::Config;
pub use connection::Connection;
pub use host_cache::{HostCacheEntry, InitialState};
pub use interface::{ConnectionStats, Event, Failure, Input, Limit, Output, State};
pub use payload::Payload;
pub use segment::Segment;
pub use stack::Stack;
