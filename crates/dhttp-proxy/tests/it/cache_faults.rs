//! A cache in front of an origin that stalls, disconnects, sends wrong responses and changes them. No bytes are wrong,
//! no request hangs, and no wrong response is stored.
//!
//! A full disk and a killed cache are tested in `crates/roundtrip/tests/it/cache.rs`; routes and losses in
//! `tests/it/interception.rs`.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use dhttp::{Server, ServerConfig};
use roundtrip_dhttp_proxy::{Cache, CacheConfig, Origin};
use test_fixture::{TestServer, exchange};
use tokio::runtime::{Builder, Runtime};

/// The correct body at every path.
const BODY: &str = "these are the right bytes";
const ORIGIN_TIMEOUT: Duration = Duration::from_millis(500);

/// An origin with the fault that each path names, until it is cured.
struct FaultyOrigin {
    server: TestServer,
    fixed: Arc<AtomicBool>,
    /// Paths whose responses replace those to the first requests.
    next_paths: Arc<Mutex<Vec<&'static str>>>,
}

impl FaultyOrigin {
    fn new() -> Self {
        let (fixed, next_paths) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let (is_fixed, shared_next_paths) = (Arc::clone(&fixed), Arc::clone(&next_paths));
        let server = TestServer::start(move |head, number, stream| {
            let path = head.split(' ').nth(1).unwrap();
            let path = if is_fixed.load(Ordering::SeqCst) { "/well" } else { path };
            let next = shared_next_paths.lock().unwrap().get(number).copied();
            respond(head, next.unwrap_or(path), number, stream);
        });
        Self { server, fixed, next_paths }
    }
}

/// Responds to the request with this number as if it were for this path.
fn respond(head: &str, path: &str, number: usize, stream: &mut TcpStream) {
    let part = head
        .to_ascii_lowercase()
        .split_once("\r\nrange: bytes=")
        .map(|(_, range)| range.split_once("\r\n").unwrap().0.to_owned());
    let all = match part {
        Some(range) if path == "/changes-in-parts" => part_of_version(&range, number),
        Some(_) | None => printed(path, number),
    };
    if path == "/drips" {
        let (head, body) = all.split_at(all.len() - BODY.len());
        let _ = stream.write_all(head.as_bytes());
        for byte in body.as_bytes().chunks(1) {
            let _ = stream.write_all(byte);
            pause(ORIGIN_TIMEOUT / 20);
        }
    } else {
        let _ = stream.write_all(all.as_bytes());
    }
    if matches!(path, "/silent" | "/stalls" | "/stalls-in-a-chunk") {
        // Until the client has closed.
        let _ = stream.read(&mut [0]);
    }
    let _ = stream.shutdown(Shutdown::Both);
}

const FAULTS: [&str; 15] = [
    "/gone",
    "/silent",
    "/stalls",
    "/stalls-in-a-chunk",
    "/too-short",
    "/two-lengths",
    "/length-and-chunks",
    "/line-feeds",
    "/chunks-within-gzip",
    "/nul-in-a-chunk",
    "/breaks-off-in-a-chunk",
    "/no-chunk",
    "/garbage",
    "/part-of-nothing-asked",
    "/unchanged-since-never",
];

