//! Client and server on kernel sockets: bytes between the state machines and the sockets, and the time between.
//!
//! Ready sockets flow in; the client's reports and the server's processing times flow out. One thread
//! in each namespace, non-blocking sockets, `ppoll`. Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`client`] | a fetcher on its connections and datagrams: fetches a page and measures its duration |
//! | [`server`] | the listener and its connections: responds to each request after the scenario's processing time |
//! | [`dhttp_endpoint`] | its DHTTP part |
//! | `wait` | waits for a socket or a deadline, to the microsecond |
//!
//! The state machines decide when to send, the kernel how.

pub mod client;
pub mod dhttp_endpoint;
pub mod server;
mod wait;
