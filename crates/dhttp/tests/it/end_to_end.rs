//! Server and client over the loopback interface: the channel of each response, and its contents.
//!
//! Not timings, and not attacks: those are in `attacks.rs`.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::{Arc, Mutex};

use dhttp::client::{Event, KnownServers, Note, Via};
use dhttp::log::Log;
use dhttp::{Client, ClientConfig, Files, Reply, Request, Response, Server, ServerConfig, Url, promise};
use dhttp_proto::Extension;
use dhttp_proto::client::Resend;
use http1::message::{Fields, Method};

/// A directory that is removed when the test is over.
struct TestDirectory(test_fixture::TestDirectory);

impl TestDirectory {
    fn new(name: &str) -> Self {
        let path = test_fixture::TestDirectory::new(name);
        std::fs::create_dir_all(path.join("sub")).unwrap();
        std::fs::write(path.join("index.html"), "<p>home</p>").unwrap();
        std::fs::write(path.join("small.txt"), "a small answer").unwrap();
        std::fs::write(path.join("middle.txt"), vec![b'm'; 5_000]).unwrap();
        std::fs::write(path.join("large.bin"), large()).unwrap();
        std::fs::write(path.join("sub/index.html"), "<p>below</p>").unwrap();
        Self(path)
    }
}

fn large() -> Vec<u8> {
    (0..3_000_000_u32).map(|number| (number % 251) as u8).collect()
}

fn serve(directory: &TestDirectory, threads: usize) -> Server<Files> {
    let config = ServerConfig { threads, ..ServerConfig::internet().reaching_anywhere() };
    let files = Files::below(&directory.0).unwrap();
    Server::start("127.0.0.1:0".parse().unwrap(), config, files, None).unwrap()
}

fn client() -> Client {
    Client::start(ClientConfig::internet(), KnownServers::default(), None).unwrap()
}

/// A client without a race and with long timers: on a busy host it does not fall back to plain HTTP.
fn unhurried_client() -> Client {
    let mut config = ClientConfig { races: false, ..ClientConfig::internet() };
    config.dhttp.resend = Resend::Fixed { waits: [wire::Duration::from_secs(20); 2] };
    Client::start(config, KnownServers::default(), None).unwrap()
}

fn url(scheme: &str, address: SocketAddr, path: &str) -> Url {
    format!("{scheme}://{address}{path}").parse().unwrap()
}

fn fetch(client: &Client, url: &Url) -> (Via, u16, Vec<u8>) {
    let (via, head, body) = client.get(url).unwrap().whole().unwrap();
    (via, head.status, body)
}

/// Returns the token in a response by UDP to a client that accepts connections on this port.
fn token(server: SocketAddr, port: u16) -> String {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let head = [&ID[..], &port.to_be_bytes(), &[0]].concat();
    let text = format!("HEAD /small.txt HTTP/1.1\r\nHost: a\r\nDHTTP-Fill: {}\r\n\r\n", "0".repeat(300));
    socket.send_to(&[&head[..], text.as_bytes()].concat(), server).unwrap();
    let mut response = [0; 2_000];
    let (length, _) = socket.recv_from(&mut response).unwrap();
    let text = String::from_utf8_lossy(&response[8..length]).into_owned();
    text.lines().find_map(|line| line.strip_prefix("DHTTP-Token: ")).unwrap().to_owned()
}

/// An id with which a response on a connection may begin.
const ID: &[u8; 8] = b"\xc1......7";

/// Creates a request for a large response, from a client that accepts connections on this port.
fn request(port: u16, token: &str) -> Vec<u8> {
    let head = [&ID[..], &port.to_be_bytes(), &[0]].concat();
    let text = format!("GET /middle.txt HTTP/1.1\r\nHost: a\r\nDHTTP-Token: {token}\r\n\r\n");
    [&head[..], text.as_bytes()].concat()
}

