//! Slow applications, of axum and of other servers, behind a server: over UDP, and over connections that either side opened.
//!
//! Promises themselves are tested in `dhttp::deferred`.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::mpsc;
use std::thread;

use axum::Router;
use axum::extract::Path;
use axum::routing::{get, post};
use dhttp::client::{KnownServers, Via};
use dhttp::{Client, ClientConfig, Reply, Request, Response, Server, ServerConfig, Url, promise};
use http1::message::{Fields, Method};
use roundtrip_dhttp_proxy::{Origin, service_handler};

fn client() -> Client {
    Client::start(ClientConfig::internet(), KnownServers::default(), None).unwrap()
}

fn config() -> ServerConfig {
    ServerConfig { threads: 1, ..ServerConfig::internet().reaching_anywhere() }
}

fn url(scheme: &str, server: &Server<impl dhttp::Handler>, path: &str) -> Url {
    format!("{scheme}://{}{path}", server.address()).parse().unwrap()
}

fn application() -> Router {
    Router::new()
        .route("/hello/{name}", get(|Path(name): Path<String>| async move { format!("hello, {name}") }))
        .route("/large", get(|| async { vec![b'x'; 1_000_000] }))
        .route("/length", post(|body: String| async move { format!("{} bytes", body.len()) }))
        .route("/panic", get(|| async { if true { panic!("on purpose") } else { "" } }))
}

#[test]
fn an_axum_application_is_served_in_one_line() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = Server::start(
        "127.0.0.1:0".parse().unwrap(),
        config(),
        service_handler(application(), runtime.handle().clone()),
        None,
    )
    .unwrap();
    let client = client();
    let get = |scheme: &str, path: &str| client.get(&url(scheme, &server, path)).unwrap().whole().unwrap();
    // Plain HTTP has no token, and a request without one is referred to it.
    assert_eq!(get("dhttp", "/hello/you").0, Via::TcpClient);
    let (via, head, body) = get("dhttp", "/hello/you");
    assert_eq!((via, head.status, body.as_slice()), (Via::Udp, 200, &b"hello, you"[..]));
    assert!(head.fields.get("Content-Type").is_some_and(|kind| kind.starts_with(b"text/plain")));
    let (via, _, body) = get("dhttp", "/large");
    assert_eq!((via, body.len()), (Via::TcpOpened, 1_000_000));
    assert_eq!(get("dhttp", "/missing").1.status, 404);
    // A panic drops the promise, and the client gets 500.
    assert_eq!(get("dhttp", "/panic").1.status, 500);
    let plain = self::client();
    let (via, _, body) = plain.get(&url("http", &server, "/large")).unwrap().whole().unwrap();
    assert_eq!((via, body.len()), (Via::TcpClient, 1_000_000));
    let requested = plain.request(Method::Head, &url("http", &server, "/hello/a"), &Fields::new()).unwrap();
    let (_, head, body) = requested.whole().unwrap();
    assert_eq!((head.status, body.len()), (200, 0));
}

#[test]
fn a_body_over_the_limit_is_an_error() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let handler = service_handler(application(), runtime.handle().clone()).with_longest_body(1_000);
    let server = Server::start("127.0.0.1:0".parse().unwrap(), config(), handler, None).unwrap();
    let (_, head, body) = client().get(&url("dhttp", &server, "/large")).unwrap().whole().unwrap();
    assert_eq!(head.status, 502);
    assert!(String::from_utf8_lossy(&body).contains("longer than 1000 bytes"));
}

#[test]
fn late_response_delays_no_other_and_stopping_waits_for_it() {
    let (sender, receiver) = mpsc::channel();
    let handler = move |request: &Request<'_>| match request.target {
        "/slow" => {
            let (promise, later) = promise();
            sender.send(promise).unwrap();
            Reply::Later(later)
        }
        _ => Response::text(200, "quick").into(),
    };
    let server = Server::start("127.0.0.1:0".parse().unwrap(), config(), handler, None).unwrap();
    let client = client();
    let slow: Vec<_> =
        ["dhttp", "http"].map(|scheme| client.get(&url(scheme, &server, "/slow")).unwrap()).into();
    let promises: Vec<_> = (0..2).map(|_| receiver.recv().unwrap()).collect();
    let (_, _, body) = client.get(&url("dhttp", &server, "/quick")).unwrap().whole().unwrap();
    assert_eq!(body, b"quick\n");
    let stopping = thread::spawn(move || server.stop());
    for promise in promises {
        promise.give(Response::text(200, "slow"));
    }
    for exchange in slow {
        assert_eq!(exchange.whole().unwrap().2, b"slow\n");
    }
    stopping.join().unwrap();
}

