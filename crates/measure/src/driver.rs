//! Robot and server on kernel sockets: bytes between the state machines and the sockets, and the time between.
//!
//! Ready sockets flow in; the robot's reports and the server's processing times flow out. One thread
//! in each namespace, non-blocking sockets, `ppoll`. Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`client`] | the robot on its connections: fetches a page and measures its duration |
//! | [`page_loader`] | the same over DHTTP |
//! | [`server`] | the listener and its connections: responds to each request after the scenario's processing time |
//! | [`dhttp_endpoint`] | its DHTTP part |
//! | `wait` | waits for a socket or a deadline, to the microsecond |
//!
//! The state machines decide when to send, the kernel how.

pub mod client;
pub mod dhttp_endpoint;
pub mod page_loader;
pub mod server;
mod wait;
