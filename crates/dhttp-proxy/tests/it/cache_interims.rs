//! Interim responses and trailers through a cache. Interim responses (1xx) come first (RFC 9110, section 15.2). Trailers
//! come last (RFC 9110, section 6.5; RFC 9111, section 3).
//!
//! The same for a gateway with a cache is tested in `tests/it/gateway_cache.rs`.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc;
use std::time::Duration;

use dhttp::client::KnownServers;
use dhttp::{Client, ClientConfig, Server, ServerConfig, Url};
use roundtrip_dhttp_proxy::{Cache, CacheConfig, Origin};
use test_fixture::TestServer;
use tokio::runtime::{Builder, Runtime};

struct CacheServer {
    server: Server<Cache<Origin>>,
    _runtime: Runtime,
}

impl CacheServer {
    /// A cache before an origin that handles each connection once its header section has arrived.
    fn before(origin: impl Fn(&str, &mut TcpStream) + Send + Sync + 'static) -> Self {
        let address = TestServer::start(move |head, _, stream| origin(head, stream)).address;
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let upstream = {
            let _inside = runtime.enter();
            Origin::new(&format!("http://{address}").parse().unwrap()).unwrap()
        };
        let cache = Cache::new(upstream, CacheConfig::default(), runtime.handle().clone()).unwrap();
        let config = ServerConfig { threads: 1, ..ServerConfig::internet() }.reaching_anywhere();
        let server = Server::start("127.0.0.1:0".parse().unwrap(), config, cache, None).unwrap();
        Self { server, _runtime: runtime }
    }

