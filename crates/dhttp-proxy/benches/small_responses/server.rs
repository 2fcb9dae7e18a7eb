//! The servers: each in its own process, on the first CPU. Their load is in other modules.

use std::convert::Infallible;
use std::fs;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use dhttp::batch::{Inbox, Outbox};
use dhttp::client::KnownServers;
use dhttp::{ClientConfig, Files, Server, ServerConfig};
use dhttp_proto::server::Validation;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use roundtrip_dhttp_proxy::{Cache, CacheConfig, Gateway, GatewayConfig};
use std::os::fd::AsFd;

use super::datagrams::enlarge_buffers;
use super::network::Network;
use super::origin::Origin;
use super::scheduling;

/// Argument that makes this program a server.
pub(crate) const ROLE: &str = "--serve";

/// Length of the small body: with its header section it is about a kilobyte, and fits a datagram.
pub(crate) const SMALL_BYTES: usize = 960;
pub(crate) const LARGE_BYTES: usize = 16_384;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerKind {
    Ours,
    /// The same, which trusts every client's address and keeps its connections open.
    Holding,
    /// A cache whose upstream gets no request after the first.
    Cache,
    /// A proxy before the other servers.
    Gateway,
    /// The same, with a cache of its own.
    CachingGateway,
    Hyper,
    Reflector,
    Nginx,
    /// The same, whose `proxy_cache` has the response.
    NginxCache,
    Coap,
}

/// Directory that all of them serve; it is removed afterwards.
pub(crate) struct ServedDirectory(PathBuf);

impl ServedDirectory {
    pub(crate) fn new() -> Self {
        let path = std::env::temp_dir().join(format!("small-responses-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a directory to serve");
        fs::write(path.join("small.txt"), vec![b's'; SMALL_BYTES]).expect("room for a kilobyte");
        fs::write(path.join("large.txt"), vec![b'l'; LARGE_BYTES]).expect("room for sixteen");
        Self(path)
    }
}

impl Drop for ServedDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A running server.
pub(crate) struct ServerProcess {
    kind: ServerKind,
    child: Child,
    pub(crate) process: u32,
    pub(crate) address: SocketAddr,
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// All running servers.
pub(crate) struct ServerProcesses(Vec<ServerProcess>);

impl ServerProcesses {
    pub(crate) fn start(network: &Network, directory: &ServedDirectory) -> Self {
        use ServerKind::{Cache, CachingGateway, Coap, Gateway, Hyper, Nginx, NginxCache, Ours, Reflector};
        let all = [Ours, Cache, Gateway, CachingGateway, Hyper, Reflector, Nginx, NginxCache, Coap];
        Self(all.into_iter().filter_map(|kind| ServerProcess::start(kind, network, directory)).collect())
    }

