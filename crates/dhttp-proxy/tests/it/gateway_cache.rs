//! A gateway with a cache, before scripted servers: forwarded requests, and responses.
//!
//! Storability is tested in `http1`, from RFC 9111; other responses in `tests/it/gateway.rs`.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use dhttp::client::KnownServers;
use dhttp::{ClientConfig, Request, Response, Server, ServerConfig};
use roundtrip_dhttp_proxy::{CacheConfig, Gateway, GatewayConfig};
use test_fixture::TestServer;

fn gateway() -> Gateway {
    gateway_with(CacheConfig::default())
}

fn gateway_with(cache: CacheConfig) -> Gateway {
    let config = GatewayConfig { cache: Some(cache), ..GatewayConfig::new(ClientConfig::internet()) };
    Gateway::start("127.0.0.1:0".parse().unwrap(), config, KnownServers::default(), None, None).unwrap()
}

/// Sends a request through the gateway; returns the response's header section and body as received.
fn send_request(
    gateway: SocketAddr,
    to: SocketAddr,
    method: &str,
    path: &str,
    lines: &str,
) -> (String, Vec<u8>) {
    let mut stream = begin(gateway, to, method, path, lines);
    let mut bytes = Vec::new();
    // A truncated response ends in a reset.
    let _ = stream.read_to_end(&mut bytes);
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").map_or(bytes.len(), |end| end + 4);
    let body = bytes.split_off(end);
    (String::from_utf8(bytes).unwrap(), body)
}

fn begin(gateway: SocketAddr, to: SocketAddr, method: &str, path: &str, lines: &str) -> TcpStream {
    let mut stream = TcpStream::connect(gateway).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    write!(stream, "{method} http://{to}{path} HTTP/1.1\r\nHost: {to}\r\nConnection: close\r\n{lines}\r\n")
        .unwrap();
    stream
}

fn respond(stream: &mut TcpStream, lines: &str, body: &str) {
    let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n{lines}\r\n{body}", body.len());
}

#[expect(
    clippy::disallowed_methods,
    reason = "an origin that takes its time, and threads that do not say what they did"
)]
fn pause(time: Duration) {
    thread::sleep(time);
}

#[test]
fn fresh_responses_are_fetched_once_whole_or_in_part() {
    let origin = TestServer::start(|_, _, stream| {
        respond(stream, "Cache-Control: max-age=60\r\nETag: \"a\"\r\n", "0123456789")
    });
    let gateway = gateway();
    let get = |method, lines| send_request(gateway.address(), origin.address, method, "/a", lines);
    let (head, body) = get("GET", "");
    assert!(head.contains("Cache-Status: roundtrip; fwd=miss; stored"), "{head}");
    assert_eq!(body, b"0123456789");
    let (head, body) = get("GET", "");
    assert!(head.contains("Cache-Status: roundtrip; hit") && head.contains("Age: "), "{head}");
    assert!(head.contains("Content-Length: 10\r\n"), "{head}");
    assert_eq!(body, b"0123456789");
    let (head, body) = get("GET", "Range: bytes=2-4\r\n");
    assert!(head.starts_with("HTTP/1.1 206") && head.contains("Content-Range: bytes 2-4/10"), "{head}");
    assert_eq!(body, b"234");
    let (head, body) = get("GET", "If-None-Match: \"a\"\r\n");
    assert!(head.starts_with("HTTP/1.1 304") && body.is_empty(), "{head}");
    let (head, body) = get("HEAD", "");
    assert!(head.contains("Content-Length: 10\r\n") && body.is_empty(), "{head}");
    assert_eq!(origin.requested(), 1);
    let metrics = gateway.metrics()();
    assert!(metrics.contains("roundtrip_gateway_responses_total{channel=\"cache\"} 4"), "{metrics}");
    assert!(metrics.contains("roundtrip_cache_requests_total{result=\"hit\"} 4"), "{metrics}");
}

