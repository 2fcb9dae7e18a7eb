//! Programs through the gateway, over the loopback interface: to servers that speak DHTTP, and to those that do not.
//!
//! Changes of forwarded messages are tested in `http1::gateway`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use dhttp::client::KnownServers;
use dhttp::{ClientConfig, Reply, Request, Response, Server, ServerConfig, promise};
use dhttp_proto::client::Resend;
use roundtrip_dhttp_proxy::{CacheConfig, Gateway, GatewayConfig};

fn gateway() -> Gateway {
    gateway_with(GatewayConfig::new(ClientConfig::internet()))
}

fn gateway_with(config: GatewayConfig) -> Gateway {
    Gateway::start("127.0.0.1:0".parse().unwrap(), config, KnownServers::default(), None, None).unwrap()
}

/// A connection to the gateway.
struct GatewayClient {
    stream: BufReader<TcpStream>,
}

struct ReceivedResponse {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl GatewayClient {
    fn new(gateway: &Gateway) -> Self {
        let stream = TcpStream::connect(gateway.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        Self { stream: BufReader::new(stream) }
    }

    fn send(&mut self, text: &str) {
        self.stream.get_mut().write_all(text.as_bytes()).unwrap();
    }

    fn get(&mut self, to: SocketAddr, path: &str) -> ReceivedResponse {
        self.send(&format!("GET http://{to}{path} HTTP/1.1\r\nHost: {to}\r\n\r\n"));
        self.respond()
    }

    fn head(&mut self) -> String {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(self.stream.read_line(&mut head).unwrap() > 0, "ended in a head: {head:?}");
        }
        head
    }

    fn respond(&mut self) -> ReceivedResponse {
        let head = self.head();
        let field = |name: &str| {
            head.lines().find_map(|line| {
                let (field_name, value) = line.split_once(": ")?;
                field_name.eq_ignore_ascii_case(name).then(|| value.to_owned())
            })
        };
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let mut body = Vec::new();
        if let Some(length) = field("Content-Length") {
            body = vec![0; length.parse().unwrap()];
            self.stream.read_exact(&mut body).unwrap();
        } else if field("Transfer-Encoding").is_some() {
            loop {
                let mut size = String::new();
                self.stream.read_line(&mut size).unwrap();
                let size = usize::from_str_radix(size.trim(), 16).unwrap();
                if size == 0 {
                    body.extend_from_slice(self.trailers().as_bytes());
                    break;
                }
                let start = body.len();
                body.resize(start + size, 0);
                self.stream.read_exact(&mut body[start..]).unwrap();
                self.stream.read_exact(&mut [0; 2]).unwrap();
            }
        } else {
            self.stream.read_to_end(&mut body).unwrap();
        }
        ReceivedResponse { status, head, body }
    }

    fn trailers(&mut self) -> String {
        let mut text = String::new();
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).unwrap();
            if line == "\r\n" {
                return text;
            }
            text.push_str(&line);
        }
    }
}

fn pattern(length: usize) -> Vec<u8> {
    (0..=250).cycle().take(length).collect()
}

fn dhttp_server() -> Server<impl dhttp::Handler> {
    let config = ServerConfig { threads: 1, ..ServerConfig::internet().reaching_anywhere() };
    let response = |request: &Request<'_>| match request.target.trim_start_matches("/_dhttp_") {
        "/large" => Response::whole(200, "application/octet-stream", pattern(300_000)),
        "/upload" => Response::text(200, &format!("{} bytes", request.body.len())),
        "/cookie" => {
            Response::text(200, &String::from_utf8_lossy(request.field("Cookie").unwrap_or(b"none")))
        }
        _ => Response::text(200, "small"),
    };
    Server::start("127.0.0.1:0".parse().unwrap(), config, response, None).unwrap()
}

