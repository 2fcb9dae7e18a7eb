//! DHTTP on the kernel's sockets: a server and a client that people can run and embed (`papers/dhttp#section-v`).
//!
//! Requests arrive by UDP and TCP. Responses leave by the channel that `dhttp-proto`'s state machines choose: one datagram, a
//! connection that the server opened, or plain HTTP/1.1. Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`handler`] | requests and responses, whatever the channel |
//! | [`deferred`] | responses that arrive later |
//! | [`files`] | a handler: the files below a directory |
//! | [`server`] | threads with their sockets, around that handler |
//! | [`client`] | a thread that sends requests, and returns responses to blocking or async callers |
//! | [`mod@counters`], [`log`] | a server's metrics and access log |
//! | [`own_address`], [`port_holder`] | addresses of this host, and processes at its ports |
//! | [`descriptors`] | the table of descriptors, grown in advance |
//! | [`readiness`] | the event loop of servers and proxies: sockets, a timer, wake-ups |
//! | [`batch`] | batched datagrams, for servers and load generators |
//! | [`random`], [`fields`], [`socket`], `url` | secrets, header fields, sockets with their options, addresses |
//!
//! It makes no protocol decisions. Channels, timeouts, rates and limits are for the state machines in [`dhttp_proto`] and
//! [`http1::server`]; this crate does the input and output. Caches, gateways and helpers on routers are `dhttp-proxy`'s.
//!
//! ```
//! use roundtrip_dhttp::client::KnownServers;
//! use roundtrip_dhttp::{Response, Client, ClientConfig, Request, Server, ServerConfig};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let hello = |_: &Request<'_>| Response::text(200, "hello");
//! let server = Server::start("127.0.0.1:0".parse()?, ServerConfig::internet(), hello, None)?;
//! let client = Client::start(ClientConfig::internet(), KnownServers::default(), None)?;
//! let exchange = client.get(&format!("http://{}/", server.address()).parse()?)?;
//! # drop(exchange);
//! # Ok(())
//! # }
//! ```

pub mod batch;
pub mod client;
pub mod counters;
pub mod deferred;
pub mod descriptors;
pub mod fields;
pub mod files;
pub mod handler;
pub mod log;
pub mod own_address;
pub mod port_holder;
pub mod random;
pub mod readiness;
mod response;
pub mod server;
pub mod socket;
mod url;

pub use client::{Client, ClientConfig};
pub use deferred::{DeferredResponse, Interims, Reply, ResponseSender, promise};
pub use files::Files;
pub use handler::{Body, Handler, Outcome, Request, Response};
pub use server::{Server, ServerConfig};
pub use url::{Url, UrlError};
