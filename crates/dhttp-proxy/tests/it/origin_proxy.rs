//! A server in front of an origin.

use std::net::SocketAddr;

use dhttp::{Handler, Server, ServerConfig};
use roundtrip_dhttp_proxy::{Origin, service_handler};
use tokio::runtime::Runtime;

/// Starts a server in front of the origin at this address, which `set` configures.
pub(crate) fn in_front_of(
    runtime: &Runtime,
    origin: SocketAddr,
    set: impl FnOnce(Origin) -> Origin,
) -> Server<impl Handler> {
    let _inside = runtime.enter();
    let origin = set(Origin::new(&format!("http://{origin}/").parse().unwrap()).unwrap());
    let config = ServerConfig { threads: 1, ..ServerConfig::internet().reaching_anywhere() };
    let handler = service_handler(origin, runtime.handle().clone());
    Server::start("127.0.0.1:0".parse().unwrap(), config, handler, None).unwrap()
}
