//! An origin that stops, is slow, sends invalid responses or flaps, behind a server: responses to clients meanwhile, and
//! recovery.
//!
//! Changes of forwarded messages are tested in `hosted` and `forwarded`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use dhttp::{Handler, Server, ServerConfig};
use roundtrip_dhttp_proxy::{Origin, service_handler};
use tokio::runtime::Runtime;

/// A plain HTTP server at this address, which sends the same response to each request, until it is stopped.
struct PlainOrigin {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl PlainOrigin {
    fn start(address: &str, response: &'static str) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let reported = Arc::clone(&is_over);
        let thread = thread::spawn(move || {
            for stream in listener.incoming() {
                if reported.load(Ordering::SeqCst) {
                    return;
                }
                let mut stream = BufReader::new(stream.unwrap());
                let mut line = String::new();
                while line != "\r\n" {
                    line.clear();
                    if stream.read_line(&mut line).unwrap_or(0) == 0 {
                        break;
                    }
                }
                let _ = stream.get_mut().write_all(response.as_bytes());
            }
        });
        Self { address, is_over, thread: Some(thread) }
    }
}

impl Drop for PlainOrigin {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        self.thread.take().unwrap().join().unwrap();
    }
}

const GOOD: &str = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\ngood";

/// A server in front of that address, and a function that renders the origin's health.
fn front(address: SocketAddr, timeout: Duration) -> (Runtime, Server<impl Handler>, impl Fn() -> String) {
    let runtime = Runtime::new().unwrap();
    let inside = runtime.enter();
    let origin = Origin::new(&format!("http://{address}/").parse().unwrap()).unwrap().with_timeout(timeout);
    drop(inside);
    let metrics = origin.metrics();
    let config = ServerConfig { threads: 1, ..ServerConfig::internet().reaching_anywhere() };
    let handler = service_handler(origin, runtime.handle().clone());
    let server = Server::start("127.0.0.1:0".parse().unwrap(), config, handler, None).unwrap();
    (runtime, server, metrics)
}

/// Sends a request over plain HTTP; returns the status and the whole response.
fn send_request(server: SocketAddr) -> (u16, String) {
    let mut stream = TcpStream::connect(server).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    write!(stream, "GET / HTTP/1.1\r\nHost: asked\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    (text.split(' ').nth(1).unwrap().parse().unwrap(), text)
}

const LONG: Duration = Duration::from_secs(30);

#[test]
fn origin_is_marked_down_and_probed_until_it_returns() {
    let origin = PlainOrigin::start("127.0.0.1:0", GOOD);
    let at = origin.address;
    let (_runtime, server, metrics) = front(at, LONG);
    for _ in 0..2 {
        assert_eq!(send_request(server.address()).0, 200);
        assert!(metrics().contains("roundtrip_origin_up 1\n"));
    }
    drop(origin);
    for _ in 0..3 {
        let (status, text) = send_request(server.address());
        assert!(
            status == 503
                && text.contains("retry-after: 2\r\n")
                && text.contains(&format!("{at} cannot be reached")),
            "{text}"
        );
        assert!(metrics().contains("roundtrip_origin_up 0\n"));
    }
    let _back = PlainOrigin::start(&at.to_string(), GOOD);
    // The next probe is at most two seconds away.
    while metrics().contains("roundtrip_origin_up 0\n") {
        thread::park_timeout(Duration::from_millis(10));
    }
    assert_eq!(send_request(server.address()).0, 200);
}

/// Each response but the first was 502: the origin closed the connection just when the next request was sent on it.
#[test]
fn regress_idle_connection_closed_under_a_request_costs_no_response() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || {
                let mut stream = BufReader::new(stream.unwrap());
                for number in 0..2 {
                    let mut line = String::new();
                    while line != "\r\n" {
                        line.clear();
                        if stream.read_line(&mut line).unwrap_or(0) == 0 {
                            return;
                        }
                    }
                    if number == 0 {
                        stream
                            .get_mut()
                            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood")
                            .unwrap();
                    }
                }
            });
        }
    });
    let (_runtime, server, _) = front(at, LONG);
    for _ in 0..5 {
        let (status, text) = send_request(server.address());
        assert_eq!(status, 200, "{text}");
    }
}

#[test]
fn origin_silent_three_times_is_marked_down() {
    // It accepts connections, and never responds.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (_runtime, server, metrics) = front(listener.local_addr().unwrap(), Duration::from_millis(100));
    for _ in 0..3 {
        assert!(metrics().contains("roundtrip_origin_up 1\n"), "one that is slow once is not down");
        let (status, text) = send_request(server.address());
        assert!(status == 504 && text.contains("has sent nothing for 0.1 s"), "{text}");
    }
    let (status, text) = send_request(server.address());
    assert!(status == 503 && text.contains("retry-after: 2\r\n"), "{text}");
    assert!(metrics().contains("roundtrip_origin_failures_total{reason=\"down\"} 1\n"), "{}", metrics());
}

#[test]
fn invalid_response_is_the_origins_fault_and_does_not_mark_it_down() {
    for response in [
        "nonsense",
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\ngood",
        "HTTP/1.1 200 OK\r\nContent-Length: -4\r\n\r\ngood",
        "HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\nhalf of it",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nnonsense\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
    ] {
        let origin = PlainOrigin::start("127.0.0.1:0", response);
        let (_runtime, server, metrics) = front(origin.address, LONG);
        for _ in 0..2 {
            let (status, text) = send_request(server.address());
            assert!(status == 502 && !text.contains("half of it"), "{response:?}: {text}");
            assert!(metrics().contains("roundtrip_origin_up 1\n"), "{response:?}");
        }
    }
}

#[test]
fn interim_responses_of_the_origin_are_dropped() {
    let origin = PlainOrigin::start(
        "127.0.0.1:0",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\ngood",
    );
    let (_runtime, server, _metrics) = front(origin.address, LONG);
    let (status, text) = send_request(server.address());
    assert!(status == 200 && text.ends_with("good") && !text.contains("Early Hints"), "{text}");
}
