//! A cache of a server, before an upstream that counts requests and fails on demand: upstream requests, and responses.
//!
//! Storability is tested in `http1`, from RFC 9111.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dhttp::client::{KnownServers, Via};
use dhttp::{Body, Client, ClientConfig, Interims, Server, ServerConfig, Url};
use http1::message::{Fields, Method, RequestHead, ResponseHead, Version};
use roundtrip_dhttp_proxy::cache::Upstream;
use roundtrip_dhttp_proxy::cache::upstream::{UpstreamFailure, UpstreamResponse};
use roundtrip_dhttp_proxy::{Cache, CacheConfig};
use test_fixture::exchange;
use tokio::runtime::Runtime;

/// Status, fields, body.
type CannedResponse = (u16, Vec<(String, String)>, Vec<u8>);

/// Responses of an upstream by path, and its count of requests.
#[derive(Clone, Default)]
struct Origin {
    responses: Arc<Mutex<BTreeMap<String, CannedResponse>>>,
    requested: Arc<AtomicUsize>,
    is_gone: Arc<AtomicBool>,
    wait: Arc<Mutex<Duration>>,
}

impl Origin {
    fn set_response(&self, path: &str, status: u16, lines: &[(&str, &str)], body: &[u8]) {
        let lines = lines.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        self.responses.lock().unwrap().insert(path.to_owned(), (status, lines, body.to_vec()));
    }

    fn requested(&self) -> usize {
        self.requested.load(Ordering::SeqCst)
    }
}

impl Upstream for Origin {
    async fn send_request(
        &self,
        _to: Option<SocketAddr>,
        head: RequestHead,
        _body: Vec<u8>,
        _most: u64,
        _interims: Option<Interims>,
    ) -> Result<UpstreamResponse, UpstreamFailure> {
        self.requested.fetch_add(1, Ordering::SeqCst);
        let wait = *self.wait.lock().unwrap();
        tokio::time::sleep(wait).await;
        if self.is_gone.load(Ordering::SeqCst) {
            return Err("the origin is gone".to_owned().into());
        }
        let (status, lines, body) =
            self.responses.lock().unwrap().get(&head.target).cloned().unwrap_or((404, vec![], vec![]));
        let mut fields = Fields::new();
        for (name, value) in &lines {
            fields.push(name, value).unwrap();
        }
        let tag = fields.get("ETag");
        let is_same = tag.is_some() && head.fields.get("If-None-Match") == tag;
        let status = if is_same { 304 } else { status };
        let body = match (&head.method, is_same) {
            (Method::Head, _) => Body::Described(Some(body.len() as u64)),
            (_, true) => Body::Whole([].into()),
            (_, false) => Body::Whole(body.into()),
        };
        Ok(UpstreamResponse {
            head: ResponseHead { version: Version::Http11, status, fields },
            body,
            trailers: Fields::new(),
        })
    }
}

struct CacheServer {
    origin: Origin,
    server: Server<Cache<Origin>>,
    _runtime: Runtime,
}

impl CacheServer {
    fn open() -> Self {
        Self::with(CacheConfig::default())
    }

    fn with(config: CacheConfig) -> Self {
        let origin = Origin::default();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let cache = Cache::new(origin.clone(), config, runtime.handle().clone()).unwrap();
        let config = ServerConfig { threads: 1, ..ServerConfig::internet() }.reaching_anywhere();
        let server = Server::start("127.0.0.1:0".parse().unwrap(), config, cache, None).unwrap();
        Self { origin, server, _runtime: runtime }
    }

    /// Sends a request over plain HTTP; returns the response's header section and body.
    fn send_request(&self, method: &str, path: &str, lines: &str) -> (String, Vec<u8>) {
        exchange(self.server.address(), method, path, lines)
    }
}

const FRESH: (&str, &str) = ("Cache-Control", "max-age=60");