#[test]
fn a_token_is_for_the_port_that_was_named_and_brings_a_connection_to_no_other() {
    let directory = TestDirectory::new("named");
    let server = serve(&directory, 1);
    let [named, other] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let [port, elsewhere] = [&named, &other].map(|listener| listener.local_addr().unwrap().port());
    let token = token(server.address(), port);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.send_to(&request(elsewhere, &token), server.address()).unwrap();
    let mut eight = [0; 100];
    assert_eq!(socket.recv_from(&mut eight).unwrap(), (8, server.address()));
    assert!(server.metrics().contains("roundtrip_dhttp_connections_total{side=\"server\"} 0\n"));
    socket.send_to(&request(port, &token), server.address()).unwrap();
    let (mut stream, _) = named.accept().unwrap();
    let mut head = [0; 23];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(head, *b"\xc1......7HTTP/1.1 200 OK");
    other.set_nonblocking(true).unwrap();
    assert!(other.accept().is_err());
}

/// A proxy that passes unknown fields on, at a victim's address, would bring its client a token for that address.
#[test]
fn responses_over_plain_http_have_no_token() {
    let directory = TestDirectory::new("plain");
    let server = serve(&directory, 1);
    for fields in ["DHTTP-Port: 40001\r\n", "DHTTP-Port: 40001\r\nDHTTP-Token: ?\r\n", "Via: 1.1 proxy\r\n"] {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        write!(stream, "GET /small.txt HTTP/1.1\r\nHost: a\r\n{fields}Connection: close\r\n\r\n").unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        assert!(response.starts_with("HTTP/1.1 200 OK") && !response.contains("DHTTP-Token"), "{response}");
    }
}

#[test]
fn unreachable_client_is_referred_to_plain_http_immediately() {
    let directory = TestDirectory::new("unreached");
    let server = serve(&directory, 1);
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let request = request(closed, &token(server.address(), closed));
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
    socket.send_to(&request, server.address()).unwrap();
    let mut response = [0; 100];
    assert_eq!(socket.recv_from(&mut response).unwrap(), (8, server.address()));
    assert_eq!(response[..8], *ID);
}

#[test]
fn small_responses_take_one_datagram_and_large_ones_a_connection_of_the_server() {
    let directory = TestDirectory::new("channels");
    let server = serve(&directory, 2);
    let client = client();
    let fetch = |path| fetch(&client, &url("dhttp", server.address(), path));
    for _ in 0..3 {
        assert_eq!(fetch("/small.txt"), (Via::Udp, 200, b"a small answer".to_vec()));
    }
    assert_eq!(fetch("/middle.txt"), (Via::TcpOpened, 200, vec![b'm'; 5_000]));
    assert!(fetch("/large.bin") == (Via::TcpOpened, 200, large()));
    assert_eq!(fetch("/"), (Via::Udp, 200, b"<p>home</p>".to_vec()));
    assert_eq!(fetch("/sub").1, 301);
    assert_eq!(fetch("/sub/"), (Via::Udp, 200, b"<p>below</p>".to_vec()));
    assert_eq!(fetch("/none").1, 404);
    let metrics = server.metrics();
    assert!(metrics.contains("roundtrip_dhttp_responses_total{channel=\"udp\"} 7\n"), "{metrics}");
    assert!(metrics.contains("roundtrip_dhttp_responses_total{channel=\"tcp-opened\"} 2\n"), "{metrics}");
    assert!(metrics.contains("roundtrip_dhttp_connections_total{side=\"server\"} 1\n"), "reused: {metrics}");
    server.stop();
}

