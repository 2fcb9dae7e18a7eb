//! Runs with every protocol against correct, faulty and hostile servers on loopback: requests, counts, refusals.
//!
//! The libraries of HTTP/2 and HTTP/3 are not tested: their behaviour is taken as given.

mod ended;
mod hostile;
mod hostile_datagrams;
mod hostile_streams;
mod http1_tls;
mod http2;
mod http3;
pub(crate) mod site;