#[test]
fn fresh_responses_are_fetched_once() {
    let servers = CacheServer::open();
    servers.origin.set_response(
        "/a",
        200,
        &[FRESH, ("Date", "Sun, 06 Nov 2094 08:49:37 GMT"), ("X", "1")],
        b"hello",
    );
    let (first, body) = servers.send_request("GET", "/a", "");
    assert_eq!(body, b"hello");
    assert!(first.contains("Cache-Status: roundtrip; fwd=miss; stored; ttl=60\r\n"), "{first}");
    let (second, body) = servers.send_request("GET", "/a", "");
    assert_eq!(body, b"hello");
    assert!(
        second.starts_with("HTTP/1.1 200 ") && second.contains("Cache-Status: roundtrip; hit; ttl="),
        "{second}"
    );
    assert_eq!(second.matches("Date: ").count(), 1);
    assert!(
        second.contains("Date: Sun, 06 Nov 2094 08:49:37 GMT\r\n") && second.contains("Age: 0\r\n"),
        "{second}"
    );
    let (head, body) = servers.send_request("HEAD", "/a", "");
    assert!(head.contains("Content-Length: 5\r\n") && body.is_empty(), "{head}");
    let (part, body) = servers.send_request("GET", "/a", "Range: bytes=1-2\r\n");
    assert!(part.starts_with("HTTP/1.1 206 ") && part.contains("Content-Range: bytes 1-2/5\r\n"), "{part}");
    assert_eq!(body, b"el");
    assert_eq!(servers.origin.requested(), 1);
    let (revalidated, _) = servers.send_request("GET", "/a", "Cache-Control: no-cache\r\n");
    assert!(revalidated.contains("fwd=request; stored"), "{revalidated}");
    assert_eq!(servers.origin.requested(), 2);
}

#[test]
fn sparing_cache_stores_only_explicit_lifetimes_and_delays_no_request() {
    let servers = CacheServer::with(CacheConfig { is_sparing: true, largest: 100, ..CacheConfig::default() });
    let old = ("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT");
    servers.origin.set_response("/guess", 200, &[old, ("ETag", "\"a\"")], b"guess");
    servers.origin.set_response("/said", 200, &[FRESH, old], b"said");
    servers.origin.set_response("/large", 200, &[FRESH], &[7; 101]);
    for (path, requested) in [("/said", 1), ("/guess", 2), ("/large", 2)] {
        let before = servers.origin.requested();
        for _ in 0..2 {
            assert!(servers.send_request("GET", path, "").0.starts_with("HTTP/1.1 200 "));
        }
        assert_eq!(servers.origin.requested() - before, requested, "{path}");
    }
    servers.origin.set_response("/slow", 200, &[FRESH], b"slow");
    *servers.origin.wait.lock().unwrap() = Duration::from_millis(200);
    let before = servers.origin.requested();
    std::thread::scope(|scope| {
        (0..3).for_each(|_| drop(scope.spawn(|| servers.send_request("GET", "/slow", ""))))
    });
    assert_eq!(servers.origin.requested() - before, 3);
}

#[test]
fn hosts_have_separate_responses() {
    let servers = CacheServer::open();
    servers.origin.set_response("/", 200, &[FRESH], b"x");
    servers.send_request("GET", "/", "");
    let mut stream = TcpStream::connect(servers.server.address()).unwrap();
    write!(stream, "GET / HTTP/1.1\r\nHost: other\r\nConnection: close\r\n\r\n").unwrap();
    stream.read_to_end(&mut Vec::new()).unwrap();
    assert_eq!(servers.origin.requested(), 2);
}

