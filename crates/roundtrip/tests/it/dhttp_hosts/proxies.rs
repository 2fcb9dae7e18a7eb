//! Bounce attacks through a proxy at the victim's address: it forwards whatever its clients send, so that a server sees the
//! victim's address on the connection.
//!
//! Not the proxies of this project, which drop DHTTP's fields.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration as Timeout;

use test_fixture::has_laboratory;

use super::faulty_network::CLIENT as VICTIM;
use super::host::Host;
use super::network::{Network, NetworkFaults};
use super::proxy_programs::Proxy;
use super::{PORT, SERVER, address, fill, request, serve};

/// Ports at which programs of the victim listen; the first accepts connections of clients by the rules of the server.
const LISTENED_ON: [u16; 3] = [40_000, 20_000, 6_379];
const PROXY_PORT: u16 = 80;
/// Responses that at least reach the victim, each with the headers of IP and UDP: that many a client without a token may have.
const MIN_RESPONSES: u64 = 50;

/// Fields by which a token might be requested over plain HTTP.
const REQUESTS: [&str; 4] = [
    "DHTTP-Port: 40000\r\n",
    "DHTTP-Port: 40000\r\nDHTTP-Token: ?\r\n",
    "DHTTP-Port: 40000\r\nConnection: close, DHTTP-Port\r\nVia: 1.1 victim\r\n",
    "DHTTP-Port: 20000\r\nX-Forwarded-For: 203.0.113.5\r\nForwarded: for=203.0.113.5\r\n",
];

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

/// Waits until nothing more arrives at the victim after the first responses; returns the bytes.
fn arrived_in_all(victim: &Host, before: u64) -> u64 {
    let mut last = 0;
    for _ in 0..120 {
        thread::park_timeout(Timeout::from_millis(500));
        let arrived = received(victim) - before;
        if arrived == last && arrived > MIN_RESPONSES * 28 {
            break;
        }
        last = arrived;
    }
    last
}

/// Sends this many spoofed requests after requests through the proxy, if there is one; checks the bytes at the victim.
fn attack(count: u64, proxy: Option<Proxy>) {
    let [victim, host] = [Host::new("proxied", VICTIM), Host::new("bounced", SERVER)];
    let faults = NetworkFaults { delay: wire::Duration::from_micros(10), ..NetworkFaults::FAULTLESS };
    let network = Network::between(&victim, &host, faults);
    let server = serve(&host);
    let at = victim.socket(PROXY_PORT);
    let program = proxy.and_then(|proxy| proxy.start(&victim, at, address(SERVER, PORT)));
    let listeners = LISTENED_ON.map(|port| {
        let at = victim.socket(port);
        let listener = victim.run(move || TcpListener::bind(at).unwrap());
        listener.set_nonblocking(true).unwrap();
        listener
    });
    let requests = proxy.map_or(&[][..], |_| &REQUESTS);
    let responses: Vec<String> = requests.iter().map(|fields| by_proxy(&victim, fields)).collect();
    let tokens = responses.iter().map(|response| {
        assert!(response.starts_with("HTTP/1.1 200 OK"), "{proxy:?}: {response}");
        response.lines().find(|line| line.starts_with("DHTTP-Token: ")).map(str::to_owned)
    });
    let tokens: Vec<String> = tokens.flatten().collect();
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
    let arrived = arrived_in_all(&victim, before);
    let ratio = arrived as f64 / sent as f64;
    let behind = proxy.map_or_else(|| "no proxy".to_owned(), |proxy| format!("{proxy:?}"));
    println!(
        "{count} requests, {behind}: {arrived} bytes at the victim for {sent}, {ratio:.2}; {} tokens",
        tokens.len()
    );
    assert!(listeners.iter().all(|listener| listener.accept().is_err()), "a connection to the victim");
    assert!(server.metrics().contains("roundtrip_dhttp_connections_total{side=\"server\"} 0\n"));
    assert!(tokens.is_empty(), "{proxy:?}: {tokens:?}");
    assert!(arrived > MIN_RESPONSES * 28 && arrived <= 3 * sent, "{proxy:?}: {arrived} bytes for {sent}");
    drop((program, network, server));
}

#[test]
fn a_proxy_at_the_victim_brings_no_token_and_no_connection() {
    if has_laboratory() {
        attack(20_000, Some(Proxy::Bytes));
    }
}

/// Nginx, HAProxy, Squid and Apache, as far as they are installed.
#[test]
fn programs_that_are_proxies_at_the_victim_bring_no_token_and_no_connection() {
    let installed: Vec<Proxy> = Proxy::PROGRAMS.into_iter().filter(|proxy| proxy.is_installed()).collect();
    if has_laboratory() {
        installed.into_iter().for_each(|proxy| attack(5_000, Some(proxy)));
    }
}

#[test]
#[ignore = "takes minutes: a million spoofed requests without a proxy, and behind each"]
fn a_million_requests_behind_a_proxy_bring_the_victim_at_most_three_bytes_per_byte() {
    if has_laboratory() {
        attack(1_000_000, None);
        attack(1_000_000, Some(Proxy::Bytes));
        let installed = Proxy::PROGRAMS.into_iter().filter(|proxy| proxy.is_installed());
        installed.for_each(|proxy| attack(1_000_000, Some(proxy)));
    }
}
