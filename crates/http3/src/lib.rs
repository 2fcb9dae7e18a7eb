//! HTTP/3 without sockets (RFC 9114): frames, field sections, and an end of a connection over QUIC in virtual time.
//!
//! Datagrams of peers flow in, events and datagrams flow out; time is an argument. Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`varint`] | QUIC's integers of variable length |
//! | [`frame`] | frames of a stream, read and written |
//! | [`qpack`] | field sections: the static table and literals, and a dynamic table |
//! | [`profile`] | clients and servers as data: windows, congestion control, acknowledgements, scheduling |
//! | [`config`] | settings of an end |
//! | [`stream`] | events, and a reader of streams |
//! | [`recovery`] | loss detection and congestion control of a connection, each change |
//! | [`endpoint`] | an end: its connections, requests and responses |
//!
//! QUIC itself is `quinn-proto`. Nothing is encrypted: messages, tags and keys have TLS's sizes (`tls::session`), so an end
//! protects nothing and talks to its like only. `quinn-proto` does not build for `wasm32-unknown-unknown`: there every
//! [`Endpoint`] is refused ([`Unavailable`]), and the rest works as elsewhere.

#![cfg_attr(target_family = "wasm", expect(dead_code, reason = "used by ends, which do not exist there"))]

pub mod config;
#[cfg(not(target_family = "wasm"))]
#[path = "quic/endpoint.rs"]
pub mod endpoint;
#[cfg(target_family = "wasm")]
#[path = "unavailable.rs"]
pub mod endpoint;
pub mod frame;
pub mod profile;
pub mod qpack;
#[cfg(not(target_family = "wasm"))]
mod quic;
pub mod recovery;
pub mod stream;

pub use config::{ClientConfig, MAX_EARLY_DATA, MIN_DATAGRAM, ServerConfig, Unavailable};
pub use endpoint::Endpoint;
pub use profile::Profile;
pub use recovery::Recovery;
pub use stream::{CloseReason, ConnectionId, Event, REQUEST_REJECTED};
pub use wire::varint;