#[test]
fn clients_with_parts_get_medium_responses_in_datagrams() {
    let directory = TestDirectory::new("parts");
    let config = ServerConfig { threads: 1, ..ServerConfig::internet().reaching_anywhere() };
    let config = ServerConfig { dhttp: config.dhttp.with(Extension::Parts, true), ..config };
    let files = Files::below(&directory.0).unwrap();
    let server = Server::start("127.0.0.1:0".parse().unwrap(), config, files, None).unwrap();
    let config = ClientConfig::internet();
    let config = ClientConfig { dhttp: config.dhttp.with(Extension::Parts, true), ..config };
    let takes_parts = Client::start(config, KnownServers::default(), None).unwrap();
    for client in [&takes_parts, &client()] {
        // A client without a token gets at most three times the bytes that it sent.
        assert_eq!(fetch(client, &url("dhttp", server.address(), "/small.txt")).0, Via::Udp);
    }
    for _ in 0..3 {
        let middle = fetch(&takes_parts, &url("dhttp", server.address(), "/middle.txt"));
        assert_eq!(middle, (Via::Udp, 200, vec![b'm'; 5_000]));
    }
    assert!(
        fetch(&takes_parts, &url("dhttp", server.address(), "/large.bin")) == (Via::TcpOpened, 200, large())
    );
    let takes_none = client();
    assert_eq!(fetch(&takes_none, &url("dhttp", server.address(), "/small.txt")).0, Via::Udp);
    let middle = fetch(&takes_none, &url("dhttp", server.address(), "/middle.txt"));
    assert_eq!(middle, (Via::TcpOpened, 200, vec![b'm'; 5_000]));
    assert!(server.metrics().contains("roundtrip_dhttp_parts_total 15\n"), "{}", server.metrics());
}

#[test]
fn a_first_large_response_comes_over_plain_http_and_the_next_by_a_connection_of_the_server() {
    let directory = TestDirectory::new("first");
    let server = serve(&directory, 1);
    let client = client();
    for via in [Via::TcpClient, Via::TcpOpened] {
        assert!(fetch(&client, &url("dhttp", server.address(), "/large.bin")) == (via, 200, large()));
    }
    // The response by which a server is found has no token.
    let discovers = self::client();
    for via in [Via::TcpClient, Via::TcpClient, Via::TcpOpened] {
        assert!(fetch(&discovers, &url("http", server.address(), "/large.bin")) == (via, 200, large()));
    }
    let metrics = server.metrics();
    assert!(metrics.contains("roundtrip_dhttp_responses_total{channel=\"overload\"} 2\n"), "{metrics}");
}

#[test]
fn many_responses_of_one_client_come_concurrently() {
    let directory = TestDirectory::new("many");
    let server = serve(&directory, 2);
    let client = unhurried_client();
    // A client with a token may have many requests in flight.
    fetch(&client, &url("dhttp", server.address(), "/small.txt"));
    let paths = ["/small.txt", "/middle.txt", "/large.bin"];
    let requested: Vec<_> = (0..60)
        .map(|number| client.get(&url("dhttp", server.address(), paths[number % 3])).unwrap())
        .collect();
    let expected = [b"a small answer".to_vec(), vec![b'm'; 5_000], large()];
    for (number, exchange) in requested.into_iter().enumerate() {
        let (via, head, body) = exchange.whole().unwrap();
        assert_eq!((head.status, body.len()), (200, expected[number % 3].len()));
        assert!(body == expected[number % 3]);
        assert_ne!(via, Via::TcpClient);
    }
}

#[test]
fn unknown_server_gets_plain_http_first_and_then_udp() {
    let directory = TestDirectory::new("discovery");
    let server = serve(&directory, 1);
    let client = client();
    let fetch = |path| fetch(&client, &url("http", server.address(), path));
    assert_eq!(fetch("/small.txt").0, Via::TcpClient);
    assert_eq!(fetch("/small.txt").0, Via::Udp);
    assert_eq!(client.known().port(&server.address().to_string()), Some(server.address().port()));
}

#[test]
fn dhttp_path_is_requested_by_udp_immediately() {
    let directory = TestDirectory::new("path");
    let server = serve(&directory, 1);
    let (via, status, _) = fetch(&client(), &url("http", server.address(), "/_dhttp_/small.txt"));
    assert_eq!((via, status), (Via::Udp, 200));
}

#[test]
fn where_nothing_listens_by_udp_plain_http_is_next_without_a_wait() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let plain = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut buffer = [0; 4_096];
        let length = stream.read(&mut buffer).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").unwrap();
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    });
    assert_eq!(fetch(&client(), &url("dhttp", address, "/x")), (Via::TcpClient, 200, b"ok".to_vec()));
    assert!(plain.join().unwrap().starts_with("GET /x HTTP/1.1\r\n"));
}

