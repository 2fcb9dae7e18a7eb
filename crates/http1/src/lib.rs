//! HTTP/1.x without sockets or clocks: messages, one connection of a server, content codings, and the rules of
//! caches and gateways.
//!
//! Bytes off a socket flow in; messages, responses and bytes to send flow out. Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`message`] | heads, framing, bodies, writes |
//! | [`content`] | content codings: negotiation, encoding, decoding with limits |
//! | [`client`] | responses off a client's connection; idle connections |
//! | [`server`] | one connection of a server |
//! | [`site`] | an application for that server: objects of given sizes |
//! | [`gateway`] | the request and the response that a proxy passes on |
//! | [`cache`] | storage and reuse of responses (RFC 9111) |
//!
//! State machines share one contract: `handle(now, input)`, then `poll(now)` until it returns a timeout, and only then `handle`
//! again. At the time of a timeout, `poll` again; there is no input for it.
//!
//! ```
//! use roundtrip_http1::message::{Event, Limits, RequestReader};
//!
//! let mut reader = RequestReader::new(Limits::default());
//! let mut input = &b"GET /style.css HTTP/1.1\r\nHost: example.org\r\n\r\n"[..];
//! let Ok(Some(Event::Head(head, _))) = reader.read(&mut input) else { panic!("a well-formed request") };
//! assert_eq!(head.target, "/style.css");
//! ```
//!
//! Requests and connections of a client are in `fetch`; sockets and clocks are the drivers'. It builds for `wasm32-unknown-unknown`.

pub mod cache;
pub mod client;
pub mod content;
pub mod gateway;
pub mod message;
pub mod server;
pub mod site;
