//! TCP as a state machine without clock or socket, and the profiles of real stacks.
//!
//! Segments and the application's calls flow in, segments and events flow out. A [`Connection`] is one endpoint: tell it
//! something (`handle`), then `poll` it until it returns a timeout. In reading order:
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`stack`] | profiles of stacks by name, each value with its source |
//! | [`config`] | every knob of an endpoint |
//! | [`segment`], [`payload`] | what travels |
//! | [`interface`] | what is told to an endpoint, and what it says |
//! | [`connection`] | the endpoint, its timers |
//! | `input` | what a segment does to it |
//! | `output` | what it sends: windows, Nagle, silly windows |
//! | `send`, `flight` | what was written, what is outstanding |
//! | `receive`, `acks` | what has arrived, and when that is acknowledged |
//! | `congestion`, `cubic`, `hystart` | the window |
//! | `recovery`, `rack`, `rto`, `idle` | loss, the timer, the window after idle |
//! | [`memory`] | what is known from earlier connections, and the handshakes that it saves |
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
//! What it is not: it has no checksums, no urgent data, no path-MTU discovery, and its numbers do not wrap.

pub mod config;
pub mod connection;
pub mod interface;
pub mod memory;
pub mod payload;
pub mod segment;
pub mod stack;

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
pub use interface::{Event, Failure, Input, Limit, Output, State, Vitals};
pub use memory::{Introduction, Memory};
pub use payload::Payload;
pub use segment::Segment;
pub use stack::Stack;
