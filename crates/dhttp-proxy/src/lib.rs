//! Proxies that speak DHTTP: a local gateway for HTTP clients, a shared cache, a reverse proxy for another server, and a helper
//! on routers that translate addresses.
//!
//! Requests flow in from clients or a router's kernel; each is served from the cache, or forwarded over DHTTP or HTTP. Read in
//! this order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`mod@service_handler`] | any `tower` service as a handler |
//! | [`origin`] | another HTTP server as such a service |
//! | [`mod@cache`] | a handler: stored responses, while they may be reused |
//! | [`mod@fetches`] | limits of the work done for clients |
//! | [`gateway`] | a local proxy through which HTTP clients use DHTTP |
//! | [`nat`] | a helper on a router that translates addresses, or a firewall |
//! | [`confinement`], [`privileges`] | the files that a service may open, and the capabilities that it has, once it has started |
//! | [`nft`] | kernel rules, installed and removed |
//!
//! The server and the client themselves are in [`dhttp`]. [`http1::cache`] and [`http1::gateway`] decide what may be stored and
//! forwarded.
//!
//! ```
//! use dhttp::ClientConfig;
//! use dhttp::client::KnownServers;
//! use roundtrip_dhttp_proxy::{Gateway, GatewayConfig};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let config = GatewayConfig::new(ClientConfig::internet());
//! let gateway = Gateway::start("127.0.0.1:0".parse()?, config, KnownServers::default(), None, None)?;
//! println!("http_proxy=http://{}", gateway.address());
//! # Ok(())
//! # }
//! ```

pub mod cache;
pub mod confinement;
pub mod fetches;
pub mod gateway;
pub mod nat;
pub mod nft;
pub mod origin;
pub mod privileges;
pub mod service_handler;
mod system_calls;

pub use cache::{Cache, CacheConfig};
pub use fetches::FetchLimits;

/// Target of the events that an operator must know of, such as an origin that is down. They are few.
pub const OPERATION: &str = "roundtrip::operation";
pub use gateway::{Gateway, GatewayConfig};
pub use nat::{Nat, NatConfig, NatError};
pub use origin::Origin;
pub use service_handler::service_handler;