#[test]
fn plain_clients_are_served_on_the_same_port_with_ranges_and_conditions() {
    let directory = TestDirectory::new("plain");
    let server = serve(&directory, 1);
    let mut stream = TcpStream::connect(server.address()).unwrap();
    let mut send_request = |request: &str, length: usize| {
        write!(stream, "{request}\r\nHost: h\r\n\r\n").unwrap();
        let (mut bytes, mut buffer) = (Vec::new(), [0; 65_536]);
        let end = |bytes: &[u8]| bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|end| end + 4);
        while end(&bytes).is_none_or(|end| bytes.len() < end + length) {
            let count = stream.read(&mut buffer).unwrap();
            assert!(count > 0, "closed after {}", String::from_utf8_lossy(&bytes));
            bytes.extend_from_slice(&buffer[..count]);
        }
        let end = end(&bytes).unwrap();
        assert_eq!(bytes.len(), end + length);
        (String::from_utf8_lossy(&bytes[..end]).into_owned(), bytes[end..].to_vec())
    };
    let (head, body) = send_request("GET /large.bin HTTP/1.1", 3_000_000);
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && body == large());
    assert!(head.contains("Alt-Svc: dhttp=\":"), "{head}");
    let (head, body) = send_request("GET /large.bin HTTP/1.1\r\nRange: bytes=1000000-1000009", 10);
    assert!(head.starts_with("HTTP/1.1 206 ") && body == large()[1_000_000..1_000_010]);
    let (head, _) = send_request("HEAD /large.bin HTTP/1.1", 0);
    assert!(head.contains("Content-Length: 3000000\r\n"));
    let tag = head.split("ETag: ").nth(1).unwrap().split("\r\n").next().unwrap();
    let (head, _) = send_request(&format!("GET /large.bin HTTP/1.1\r\nIf-None-Match: {tag}"), 0);
    assert!(head.starts_with("HTTP/1.1 304 "), "{head}");
    let (head, _) = send_request("POST /large.bin HTTP/1.1\r\nContent-Length: 0", 23);
    assert!(head.starts_with("HTTP/1.1 405 ") && head.contains("Allow: GET, HEAD\r\n"), "{head}");
}

#[test]
fn a_file_that_changes_is_served_anew_after_a_second() {
    let directory = TestDirectory::new("fresh");
    let server = serve(&directory, 1);
    let client = client();
    let url = url("dhttp", server.address(), "/small.txt");
    assert_eq!(fetch(&client, &url).2, b"a small answer");
    std::fs::write(directory.0.join("small.txt"), "another answer").unwrap();
    let mut tries = 0;
    while fetch(&client, &url).2 != b"another answer" {
        tries += 1;
        assert!(tries < 100_000, "still the old one");
    }
}

#[test]
fn compressed_sibling_is_served_to_clients_that_accept_it() {
    let directory = TestDirectory::new("compressed");
    std::fs::write(directory.0.join("small.txt.br"), "brotli").unwrap();
    let server = serve(&directory, 1);
    let client = client();
    let mut fields = Fields::new();
    fields.push("Accept-Encoding", "gzip, br").unwrap();
    let url = url("dhttp", server.address(), "/small.txt");
    let (_, head, body) = client.request(Method::Get, &url, &fields).unwrap().whole().unwrap();
    assert_eq!((head.fields.get("Content-Encoding"), &*body), (Some(&b"br"[..]), &b"brotli"[..]));
    assert_eq!(head.fields.get("Vary"), Some(&b"Accept-Encoding"[..]));
    assert_eq!(fetch(&client, &url).2, b"a small answer");
}

