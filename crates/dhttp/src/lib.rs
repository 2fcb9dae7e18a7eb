//! DHTTP on the kernel's sockets: a server and a client that people can run and embed (`papers/dhttp#section-v`).
//!
//! Requests flow in by UDP and TCP, answers flow out by the channel that `dhttp-proto`'s state machines choose: one datagram, a
//! connection that the server opened, or plain HTTP/1.1. Read in this order:
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`handler`] | what is asked and what is answered, whatever the channel |
//! | [`mod@hosted`] | any `tower` service as a handler |
//! | [`origin`] | another HTTP server as such a service |
//! | [`later`] | answers that must be waited for |
//! | [`mod@cache`] | a handler: what others answered, kept as long as it may be |
//! | [`files`] | a handler: the files below a folder |
//! | [`server`] | threads with their sockets around that handler |
//! | [`client`] | a thread that asks, and hands answers over to whoever waits, blocking or not |
//! | [`gateway`] | a local proxy by which programs that know only HTTP use it |
//! | [`nat`] | a helper on a router that translates addresses, or a firewall |
//! | [`nft`] | rules in the kernel, installed and taken away |
//! | [`counters`], [`log`] | what a server tells of itself |
//! | [`descriptors`] | room for them, made beforehand |
//! | [`batch`] | many datagrams at once, for whoever serves them or loads a server with them |
//! | [`clock`] | the time |
//! | `random`, `fields`, `url` | secrets, fields, addresses |
//!
//! What it is not: it decides nothing about the protocol. Which channel, how long, how often and how much is for the
//! machines in [`dhttp_proto`] and [`http1::server`]; here is only how.

pub mod batch;
pub mod cache;
pub mod client;
pub mod clock;
pub mod counters;
pub mod descriptors;
mod fields;
pub mod files;
pub mod gateway;
pub mod handler;
pub mod hosted;
pub mod later;
pub mod log;
pub mod nat;
pub mod nft;
pub mod origin;
mod random;
pub mod server;
mod socket;
mod url;

pub use cache::{Cache, CacheConfig};
pub use client::{Client, ClientConfig};
pub use files::Files;
pub use gateway::{Gateway, GatewayConfig};
pub use handler::{Answer, Body, Handler, Request, Shown};
pub use hosted::hosted;
pub use later::{Interims, Later, Promise, Reply, promise};
pub use nat::{Nat, NatConfig, NatError};
pub use origin::Origin;
pub use server::{Server, ServerConfig};
pub use url::{Url, UrlError};
