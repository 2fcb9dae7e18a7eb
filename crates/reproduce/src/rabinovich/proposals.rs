//! Mechanisms that `papers/dhttp#section-iii` proposes: a URL that forces a request to TCP, and a connection that opens
//! while the server makes the page.
//!
//! The first is a real server and client on this host; the second the server's own rules in virtual time, as in [`super::drawings`].

use std::net::{Ipv4Addr, SocketAddr};

use dhttp::client::{KnownServers, Via};
use dhttp::{Client, ClientConfig, Response, Url};
use dhttp_proto::message::RequestHeader;
use dhttp_proto::server::{Channel, Secrets, Verdict};
use dhttp_proto::{Id, Key, Server, ServerConfig};
use wire::{Duration, Time};

/// Number of requests by TCP, of one with this scheme to a server that speaks DHTTP.
///
/// # Errors
/// The reason why the host has no socket, or the response was incomplete.
pub fn requests_by_tcp(scheme: &str) -> Result<f64, String> {
    let sentence = |error: std::io::Error| error.to_string();
    let config = dhttp::ServerConfig { threads: 1, ..dhttp::ServerConfig::internet().reaching_anywhere() };
    let handler = |_: &dhttp::Request<'_>| Response::text(200, "small");
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = dhttp::Server::start(listen, config, handler, None).map_err(sentence)?;
    let client = Client::start(ClientConfig::internet(), KnownServers::default(), None).map_err(sentence)?;
    let url: Url = format!("{scheme}://{}/", server.address())
        .parse()
        .map_err(|error: dhttp::UrlError| error.to_string())?;
    let (via, _, _) = client.get(&url).map_err(sentence)?.whole()?;
    Ok(if via == Via::TcpClient { 1.0 } else { 0.0 })
}

/// Round-trip time, and the time that the page takes.
const RTT: Duration = Duration::from_millis(50);
const CLIENT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)), 40_001);
/// A response that goes by TCP, in bytes.
const LARGE: u64 = 20_000;

/// Round trips to the first byte of a large page that takes one round trip to make; the server has the client's token.
pub fn round_trips(opens_early: bool) -> Option<f64> {
    let config = ServerConfig {
        opens_early,
        reach: dhttp_proto::address::Reach::Anywhere,
        ..ServerConfig::internet()
    };
    let mut server =
        Server::new(config, Secrets { token: Key { generation: 0, secret: [1; 16] }, tables: [2; 16] });
    let header = |number| {
        RequestHeader { id: Id::marked(number), port: CLIENT.port(), is_resend: false }.to_bytes().to_vec()
    };
    let first = [&header(1)[..], b"GET / HTTP/1.1\r\nHost: www\r\n\r\n"].concat();
    let Verdict::Serve(first, _) = server.receive(Time::ZERO, CLIENT, &first) else { return None };
    let token = server.token(Time::ZERO, &first, || LARGE);
    server.abandon(first);
    let (token, mut datagram) = (token?, header(2));
    datagram.extend(
        format!("GET /page HTTP/1.1\r\nHost: www\r\nDHTTP-Token: {}\r\n\r\n", token.as_str()).bytes(),
    );
    let requested = Time::ZERO + RTT / 2;
    let Verdict::Serve(mut ticket, _) = server.receive(requested, CLIENT, &datagram) else { return None };
    server.defer(&ticket);
    let early = server.open_early(requested, &mut ticket).map(|_| requested);
    let made = requested + RTT;
    // The handshake takes a round trip from its SYN.
    let ready = match server.channel(made, ticket, LARGE) {
        Channel::Open { .. } => made + RTT,
        Channel::Connection(_) => made.max(early? + RTT),
        Channel::Datagram | Channel::Parts(_) | Channel::Refer(_) => return None,
    };
    let arrived = ready + RTT / 2;
    Some(arrived.since(Time::ZERO).as_secs_f64() / RTT.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paper_making_a_page_overlaps_with_opening_a_connection() {
        let (late, early) = (round_trips(false).unwrap(), round_trips(true).unwrap());
        assert!((late - 3.0).abs() < 1e-9 && (early - 2.0).abs() < 1e-9, "{late} and {early}");
    }
}