#[test]
fn links_outside_the_directory_are_not_followed() {
    let directory = TestDirectory::new("links");
    std::os::unix::fs::symlink("/etc/passwd", directory.0.join("passwd")).unwrap();
    std::os::unix::fs::symlink("../..", directory.0.join("sub/up")).unwrap();
    std::os::unix::fs::symlink("small.txt", directory.0.join("inside.txt")).unwrap();
    let server = serve(&directory, 1);
    let client = client();
    let fetch = |path| fetch(&client, &url("dhttp", server.address(), path)).1;
    assert_eq!([fetch("/passwd"), fetch("/sub/up/etc/passwd"), fetch("/inside.txt")], [404, 404, 200]);
}

#[test]
fn a_handler_may_be_a_closure_and_another_one_takes_over_without_a_gap() {
    let config = ServerConfig { threads: 2, ..ServerConfig::internet().reaching_anywhere() };
    let say = |text: &'static str| {
        move |request: &Request<'_>| Response::text(200, &format!("{text} {}", request.target))
    };
    let handler: fn(&Request<'_>) -> Response = |_| Response::text(200, "first");
    let server = Server::start("127.0.0.1:0".parse().unwrap(), config, handler, None).unwrap();
    let client = client();
    let url = url("dhttp", server.address(), "/x");
    assert_eq!(fetch(&client, &url).2, b"first\n");
    server.reload(|_| Response::text(200, "second"), None);
    while fetch(&client, &url).2 != b"second\n" {}
    drop(server);
    let server = Server::start("127.0.0.1:0".parse().unwrap(), config, say("at"), None).unwrap();
    let target = format!("dhttp://{}/y?z", server.address()).parse().unwrap();
    assert_eq!(fetch(&client, &target).2, b"at /y?z\n");
}

#[test]
fn the_log_names_the_channel_of_each_response() {
    #[derive(Clone, Default)]
    struct SharedBuffer(Arc<Mutex<Vec<u8>>>);
    impl Write for SharedBuffer {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let directory = TestDirectory::new("log");
    let stored = SharedBuffer::default();
    let config = ServerConfig { threads: 1, ..ServerConfig::internet().reaching_anywhere() };
    let files = Files::below(&directory.0).unwrap();
    let log = Arc::new(Log::new(Box::new(stored.clone())));
    let server = Server::start("127.0.0.1:0".parse().unwrap(), config, files, Some(log)).unwrap();
    let client = client();
    fetch(&client, &url("http", server.address(), "/small.txt"));
    fetch(&client, &url("http", server.address(), "/small.txt"));
    fetch(&client, &url("http", server.address(), "/large.bin"));
    server.stop();
    let text = String::from_utf8(stored.0.lock().unwrap().clone()).unwrap();
    let channels: Vec<_> = text.lines().map(|line| line.rsplit(' ').next().unwrap()).collect();
    assert_eq!(channels, ["tcp-client", "udp", "tcp-opened"], "{text}");
    assert!(text.starts_with("127.0.0.1 - - ["), "{text}");
    assert!(text.contains("\"GET /small.txt HTTP/1.1\" 200 14 \"-\" \"-\" udp\n"), "{text}");
}

#[test]
fn an_exchange_that_is_dropped_disturbs_no_other() {
    let directory = TestDirectory::new("dropped");
    let server = serve(&directory, 1);
    let client = client();
    let large = url("dhttp", server.address(), "/large.bin");
    fetch(&client, &url("dhttp", server.address(), "/small.txt"));
    let mut exchange = client.get(&large).unwrap();
    assert!(matches!(exchange.next(), Some(Event::Head(Via::TcpOpened, _))));
    drop(exchange);
    assert_eq!(fetch(&client, &url("dhttp", server.address(), "/small.txt")).1, 200);
}

#[test]
fn connection_opens_while_the_handler_makes_the_response() {
    let waiting = Arc::new(Mutex::new(None));
    let deferred = Arc::clone(&waiting);
    let handler = move |request: &Request<'_>| {
        if request.target == "/small" {
            return Reply::Now(Response::text(200, "small"));
        }
        let (sender, later) = promise();
        *deferred.lock().unwrap() = Some(sender);
        Reply::Later(later)
    };
    let mut config = ServerConfig { threads: 1, ..ServerConfig::internet().reaching_anywhere() };
    config.dhttp.opens_early = true;
    let server = Server::start("127.0.0.1:0".parse().unwrap(), config, handler, None).unwrap();
    // The page is made only when the connection is there: without it the client gets no response.
    let watch: dhttp::client::Observer = Arc::new(move |note: &dhttp::client::Note| {
        if let dhttp::client::Note::Connected(..) = note {
            let sender = waiting.lock().unwrap().take().expect("the page is still being made");
            sender.give(Response::whole(200, "text/plain", vec![b'x'; 9_000]));
        }
    });
    let client = Client::start(ClientConfig::internet(), KnownServers::default(), Some(watch)).unwrap();
    assert_eq!(fetch(&client, &url("dhttp", server.address(), "/small")).0, Via::Udp);
    let (via, status, body) = fetch(&client, &url("dhttp", server.address(), "/page"));
    assert_eq!((via, status, body.len()), (Via::TcpOpened, 200, 9_000));
}

