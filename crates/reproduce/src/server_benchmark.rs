//! Server benchmark: today's servers under the same users, each alone with them in a network of its own.
//!
//! In flow [`benchmark_run::BenchmarkRun`]s: server, transport, number of users. Out flow [`benchmark_run::Outcome`]s. Read in
//! this order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`benchmark_run`] | one run: a server under one plan; and several runs concurrently |
//! | [`population`] | users at several hosts behind a saturated bottleneck, with a competing bulk download |
//! | [`mod@bottleneck_hosts`] | their networks, and the bottleneck link |
//! | [`server`] | the servers, their configuration and their shutdown |
//! | [`transport`] | TCP Fast Open, HTTP/2 and HTTP/3: configuration of both sides |
//! | [`prefork`] | a small server with a worker for each connection, where Apache is not installed |
//! | [`in_memory`] | a small server made of hyper |
//! | [`quic`] | a small server of HTTP/3, and certificates |
//! | [`hosts`] | two network namespaces, the link between them, and CPU time by process |
//! | [`program`] | an external program, with its directory |
//!
//! Not the users (the crate `load`), nor the claims about the servers (`reproduce::rabinovich`).

pub mod benchmark_run;
pub mod bottleneck_hosts;
mod error;
pub mod hosts;
pub mod in_memory;
pub mod population;
pub mod prefork;
pub mod program;
pub mod quic;
pub mod server;
pub mod transport;

pub use error::Error;
