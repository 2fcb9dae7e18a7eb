//! Attacks on proxies, sent to the gateway and to a server in front of an origin; and invalid responses of origins. Both refuse
//! them, and refused messages never reach the other side.
//!
//! Parsing is tested in `http1`, payload by payload.

use crate::origin_proxy;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use dhttp::client::KnownServers;
use dhttp::{ClientConfig, Server, ServerConfig};
use origin_proxy::in_front_of;
use roundtrip_dhttp_proxy::{Gateway, GatewayConfig, Origin, service_handler};
use test_fixture::TestServer;
use tokio::runtime::Runtime;

const GOOD: &str = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\ngood";

/// Both kinds of proxy before one origin.
struct Proxies {
    origin: TestServer,
    gateway: Gateway,
    server: SocketAddr,
    _server: Box<dyn std::any::Any>,
    _runtime: Runtime,
}

/// Timeout of both for a silent side.
const TIMEOUT: Duration = Duration::from_millis(400);

fn proxies(response: &'static str) -> Proxies {
    let origin = TestServer::start(move |_, _, stream| drop(stream.write_all(response.as_bytes())));
    let config = GatewayConfig { timeout: TIMEOUT, ..GatewayConfig::new(ClientConfig::internet()) };
    let gateway =
        Gateway::start("127.0.0.1:0".parse().unwrap(), config, KnownServers::default(), None, None).unwrap();
    let runtime = Runtime::new().unwrap();
    let server = in_front_of(&runtime, origin.address, |origin| origin.with_timeout(TIMEOUT));
    Proxies { origin, gateway, server: server.address(), _server: Box::new(server), _runtime: runtime }
}

/// Sends a request; returns the status of the first response (0: none), and all bytes until the connection ends or stalls.
fn exchange(to: SocketAddr, request: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    // A proxy that refuses may have closed before the last byte.
    let _ = stream.write_all(request.as_bytes());
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all);
    let text = String::from_utf8_lossy(&all).into_owned();
    (text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0), text)
}