/// Returns the origin's response at a path to the request with this number.
fn printed(path: &str, number: usize) -> String {
    let ok = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n";
    let length = BODY.len();
    match path {
        "/stale" => {
            let ok = "HTTP/1.1 200 OK\r\nCache-Control: max-age=0\r\nETag: \"s\"\r\n";
            format!("{ok}Content-Length: {length}\r\n\r\n{BODY}")
        }
        // The whole of one version: one letter, twenty times.
        "/changes-in-parts" => {
            format!("{ok}ETag: \"{number}\"\r\nContent-Length: 20\r\n\r\n{}", letter(number).repeat(20))
        }
        "/well" | "/drips" => format!("{ok}Content-Length: {length}\r\n\r\n{BODY}"),
        "/stalls" | "/too-short" => format!("{ok}Content-Length: {length}\r\n\r\n{}", &BODY[..7]),
        "/stalls-in-a-chunk" | "/breaks-off-in-a-chunk" => {
            format!("{ok}Transfer-Encoding: chunked\r\n\r\n{length:x}\r\n{}", &BODY[..7])
        }
        "/two-lengths" => format!("{ok}Content-Length: {length}\r\nContent-Length: 7\r\n\r\n{BODY}"),
        "/length-and-chunks" => {
            let chunk = format!("{length:x}\r\n{BODY}\r\n0\r\n\r\n");
            format!("{ok}Content-Length: {}\r\nTransfer-Encoding: chunked\r\n\r\n{chunk}", chunk.len())
        }
        "/line-feeds" => format!("{ok}Content-Length: {length}\r\n\r\n{BODY}").replace('\r', ""),
        "/chunks-within-gzip" => {
            format!("{ok}Transfer-Encoding: chunked, gzip\r\n\r\n{length:x}\r\n{BODY}\r\n0\r\n\r\n")
        }
        "/nul-in-a-chunk" => {
            format!("{ok}Transfer-Encoding: chunked\r\n\r\n{length:x};a=\0\r\n{BODY}\r\n0\r\n\r\n")
        }
        "/no-chunk" => format!("{ok}Transfer-Encoding: chunked\r\n\r\nzz\r\n{BODY}\r\n0\r\n\r\n"),
        "/garbage" => "\0\u{1}\u{2} these are no bytes of HTTP \r\n\r\n\r\n".to_owned(),
        "/part-of-nothing-asked" => {
            let head = "HTTP/1.1 206 Partial Content\r\nCache-Control: max-age=60\r\nContent-Range: bytes 3-9/30\r\n";
            format!("{head}Content-Length: 7\r\n\r\n{}", &BODY[3..10])
        }
        "/unchanged-since-never" => "HTTP/1.1 304 Not Modified\r\nETag: \"t\"\r\n\r\n".to_owned(),
        // The length depends on the content, which changes each time, and so do its validators.
        "/changes" => {
            let body = format!("version {number}");
            let length = body.len();
            format!("{ok}ETag: \"{number}\"\r\nContent-Length: {length}\r\n\r\n{body}")
        }
        "/gone" | "/silent" => String::new(),
        other => panic!("{other}"),
    }
}

/// Returns the response with a part of the version with this number.
fn part_of_version(range: &str, number: usize) -> String {
    let head = "HTTP/1.1 206 Partial Content\r\nCache-Control: max-age=60\r\n";
    let tag = format!("ETag: \"{number}\"\r\nContent-Range: bytes {range}/20\r\nContent-Length: 10\r\n");
    format!("{head}{tag}\r\n{}", letter(number).repeat(10))
}

fn letter(number: usize) -> String {
    char::from(b'a' + u8::try_from(number % 26).unwrap()).to_string()
}

struct CacheServer {
    origin: FaultyOrigin,
    server: Server<Cache<Origin>>,
    _runtime: Runtime,
}

impl CacheServer {
    /// Starts one whose cache has this timeout for its origin.
    fn open(timeout: Duration) -> Self {
        let faulty_origin = FaultyOrigin::new();
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let origin = {
            let _inside = runtime.enter();
            Origin::new(&format!("http://{}/", faulty_origin.server.address).parse().unwrap())
                .unwrap()
                .with_timeout(timeout)
        };
        let cache = Cache::new(origin, CacheConfig::default(), runtime.handle().clone()).unwrap();
        let config = ServerConfig { threads: 1, ..ServerConfig::internet() }.reaching_anywhere();
        let server = Server::start("127.0.0.1:0".parse().unwrap(), config, cache, None).unwrap();
        Self { origin: faulty_origin, server, _runtime: runtime }
    }

    /// Returns status, body and header section. No response takes longer than ten seconds.
    fn get(&self, path: &str, lines: &str) -> (u16, Vec<u8>, String) {
        let (head, body) = exchange(self.server.address(), "GET", path, lines);
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body, head)
    }
}