/// Serves the responses of a listener, one on each connection; also returns the header sections that it received.
fn in_front_of(
    responses: Vec<String>,
) -> (Server<impl dhttp::Handler>, mpsc::Receiver<String>, tokio::runtime::Runtime) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin: Url = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for response in responses {
            let (stream, _) = listener.accept().unwrap();
            let mut stream = BufReader::new(stream);
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") && stream.read_line(&mut head).unwrap() > 0 {}
            sender.send(head).unwrap();
            stream.get_mut().write_all(response.as_bytes()).unwrap();
        }
    });
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let inside = runtime.enter();
    let handler = service_handler(Origin::new(&origin).unwrap(), runtime.handle().clone());
    drop(inside);
    let server = Server::start("127.0.0.1:0".parse().unwrap(), config(), handler, None).unwrap();
    (server, receiver, runtime)
}

#[test]
fn an_origin_sees_a_clean_request_and_its_responses_go_by_dhttp() {
    let small = "HTTP/1.1 200 OK\r\nConnection: close, x-hop\r\nX-Hop: 1\r\nX-Kept: 2\r\nContent-Length: 5\r\n\r\nsmall";
    let chunks = format!(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n493e0\r\n{}\r\n0\r\n\r\n",
        "y".repeat(300_000)
    );
    let (server, receiver, _runtime) = in_front_of(vec![small.to_owned(), small.to_owned(), chunks]);
    let client = client();
    assert_eq!(client.get(&url("dhttp", &server, "/a?b")).unwrap().whole().unwrap().0, Via::TcpClient);
    let requested = receiver.recv().unwrap().to_ascii_lowercase();
    assert!(!requested.contains("dhttp-"), "{requested}");
    let (via, head, body) = client.get(&url("dhttp", &server, "/a?b")).unwrap().whole().unwrap();
    assert_eq!((via, head.status, body.as_slice()), (Via::Udp, 200, &b"small"[..]));
    assert_eq!((head.fields.get("X-Hop"), head.fields.get("X-Kept")), (None, Some(&b"2"[..])));
    assert!(head.fields.get("Via").is_some_and(|via| via.starts_with(b"1.1 roundtrip-")));
    let requested = receiver.recv().unwrap().to_ascii_lowercase();
    assert!(requested.starts_with("get /a?b http/1.1\r\n"), "{requested}");
    assert!(requested.contains(&format!("x-forwarded-host: {}\r\n", server.address())), "{requested}");
    let (via, _, body) = client.get(&url("dhttp", &server, "/large")).unwrap().whole().unwrap();
    assert_eq!((via, body), (Via::TcpOpened, vec![b'y'; 300_000]));
}

#[test]
fn regress_the_response_to_head_has_the_origins_content_length() {
    let described = "HTTP/1.1 200 OK\r\nContent-Length: 12345\r\nConnection: close\r\n\r\n";
    let unknown = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";
    let (server, _told, _runtime) =
        in_front_of(vec![described.to_owned(), described.to_owned(), unknown.to_owned()]);
    for (scheme, length) in [("dhttp", Some(&b"12345"[..])), ("http", Some(b"12345")), ("dhttp", None)] {
        let client = client();
        let requested = client.request(Method::Head, &url(scheme, &server, "/"), &Fields::new()).unwrap();
        let (_, head, body) = requested.whole().unwrap();
        assert_eq!(
            (head.status, head.fields.get("Content-Length"), body.len()),
            (200, length, 0),
            "{scheme}"
        );
    }
}

#[test]
fn unreachable_or_truncating_origin_is_reported() {
    let half = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf";
    let (server, _told, _runtime) = in_front_of(vec![half.to_owned()]);
    let client = client();
    for status in [502, 503] {
        let (_, head, body) = client.get(&url("dhttp", &server, "/")).unwrap().whole().unwrap();
        assert_eq!(head.status, status, "{}", String::from_utf8_lossy(&body));
    }
}