#[test]
fn invalid_requests_are_refused_by_gateway_and_origin_proxy_alike() {
    let proxies = proxies(GOOD);
    let (long, many, far) = ("a".repeat(20_000), "X: y\r\n".repeat(200), "a".repeat(9_000));
    let refused = [
        // Header sections.
        (format!("GET TARGET HTTP/1.1\r\nHost: h\r\nX: {long}\r\n\r\n"), 431),
        (format!("GET TARGET HTTP/1.1\r\nHost: h\r\n{many}\r\n"), 431),
        (format!("GET TARGET{far} HTTP/1.1\r\nHost: h\r\n\r\n"), 414),
        ("GET TARGET HTTP/1.1\r\n\r\n".to_owned(), 400),
        ("GET TARGET HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n".to_owned(), 400),
        ("GET TARGET HTTP/1.1\r\nHost : h\r\n\r\n".to_owned(), 400),
        ("GET TARGET HTTP/1.1\r\nHost: h\r\nX: a\r\n folded\r\n\r\n".to_owned(), 400),
        ("GET TARGET HTTP/1.1\nHost: h\n\n".to_owned(), 400),
        ("GET  TARGET HTTP/1.1\r\nHost: h\r\n\r\n".to_owned(), 400),
        ("GET TARGET HTTP/2.0\r\nHost: h\r\n\r\n".to_owned(), 505),
        // Body length.
        ("POST TARGET HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd".to_owned(), 400),
        ("POST TARGET HTTP/1.1\r\nHost: h\r\nContent-Length: 3, 4\r\n\r\nabcd".to_owned(), 400),
        ("POST TARGET HTTP/1.1\r\nHost: h\r\nContent-Length: +3\r\n\r\nabc".to_owned(), 400),
        ("POST TARGET HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_owned(), 400),
        ("POST TARGET HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n".to_owned(), 501),
        ("POST TARGET HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_owned(), 501),
        // Unsupported methods, expectations and targets.
        ("TRACE TARGET HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n".to_owned(), 405),
        ("GET TARGET HTTP/1.1\r\nHost: h\r\nConnection: close\r\nExpect: wonders\r\n\r\n".to_owned(), 417),
    ];
    let absolute_url = format!("http://{}/", proxies.origin.address);
    for (request, status) in &refused {
        for (to, target) in [(proxies.gateway.address(), &*absolute_url), (proxies.server, "/")] {
            let (received_status, text) = exchange(to, &request.replace("TARGET", target));
            assert_eq!(
                received_status,
                *status,
                "{:?} to {target}: {text:?}",
                request.get(..80).unwrap_or(request)
            );
        }
    }
    assert_eq!(proxies.origin.requested(), 0, "nothing of it reached the origin");
}

#[test]
fn every_form_of_a_target_means_the_same_to_the_origin_or_nothing() {
    let proxies = proxies(GOOD);
    let at = proxies.origin.address;
    for (to, target, status) in [
        (proxies.gateway.address(), format!("http://{at}/"), 200),
        (proxies.gateway.address(), format!("HTTP://{at}"), 200),
        // A proxy expects absolute URLs; paths are its own resources.
        (proxies.gateway.address(), "/".to_owned(), 404),
        (proxies.gateway.address(), at.to_string(), 400),
        (proxies.server, "/".to_owned(), 200),
        // Every server accepts absolute URLs (RFC 9112, section 3.2.2).
        (proxies.server, "http://elsewhere.example/".to_owned(), 200),
    ] {
        let (received_status, text) =
            exchange(to, &format!("GET {target} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"));
        assert_eq!(received_status, status, "{target}: {text}");
    }
}

#[test]
fn malformed_chunks_abort_the_request_on_both_sides() {
    let proxies = proxies("");
    let absolute_url = format!("http://{}/", proxies.origin.address);
    let endless = format!("1;{}\r\na\r\n", "x".repeat(5_000));
    for body in [
        "zz\r\n",
        "-1\r\n",
        "3\r\nabcd\r\n",
        "ffffffffffffffffff\r\n",
        "1\r\na\r\n0\r\nX: y\nZ\r\n\r\n",
        &endless,
    ] {
        for (to, target) in [(proxies.gateway.address(), &*absolute_url), (proxies.server, "/")] {
            let head = format!("POST {target} HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
            let (status, text) = exchange(to, &(head + body));
            assert!(
                (400..=431).contains(&status),
                "{:?} to {target}: {text}",
                body.get(..20).unwrap_or(body)
            );
        }
    }
}

#[test]
fn upgrades_are_not_forwarded() {
    let origin = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";
    let proxies = proxies(origin);
    let absolute_url = format!("http://{}/", proxies.origin.address);
    for (to, target) in [(proxies.gateway.address(), &*absolute_url), (proxies.server, "/")] {
        let (status, text) = exchange(
            to,
            &format!(
                "GET {target} HTTP/1.1\r\nHost: h\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n"
            ),
        );
        assert!(status == 502 && !text.contains("websocket"), "{target}: {text}");
    }
}

#[test]
fn server_in_front_of_itself_is_detected() {
    let runtime = Runtime::new().unwrap();
    // A free port, used by this test alone.
    let own = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let _inside = runtime.enter();
    let origin = Origin::new(&format!("http://{own}/").parse().unwrap()).unwrap();
    let config = ServerConfig { threads: 1, ..ServerConfig::internet().reaching_anywhere() };
    let _server =
        Server::start(own, config, service_handler(origin, runtime.handle().clone()), None).unwrap();
    let (status, text) = exchange(own, "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    assert_eq!(status, 508, "{text}");
}

#[test]
fn invalid_responses_of_an_origin_are_never_forwarded() {
    for (response, statuses) in [
        ("nonsense\r\n\r\n", &[502][..]),
        ("HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nhalf", &[502]),
        ("HTTP/1.1 200 OK\r\nX: a\r\n folded\r\nContent-Length: 4\r\n\r\nhalf", &[502]),
        // RFC 9112, section 6.3: it may be a smuggling attempt.
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
            &[502],
        ),
        ("HTTP/1.1 200 OK\nContent-Length: 4\n\nhalf", &[502]),
        ("HTTP/1.1 200 OK\r\nContent-Length: 4\n\r\nhalf", &[502]),
        ("HTTP/1.1 200 OK\r\nContent-Length : 4\r\n\r\nhalf", &[502]),
        ("HTTP/1.1 200 OK\r\nContent-Length: +4\r\n\r\nhalf", &[502]),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n4\r\nhalf\r\n0\r\n\r\n", &[502]),
        ("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n0\r\n\r\n", &[502]),
        ("HTTP/1.1 103 Early Hints\r\nContent-Length : 4\r\n\r\n", &[502]),
        // Here the header section was forwarded before the response broke off: then its end is missing.
        ("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", &[502, 200, 0]),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n", &[502, 200, 0]),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nzz\r\n", &[502, 200, 0]),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4;a=\0\r\nhalf\r\n0\r\n\r\n", &[502, 200, 0]),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\nhalf\n0\n\n", &[502, 200, 0]),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n0\r\nX : y\r\n\r\n",
            &[502, 200, 0],
        ),
        ("", &[502]),
    ] {
        let proxies = proxies(response);
        let absolute_url = format!("http://{}/", proxies.origin.address);
        for (to, target) in [(proxies.gateway.address(), &*absolute_url), (proxies.server, "/")] {
            let (status, text) =
                exchange(to, &format!("GET {target} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"));
            assert!(statuses.contains(&status), "{response:?} to {target}: {text}");
            let is_whole = text.contains("ength: 4\r\n") || text.ends_with("0\r\n\r\n");
            assert!(status != 200 || !is_whole, "{response:?} to {target} looks whole: {text}");
        }
    }
}

