//! Stepwise deployment in a network that knows only HTTP: every kind of client with every kind of server, over an
//! emulated link (`papers/dhttp#section-iv-e`).
//!
//! The right bytes in each cell, and the number of round trips without earlier state. None needs more than HTTP, except
//! where the client wrongly believes that the server speaks DHTTP, or has no token for a large response. Times are
//! counted in whole round trips of 200 ms.

use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use dhttp::client::KnownServers;
use dhttp::{Client, ClientConfig, Request, Response, Server, ServerConfig};
use dhttp_proto::client::{Resend, Responders};
use dhttp_proxy::cache::forward_upstream::ForwardUpstream;
use dhttp_proxy::cache::rules::{Interception, rules};
use dhttp_proxy::nft::{Family, InstalledRules};
use dhttp_proxy::{Cache, CacheConfig, Gateway, GatewayConfig};
use linux::clock::Clock;
use linux::netlink::Subnet;
use testbed::emulator::{Options, Running};
use testbed::{Interface, Namespace, Topology};
use tokio::runtime::{Builder, Runtime};
use wire::Duration;
use wire::link::Config;

use crate::hosts::{self, CLIENT, Hosts, SERVER};

const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 3);
const ROUND_TRIP: Duration = Duration::from_millis(200);
/// Body sizes: one datagram, and a few segments of a connection's first window.
const SIZES: [usize; 2] = [5, 8_000];

#[derive(Clone, Copy, Debug)]
enum ClientKind {
    OldClient,
    Gateway,
    ReturningGateway,
    GatewayBehindCache,
    Client,
    ReturningClient,
}

#[derive(Clone, Copy, Debug)]
enum ServerSideKind {
    OldServer,
    DhttpServer,
    /// With a cache close to the server, for clients that accept its responses.
    BehindCache,
    /// With a cache close to the server, for clients that refuse its responses.
    BehindUnwantedCache,
    OtherProgram,
}

const ROWS: [(ClientKind, &str); 6] = [
    (ClientKind::OldClient, "an old client"),
    (ClientKind::Gateway, "the gateway, for the first time"),
    (ClientKind::ReturningGateway, "the gateway, after one small response"),
    (ClientKind::GatewayBehindCache, "the gateway, after two"),
    (ClientKind::Client, "a DHTTP client, by `http://`"),
    (ClientKind::ReturningClient, "a DHTTP client, by `dhttp://` or a path below `/_dhttp_/`"),
];

const COLUMNS: [(ServerSideKind, &str); 5] = [
    (ServerSideKind::OldServer, "old server"),
    (ServerSideKind::DhttpServer, "DHTTP server"),
    (ServerSideKind::BehindCache, "DHTTP server, behind a cache"),
    (ServerSideKind::BehindUnwantedCache, "DHTTP server, behind a cache that is refused"),
    (ServerSideKind::OtherProgram, "old server, another program at its UDP port"),
];

#[test]
fn paper_section_iv_e_every_client_gets_the_right_bytes_from_every_server_in_as_few_round_trips() {
    if !test_fixture::has_laboratory() || !skip::has("nft") {
        return;
    }
    let headings = COLUMNS.map(|(_, name)| name).join(" | ");
    let mut table = format!("| client | {headings} |\n| --- | --- | --- | --- | --- | --- |\n");
    let document = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/gateway.md")).unwrap();
    let cells = measure_cells(&document);
    for ((_, name), cells) in ROWS.iter().zip(cells.chunks(COLUMNS.len())) {
        writeln!(table, "| {name} | {} |", cells.join(" | ")).unwrap();
    }
    assert!(document.contains(&table), "docs/gateway.md should hold:\n{table}");
}

/// Number of cells that are measured concurrently: each has its own namespaces, and waits.
const CONCURRENT_CELLS: usize = 4;

/// Measures every cell of the table, row by row; the document's cells are preferred.
fn measure_cells(document: &str) -> Vec<String> {
    let documented = |name: &str, column: usize| {
        let row = document.lines().find_map(|line| line.strip_prefix(&format!("| {name} |")));
        row.and_then(|row| row.split('|').nth(column)).unwrap_or_default().to_owned()
    };
    let cells: Vec<_> = ROWS
        .iter()
        .flat_map(|row| COLUMNS.iter().enumerate().map(move |(index, column)| (row, index, column)))
        .map(|((client_kind, name), index, (responses, _))| {
            (*client_kind, *responses, documented(name, index))
        })
        .collect();
    let (next, measured) = (AtomicUsize::new(0), Mutex::new(vec![String::new(); cells.len()]));
    std::thread::scope(|scope| {
        for _ in 0..CONCURRENT_CELLS {
            scope.spawn(|| {
                while let Some((number, (client_kind, responses, documented))) = take(&next, &cells) {
                    let counts = round_trips(*client_kind, *responses, documented);
                    measured.lock().unwrap()[number] = counts;
                }
            });
        }
    });
    measured.into_inner().unwrap()
}

