//! The integration tests of this crate, as one program.

mod cache;
mod cache_faults;
mod cache_interims;
mod client_connections;
mod damaged_disk;
mod forwarded;
mod gateway;
mod gateway_ahead;
mod gateway_cache;
mod gateway_offload;
mod gateway_streams;
mod hosted;
mod interception;
mod interception_ipv6;
mod many_clients;
mod node;
mod origin;
mod origin_proxy;
mod programs;
mod proxied;
mod rfc9111;
mod two_clients;