#[test]
fn silent_origin_costs_its_timeout_and_gives_504() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let proxies = proxies(GOOD);
    let runtime = Runtime::new().unwrap();
    let server = in_front_of(&runtime, at, |origin| origin.with_timeout(TIMEOUT));
    for (to, target) in
        [(proxies.gateway.address(), format!("http://{at}/")), (server.address(), "/".to_owned())]
    {
        let (status, text) =
            exchange(to, &format!("GET {target} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"));
        assert!(status == 504 && text.contains("has sent nothing for 0.4 s"), "{target}: {text}");
    }
}

#[test]
fn flapping_origin_gives_whole_responses_or_none() {
    // A free port, used by this test alone.
    let at = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let runtime = Runtime::new().unwrap();
    let server = in_front_of(&runtime, at, |origin| origin.with_timeout(TIMEOUT));
    let gateway = proxies(GOOD).gateway;
    let targets = [(gateway.address(), format!("http://{at}/")), (server.address(), "/".to_owned())];
    let counts: [AtomicUsize; 3] = Default::default();
    let [is_over, good, refused] = &counts;
    thread::scope(|scope| {
        for (to, target) in &targets {
            scope.spawn(move || {
                while is_over.load(Ordering::SeqCst) == 0 {
                    let request = format!("GET {target} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
                    let (status, text) = exchange(*to, &request);
                    match status {
                        200 if text.ends_with("good") => good.fetch_add(1, Ordering::SeqCst),
                        502..=504 => refused.fetch_add(1, Ordering::SeqCst),
                        _ => panic!("{target}: {text:?}"),
                    };
                    thread::park_timeout(Duration::from_millis(5));
                }
            });
        }
        for _ in 0..8 {
            let listener = TcpListener::bind(at).unwrap();
            listener.set_nonblocking(true).unwrap();
            for _ in 0..10 {
                while let Ok((mut stream, _)) = listener.accept() {
                    stream.set_nonblocking(false).unwrap();
                    let _ = stream.read(&mut [0; 2_048]);
                    let _ = stream.write_all(GOOD.as_bytes());
                }
                thread::park_timeout(Duration::from_millis(10));
            }
            drop(listener);
            thread::park_timeout(Duration::from_millis(100));
        }
        is_over.store(1, Ordering::SeqCst);
    });
    let [good, refused] = [good, refused].map(|count| count.load(Ordering::SeqCst));
    assert!(good > 0 && refused > 0, "{good} good, {refused} refused");
}