#[test]
fn response_streams_through_and_is_stored_when_whole() {
    let (go_on, reported) = mpsc::channel::<()>();
    let reported = std::sync::Mutex::new(reported);
    let length = 400_000;
    let origin = TestServer::start(move |_, _, stream| {
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nCache-Control: max-age=60\r\n\r\n");
        let _ = stream.write_all(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
        let _ = stream.write_all(head.as_bytes());
        let _ = stream.write_all(&vec![b'x'; length / 2]);
        reported.lock().unwrap().recv().unwrap();
        let _ = stream.write_all(&vec![b'x'; length / 2]);
    });
    let gateway = gateway();
    let mut stream = begin(gateway.address(), origin.address, "GET", "/a", "");
    let mut begun = vec![0; length / 4];
    stream.read_exact(&mut begun).unwrap();
    assert!(begun.starts_with(b"HTTP/1.1 103"), "{}", String::from_utf8_lossy(&begun[..100]));
    go_on.send(()).unwrap();
    stream.read_to_end(&mut begun).unwrap();
    let (head, body) = send_request(gateway.address(), origin.address, "GET", "/a", "");
    assert!(head.contains("roundtrip; hit") && body == vec![b'x'; length], "{head}");
    assert_eq!(origin.requested(), 1);
}

#[test]
fn trailers_pass_and_truncated_responses_are_not_stored() {
    let origin = TestServer::start(|head, _, stream| {
        let whole = head.starts_with("GET /whole ");
        let chunked_end = if whole { "0\r\nDigest: abc\r\n\r\n" } else { "" };
        let _ = write!(
            stream,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Digest\r\nCache-Control: max-age=60\r\n\r\n\
             5\r\nhello\r\n{chunked_end}"
        );
    });
    let gateway = gateway();
    let get = |path| {
        send_request(gateway.address(), origin.address, "GET", path, "TE: trailers\r\nConnection: TE\r\n")
    };
    let (_, body) = get("/whole");
    assert!(body.ends_with(b"0\r\nDigest: abc\r\n\r\n"), "{}", String::from_utf8_lossy(&body));
    assert_eq!(get("/whole").1, b"hello");
    assert_eq!(origin.requested(), 1);
    for _ in 0..2 {
        let (head, body) = get("/broken");
        assert!(!body.ends_with(b"0\r\n\r\n") && !head.contains("Content-Length"), "{head}");
    }
    assert_eq!(origin.requested(), 3);
}

#[test]
fn concurrent_requests_are_collapsed_unless_private() {
    let origin = TestServer::start(|head, _, stream| {
        pause(Duration::from_millis(100));
        let control = if head.starts_with("GET /private ") { "private" } else { "max-age=60" };
        respond(stream, &format!("Cache-Control: {control}\r\n"), "x");
    });
    let gateway = gateway();
    for (path, origin_requests) in [("/a", 1), ("/private", 5)] {
        let before = origin.requested();
        thread::scope(|scope| {
            for _ in 0..5 {
                scope.spawn(|| {
                    assert_eq!(send_request(gateway.address(), origin.address, "GET", path, "").1, b"x")
                });
            }
        });
        assert_eq!(origin.requested() - before, origin_requests, "{path}");
    }
}

#[test]
fn stale_responses_are_validated_and_replace_failures() {
    let origin_state = Arc::new(std::sync::Mutex::new("good"));
    let shared_state = Arc::clone(&origin_state);
    let origin = TestServer::start(move |head, _, stream| {
        let is_conditional = head.to_ascii_lowercase().contains("if-none-match: \"a\"");
        let origin_state = *shared_state.lock().unwrap();
        let _ = match (origin_state, is_conditional) {
            ("good", true) => write!(stream, "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n"),
            // A 304 about a response that was never stored.
            ("lying", true) => write!(stream, "HTTP/1.1 304 Not Modified\r\nETag: \"other\"\r\n\r\n"),
            ("gone", _) => return,
            ("sick", _) => write!(stream, "HTTP/1.1 503 Sick\r\nContent-Length: 4\r\n\r\nsick"),
            ("wild", _) => write!(stream, "\0\0\0garbage\r\n\r\n"),
            (origin_state, _) => {
                let lines = "Cache-Control: max-age=0, stale-if-error=60\r\nETag: \"a\"\r\n";
                respond(stream, lines, origin_state);
                return;
            }
        };
    });
    let gateway = gateway();
    let get = || send_request(gateway.address(), origin.address, "GET", "/a", "");
    assert_eq!(get().1, b"good");
    let (head, body) = get();
    assert!(head.contains("fwd=stale; fwd-status=304") && body == b"good", "{head}");
    *origin_state.lock().unwrap() = "lying";
    let before = origin.requested();
    assert_eq!(get().1, b"lying");
    assert_eq!(origin.requested() - before, 2, "the request was retried without the condition");
    for (now, how) in
        [("gone", "detail=unreachable"), ("sick", "fwd-status=503"), ("wild", "detail=unreachable")]
    {
        *origin_state.lock().unwrap() = now;
        let (head, body) = get();
        assert!(head.contains(how) && body == b"lying", "{now}: {head}");
    }
}

#[test]
fn stale_while_revalidate_is_served_immediately_and_revalidated() {
    let lines = "ETag: \"a\"\r\nCache-Control: max-age=0, stale-while-revalidate=60\r\n";
    let origin = TestServer::start(move |_, _, stream| respond(stream, lines, "x"));
    let gateway = gateway();
    let get = || send_request(gateway.address(), origin.address, "GET", "/a", "").0;
    assert!(get().contains("fwd=miss"));
    assert!(get().contains("roundtrip; hit"));
    let retried = (0..500).any(|_| {
        pause(Duration::from_millis(10));
        origin.requested() == 2
    });
    assert!(retried, "{}", origin.requested());
}

#[test]
fn unsafe_methods_invalidate_and_hosts_are_separate() {
    let response = |name: &'static str| {
        TestServer::start(move |_, _, stream| respond(stream, "Cache-Control: max-age=60\r\n", name))
    };
    let (first_origin, second_origin) = (response("one"), response("other"));
    let gateway = gateway();
    let exchange = |origin: &TestServer, method, lines| {
        send_request(gateway.address(), origin.address, method, "/a", lines)
    };
    assert_eq!(exchange(&first_origin, "GET", "").1, b"one");
    assert_eq!(exchange(&second_origin, "GET", "").1, b"other");
    let (head, _) = exchange(&first_origin, "POST", "Content-Length: 0\r\n");
    assert!(head.contains("fwd=method"), "{head}");
    assert!(exchange(&first_origin, "GET", "").0.contains("fwd=miss"));
    assert!(exchange(&second_origin, "GET", "").0.contains("roundtrip; hit"));
    let (head, _) = exchange(&second_origin, "GET", "Cache-Control: only-if-cached, no-cache\r\n");
    assert!(head.starts_with("HTTP/1.1 504"), "{head}");
}