#[test]
fn faulty_origins_cause_no_wrong_bytes_and_nothing_is_stored() {
    let servers_by_fault: Vec<(CacheServer, &str)> =
        FAULTS.iter().map(|fault| (CacheServer::open(ORIGIN_TIMEOUT), *fault)).collect();
    thread::scope(|scope| {
        for (servers, fault) in &servers_by_fault {
            scope.spawn(move || {
                // Concurrent requests: one is sent to the origin, and the others wait for its response.
                let (sender, receiver) = mpsc::channel();
                thread::scope(|scope| {
                    for _ in 0..3 {
                        let sender = sender.clone();
                        scope.spawn(move || sender.send(servers.get(fault, "")).unwrap());
                    }
                });
                drop(sender);
                for (status, body, head) in receiver {
                    let is_part = *fault == "/part-of-nothing-asked";
                    assert!(status >= 500 || (is_part && status == 206), "{fault}: {head}");
                    assert!(!BODY.as_bytes().starts_with(&body) || body.is_empty(), "{fault}: {head}");
                }
                servers.origin.fixed.store(true, Ordering::SeqCst);
                // An origin that was down gets requests again once it has responded to a probe.
                let well = (0..100).find_map(|_| {
                    let (status, body, _) = servers.get(fault, "");
                    let is_well = status == 200;
                    if !is_well {
                        pause(Duration::from_millis(100));
                    }
                    is_well.then_some(body)
                });
                assert_eq!(well.as_deref(), Some(BODY.as_bytes()), "{fault}");
                let before = servers.origin.server.requested();
                assert_eq!(servers.get(fault, "").1, BODY.as_bytes(), "{fault}");
                assert_eq!(servers.origin.server.requested(), before, "{fault}: it is stored now");
            });
        }
    });
}

/// The same response with wrong validators: a 304 about another version than the one that is stored.
#[test]
fn unsolicited_304_gives_no_empty_page() {
    for (first, second) in [("/stale", "/unchanged-since-never"), ("/unchanged-since-never", "/well")] {
        let servers = CacheServer::open(ORIGIN_TIMEOUT);
        *servers.origin.next_paths.lock().unwrap() = vec![first, second, second];
        let (status, body, head) = servers.get("/a", "");
        let is_right = if first == "/stale" { body == BODY.as_bytes() } else { status == 502 };
        assert!(is_right, "{head}");
        // The stored response replaces it, or the next valid response is sent; a client without a stored response gets no 304.
        let (status, body, head) = servers.get("/a", "");
        assert_eq!((status, &*body), (200, BODY.as_bytes()), "{head}");
    }
}

#[test]
fn a_slow_origin_is_awaited_while_bytes_arrive() {
    let servers = CacheServer::open(ORIGIN_TIMEOUT);
    let (status, body, head) = servers.get("/drips", "");
    assert_eq!((status, &*body), (200, BODY.as_bytes()), "{head}");
}

#[test]
fn parts_of_an_origin_that_changes_in_between_are_never_put_together() {
    let servers = CacheServer::open(Duration::from_secs(10));
    let part = |range: &str| {
        let (status, body, head) = servers.get("/changes-in-parts", &format!("Range: bytes={range}\r\n"));
        assert_eq!(status, 206, "{head}");
        (body, head)
    };
    // Each part is of another version, with another tag.
    let ((first, first_head), (second, second_head)) = (part("0-9"), part("10-19"));
    let tag = |head: &str| head.lines().find_map(|line| line.strip_prefix("etag: ")).map(str::to_owned);
    assert!(tag(&first_head) != tag(&second_head), "{first_head}{second_head}");
    assert_eq!((first.len(), second.len()), (10, 10));
    // The whole is one version, fetched in one response, and from then on all parts are of that version.
    let (status, whole, head) = servers.get("/changes-in-parts", "");
    assert_eq!(status, 200, "{head}");
    assert!(whole.windows(2).all(|pair| pair[0] == pair[1]) && whole.len() == 20, "{head}");
    for range in ["0-9", "10-19"] {
        let (body, head) = part(range);
        assert!(body.iter().all(|byte| *byte == whole[0]), "{head}");
    }
}

#[test]
fn versions_of_a_changing_origin_are_never_mixed() {
    let servers = CacheServer::open(Duration::from_secs(10));
    for round in 0..5 {
        // To a range request this origin responds with the whole, and the cache with a part of the stored response.
        let lines = if round % 2 == 0 { "Cache-Control: no-cache\r\n" } else { "Range: bytes=0-6\r\n" };
        let (status, body, head) = servers.get("/changes", lines);
        let tag = head.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap().trim_matches('"');
        let whole = format!("version {tag}");
        let right = if status == 206 { whole.as_bytes()[..7].to_vec() } else { whole.into_bytes() };
        assert_eq!(String::from_utf8_lossy(&body), String::from_utf8_lossy(&right), "{head}");
        // A part of one version must not be served as part of another.
        let (status, body, head) = servers.get("/changes", "Range: bytes=8-\r\nIf-Range: \"of another\"\r\n");
        assert!(status == 200 && body.starts_with(b"version "), "{head}");
    }
}

#[expect(clippy::disallowed_methods, reason = "an origin that was down is retried after a pause")]
fn pause(time: Duration) {
    thread::sleep(time);
}