#[test]
fn concurrent_requests_are_collapsed() {
    let servers = CacheServer::open();
    servers.origin.set_response("/slow", 200, &[FRESH], b"slow");
    *servers.origin.wait.lock().unwrap() = Duration::from_millis(300);
    let responses: Vec<_> = std::thread::scope(|scope| {
        let clients: Vec<_> =
            (0..20).map(|_| scope.spawn(|| servers.send_request("GET", "/slow", ""))).collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    assert!(responses.iter().all(|(_, body)| body == b"slow"));
    assert_eq!(servers.origin.requested(), 1);
    assert_eq!(responses.iter().filter(|(head, _)| head.contains("fwd=miss; collapsed")).count(), 19);
}

#[test]
fn collapsed_request_for_a_private_response_is_forwarded() {
    let servers = CacheServer::open();
    servers.origin.set_response("/mine", 200, &[("Cache-Control", "private")], b"mine");
    *servers.origin.wait.lock().unwrap() = Duration::from_millis(100);
    std::thread::scope(|scope| {
        for _ in 0..5 {
            scope.spawn(|| assert_eq!(servers.send_request("GET", "/mine", "").1, b"mine"));
        }
    });
    assert_eq!(servers.origin.requested(), 5);
}

#[test]
fn stale_responses_are_validated_and_replace_an_unreachable_origin() {
    let servers = CacheServer::open();
    let tag = ("ETag", "\"t\"");
    servers.origin.set_response("/tagged", 200, &[("Cache-Control", "max-age=0"), tag], b"tagged");
    servers.origin.set_response(
        "/strict",
        200,
        &[("Cache-Control", "max-age=0, must-revalidate"), tag],
        b"strict",
    );
    servers.send_request("GET", "/tagged", "");
    servers.send_request("GET", "/strict", "");
    let (validated, body) = servers.send_request("GET", "/tagged", "");
    assert!(validated.contains("fwd=stale; fwd-status=304"), "{validated}");
    assert_eq!(body, b"tagged");
    let (unchanged, body) = servers.send_request("GET", "/tagged", "If-None-Match: \"t\"\r\n");
    assert!(unchanged.starts_with("HTTP/1.1 304 ") && body.is_empty(), "{unchanged}");
    servers.origin.is_gone.store(true, Ordering::SeqCst);
    let (stale, body) = servers.send_request("GET", "/tagged", "");
    assert!(stale.starts_with("HTTP/1.1 200 ") && stale.contains("detail=unreachable"), "{stale}");
    assert_eq!(body, b"tagged");
    assert!(servers.send_request("GET", "/strict", "").0.starts_with("HTTP/1.1 502 "));
    assert!(servers.send_request("GET", "/never-seen", "").0.starts_with("HTTP/1.1 502 "));
    let before = servers.origin.requested();
    assert!(
        servers
            .send_request("GET", "/strict", "Cache-Control: only-if-cached\r\n")
            .0
            .starts_with("HTTP/1.1 504 ")
    );
    assert_eq!(servers.origin.requested(), before);
}

/// A 304 that forbade storing was merged into the response, but the stored one stayed.
#[test]
fn regress_response_that_became_uncacheable_is_dropped_on_validation() {
    let servers = CacheServer::open();
    let tag = ("ETag", "\"1\"");
    servers.origin.set_response("/s", 200, &[("Cache-Control", "max-age=0"), tag], b"once");
    assert!(servers.send_request("GET", "/s", "").0.starts_with("HTTP/1.1 200"));
    servers.origin.set_response("/s", 200, &[("Cache-Control", "no-store"), tag], b"once");
    let (head, body) = servers.send_request("GET", "/s", "");
    assert!(head.contains("fwd-status=304") && body == b"once", "{head}");
    servers.origin.is_gone.store(true, Ordering::SeqCst);
    let (head, _) = servers.send_request("GET", "/s", "");
    assert!(head.starts_with("HTTP/1.1 502"), "{head}");
}

#[expect(clippy::disallowed_methods, reason = "what is waited for is another thread's writing")]
fn pause() {
    std::thread::sleep(Duration::from_millis(10));
}

/// Responses only on disk were not found for `only-if-cached` requests.
#[test]
fn regress_only_if_cached_finds_responses_on_disk() {
    let file = std::env::temp_dir().join(format!("dhttp-cache-disk-{}", std::process::id()));
    let disk = Some((file.clone(), 1 << 20));
    let servers = CacheServer::with(CacheConfig { memory: 0, disk, ..CacheConfig::default() });
    servers.origin.set_response("/a", 200, &[FRESH], b"hello");
    assert_eq!(servers.send_request("GET", "/a", "").1, b"hello");
    // The disk's thread may still be writing.
    let body = (0..500).find_map(|_| {
        pause();
        let (head, body) = servers.send_request("GET", "/a", "Cache-Control: only-if-cached\r\n");
        head.starts_with("HTTP/1.1 200 ").then_some(body)
    });
    assert_eq!(body.as_deref(), Some(&b"hello"[..]));
    assert_eq!(servers.origin.requested(), 1);
    let _ = std::fs::remove_file(file);
}

#[test]
fn unsafe_methods_invalidate_and_head_detects_changes() {
    let servers = CacheServer::open();
    servers.origin.set_response("/a", 200, &[FRESH], b"old");
    servers.send_request("GET", "/a", "");
    servers.send_request("POST", "/a", "Content-Length: 0\r\n");
    servers.origin.set_response("/a", 200, &[FRESH], b"newer");
    assert_eq!(servers.send_request("GET", "/a", "").1, b"newer");
    assert_eq!(servers.origin.requested(), 3);
    servers.origin.set_response("/a", 200, &[FRESH], b"newest");
    let (head, _) = servers.send_request("HEAD", "/a", "Cache-Control: no-cache\r\n");
    assert!(head.contains("Content-Length: 6\r\n"), "{head}");
    assert_eq!(servers.send_request("GET", "/a", "").1, b"newest");
}

#[test]
fn without_a_token_only_cached_responses_are_served() {
    let servers = CacheServer::open();
    servers.origin.set_response("/there", 200, &[FRESH], b"there");
    servers.send_request("GET", "/there", "");
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let server = servers.server.address();
    let fill = "x".repeat(300);
    let send_request = |path: &str, fields: &str| {
        let head = format!("GET {path} HTTP/1.1\r\nHost: h\r\n{fields}DHTTP-Fill: {fill}\r\n\r\n");
        socket.send_to(&[&[0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0][..], head.as_bytes()].concat(), server).unwrap();
        let mut buffer = [0; 2_048];
        let length = socket.recv(&mut buffer).unwrap();
        buffer[8..length].to_vec()
    };
    for (path, fields) in [
        ("/absent", ""),
        ("/there", "Cache-Control: no-cache\r\n"),
        ("/absent", "Cache-Control: only-if-cached\r\n"),
    ] {
        assert_eq!(send_request(path, fields), b"", "{path} {fields}");
    }
    assert!(send_request("/there", "").ends_with(b"\r\n\r\nthere"));
    assert_eq!(servers.origin.requested(), 1);
}

#[test]
fn over_dhttp_small_ones_come_in_a_datagram_and_large_ones_by_a_connection_of_the_cache() {
    let servers = CacheServer::open();
    servers.origin.set_response("/small", 200, &[FRESH], b"small");
    servers.origin.set_response("/large", 200, &[FRESH], &[7; 300_000]);
    let client = Client::start(ClientConfig::internet(), KnownServers::default(), None).unwrap();
    for round in 0..3 {
        for (path, via, length) in [("small", Via::Udp, 5), ("large", Via::TcpOpened, 300_000)] {
            let url: Url = format!("dhttp://{}/{path}", servers.server.address()).parse().unwrap();
            let (received_via, head, body) = client.get(&url).unwrap().whole().unwrap();
            // The first client has no token, and nothing is fetched for a datagram without one.
            let via = if (round, path) == (0, "small") { Via::TcpClient } else { via };
            assert_eq!((received_via, head.status, body.len()), (via, 200, length), "{path}, round {round}");
            let status = String::from_utf8_lossy(head.fields.get("Cache-Status").unwrap()).into_owned();
            assert!(status.contains(if round == 0 { "fwd=miss" } else { "hit" }), "{status}");
        }
    }
    assert_eq!(servers.origin.requested(), 2);
}