#[test]
fn url_with_tcp_forces_a_request_to_tcp() {
    let directory = TestDirectory::new("forced");
    let server = serve(&directory, 1);
    let client = client();
    for (scheme, via) in [
        ("dhttp", Via::Udp),
        ("dhttp+tcp", Via::TcpClient),
        ("http", Via::Udp),
        ("dhttp+tcp", Via::TcpClient),
    ] {
        assert_eq!(fetch(&client, &url(scheme, server.address(), "/small.txt")).0, via, "{scheme}");
    }
}

#[test]
fn panic_of_the_watch_ends_pending_requests() {
    let watch: dhttp::client::Observer = Arc::new(|_: &dhttp::client::Note| panic!("on purpose"));
    let client = Client::start(ClientConfig::internet(), KnownServers::default(), Some(watch)).unwrap();
    let url: dhttp::Url = "dhttp://127.0.0.1:9/".parse().unwrap();
    for _ in 0..2 {
        let reason = client.get(&url).unwrap().whole().unwrap_err();
        assert_eq!(reason, "the client has been stopped");
    }
}

#[test]
fn a_caller_that_does_not_read_delays_no_other_response() {
    let directory = TestDirectory::new("paused");
    let huge: Vec<u8> = (0..12_000_000_u32).map(|number| (number % 241) as u8).collect();
    std::fs::write(directory.0.join("huge.bin"), &huge).unwrap();
    let server = serve(&directory, 1);
    let (tell, paused) = std::sync::mpsc::channel();
    let watch = move |note: &Note| {
        if matches!(note, Note::Paused(_)) {
            let _ = tell.send(());
        }
    };
    let client =
        Client::start(ClientConfig::internet(), KnownServers::default(), Some(Arc::new(watch))).unwrap();
    let at = |path| url("dhttp", server.address(), path);
    assert_eq!(fetch(&client, &at("/small.txt")).0, Via::Udp, "with the token for the next");
    let begin = || {
        let mut slow = client.get(&at("/huge.bin")).unwrap();
        assert!(matches!(slow.next(), Some(Event::Head(Via::TcpOpened, _))));
        paused.recv_timeout(std::time::Duration::from_secs(20)).expect("its connection is not read");
        slow
    };
    let (mut slow, dropped) = (begin(), begin());
    assert_eq!(fetch(&client, &at("/small.txt")), (Via::Udp, 200, b"a small answer".to_vec()));
    assert!(fetch(&client, &at("/large.bin")) == (Via::TcpOpened, 200, large()));
    drop(dropped);
    let mut body = Vec::new();
    while let Some(event) = slow.next() {
        match event {
            Event::Body(part) => body.extend_from_slice(&part),
            Event::End => {}
            Event::Head(..) | Event::Failed(_) => panic!("{event:?}"),
        }
    }
    assert!(body == huge, "{} bytes", body.len());
    assert!(fetch(&client, &at("/large.bin")) == (Via::TcpOpened, 200, large()));
}