#[test]
fn oversized_responses_pass_and_those_on_disk_survive_a_restart() {
    let directory = std::env::temp_dir().join(format!("gateway-cache-{}", std::process::id()));
    let config =
        || CacheConfig { largest: 1_000, disk: Some((directory.clone(), 1 << 20)), ..CacheConfig::default() };
    let origin = TestServer::start(|head, _, stream| {
        let length = if head.starts_with("GET /long ") { 5_000 } else { 500 };
        respond(stream, "Cache-Control: max-age=60\r\n", &"x".repeat(length));
    });
    let first = gateway_with(config());
    for (path, length, origin_requests) in [("/long", 5_000, 2), ("/short", 500, 1)] {
        let before = origin.requested();
        for _ in 0..2 {
            let (head, body) = send_request(first.address(), origin.address, "GET", path, "");
            assert_eq!(body.len(), length, "{head}");
        }
        assert_eq!(origin.requested() - before, origin_requests, "{path}");
    }
    drop(first);
    // The disk is one gateway's at a time, and its thread may still be writing.
    let restarted = (0..500).find_map(|_| {
        pause(Duration::from_millis(10));
        let config = GatewayConfig { cache: Some(config()), ..GatewayConfig::new(ClientConfig::internet()) };
        Gateway::start("127.0.0.1:0".parse().unwrap(), config, KnownServers::default(), None, None).ok()
    });
    let restarted = restarted.expect("the file is free again");
    assert!(
        send_request(restarted.address(), origin.address, "GET", "/short", "").0.contains("roundtrip; hit")
    );
    let _ = std::fs::remove_file(directory);
}

#[test]
fn responses_by_dhttp_are_stored_too() {
    let config = ServerConfig { threads: 1, ..ServerConfig::internet().reaching_anywhere() };
    let response = |request: &Request<'_>| {
        let length = if request.target.ends_with("/large") { 30_000 } else { 30 };
        let mut response = Response::whole(200, "text/plain", vec![b'x'; length]);
        Arc::make_mut(&mut response.fields).push("Cache-Control", "max-age=60").unwrap();
        response
    };
    let server = Server::start("127.0.0.1:0".parse().unwrap(), config, response, None).unwrap();
    let gateway = gateway();
    for (path, length) in [("/_dhttp_/small", 30), ("/_dhttp_/large", 30_000)] {
        for how in ["fwd=miss; stored", "roundtrip; hit"] {
            let (head, body) = send_request(gateway.address(), server.address(), "GET", path, "");
            assert!(head.contains(how) && body == vec![b'x'; length], "{path}: {head}");
        }
    }
    let metrics = gateway.metrics()();
    assert!(metrics.contains("roundtrip_gateway_responses_total{channel=\"udp\"} 1"), "{metrics}");
}