    pub(crate) fn get(&self, kind: ServerKind) -> Option<&ServerProcess> {
        self.0.iter().find(|server| server.kind == kind)
    }
}

impl ServerProcess {
    /// Starts a server; `None` if it is not installed.
    pub(crate) fn start(kind: ServerKind, network: &Network, directory: &ServedDirectory) -> Option<Self> {
        let started = network.inside(|| {
            // The thread, and so the server, inherits this CPU.
            scheduling::serve_here();
            start(kind, network.servers(), &directory.0)
        });
        match started {
            Ok(server) => {
                wait();
                Some(server)
            }
            Err(error) => {
                eprintln!("left out: {kind:?}, {error}; Debian has it in nginx-light or libcoap3-bin");
                None
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "other people's programs do not say when they are ready")]
fn wait() {
    std::thread::sleep(Duration::from_millis(200));
}

fn start(kind: ServerKind, host: Ipv4Addr, directory: &Path) -> io::Result<ServerProcess> {
    let address = SocketAddr::from((host, free_port(host)?));
    let mut command = match kind {
        ServerKind::Ours => of_this_program("ours", address, directory),
        ServerKind::Holding => of_this_program("holding", address, directory),
        ServerKind::Cache => of_this_program("cache", address, directory),
        ServerKind::Gateway => of_this_program("gateway", address, directory),
        ServerKind::CachingGateway => of_this_program("gateway-that-keeps", address, directory),
        ServerKind::Hyper => of_this_program("hyper", address, directory),
        ServerKind::Reflector => of_this_program("reflector", address, directory),
        ServerKind::Nginx | ServerKind::NginxCache => {
            let name = if kind == ServerKind::Nginx { "nginx" } else { "nginx-cache" };
            let path = directory.join(name).with_extension("conf");
            fs::write(&path, nginx_configuration(kind, address, directory)).expect("room for a page");
            let mut command = Command::new("/usr/sbin/nginx");
            command.arg("-p").arg(directory).arg("-c").arg(path).arg("-e").arg("stderr");
            command
        }
        ServerKind::Coap => {
            let mut command = Command::new("coap-server-notls");
            command.args(["-A", &host.to_string(), "-p", &address.port().to_string()]);
            command
        }
    };
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
    Ok(ServerProcess { kind, process: child.id(), child, address })
}

fn of_this_program(role: &str, address: SocketAddr, directory: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("the path of this program"));
    command.args([ROLE, role, &address.to_string()]).arg(directory);
    command
}

fn free_port(host: Ipv4Addr) -> io::Result<u16> {
    Ok(TcpListener::bind((host, 0))?.local_addr()?.port())
}

/// Configuration of nginx for maximum throughput. Its cache is in front of itself, and gets a response from there once.
fn nginx_configuration(kind: ServerKind, address: SocketAddr, directory: &Path) -> String {
    let directory = directory.display();
    let (name, servers) = match kind {
        ServerKind::NginxCache => (
            "nginx-cache",
            format!(
                "proxy_cache_path {directory}/cached keys_zone=hits:1m;
  server {{ listen unix:{directory}/origin; root {directory}; add_header Cache-Control max-age=86400; }}
  server {{ listen {address} backlog=4096; location / {{ proxy_pass http://unix:{directory}/origin:/; proxy_cache hits; }} }}"
            ),
        ),
        _ => ("nginx", format!("server {{ listen {address} backlog=4096; root {directory}; }}")),
    };
    format!(
        "daemon off; master_process off; worker_processes 1; pid {directory}/{name}.pid; error_log stderr crit;
events {{ worker_connections 8192; multi_accept on; }}
http {{
  access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000000; keepalive_timeout 75s;
  open_file_cache max=100 inactive=60s; open_file_cache_valid 60s;
  types {{ text/plain txt; }} charset utf-8;
  client_body_temp_path {directory}/a; proxy_temp_path {directory}/b; fastcgi_temp_path {directory}/c;
  uwsgi_temp_path {directory}/d; scgi_temp_path {directory}/e;
  {servers}
}}
"
    )
}

/// Serves until it is killed.
pub(crate) fn run(role: &str, address: SocketAddr, directory: &Path) {
    match role {
        "ours" | "holding" => {
            let mut config = unlimited();
            if role == "holding" {
                config.dhttp.validation = Validation::Trusting;
                config.dhttp.timeout.idle = wire::Duration::from_secs(600);
            }
            let files = Files::below(directory).expect("the directory exists");
            let server = Server::start(address, config, files, None).expect("the port is free");
            loop {
                std::thread::park();
                assert_eq!(server.address(), address);
            }
        }
        "cache" => cache(address),
        "gateway" => gateway(address, None),
        "gateway-that-keeps" => gateway(address, Some(CacheConfig::default())),
        "hyper" => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(hyper_server(address));
        }
        "reflector" => reflect(address),
        _ => panic!("{role} is no server"),
    }
}

/// The internet profile, which counts the bytes to each client with a token, but limits none: one client is the whole load.
fn unlimited() -> ServerConfig {
    let mut config = ServerConfig { threads: 1, ..ServerConfig::internet().reaching_anywhere() };
    if let Validation::Tokens { rate, .. } = &mut config.dhttp.validation {
        rate.is_dry_run = true;
    }
    config
}

/// A cache in which the small response is fresh for a day.
fn cache(address: SocketAddr) {
    let config = unlimited();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().expect("a runtime");
    let lines = &[("Content-Type", "text/plain; charset=utf-8"), ("Cache-Control", "max-age=86400")];
    let origin = Origin { lines, body: vec![b's'; SMALL_BYTES] };
    let cache = Cache::new(origin, CacheConfig::default(), runtime.handle().clone()).expect("random bytes");
    let server = Server::start(address, config, cache, None).expect("the port is free");
    loop {
        std::thread::park();
        assert_eq!(server.address(), address);
    }
}

/// A gateway that trusts the paths' claims about DHTTP.
fn gateway(address: SocketAddr, cache: Option<CacheConfig>) {
    let config = GatewayConfig { cache, ..GatewayConfig::new(ClientConfig::internet()) };
    let gateway =
        Gateway::start(address, config, KnownServers::default(), None, None).expect("the port is free");
    loop {
        std::thread::park();
        assert_eq!(gateway.address(), address);
    }
}

/// As in hyper's examples, but with pipelined responses flushed together, which is not its default.
async fn hyper_server(address: SocketAddr) {
    let listener = tokio::net::TcpListener::bind(address).await.expect("the port is free");
    let body = Bytes::from(vec![b's'; SMALL_BYTES]);
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let _ = stream.set_nodelay(true);
        let body = body.clone();
        tokio::spawn(async move {
            let service = service_fn(move |_: Request<Incoming>| {
                let body = Full::new(body.clone());
                async move {
                    let response = Response::builder().header("Content-Type", "text/plain; charset=utf-8");
                    Ok::<_, Infallible>(response.body(body).expect("it is valid"))
                }
            });
            // A connection that the client breaks is not the server's error.
            let _ = http1::Builder::new()
                .pipeline_flush(true)
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

/// Reflector: replies to every datagram with the bytes of a response, and parses nothing.
fn reflect(address: SocketAddr) {
    let socket = UdpSocket::bind(address).expect("the port is free");
    socket.set_nonblocking(true).expect("it is a socket");
    dhttp::batch::prepare(&socket);
    enlarge_buffers(&socket);
    let response = [b'r'; SMALL_BYTES + 200];
    let (mut inbox, mut outbox) = (Inbox::default(), Outbox::default());
    loop {
        match inbox.receive(&socket) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let mut waits = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
                let _ = poll(&mut waits, PollTimeout::NONE);
                continue;
            }
            Err(_) => continue,
        }
        for index in 0..inbox.len() {
            if let Some((ends, _)) = inbox.datagram(index) {
                outbox.slot(ends).extend_from_slice(&response);
            }
        }
        outbox.send(&socket);
    }
}
