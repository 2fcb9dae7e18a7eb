//! Every fuzz target's stored inputs through its check, one module for each checked crate.
//!
//! Tables (`accesslog-io`) have a program of their own, which measures the memory of its process.

mod accesslog;
mod dhttp_proto;
mod diagnose;
mod fetch;
mod http1;
mod http2;
mod http3;
mod load;
mod page;
mod qlog;
mod quic;
mod scenario;
mod tls;
mod wire;
mod workload;