    fn connect(&self, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.server.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    /// Sends a request; returns all received bytes.
    fn send_request(&self, request: &str) -> String {
        let mut all = String::new();
        self.connect(request).read_to_string(&mut all).unwrap();
        all
    }
}

/// Reads until these bytes have arrived.
fn read_until(stream: &mut TcpStream, end: &str) -> String {
    let mut bytes = Vec::new();
    while !bytes.ends_with(end.as_bytes()) {
        let mut byte = [0];
        if !matches!(stream.read(&mut byte), Ok(1)) {
            break;
        }
        bytes.push(byte[0]);
    }
    String::from_utf8(bytes).unwrap()
}

fn write(stream: &mut TcpStream, text: &str) {
    // A client that has disconnected needs nothing.
    let _ = stream.write_all(text.as_bytes());
}

const GET: &str = "GET /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
const HINT: &str = "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n";
const WHOLE: &str =
    "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 5\r\nConnection: close\r\n\r\nwhole";

#[test]
fn rfc9110_15_2_interim_responses_pass_immediately_and_are_not_stored() {
    let (go_on, reported) = mpsc::channel::<()>();
    let reported = std::sync::Arc::new(std::sync::Mutex::new(reported));
    let servers = CacheServer::before(move |_, stream| {
        write(stream, HINT);
        // The origin does not begin the response before the client has the hint.
        reported.lock().unwrap().recv_timeout(Duration::from_secs(10)).unwrap();
        write(stream, WHOLE);
    });
    let mut stream = servers.connect(GET);
    let hint = read_until(&mut stream, "\r\n\r\n");
    assert!(hint.starts_with("HTTP/1.1 103 Early Hints\r\n"), "{hint}");
    assert!(hint.to_ascii_lowercase().contains("link: </style.css>; rel=preload\r\n"), "{hint}");
    go_on.send(()).unwrap();
    let mut final_text = String::new();
    stream.read_to_string(&mut final_text).unwrap();
    assert!(final_text.starts_with("HTTP/1.1 200 ") && final_text.ends_with("\r\n\r\nwhole"), "{final_text}");
    assert!(!final_text.contains("style.css"), "{final_text}");
    let stored = servers.send_request(GET);
    assert!(stored.starts_with("HTTP/1.1 200 ") && stored.contains("roundtrip; hit"), "{stored}");
}

#[test]
fn rfc9110_15_2_http10_and_datagrams_get_the_final_response_alone() {
    let servers = CacheServer::before(|_, stream| write(stream, &format!("{HINT}{HINT}{WHOLE}")));
    let old = servers.send_request("GET /a HTTP/1.0\r\nHost: h\r\n\r\n");
    assert!(old.starts_with("HTTP/1.0 200 ") || old.starts_with("HTTP/1.1 200 "), "{old}");
    assert!(!old.contains(" 103 "), "{old}");
    let client = Client::start(ClientConfig::internet(), KnownServers::default(), None).unwrap();
    let url: Url = format!("dhttp://{}/b", servers.server.address()).parse().unwrap();
    let (_, head, body) = client.get(&url).unwrap().whole().unwrap();
    assert_eq!((head.status, &*body), (200, &b"whole"[..]));
}

#[test]
fn a_server_that_only_ever_hints_fills_no_memory_and_leave_is_not_passed_on() {
    let servers = CacheServer::before(|_, stream| {
        write(stream, "HTTP/1.1 100 Continue\r\n\r\n");
        write(stream, &HINT.repeat(100));
        write(stream, WHOLE);
    });
    let all = servers.send_request(GET);
    assert_eq!(all.matches("HTTP/1.1 103 ").count(), 16);
    assert!(!all.contains(" 100 ") && all.ends_with("\r\n\r\nwhole"), "{all}");
}

#[test]
fn rfc9110_10_1_1_expectation_with_a_body_gets_100() {
    let servers = CacheServer::before(|_, stream| {
        let body = read_until(stream, "body");
        write(stream, &WHOLE.replace("whole", if body == "body" { "right" } else { "wrong" }));
    });
    let head = "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n";
    let mut stream = servers.connect(head);
    assert_eq!(read_until(&mut stream, "\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
    write(&mut stream, "body");
    let mut final_text = String::new();
    stream.read_to_string(&mut final_text).unwrap();
    assert!(final_text.starts_with("HTTP/1.1 200 ") && final_text.ends_with("right"), "{final_text}");
}

/// Returns a chunked response with a valid trailer, and one that is only allowed in header sections.
fn chunked(body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\
         Connection: close\r\n\r\n{:x}\r\n{body}\r\n0\r\nX-Sum: 9\r\nContent-Length: 4\r\n\r\n",
        body.len()
    )
}

#[test]
fn rfc9110_6_5_trailers_pass_if_accepted_and_are_not_stored() {
    let servers = CacheServer::before(|head, stream| {
        let accepts_trailers = head.to_ascii_lowercase().contains("\r\nte: trailers\r\n");
        write(stream, &chunked(if accepts_trailers { "asked" } else { "whole" }));
    });
    let taking = |path: &str| {
        servers.send_request(&format!(
            "GET {path} HTTP/1.1\r\nHost: h\r\nTE: trailers\r\nConnection: TE, close\r\n\r\n"
        ))
    };
    let first = taking("/a");
    let low = first.to_ascii_lowercase();
    assert!(
        low.contains("\r\ntrailer: x-sum\r\n") && low.contains("\r\ntransfer-encoding: chunked\r\n"),
        "{first}"
    );
    assert!(low.ends_with("\r\n\r\n5\r\nasked\r\n0\r\nx-sum: 9\r\n\r\n"), "{first}");
    // Header section and body are stored; no trailer has become a header field (RFC 9111, section 3).
    for stored in [taking("/a"), servers.send_request(GET)] {
        assert!(
            stored.contains("roundtrip; hit") && stored.contains("\r\nContent-Length: 5\r\n"),
            "{stored}"
        );
        assert!(
            stored.ends_with("\r\n\r\nasked") && !stored.to_ascii_lowercase().contains("x-sum"),
            "{stored}"
        );
    }
    // A client that does not accept trailers gets a length.
    let plain = servers.send_request(&GET.replace("/a", "/b"));
    assert!(plain.contains("\r\nContent-Length: 5\r\n") && plain.ends_with("\r\n\r\nwhole"), "{plain}");
    assert!(!plain.to_ascii_lowercase().contains("x-sum"), "{plain}");
    // Trailers describe the whole response, and are left out of any other.
    let part =
        servers.send_request("HEAD /c HTTP/1.1\r\nHost: h\r\nTE: trailers\r\nConnection: TE, close\r\n\r\n");
    assert!(!part.to_ascii_lowercase().contains("x-sum"), "{part}");
}

#[test]
fn trailers_follow_bodies_spooled_to_files_too() {
    let body = "0123456789abcdef".repeat(40_000);
    let origin_body = body.clone();
    let servers = CacheServer::before(move |_, stream| write(stream, &chunked(&origin_body)));
    let all =
        servers.send_request("GET /a HTTP/1.1\r\nHost: h\r\nTE: trailers\r\nConnection: TE, close\r\n\r\n");
    let (_, mut chunks) = all.split_once("\r\n\r\n").unwrap();
    let mut received = String::new();
    loop {
        let (length, after_length) = chunks.split_once("\r\n").unwrap();
        let length = usize::from_str_radix(length, 16).unwrap();
        if length == 0 {
            assert_eq!(after_length.to_ascii_lowercase(), "x-sum: 9\r\n\r\n");
            break;
        }
        received.push_str(&after_length[..length]);
        chunks = &after_length[length + 2..];
    }
    assert!(received == body);
    let address: SocketAddr = servers.server.address();
    let client = Client::start(ClientConfig::internet(), KnownServers::default(), None).unwrap();
    let url: Url = format!("dhttp://{address}/b").parse().unwrap();
    assert!(
        client.get(&url).unwrap().whole().unwrap().2 == body.as_bytes(),
        "the cache's own connection has no trailers"
    );
}
