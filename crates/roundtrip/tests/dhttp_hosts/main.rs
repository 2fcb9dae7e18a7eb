//! DHTTP's server and client on hosts of their own, with the test as the network between them.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `host` | a host whose only link ends in the test's hands |
//! | `network` | a bad network between two of them |
//! | `reflection`, `bounce`, `flood`, `forged` | what an attacker would do who writes any address on what he sends |
//! | `fast_open` | data in the SYNs of the server |
//! | `weather` | what bad networks do: the caller is told of every request what became of it |
//! | `gateway` | the same of programs that a gateway asks for |
//! | `flaps` | the same where links and routes go and come back |
//! | `deaths`, `shortage` | the same where programs are killed, and where descriptors and ports are used up |
//!
//! Not what can be tried without other people's addresses: that is in `crates/dhttp/tests` and `crates/dhttp-proxy/tests`. The tables in
//! docs/dhttp-server.md say which rule is tried where. Where the system gives no such hosts, the tests say that they
//! were skipped; with `ROUNDTRIP_REQUIRE_KERNEL=1`, as in CI, that is a failure.

mod bounce;
mod deaths;
mod fast_open;
mod flaps;
mod flood;
mod forged;
mod gateway;
mod host;
mod network;
mod reflection;
mod shortage;

mod weather;

use std::net::SocketAddr;

use dhttp::{Answer, Request, Server, ServerConfig};

use host::Host;

type Handler = fn(&Request<'_>) -> Answer;

/// An address of the whole Internet: the profile of today connects to no other.
const SERVER: [u8; 4] = [9, 9, 0, 1];
const PORT: u16 = 8_080;

/// Longer than a server thinks about anything that needs no timer, though others want the processor.
const SOON: u16 = 500;
/// So long is waited for what must come.
const AT_LAST: u16 = 20_000;

/// A server with all protections on, whose answers have as many bytes as the path says.
fn serve(host: &Host) -> Server<Handler> {
    serve_at(host, PORT)
}

fn serve_at(host: &Host, port: u16) -> Server<Handler> {
    let address = host.socket(port);
    host.does(move || {
        let handler: Handler = |request| {
            let length = request.target.trim_start_matches('/').parse().unwrap_or(10);
            Answer::whole(200, "text/plain", vec![b'x'; length])
        };
        let config = ServerConfig { threads: 1, ..ServerConfig::internet() };
        Server::start(address, config, handler, None).unwrap()
    })
}

/// A datagram that asks for so many bytes.
fn request(id: u64, port: u16, size: usize, more: &str) -> Vec<u8> {
    let mut bytes = id.to_be_bytes().to_vec();
    bytes.extend(port.to_be_bytes());
    bytes.push(0);
    bytes.extend(format!("GET /{size} HTTP/1.1\r\nHost: h\r\n{more}\r\n").as_bytes());
    bytes
}

/// The same, sent again.
fn resend(mut datagram: Vec<u8>) -> Vec<u8> {
    datagram[10] = 1;
    datagram
}

/// A field of that many bytes that says nothing.
fn fill(length: usize) -> String {
    format!("DHTTP-Fill: {}\r\n", "x".repeat(length))
}

/// What proves the address to the server, as a field, got from it.
fn token(host: &Host, of: SocketAddr) -> String {
    host.receives_datagram(of, PORT, &request(1, 0, 10, &fill(200)));
    let answer = host.next(AT_LAST).expect("an answer with a token");
    let text = String::from_utf8_lossy(answer.datagram().unwrap()).into_owned();
    let line = text.lines().find(|line| line.starts_with("DHTTP-Token: "));
    format!("{}\r\n", line.unwrap_or_else(|| panic!("no token in {text}")))
}

fn address(octets: [u8; 4], port: u16) -> SocketAddr {
    SocketAddr::from((octets, port))
}
