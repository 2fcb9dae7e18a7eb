//! Servers and proxies with two client hosts: one that attacks, and another that must be served.
//!
//! ```text
//! attacker 10.0.1.2 -- 10.0.1.1 [server] 10.0.2.1 -- 10.0.2.2 other        and the same over IPv6, below fd00:1::/64, fd00:2::/64
//! ```

use std::any::Any;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use dhttp::client::KnownServers;
use dhttp::counters::Counters;
use dhttp::server::ClientLimits;
use dhttp::{Body, ClientConfig, Handler, Interims, Request, Response, Server, ServerConfig};
use http1::message::{Fields, RequestHead, ResponseHead, Version};
use linux::netlink::Subnet;
use roundtrip_dhttp_proxy::cache::Upstream;
use roundtrip_dhttp_proxy::cache::upstream::{UpstreamFailure, UpstreamResponse};
use roundtrip_dhttp_proxy::{Cache, CacheConfig, Gateway, GatewayConfig};
use testbed::{Error, Interface, Namespace, Topology};

/// The three hosts.
pub(crate) struct Hosts {
    pub(crate) attacker: Namespace,
    pub(crate) other: Namespace,
    pub(crate) server: Namespace,
}

/// A running service.
pub(crate) struct Service {
    pub(crate) metrics: Box<dyn Fn() -> String + Send>,
    /// Start of the targets of its requests: a proxy's are absolute.
    pub(crate) prefix: String,
    _running: Vec<Box<dyn Any + Send>>,
}

/// Port of the service on both addresses of its host.
const PORT: u16 = 8_080;
/// Address of the gateway's origin, on the same host.
const ORIGIN: &str = "127.0.0.1:8081";
/// Length of the response for `/large`.
const LARGE_BYTES: usize = 1 << 20;
/// Timeout of both clients.
const TIMEOUT: Duration = Duration::from_secs(10);

impl Hosts {
    pub(crate) fn new() -> Result<Self, Error> {
        let cable = |host, device: &str, number: u8| {
            let end = |host, device: &str, last: u8| {
                let ipv6: IpAddr = [0xfd00, u16::from(number), 0, 0, 0, 0, 0, u16::from(last)].into();
                let ipv4 = Subnet { address: [10, 0, number, last].into(), bits: 24 };
                Interface::of(host, device).address(ipv4).address(Subnet { address: ipv6, bits: 64 })
            };
            [end("server", device, 1), end(host, "eth0", 2)]
        };
        let ([server, attacker, other], []) = Topology::new()
            .host("server")
            .host("attacker")
            // Every connection has a port of its own.
            .setting("net.ipv4.ip_local_port_range", "1024 65535")
            .host("other")
            .cable(cable("attacker", "eth1", 1))
            .cable(cable("other", "eth2", 2))
            .build()?
            .split()?;
        Ok(Self { attacker, other, server })
    }
}

/// Returns the service's address on the link of a client host: the attacker's is 1, the other's 2.
pub(crate) fn service_address(link: u8, is_ipv6: bool) -> SocketAddr {
    let ipv6 = IpAddr::from([0xfd00, u16::from(link), 0, 0, 0, 0, 0, 1]);
    SocketAddr::new(if is_ipv6 { ipv6 } else { IpAddr::from([10, 0, link, 1]) }, PORT)
}

fn listen_address(is_ipv6: bool) -> SocketAddr {
    let any = if is_ipv6 { "[::]" } else { "0.0.0.0" };
    format!("{any}:{PORT}").parse().expect("an address")
}

/// Starts a server in this thread's namespace.
pub(crate) fn serve(is_ipv6: bool, clients: ClientLimits) -> Service {
    Service::of(server(listen_address(is_ipv6), clients), String::new(), Vec::new())
}

