//! Clients that pipeline requests, read slowly, or disconnect early. One thread serves cached responses to all of them, in
//! order and whole, and no client waits for another.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use dhttp::client::KnownServers;
use dhttp::{ClientConfig, Handler, Request, Response, Server, ServerConfig};
use roundtrip_dhttp_proxy::{CacheConfig, Gateway, GatewayConfig};

const LARGE: usize = 4 << 20;

/// Serves `/large`, and for all other paths the path itself; cacheable for a while, unless the path forbids it.
fn server() -> Server<impl Handler> {
    let config = ServerConfig { threads: 1, ..ServerConfig::internet().reaching_anywhere() };
    let response = |request: &Request<'_>| {
        let path = request.target.trim_start_matches("/_dhttp_");
        let body = if path == "/large" { vec![b'l'; LARGE] } else { format!("<{path}>").into_bytes() };
        let mut response = Response::whole(200, "text/plain", body);
        let mut fields = (*response.fields).clone();
        let lasts = if path.contains("fleeting") { "no-store" } else { "max-age=600" };
        fields.push("Cache-Control", lasts).unwrap();
        response.fields = fields.into();
        response
    };
    Server::start("127.0.0.1:0".parse().unwrap(), config, response, None).unwrap()
}

fn gateway() -> Gateway {
    let cache = Some(CacheConfig::default());
    let config = GatewayConfig { cache, ..GatewayConfig::new(ClientConfig::internet()) };
    Gateway::start("127.0.0.1:0".parse().unwrap(), config, KnownServers::default(), None, None).unwrap()
}

fn connect(gateway: &Gateway) -> TcpStream {
    let program = TcpStream::connect(gateway.address()).unwrap();
    program.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    program
}

fn request(to: SocketAddr, path: &str, lines: &str) -> String {
    format!("GET http://{to}{path} HTTP/1.1\r\nHost: {to}\r\n{lines}\r\n")
}

/// Sends this; returns all received bytes until the gateway closes.
fn all(mut program: TcpStream, requests: &str) -> String {
    program.write_all(requests.as_bytes()).unwrap();
    let mut received = String::new();
    program.read_to_string(&mut received).unwrap();
    received
}

#[test]
fn pipelined_requests_get_responses_in_order() {
    let (server, gateway) = (server(), gateway());
    let at = server.address();
    let paths = ["/a", "/_dhttp_/b", "/fleeting", "/a", "/_dhttp_/b", "/_dhttp_/fleeting", "/a", "/c"];
    let mut requests: String = (0..20).flat_map(|_| paths).map(|path| request(at, path, "")).collect();
    requests.push_str(&request(at, "/last", "Connection: close\r\n"));
    let received = all(connect(&gateway), &requests);
    let bodies: Vec<&str> = received.split('<').skip(1).map(|rest| rest.split('>').next().unwrap()).collect();
    let expected: Vec<&str> = (0..20)
        .flat_map(|_| paths)
        .map(|path| path.trim_start_matches("/_dhttp_"))
        .chain(["/last"])
        .collect();
    assert_eq!(bodies, expected);
    let metrics = gateway.metrics()();
    let counted: usize = metrics
        .lines()
        .filter_map(|line| {
            line.strip_prefix("roundtrip_gateway_responses_total{")?.rsplit(' ').next()?.parse::<usize>().ok()
        })
        .sum();
    assert_eq!(counted, expected.len(), "{metrics}");
}

#[test]
fn slow_reader_gets_everything_and_delays_no_one() {
    let (server, gateway) = (server(), gateway());
    let at = server.address();
    let close = "Connection: close\r\n";
    assert!(all(connect(&gateway), &request(at, "/large", close)).len() > LARGE);
    assert!(all(connect(&gateway), &request(at, "/small", close)).ends_with("</small>"));
    // Three large responses, a small one after them, and nothing is read.
    let mut slow = connect(&gateway);
    let requests = request(at, "/large", "").repeat(3) + &request(at, "/small", "");
    slow.write_all(requests.as_bytes()).unwrap();
    slow.shutdown(Shutdown::Write).unwrap();
    for _ in 0..10 {
        let received = all(connect(&gateway), &request(at, "/small", close));
        assert!(received.contains("; hit") && received.ends_with("</small>"), "{received}");
    }
    let mut received = String::new();
    slow.read_to_string(&mut received).unwrap();
    assert_eq!(received.matches('l').count() / LARGE, 3);
    assert_eq!(received.matches("; hit").count(), 4);
    assert!(received.ends_with("</small>"));
}

#[test]
fn client_that_closes_during_its_request_is_dropped() {
    let (server, gateway) = (server(), gateway());
    let at = server.address();
    for number in 0..50 {
        let mut program = connect(&gateway);
        program.write_all(request(at, &format!("/_dhttp_/{number}"), "").as_bytes()).unwrap();
        // Half of them in the middle of a request, so that their close is a reset.
        if number % 2 == 0 {
            program.write_all(b"GET http://").unwrap();
        }
    }
    let received = all(connect(&gateway), &request(at, "/_dhttp_/after", "Connection: close\r\n"));
    assert!(received.ends_with("</after>"), "{received}");
}
