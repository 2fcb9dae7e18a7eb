//! Servers and proxies with two client hosts: one that attacks, and another that must be served.
//!
//! ```text
//! attacker 10.0.1.2 -- 10.0.1.1 [server] 10.0.2.1 -- 10.0.2.2 other        and the same over IPv6, below fd00:1::/64, fd00:2::/64
//! ```
//!
//! The attacker also has every address of 128.0.0.0/2, once it takes them ([`Hosts::take_many_addresses`]).

use std::any::Any;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
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
/// Port of servers that do not respond, at every address below 127.0.0.0/8 of the service's host.
const SILENT_PORT: u16 = 8_082;
/// Time after which they close their connections, and after which the cache's origin responds for a slow target.
pub(crate) const SLOW: Duration = Duration::from_secs(5);
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
        let [server_end, attacker_end] = cable("attacker", "eth1", 1);
        let many = Subnet { address: MANY.into(), bits: MANY_BITS };
        let ([server, attacker, other], []) = Topology::new()
            .host("server")
            .host("attacker")
            // Every connection has a port of its own, and may have an address that no device has.
            .setting("net.ipv4.ip_local_port_range", "1024 65535")
            .setting("net.ipv4.ip_nonlocal_bind", "1")
            .host("other")
            .cable([server_end.reaches(many), attacker_end])
            .cable(cable("other", "eth2", 2))
            .build()?
            .split()?;
        Ok(Self { attacker, other, server })
    }

    /// Gives the attacker all addresses that the server routes to it; needs the program `ip`.
    pub(crate) fn take_many_addresses(&self) {
        let route = format!("route add local {MANY}/{MANY_BITS} dev lo");
        let added = move || {
            Command::new("ip")
                .env("PATH", skip::path())
                .args(route.split(' '))
                .status()
                .expect("ip")
                .success()
        };
        assert!(self.attacker.start(added).wait().expect("a host"), "a local route");
    }
}

/// First of the attacker's addresses, and the bits of their prefix.
const MANY: Ipv4Addr = Ipv4Addr::new(128, 0, 0, 0);
const MANY_BITS: u8 = 2;

/// Returns one of the attacker's addresses, each in a /16 of its own.
pub(crate) fn one_of_many(number: usize) -> IpAddr {
    let number = u32::try_from(number % (1 << 14)).expect("a remainder");
    Ipv4Addr::from_bits(MANY.to_bits() + (number << 16) + 7).into()
}

/// Returns the host and port of one of a thousand silent servers.
pub(crate) fn silent_server(number: usize) -> String {
    let number = number % 1_000;
    format!("127.1.{}.{}:{SILENT_PORT}", number / 250, number % 250 + 1)
}

/// Servers that read nothing and send nothing, until they close their connections.
struct SilentServers {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl SilentServers {
    fn start(slow: Duration) -> Self {
        let listener = TcpListener::bind(("0.0.0.0", SILENT_PORT)).expect("a free port");
        listener.set_nonblocking(true).expect("a socket");
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            // Those accepted in each hundredth of this time.
            let mut open = Vec::new();
            while !stopped.load(Ordering::Acquire) {
                open.push(listener.incoming().map_while(Result::ok).collect::<Vec<_>>());
                if open.len() > 100 {
                    open.remove(0);
                }
                thread::park_timeout(slow / 100);
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for SilentServers {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
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
    cache_with(is_ipv6, ServerConfig { clients, ..ServerConfig::internet() }, SLOW)
}

/// Starts a cache with one thread, whose origin takes this long to respond for a slow target.
pub(crate) fn cache_with(is_ipv6: bool, config: ServerConfig, slow: Duration) -> Service {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build();
    let runtime = runtime.expect("a runtime");
    let cache = Cache::new(Origin(Bodies::default(), slow), CacheConfig::default(), runtime.handle().clone())
        .expect("random bytes");
    let config = ServerConfig { threads: 1, ..config };
    let server = Server::start(listen_address(is_ipv6), config, cache, None).expect("a free port");
    Service::of(server, String::new(), vec![Box::new(runtime)])
}

/// Starts a gateway and its origin in this thread's namespace; no limit but the connections of one client has another value
/// than the default.
pub(crate) fn gateway(is_ipv6: bool, clients: ClientLimits) -> Service {
    let config = GatewayConfig {
        client_connections: Some(clients.connections),
        ..GatewayConfig::new(ClientConfig::internet())
    };
    gateway_with(is_ipv6, config, SLOW)
}

/// Starts a gateway, its origin, and silent servers that close their connections after this time.
pub(crate) fn gateway_with(is_ipv6: bool, config: GatewayConfig, slow: Duration) -> Service {
    let origin =
        server(ORIGIN.parse().expect("an address"), ServerConfig::internet().reaching_anywhere().clients);
    let gateway = Gateway::start(listen_address(is_ipv6), config, KnownServers::default(), None, None);
    let gateway = gateway.expect("a free port");
    let metrics = Box::new(gateway.metrics());
    Service {
        metrics,
        prefix: format!("http://{ORIGIN}"),
        _running: vec![Box::new(gateway), Box::new(origin), Box::new(SilentServers::start(slow))],
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

/// Origin of the cache, in the same process, and the time until it responds for a slow target.
struct Origin(Bodies, Duration);

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
        if head.target.starts_with("/slow") {
            tokio::time::sleep(self.1).await;
        }
        let body = Body::Whole(self.0.of(&head.target));
        let head = ResponseHead { version: Version::Http11, status: 200, fields };
        Ok(UpstreamResponse { head, body, trailers: Fields::new() })
    }
}

/// Connects to the service, with a timeout for what is read and written.
pub(crate) fn connect(to: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&to, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    Ok(stream)
}

/// Sends a request for the short response; whether it was served.
pub(crate) fn is_served(stream: &mut TcpStream, prefix: &str) -> bool {
    is_served_at(stream, prefix, "/")
}

/// Sends a request for the short response at a path of its own, which no cache has; whether it was served.
pub(crate) fn is_served_at(stream: &mut TcpStream, prefix: &str, path: &str) -> bool {
    let request = format!("GET {prefix}{path} HTTP/1.1\r\nHost: {ORIGIN}\r\n\r\n");
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
