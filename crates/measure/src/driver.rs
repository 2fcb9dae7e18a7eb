//! Robot and server on kernel sockets: bytes between the state machines and the sockets, and the time between.
//!
//! In flow sockets that are ready; out flow what the robot reports and how long the server took. One thread in
//! each namespace, non-blocking sockets, `ppoll`. Read in this order:
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`client`] | the robot on its connections: fetches a page and says how long it took |
//! | [`visitor`] | the same over DHTTP |
//! | [`server`] | the listener and its connections: answers each request after the scenario's processing time |
//! | [`desk`] | the part of it that speaks DHTTP |
//! | `wait` | until a socket is ready or a moment has come, to the microsecond |
//!
//! What it is not: it knows no HTTP and no TCP. When to send and what is for the machines, how for the kernel.

pub mod client;
pub mod desk;
pub mod server;
pub mod visitor;
mod wait;