/// Starts a cache in this thread's namespace.
pub(crate) fn cache(is_ipv6: bool, clients: ClientLimits) -> Service {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().expect("a runtime");
    let cache = Cache::new(Origin(Bodies::default()), CacheConfig::default(), runtime.handle().clone())
        .expect("random bytes");
    let config = ServerConfig { threads: 1, clients, ..ServerConfig::internet() };
    let server = Server::start(listen_address(is_ipv6), config, cache, None).expect("a free port");
    Service::of(server, String::new(), vec![Box::new(runtime)])
}

/// Starts a gateway and its origin in this thread's namespace; no limit but the connections of one client has another value
/// than the default.
pub(crate) fn gateway(is_ipv6: bool, clients: ClientLimits) -> Service {
    let origin =
        server(ORIGIN.parse().expect("an address"), ServerConfig::internet().reaching_anywhere().clients);
    let config = GatewayConfig {
        client_connections: Some(clients.connections),
        ..GatewayConfig::new(ClientConfig::internet())
    };
    let gateway = Gateway::start(listen_address(is_ipv6), config, KnownServers::default(), None, None);
    let gateway = gateway.expect("a free port");
    let metrics = Box::new(gateway.metrics());
    Service {
        metrics,
        prefix: format!("http://{ORIGIN}"),
        _running: vec![Box::new(gateway), Box::new(origin)],
    }
}

impl Service {
    fn of<H: Handler>(server: Server<H>, prefix: String, mut running: Vec<Box<dyn Any + Send>>) -> Self {
        let counters = server.counters();
        running.insert(0, Box::new(server));
        Self { metrics: Box::new(move || Counters::text(&counters)), prefix, _running: running }
    }
}

fn server(address: SocketAddr, clients: ClientLimits) -> Server<impl Handler> {
    let bodies = Bodies::default();
    let respond = move |request: &Request<'_>| Response::whole(200, "text/plain", bodies.of(request.target));
    let config = ServerConfig { threads: 1, clients, ..ServerConfig::internet() };
    Server::start(address, config, respond, None).expect("a free port")
}

/// The bodies of a server, whose copies share their bytes.
#[derive(Clone)]
struct Bodies {
    short: Arc<[u8]>,
    large: Arc<[u8]>,
}

impl Default for Bodies {
    fn default() -> Self {
        Self { short: [b'b'; 5].into(), large: vec![b'b'; LARGE_BYTES].into() }
    }
}

impl Bodies {
    fn of(&self, target: &str) -> Arc<[u8]> {
        Arc::clone(if target.ends_with("/large") { &self.large } else { &self.short })
    }
}

/// Origin of the cache, in the same process.
struct Origin(Bodies);

impl Upstream for Origin {
    async fn send_request(
        &self,
        _to: Option<SocketAddr>,
        head: RequestHead,
        _body: Vec<u8>,
        _most: u64,
        _interims: Option<Interims>,
    ) -> Result<UpstreamResponse, UpstreamFailure> {
        let mut fields = Fields::new();
        fields.push("Cache-Control", "max-age=86400").expect("a field");
        let body = Body::Whole(self.0.of(&head.target));
        let head = ResponseHead { version: Version::Http11, status: 200, fields };
        Ok(UpstreamResponse { head, body, trailers: Fields::new() })
    }
}

/// Connects to the service, with a timeout for what is read and written.
pub(crate) fn connect(to: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(to).expect("a connection");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a socket");
    stream.set_write_timeout(Some(TIMEOUT)).expect("a socket");
    stream
}

/// Sends a request for the short response; whether it was served.
pub(crate) fn is_served(stream: &mut TcpStream, prefix: &str) -> bool {
    let request = format!("GET {prefix}/ HTTP/1.1\r\nHost: {ORIGIN}\r\n\r\n");
    if stream.write_all(request.as_bytes()).is_err() {
        return false;
    }
    let (mut received, mut buffer) = (Vec::new(), [0; 1_024]);
    while !received.ends_with(b"\r\n\r\nbbbbb") {
        match stream.read(&mut buffer) {
            Ok(length @ 1..) => received.extend_from_slice(&buffer[..length]),
            Ok(0) | Err(_) => return false,
        }
    }
    received.starts_with(b"HTTP/1.1 200")
}