/// The next item that no thread has taken, with its index.
fn take<'a, T>(next: &AtomicUsize, items: &'a [T]) -> Option<(usize, &'a T)> {
    let number = next.fetch_add(1, Ordering::Relaxed);
    items.get(number).map(|item| (number, item))
}

/// Maximum number of measurements of a response that takes longer than documented.
const MAX_TRIES: usize = 10;

/// Measures the round trips of a small and of a large response, and prefers the documented counts.
fn round_trips(client_kind: ClientKind, responses: ServerSideKind, documented: &str) -> String {
    let documented = documented.split('/').map(|count| count.trim().parse().unwrap_or(u64::MAX));
    let mut documented = documented.chain([u64::MAX; 2]);
    if matches!((client_kind, responses), (ClientKind::ReturningClient, ServerSideKind::OtherProgram)) {
        for size in SIZES {
            fetch(client_kind, responses, size);
        }
        return "after the last resend".to_owned();
    }
    SIZES
        .map(|size| {
            let documented = documented.next().unwrap_or(u64::MAX);
            // Load on the host adds to a time, sometimes more than a round trip, and never reduces it. Two equal times are the
            // result, unless both are longer than documented.
            let mut min_count = u64::MAX;
            for _ in 0..MAX_TRIES {
                let count = fetch(client_kind, responses, size);
                if count == min_count && min_count <= documented {
                    break;
                }
                min_count = min_count.min(count);
            }
            min_count.to_string()
        })
        .join(" / ")
}

/// Whole round trips of one response.
fn fetch(client_kind: ClientKind, responses: ServerSideKind, size: usize) -> u64 {
    let (Hosts { client, server, link }, router) = hosts(responses);
    let responders = match responses {
        ServerSideKind::BehindCache => Responders::AnyHost,
        ServerSideKind::OldServer
        | ServerSideKind::DhttpServer
        | ServerSideKind::BehindUnwantedCache
        | ServerSideKind::OtherProgram => Responders::Server,
    };
    let _serving = server.start(move || serve(responses)).wait().unwrap();
    let cache = router.as_ref().map(|(router, _)| router.start(cache).wait().unwrap());
    let (body, took) = client.start(move || fetch_body(client_kind, responders, size)).wait().unwrap();
    if let (Some((router, next)), Some(cache)) = (router, cache) {
        // Its rules are removed in the namespace where they are.
        router.start(move || drop(cache)).wait().unwrap();
        next.stop().unwrap();
    }
    link.stop().unwrap();
    assert!(body == vec![b'x'; size], "{client_kind:?} of {responses:?}: {} bytes", body.len());
    took.as_nanos() / ROUND_TRIP.as_nanos()
}

fn fetch_body(client_kind: ClientKind, responders: Responders, size: usize) -> (Vec<u8>, Duration) {
    let clock = Clock::start();
    let timed = |fetch: &dyn Fn() -> Vec<u8>| {
        let start = clock.now();
        let body = fetch();
        (body, clock.now().since(start))
    };
    match client_kind {
        ClientKind::OldClient => timed(&|| plain((SERVER, 80), "", size)),
        ClientKind::Gateway | ClientKind::ReturningGateway | ClientKind::GatewayBehindCache => {
            let config = GatewayConfig::new(client_config(responders));
            let gateway =
                Gateway::start("127.0.0.1:0".parse().unwrap(), config, KnownServers::default(), None, None)
                    .unwrap();
            let address = gateway.address();
            let through = |size| plain((Ipv4Addr::LOCALHOST, address.port()), "http://10.9.0.2", size);
            let earlier_requests = match client_kind {
                ClientKind::ReturningGateway => 1,
                ClientKind::GatewayBehindCache => 2,
                ClientKind::OldClient
                | ClientKind::Gateway
                | ClientKind::Client
                | ClientKind::ReturningClient => 0,
            };
            (0..earlier_requests).for_each(|_| drop(through(1)));
            timed(&|| through(size))
        }
        ClientKind::Client | ClientKind::ReturningClient => {
            let client = Client::start(client_config(responders), KnownServers::default(), None).unwrap();
            let path = if matches!(client_kind, ClientKind::Client) { "" } else { "/_dhttp_" };
            let url = format!("http://{SERVER}{path}/{size}").parse().unwrap();
            timed(&|| client.get(&url).unwrap().whole().unwrap().2)
        }
    }
}

/// Configures three attempts at intervals of two and a half round trips.
fn client_config(responders: Responders) -> ClientConfig {
    // The race hides what DHTTP itself costs; contacts.rs measures it.
    let mut config = ClientConfig { races: false, ..ClientConfig::internet() };
    config.dhttp.responders = responders;
    config.dhttp.resend = Resend::Fixed { waits: [Duration::from_millis(500); 2] };
    config
}

