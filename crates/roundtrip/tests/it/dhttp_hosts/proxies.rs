//! Bounce attacks through a proxy at the victim's address: it forwards whatever its clients send, so that a server sees the
//! victim's address on the connection.
//!
//! The proxy here passes every byte, as no proxy of HTTP passes more. Not the proxies of this project, which drop DHTTP's
//! fields.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration as Timeout;

use test_fixture::has_laboratory;

use super::faulty_network::CLIENT as VICTIM;
use super::host::Host;
use super::network::{Network, NetworkFaults};
use super::{PORT, SERVER, address, fill, request, serve};

/// Ports at which programs of the victim listen; the first accepts connections of clients by the rules of the server.
const LISTENED_ON: [u16; 3] = [40_000, 20_000, 6_379];
const PROXY_PORT: u16 = 80;

/// Fields by which a token might be requested over plain HTTP.
const REQUESTS: [&str; 4] = [
    "DHTTP-Port: 40000\r\n",
    "DHTTP-Port: 40000\r\nDHTTP-Token: ?\r\n",
    "DHTTP-Port: 40000\r\nConnection: close, DHTTP-Port\r\nVia: 1.1 victim\r\n",
    "DHTTP-Port: 20000\r\nX-Forwarded-For: 203.0.113.5\r\nForwarded: for=203.0.113.5\r\n",
];

fn copy(mut from: TcpStream, mut to: TcpStream) {
    // Either end may break: then the other is closed.
    let _ = std::io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
}

/// Starts the victim's proxy.
fn start_proxy(victim: &Host) {
    let at = victim.socket(PROXY_PORT);
    let listener = victim.run(move || TcpListener::bind(at).unwrap());
    victim.run(move || {
        thread::spawn(move || {
            for incoming in listener.incoming() {
                let incoming = incoming.unwrap();
                let upstream = TcpStream::connect(address(SERVER, PORT)).unwrap();
                let [back, forth] = [&incoming, &upstream].map(|stream| stream.try_clone().unwrap());
                thread::spawn(move || copy(incoming, forth));
                thread::spawn(move || copy(upstream, back));
            }
        });
    });
}

/// Fetches a response through the proxy; returns its header section.
fn by_proxy(victim: &Host, fields: &'static str) -> String {
    let at = victim.socket(PROXY_PORT);
    victim.run(move || {
        let mut stream = TcpStream::connect(at).unwrap();
        stream.set_read_timeout(Some(Timeout::from_secs(20))).unwrap();
        write!(stream, "GET /10 HTTP/1.1\r\nHost: h\r\n{fields}Connection: close\r\n\r\n").unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response
    })
}

/// Bytes that have reached the victim's interface.
fn received(victim: &Host) -> u64 {
    victim.run(|| {
        let counters = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
        let interfaces = counters.lines().skip(2).filter(|line| !line.trim().starts_with("lo:"));
        let bytes = |line: &str| line.split(':').nth(1)?.split_whitespace().next()?.parse::<u64>().ok();
        interfaces.filter_map(bytes).sum()
    })
}

/// Sends this many spoofed requests after requests through the proxy; checks the bytes at the victim.
fn attack(count: u64) {
    let [victim, host] = [Host::new("proxied", VICTIM), Host::new("bounced", SERVER)];
    let faults = NetworkFaults { delay: wire::Duration::from_micros(10), ..NetworkFaults::FAULTLESS };
    let network = Network::between(&victim, &host, faults);
    let server = serve(&host);
    start_proxy(&victim);
    let listeners = LISTENED_ON.map(|port| {
        let at = victim.socket(port);
        let listener = victim.run(move || TcpListener::bind(at).unwrap());
        listener.set_nonblocking(true).unwrap();
        listener
    });
    let responses = REQUESTS.map(|fields| by_proxy(&victim, fields));
    let tokens = responses.iter().map(|response| {
        assert!(response.starts_with("HTTP/1.1 200 OK"), "{response}");
        response.lines().find(|line| line.starts_with("DHTTP-Token: ")).map(str::to_owned)
    });
    let tokens: Vec<String> = tokens.flatten().collect();
    println!("tokens by the proxy: {tokens:?}");
    let mut shown: Vec<String> = tokens.iter().map(|token| format!("{token}\r\n")).collect();
    shown.extend([String::new(), "DHTTP-Token: ?\r\n".to_owned(), fill(300)]);
    let (before, from) = (received(&victim), SocketAddr::from((VICTIM, 50_000)));
    let mut sent = 0;
    for number in 0..count {
        let pick = |length: usize| usize::try_from(number).unwrap_or(0) % length;
        let (more, port) = (&shown[pick(shown.len())], LISTENED_ON[pick(LISTENED_ON.len())]);
        let size = if number % 2 == 0 { 10_000_000 } else { 900 };
        sent += host.deliver_datagram(from, PORT, &request(number, port, size, more));
        if number % 64 == 63 {
            thread::park_timeout(Timeout::from_millis(1));
        }
    }
    thread::park_timeout(Timeout::from_millis(500));
    let arrived = received(&victim) - before;
    let ratio = arrived as f64 / sent as f64;
    println!("{count} requests behind a proxy: {arrived} bytes at the victim for {sent}, {ratio:.2}");
    assert!(listeners.iter().all(|listener| listener.accept().is_err()), "a connection to the victim");
    assert!(server.metrics().contains("roundtrip_dhttp_connections_total{side=\"server\"} 0\n"));
    assert!(tokens.is_empty() && arrived > 0 && arrived <= 3 * sent, "{arrived} bytes for {sent}");
    drop((network, server));
}

#[test]
fn a_proxy_at_the_victim_brings_no_token_and_no_connection() {
    if has_laboratory() {
        attack(20_000);
    }
}

#[test]
#[ignore = "takes minutes: a million spoofed requests"]
fn a_million_requests_behind_a_proxy_bring_the_victim_at_most_three_bytes_per_byte() {
    if has_laboratory() {
        attack(1_000_000);
    }
}