/// A server that reads whole requests without bodies and sends these responses, on one connection.
fn scripted(responses: Vec<&'static str>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let mut responses = responses.into_iter();
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            loop {
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") {
                    if stream.read_line(&mut head).unwrap_or(0) == 0 {
                        break;
                    }
                }
                if head.is_empty() {
                    break;
                }
                let Some(response) = responses.next() else { return };
                stream.get_mut().write_all(response.as_bytes()).unwrap();
                if response.is_empty() || response.contains("close") {
                    break;
                }
            }
        }
    });
    address
}

/// Length of a response that no socket buffers hold.
const LARGE: usize = 16 << 20;

fn large_server() -> Server<impl dhttp::Handler> {
    let config = ServerConfig { threads: 1, ..ServerConfig::internet().reaching_anywhere() };
    let body: Arc<[u8]> = vec![b'l'; LARGE].into();
    let respond = move |_: &Request<'_>| {
        let mut response = Response::whole(200, "text/plain", Arc::clone(&body));
        Arc::make_mut(&mut response.fields).push("Cache-Control", "max-age=3600").unwrap();
        response
    };
    Server::start("127.0.0.1:0".parse().unwrap(), config, respond, None).unwrap()
}

/// Returns a counter of this client's requests. A response is counted after it has been written, and before its
/// connection's next request is read.
fn counted(program: &mut GatewayClient, gateway: &Gateway, name: &str) -> u64 {
    program.send("GET /proxy.pac HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(program.respond().status, 200);
    let text = gateway.metrics()();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {text}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn http_clients_get_datagrams_once_the_server_announces_dhttp() {
    let (server, gateway) = (dhttp_server(), gateway());
    let mut program = GatewayClient::new(&gateway);
    let first = program.get(server.address(), "/");
    assert_eq!((first.status, first.body.as_slice()), (200, &b"small\n"[..]), "{}", first.head);
    assert_eq!(
        counted(&mut program, &gateway, "roundtrip_gateway_responses_total{channel=\"tcp-client\"}"),
        1
    );
    let second = program.get(server.address(), "/");
    assert_eq!(second.body, b"small\n");
    assert!(second.head.contains("Content-Length: 6\r\n") && second.head.contains("Via: 1.1 roundtrip-"));
    assert_eq!(counted(&mut program, &gateway, "roundtrip_gateway_responses_total{channel=\"udp\"}"), 1);
    let large = program.get(server.address(), "/large");
    assert_eq!(large.body, pattern(300_000));
    assert_eq!(
        counted(&mut program, &gateway, "roundtrip_gateway_responses_total{channel=\"tcp-opened\"}"),
        1
    );
    assert!(gateway.known().port(&server.address().to_string()).is_some());
}

#[test]
fn dhttp_path_is_requested_by_udp_immediately_and_head_has_no_body() {
    let (server, gateway) = (dhttp_server(), gateway());
    let mut program = GatewayClient::new(&gateway);
    assert_eq!(program.get(server.address(), "/_dhttp_/").body, b"small\n");
    let at = server.address();
    program.send(&format!("HEAD http://{at}/_dhttp_/large HTTP/1.1\r\nHost: {at}\r\n\r\n"));
    assert!(program.head().starts_with("HTTP/1.1 200 OK\r\n"));
    // If the response to HEAD had had a body, its bytes would precede this status line.
    assert_eq!(program.get(at, "/_dhttp_/").status, 200);
    assert_eq!(
        counted(&mut program, &gateway, "roundtrip_gateway_responses_total{channel=\"tcp-client\"}"),
        0
    );
}

#[test]
fn cookies_and_uploads_never_travel_in_datagrams() {
    let (server, gateway) = (dhttp_server(), gateway());
    let at = server.address();
    let mut program = GatewayClient::new(&gateway);
    program.get(at, "/");
    program.send(&format!("GET http://{at}/cookie HTTP/1.1\r\nHost: {at}\r\nCookie: secret\r\n\r\n"));
    assert_eq!(program.respond().body, b"secret\n");
    let body = "x".repeat(200_000);
    program.send(&format!(
        "POST http://{at}/upload HTTP/1.1\r\nHost: {at}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    ));
    assert_eq!(program.respond().body, b"200000 bytes\n");
    program.send(&format!(
        "POST http://{at}/upload HTTP/1.1\r\nHost: {at}\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    ));
    assert_eq!(program.respond().body, b"5 bytes\n");
    assert_eq!(counted(&mut program, &gateway, "roundtrip_gateway_responses_total{channel=\"udp\"}"), 0);
    assert!(counted(&mut program, &gateway, "roundtrip_gateway_connections_reused_total") >= 1);
}

#[test]
fn a_server_that_speaks_only_http_sees_nothing_else() {
    let origin = scripted(vec![
        "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n3\r\ntwo\r\n0\r\nX-Sum: 9\r\nContent-Length: 4\r\n\r\n",
        "HTTP/1.0 200 OK\r\nConnection: close\r\n\r\nthree",
    ]);
    let gateway = gateway();
    let mut program = GatewayClient::new(&gateway);
    program.send(&format!("GET http://{origin}/ HTTP/1.1\r\nHost: {origin}\r\n\r\n"));
    assert!(program.head().starts_with("HTTP/1.1 103 "), "announced");
    assert_eq!(program.respond().body, b"one");
    let second = program.get(origin, "/");
    assert_eq!(second.body, b"twoX-Sum: 9\r\n", "with its trailer, and without a length in it");
    // A body that the origin ends by closing the connection is forwarded in chunks.
    let third = program.get(origin, "/");
    assert_eq!(third.body, b"three");
    assert!(third.head.contains("Transfer-Encoding: chunked"), "{}", third.head);
    assert_eq!(counted(&mut program, &gateway, "roundtrip_gateway_connections_reused_total"), 2);
}

#[test]
fn a_connection_closed_at_that_moment_costs_only_a_new_connection() {
    let origin = scripted(vec![
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none",
        "",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\ntwo",
    ]);
    let gateway = gateway();
    let mut program = GatewayClient::new(&gateway);
    assert_eq!(program.get(origin, "/").body, b"one");
    assert_eq!(program.get(origin, "/").body, b"two");
}

#[test]
fn a_refusal_comes_back_before_the_last_of_an_upload() {
    let origin =
        scripted(vec!["HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno"]);
    let gateway = gateway();
    let mut program = GatewayClient::new(&gateway);
    program.send(&format!(
        "PUT http://{origin}/ HTTP/1.1\r\nHost: {origin}\r\nContent-Length: 1000000\r\n\r\npart"
    ));
    let refused = program.respond();
    assert_eq!((refused.status, refused.body.as_slice()), (413, &b"no"[..]));
    assert!(refused.head.contains("Connection: close"), "{}", refused.head);
}

#[test]
fn truncated_responses_never_look_whole() {
    let origin = scripted(vec!["HTTP/1.1 200 OK\r\nContent-Length: 10\r\nX: close\r\n\r\nhalf"]);
    let gateway = gateway();
    let mut program = GatewayClient::new(&gateway);
    program.send(&format!("GET http://{origin}/ HTTP/1.1\r\nHost: {origin}\r\n\r\n"));
    let mut all = Vec::new();
    // Either a reset, or an end before the tenth byte.
    let read = program.stream.read_to_end(&mut all);
    let text = String::from_utf8_lossy(&all);
    assert!(read.is_err() || text.contains("Content-Length: 10") && text.ends_with("half"), "{text}");
}

#[test]
fn smuggled_and_broken_requests_are_refused() {
    let gateway = gateway();
    for (request, status) in [
        (
            "POST http://127.0.0.1:1/ HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
            "400",
        ),
        (
            "POST http://127.0.0.1:1/ HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n",
            "400",
        ),
        ("GET http://127.0.0.1:1/ HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "400"),
        ("GET http://127.0.0.1:1/ HTTP/1.1\r\n\r\n", "400"),
        ("GET https://127.0.0.1/ HTTP/1.1\r\nHost: a\r\n\r\n", "501"),
        ("GET http://127.0.0.1:1/ HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n", "502"),
        ("nonsense\r\n\r\n", "400"),
    ] {
        let mut program = GatewayClient::new(&gateway);
        program.send(request);
        let head = program.head();
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{request:?}: {head}");
    }
}

#[test]
fn forwarding_loop_is_refused() {
    let gateway = gateway();
    let mut program = GatewayClient::new(&gateway);
    assert_eq!(program.get(gateway.address(), "/").status, 508);
    let port = gateway.address().port();
    program.send(&format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\nHost: a\r\n\r\n"));
    assert_eq!(program.respond().status, 508);
}

#[test]
fn a_tunnel_carries_bytes_both_ways_and_ends_one_way_at_a_time() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap();
    let echo = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        stream.write_all(&all).unwrap();
    });
    let gateway = gateway();
    let mut program = GatewayClient::new(&gateway);
    program.send(&format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\nfirst, "));
    assert!(program.head().starts_with("HTTP/1.1 200 "));
    program.send("then");
    program.stream.get_ref().shutdown(std::net::Shutdown::Write).unwrap();
    let mut back = String::new();
    program.stream.read_to_string(&mut back).unwrap();
    assert_eq!(back, "first, then");
    echo.join().unwrap();
}

#[test]
fn paper_section_iv_c_secure_requests_use_tcp_even_to_a_server_known_for_dhttp() {
    let (server, gateway) = (dhttp_server(), gateway());
    let to = server.address();
    let received = || {
        let text = server.metrics();
        let line = text.lines().find(|line| line.starts_with("roundtrip_dhttp_received_bytes_total"));
        line.and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).unwrap()
    };
    let mut program = GatewayClient::new(&gateway);
    program.get(to, "/");
    assert_eq!(received(), 0);
    program.get(to, "/");
    let by_udp = received();
    assert!(by_udp > 0, "the second request was no datagram");
    // A tunnel carries TLS; the gateway cannot tell what is in it.
    let mut secure = GatewayClient::new(&gateway);
    secure.send(&format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n"));
    assert!(secure.head().starts_with("HTTP/1.1 200 "));
    secure.send(&format!("GET / HTTP/1.1\r\nHost: {to}\r\n\r\n"));
    assert_eq!(secure.respond().body, b"small\n");
    assert_eq!(received(), by_udp);
}

#[test]
fn serves_its_proxy_pac_and_404_for_other_paths() {
    let gateway = gateway();
    let mut program = GatewayClient::new(&gateway);
    program.send("GET /proxy.pac HTTP/1.1\r\nHost: a\r\n\r\n");
    let script = String::from_utf8(program.respond().body).unwrap();
    assert!(script.contains(&format!("PROXY {}", gateway.address())), "{script}");
    program.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(program.respond().status, 404);
}

#[test]
fn excess_connections_get_503() {
    let config = GatewayConfig { connections: 1, ..GatewayConfig::new(ClientConfig::internet()) };
    let gateway = gateway_with(config);
    // A client that waits for its response occupies a connection.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut first = GatewayClient::new(&gateway);
    let at = silent.local_addr().unwrap();
    first.send(&format!("GET http://{at}/ HTTP/1.1\r\nHost: {at}\r\n\r\n"));
    let _pending_connection = silent.accept().unwrap();
    assert_eq!(GatewayClient::new(&gateway).respond().status, 503);
}

#[test]
fn at_the_limit_the_longest_idle_connection_is_evicted() {
    let config = GatewayConfig { connections: 2, ..GatewayConfig::new(ClientConfig::internet()) };
    let gateway = gateway_with(config);
    let idle: Vec<_> = (0..20).map(|_| GatewayClient::new(&gateway)).collect();
    let mut last = GatewayClient::new(&gateway);
    last.send("GET /proxy.pac HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(last.respond().status, 200);
    assert!(
        counted(&mut last, &gateway, "roundtrip_gateway_connections_closed_total{reason=\"idle\"}") >= 19
    );
    drop(idle);
}

#[test]
fn a_silent_server_leaves_connections_to_others() {
    let config = GatewayConfig { origin_exchanges: Some(2), ..GatewayConfig::new(ClientConfig::internet()) };
    let (server, gateway) = (dhttp_server(), gateway_with(config));
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = silent.local_addr().unwrap();
    let mut pending: Vec<_> = (0..2).map(|_| GatewayClient::new(&gateway)).collect();
    for client in &mut pending {
        client.send(&format!("GET http://{at}/ HTTP/1.1\r\nHost: {at}\r\n\r\n"));
    }
    let mut connections: Vec<_> = (0..2).map(|_| silent.accept().unwrap().0).collect();
    let mut other = GatewayClient::new(&gateway);
    let refused = other.get(at, "/third");
    assert_eq!(refused.status, 503, "{}", refused.head);
    assert!(refused.head.contains("Retry-After: 1\r\n"), "{}", refused.head);
    // By plain HTTP and by datagram, on the same connection.
    for _ in 0..3 {
        assert_eq!(other.get(server.address(), "/").status, 200);
    }
    // Exchanges that end leave their places to others.
    for connection in &mut connections {
        connection.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").unwrap();
    }
    assert!(pending.iter_mut().all(|client| client.respond().status == 200));
    let name = "roundtrip_gateway_requests_refused_total{reason=\"origin\"}";
    assert_eq!(counted(&mut other, &gateway, name), 1);
    other.send(&format!("GET http://{at}/fourth HTTP/1.1\r\nHost: {at}\r\n\r\n"));
    silent.accept().unwrap();
}

#[test]
fn threads_share_limits_and_gauges() {
    let config =
        GatewayConfig { threads: 4, connections: 40, ..GatewayConfig::new(ClientConfig::internet()) };
    let (server, gateway) = (dhttp_server(), gateway_with(config));
    let mut clients: Vec<_> = (0..40).map(|_| GatewayClient::new(&gateway)).collect();
    for _ in 0..2 {
        for client in &mut clients {
            assert_eq!(client.get(server.address(), "/").body, b"small\n");
        }
    }
    // Each thread closes an idle connection of its own for a newcomer, or refuses it.
    let _further: Vec<_> = (0..20).map(|_| GatewayClient::new(&gateway)).collect();
    let value = |name: &str| -> u64 {
        let text = gateway.metrics()();
        let line = text.lines().find(|line| line.starts_with(name) && !line.starts_with('#'));
        line.and_then(|line| line.rsplit(' ').next()?.parse().ok())
            .unwrap_or_else(|| panic!("{name}: {text}"))
    };
    let is_settled = || {
        thread::park_timeout(Duration::from_millis(10));
        let newcomers = value("roundtrip_gateway_connections_accepted_total")
            + value("roundtrip_gateway_connections_refused_total");
        newcomers == 60 && value("roundtrip_gateway_connections_open") == 40
    };
    assert!((0..1_000).any(|_| is_settled()), "{}", gateway.metrics()());
    gateway.stop(Duration::from_secs(5));
}

#[test]
fn an_upload_may_take_longer_than_a_server_may_be_silent() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let (mut all, mut buffer) = (Vec::new(), [0; 4_096]);
        while !all.ends_with(b"the end") {
            let length = stream.read(&mut buffer).unwrap();
            assert!(length > 0, "cut short");
            all.extend_from_slice(&buffer[..length]);
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood").unwrap();
    });
    let config = GatewayConfig::new(ClientConfig::internet());
    let gateway =
        gateway_with(GatewayConfig { timeout: Duration::from_millis(500), min_upload_rate: 1, ..config });
    let mut program = GatewayClient::new(&gateway);
    program.send(&format!("POST http://{origin}/ HTTP/1.1\r\nHost: {origin}\r\nContent-Length: 157\r\n\r\n"));
    for _ in 0..15 {
        thread::park_timeout(Duration::from_millis(100));
        program.send("0123456789");
    }
    program.send("the end");
    assert_eq!(program.respond().body, b"good");
}

#[test]
fn an_upload_below_the_minimum_rate_is_aborted_and_counted() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = listener.local_addr().unwrap();
    thread::spawn(move || listener.accept().unwrap().0.read_to_end(&mut Vec::new()));
    let timeout = Duration::from_millis(500);
    let config = GatewayConfig::new(ClientConfig::internet());
    let gateway = gateway_with(GatewayConfig { timeout, min_upload_rate: 10_000, ..config });
    let mut slow = GatewayClient::new(&gateway);
    slow.send(&format!(
        "POST http://{origin}/ HTTP/1.1\r\nHost: {origin}\r\nContent-Length: 1000000\r\n\r\n"
    ));
    // Never silent for the gateway's timeout, but at a hundredth of the minimum rate. The server waits for the rest.
    let ended = (0..200).any(|_| {
        thread::park_timeout(Duration::from_millis(100));
        slow.stream.get_mut().write_all(b"0123456789").is_err()
    });
    assert!(ended, "twenty seconds of ten bytes each");
    let mut other = GatewayClient::new(&gateway);
    assert_eq!(
        counted(&mut other, &gateway, "roundtrip_gateway_connections_closed_total{reason=\"slow\"}"),
        1
    );
}

#[test]
fn a_response_that_is_not_read_is_aborted_and_counted_on_every_channel() {
    // By plain HTTP, from the cache, and by a connection that the server opened: each by a gateway of its own, concurrently.
    thread::scope(|scope| {
        for (channel, path, is_stored) in
            [("plain", "/", false), ("cache", "/", true), ("opened", "/_dhttp_/", false)]
        {
            scope.spawn(move || check_unread_response(channel, path, is_stored));
        }
    });
}

fn check_unread_response(channel: &str, path: &str, is_stored: bool) {
    let server = large_server();
    let config = GatewayConfig::new(ClientConfig::internet());
    let timeout = Duration::from_secs(1);
    let cache = Some(CacheConfig::default());
    let gateway = gateway_with(GatewayConfig { timeout, cache, ..config });
    let at = server.address();
    let request = format!("GET http://{at}{path} HTTP/1.1\r\nHost: {at}\r\n\r\n");
    if is_stored {
        // The response is stored once it is whole.
        let mut reader = GatewayClient::new(&gateway);
        reader.send(&request);
        assert_eq!(reader.respond().body.len(), LARGE);
    }
    let mut program = GatewayClient::new(&gateway);
    program.send(&request);
    let slow = "roundtrip_gateway_connections_closed_total{reason=\"slow\"}";
    let mut other = GatewayClient::new(&gateway);
    let ended = (0..300).any(|_| {
        thread::park_timeout(Duration::from_millis(100));
        counted(&mut other, &gateway, slow) == 1
    });
    assert!(ended, "{channel}: thirty seconds");
    let mut received = Vec::new();
    let end = program.stream.read_to_end(&mut received);
    assert!(received.len() < LARGE, "{channel}: {end:?}");
}

#[test]
fn stopping_finishes_pending_requests() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = listener.local_addr().unwrap();
    let (begun, has_begun) = std::sync::mpsc::channel();
    let (go, may_go) = std::sync::mpsc::channel::<()>();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut buffer = [0; 1_024];
        let _ = stream.read(&mut buffer).unwrap();
        begun.send(()).unwrap();
        may_go.recv().unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate").unwrap();
        let _ = stream.read(&mut buffer);
    });
    let gateway = gateway();
    let idle = GatewayClient::new(&gateway);
    let mut program = GatewayClient::new(&gateway);
    program.send(&format!("GET http://{origin}/ HTTP/1.1\r\nHost: {origin}\r\n\r\n"));
    has_begun.recv().unwrap();
    let stopping = thread::spawn(move || gateway.stop(Duration::from_secs(10)));
    let mut nothing = Vec::new();
    let mut idle = idle.stream;
    assert_eq!(idle.read_to_end(&mut nothing).unwrap_or(0), 0);
    go.send(()).unwrap();
    assert_eq!(program.respond().body, b"late");
    stopping.join().unwrap();
}

#[test]
fn dhttp_responses_arrive_across_a_reload() {
    let (requested, is_asked) = std::sync::mpsc::channel();
    let handler = move |_: &Request<'_>| -> Reply {
        let (promise, later) = promise();
        requested.send(promise).unwrap();
        Reply::Later(later)
    };
    let config = ServerConfig { threads: 1, ..ServerConfig::internet().reaching_anywhere() };
    let server = Server::start("127.0.0.1:0".parse().unwrap(), config, handler, None).unwrap();
    let at = server.address();
    for (number, body) in ["small".to_owned(), "large".repeat(20_000)].into_iter().enumerate() {
        let gateway = gateway();
        let mut program = GatewayClient::new(&gateway);
        // A small response brings the token by which the server may open a connection.
        program.send(&format!("GET http://{at}/_dhttp_/token HTTP/1.1\r\nHost: {at}\r\n\r\n"));
        is_asked.recv_timeout(Duration::from_secs(10)).unwrap().give(Response::text(200, "small"));
        assert_eq!(program.respond().status, 200);
        program.send(&format!("GET http://{at}/_dhttp_/{number} HTTP/1.1\r\nHost: {at}\r\n\r\n"));
        let promise = is_asked.recv_timeout(Duration::from_secs(10)).unwrap();
        let client = ClientConfig { timeout: wire::Duration::from_secs(20), ..ClientConfig::internet() };
        gateway.reload(GatewayConfig::new(client), None).unwrap();
        // The gateway serves a request with the new configuration before the old request has its response.
        assert_eq!(GatewayClient::new(&gateway).get(gateway.address(), "/").status, 508);
        promise.give(Response::whole(200, "text/plain", body.clone().into_bytes()));
        let response = program.respond();
        assert_eq!((response.status, response.body.len()), (200, body.len()));
    }
}

