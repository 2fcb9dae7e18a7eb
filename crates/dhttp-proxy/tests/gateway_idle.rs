//! Programs with idle connections to the gateway: their cost, and whether they are still served.
//!
//! A test program of its own, so that the counted threads are those of one gateway.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use dhttp::client::KnownServers;
use dhttp::{ClientConfig, Request, Response, Server, ServerConfig};
use roundtrip_dhttp_proxy::{CacheConfig, Gateway, GatewayConfig};

/// Both ends are open files of this process, which are limited.
const PROGRAMS: usize = 300;

fn threads_of_gateways() -> usize {
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    let names = tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|name| name.starts_with("gateway")).count()
}

fn value(metrics: &str, name: &str) -> usize {
    let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{name}: {metrics}")).parse().unwrap()
}

fn get(program: &mut TcpStream, address: &str) -> String {
    program.write_all(format!("GET {address} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes()).unwrap();
    let (mut text, mut byte) = (Vec::new(), [0]);
    while !text.ends_with(b"answer\n") {
        assert!(program.read(&mut byte).unwrap() > 0, "ended in {:?}", String::from_utf8_lossy(&text));
        text.push(byte[0]);
    }
    String::from_utf8(text).unwrap()
}

#[test]
fn idle_connections_take_no_threads_and_are_served_when_they_send() {
    let config = ServerConfig { threads: 1, ..ServerConfig::internet().reaching_anywhere() };
    let response = |_: &Request<'_>| {
        let mut response = Response::text(200, "answer");
        let mut fields = (*response.fields).clone();
        fields.push("Cache-Control", "max-age=600").unwrap();
        response.fields = fields.into();
        response
    };
    let server = Server::start("127.0.0.1:0".parse().unwrap(), config, response, None).unwrap();
    let config =
        GatewayConfig { cache: Some(CacheConfig::default()), ..GatewayConfig::new(ClientConfig::internet()) };
    let gateway =
        Gateway::start("127.0.0.1:0".parse().unwrap(), config, KnownServers::default(), None, None).unwrap();
    let mut programs = Vec::new();
    for number in 0..PROGRAMS {
        let mut program = TcpStream::connect(gateway.address()).unwrap();
        program.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        // A different page each, so that each needs a thread.
        get(&mut program, &format!("http://{}/{number}", server.address()));
        programs.push(program);
    }
    // The event loop, a thread that waited for the server, and the DHTTP client; on a busy host two had to wait.
    let threads = threads_of_gateways();
    assert!((1..10).contains(&threads), "{threads} threads for {PROGRAMS} connections");
    for (number, program) in programs.iter_mut().enumerate() {
        let text = get(program, &format!("http://{}/{number}", server.address()));
        assert!(text.contains("Cache-Status: roundtrip; hit"), "{text}");
    }
    let metrics = gateway.metrics()();
    assert_eq!(value(&metrics, "roundtrip_gateway_connections_open"), PROGRAMS, "{metrics}");
    assert_eq!(value(&metrics, "roundtrip_gateway_connections_busy"), 0, "{metrics}");
    assert_eq!(
        value(&metrics, "roundtrip_gateway_responses_total{channel=\"cache\"}"),
        PROGRAMS,
        "{metrics}"
    );
}
