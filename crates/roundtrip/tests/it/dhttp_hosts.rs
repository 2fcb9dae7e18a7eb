//! DHTTP's server and client on hosts of their own, with the test as the network between them.
//!
//! | module | contents |
//! | --- | --- |
//! | `host` | a host whose only link ends in the test |
//! | `network` | a faulty network between two of them |
//! | `reflection`, `bounce`, `proxies`, `flood`, `forged`, `unvalidated` | attacks with spoofed source addresses |
//! | `many_addresses` | attackers with all networks of a site, or in thousands of networks |
//! | `contacts` | round trips of first and later contacts |
//! | `fast_open` | data in the SYNs of the server |
//! | `faulty_network` | every request over a faulty network gets its outcome |
//! | `gateway` | programs behind a gateway on a faulty network |
//! | `flaps` | links and routes that fail and return |
//! | `killed_programs`, `exhaustion` | killed programs; exhausted descriptors and ports |
//!
//! Tests without spoofed addresses are in `crates/dhttp/tests` and `crates/dhttp-proxy/tests`. The
//! tables in docs/security.md list the test of each rule. Where the system allows no such hosts, the tests report
//! that they were skipped; with `ROUNDTRIP_REQUIRE_KERNEL=1`, as in CI, that is a failure.

mod bounce;
mod contacts;
mod exhaustion;
mod fast_open;
mod faulty_network;
mod flaps;
mod flood;
mod forged;
mod gateway;
mod host;
mod killed_programs;
mod many_addresses;
mod network;
mod origins;
mod proxies;
mod proxy_programs;
mod reflection;
mod unvalidated;

use std::net::SocketAddr;

use dhttp::{Request, Response, Server, ServerConfig};
use dhttp_proto::Id;

use host::Host;

type Handler = fn(&Request<'_>) -> Response;

/// A public address: the default profile connects to no other.
const SERVER: [u8; 4] = [9, 9, 0, 1];
const PORT: u16 = 8_080;

/// Maximum time in milliseconds of a reaction without a timer, also on a busy host.
const SOON: u16 = 500;
/// Maximum waiting time for required events, in milliseconds.
const MAX_WAIT_MS: u16 = 20_000;

/// Starts a server with all protections, which responds with the number of bytes in the path.
fn serve(host: &Host) -> Server<Handler> {
    serve_at(host, PORT)
}

fn serve_at(host: &Host, port: u16) -> Server<Handler> {
    serve_at_address(host, host.socket(port))
}

fn serve_at_address(host: &Host, address: SocketAddr) -> Server<Handler> {
    host.run(move || {
        let handler: Handler = |request| {
            let length = request.target.trim_start_matches('/').parse().unwrap_or(10);
            Response::whole(200, "text/plain", vec![b'x'; length])
        };
        let config = ServerConfig { threads: 1, ..ServerConfig::internet() };
        Server::start(address, config, handler, None).unwrap()
    })
}

/// Builds a datagram that requests `size` bytes, with the marked id of a number.
fn request(number: u64, port: u16, size: usize, more: &str) -> Vec<u8> {
    let mut bytes = Id::marked(number).to_bytes().to_vec();
    bytes.extend(port.to_be_bytes());
    bytes.push(0);
    bytes.extend(format!("GET /{size} HTTP/1.1\r\nHost: h\r\n{more}\r\n").as_bytes());
    bytes
}

/// Marks a datagram as a resend.
fn resend(mut datagram: Vec<u8>) -> Vec<u8> {
    datagram[10] = 1;
    datagram
}

/// Builds a padding field of `length` bytes.
fn fill(length: usize) -> String {
    format!("DHTTP-Fill: {}\r\n", "x".repeat(length))
}

/// Fetches a token for this address and TCP port from the server, as a field.
fn token(host: &Host, of: SocketAddr, port: u16) -> String {
    host.deliver_datagram(of, PORT, &request(1, port, 10, &fill(200)));
    let response = host.next(MAX_WAIT_MS).expect("a response with a token");
    let text = String::from_utf8_lossy(response.datagram().unwrap()).into_owned();
    let line = text.lines().find(|line| line.starts_with("DHTTP-Token: "));
    format!("{}\r\n", line.unwrap_or_else(|| panic!("no token in {text}")))
}

fn address(octets: [u8; 4], port: u16) -> SocketAddr {
    SocketAddr::from((octets, port))
}