/// Fetches as programs without DHTTP do.
fn plain(to: (Ipv4Addr, u16), prefix: &str, size: usize) -> Vec<u8> {
    let mut stream = TcpStream::connect(to).unwrap();
    let request = format!("GET {prefix}/{size} HTTP/1.1\r\nHost: {SERVER}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = Vec::new();
    // The end of the body, not of the connection.
    while body(&response).is_none_or(|body| body.len() < size) {
        let mut buffer = [0; 4_096];
        let length = stream.read(&mut buffer).unwrap();
        assert!(length > 0, "{}", String::from_utf8_lossy(&response));
        response.extend_from_slice(&buffer[..length]);
    }
    body(&response).unwrap().to_vec()
}

fn body(response: &[u8]) -> Option<&[u8]> {
    let end = response.windows(4).position(|four| four == b"\r\n\r\n")?;
    response.get(end + 4..)
}

fn size_in(path: &str) -> usize {
    path.rsplit('/').next().and_then(|size| size.parse().ok()).unwrap()
}

/// A response of the size in its path.
type Sizes = fn(&Request<'_>) -> Response;

/// Values that must live as long as the server.
struct ServerGuard {
    _server: Option<Server<Sizes>>,
    _other: Option<UdpSocket>,
}

fn serve(responses: ServerSideKind) -> ServerGuard {
    match responses {
        ServerSideKind::DhttpServer | ServerSideKind::BehindCache | ServerSideKind::BehindUnwantedCache => {
            let handler: Sizes =
                |request| Response::whole(200, "text/plain", vec![b'x'; size_in(request.target)]);
            let config = ServerConfig { threads: 1, ..ServerConfig::internet().reaching_anywhere() };
            let server = Server::start((SERVER, 80).into(), config, handler, None).unwrap();
            ServerGuard { _server: Some(server), _other: None }
        }
        ServerSideKind::OldServer => {
            serve_plain();
            ServerGuard { _server: None, _other: None }
        }
        ServerSideKind::OtherProgram => {
            serve_plain();
            ServerGuard { _server: None, _other: Some(UdpSocket::bind((SERVER, 80)).unwrap()) }
        }
    }
}

/// A server without DHTTP: HTTP/1.1 with keep-alive.
fn serve_plain() {
    let listener = TcpListener::bind((SERVER, 80)).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                let mut request = Vec::new();
                let mut buffer = [0; 4_096];
                while let Ok(length @ 1..) = stream.read(&mut buffer) {
                    request.extend_from_slice(&buffer[..length]);
                    if request.ends_with(b"\r\n\r\n") {
                        let target = String::from_utf8_lossy(&request).split(' ').nth(1).unwrap().to_owned();
                        let body = "x".repeat(size_in(&target));
                        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
                        let _ = stream.write_all((head + &body).as_bytes());
                        request.clear();
                    }
                }
            });
        }
    });
}

/// A cache that intercepts requests, with values that must live as long.
type CacheGuard = (Server<Cache<ForwardUpstream>>, InstalledRules, Runtime);

fn cache() -> CacheGuard {
    fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let upstream = ForwardUpstream::start(ClientConfig::internet(), KnownServers::default(), None).unwrap();
    let cache = Cache::new(upstream, CacheConfig::default(), runtime.handle().clone()).unwrap();
    let config =
        ServerConfig { threads: 1, intercepts: true, ..ServerConfig::internet().reaching_anywhere() };
    let listen = (Ipv4Addr::UNSPECIFIED, 3_129).into();
    let server = Server::start(listen, config, cache, None).unwrap();
    let inside = ["link0".to_owned()];
    let interception = Interception { listen, ports: &[80], inside: &inside, reaches_private: true };
    (server, rules(Family::Ip, interception).install().unwrap(), runtime)
}

/// A client and a server one round trip apart; and the router between them, if there is one, with its very fast link to
/// the server.
fn hosts(responses: ServerSideKind) -> (Hosts, Option<(Namespace, Running)>) {
    let link_config = Config { delay: Duration::from_nanos(ROUND_TRIP.as_nanos() / 2), ..Config::default() };
    let options = Options::default();
    match responses {
        ServerSideKind::OldServer | ServerSideKind::DhttpServer | ServerSideKind::OtherProgram => {
            (Hosts::new(&link_config, &link_config, 1_500, &options), None)
        }
        ServerSideKind::BehindCache | ServerSideKind::BehindUnwantedCache => {
            let router = |device| Interface::of("router", device).address(ROUTER).gso_max_segments(64);
            let ([client, server, router], [link, next]) = Topology::new()
                .host("client")
                .host("server")
                .host("router")
                .emulated(
                    [hosts::interface("client", CLIENT).reaches(Subnet::IPV4), router("link0")],
                    [&link_config; 2],
                    &options,
                )
                .emulated(
                    [router("link1"), hosts::interface("server", SERVER).reaches(Subnet::IPV4)],
                    [&Config::default(); 2],
                    &options,
                )
                .build()
                .unwrap()
                .split()
                .unwrap();
            (Hosts { client, server, link }, Some((router, next)))
        }
    }
}