/// Servers without DHTTP: after a failed DHTTP request they get HTTP requests immediately or soon.
#[test]
fn old_server_gets_http_whatever_its_udp_port_does() {
    for peer in [OtherPeer::Nobody, OtherPeer::Reflector] {
        let response = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nold";
        let origin = scripted(vec![response, response]);
        let reflector = (peer == OtherPeer::Reflector).then(|| UdpSocket::bind(origin).unwrap());
        let received = reflector.map(|socket| {
            socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
            thread::spawn(move || {
                let (mut buffer, mut received) = ([0; 2_048], 0);
                while let Ok((length, from)) = socket.recv_from(&mut buffer) {
                    received += 1;
                    // A foreign program's reply: an echo of the request, which is not a DHTTP response.
                    socket.send_to(&buffer[..length], from).unwrap();
                }
                received
            })
        });
        let mut client = ClientConfig::internet();
        client.dhttp.resend = Resend::Fixed { waits: [wire::Duration::from_millis(100); 2] };
        let gateway = gateway_with(GatewayConfig::new(client));
        let mut program = GatewayClient::new(&gateway);
        assert_eq!(program.get(origin, "/_dhttp_/page").body, b"old", "{peer:?}");
        assert_eq!(
            counted(&mut program, &gateway, "roundtrip_gateway_responses_total{channel=\"tcp-client\"}"),
            1
        );
        drop(gateway);
        if let Some(received) = received {
            assert!((1..=4).contains(&received.join().unwrap()), "a bounded number of requests");
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OtherPeer {
    Nobody,
    Reflector,
}
