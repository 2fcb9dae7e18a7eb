//! Connection to a server: the choice between DHTTP and plain HTTP, pooled connections, resolution, and the check of each
//! address when it is connected.
//!
//! Which addresses may be reached is decided by [`dhttp::client`].

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex};

use http1::message::Framing;
use rustix::net::{RecvFlags, recv};
use wire::Time;

use super::pipeline::{ClientRequest, Exchange, ExchangeEnd, Pipeline, Stage};
use super::send::dhttp_client;
use super::upstream::Upstream;
use dhttp::client::unreached;
use dhttp::counters::count_shared;

impl Pipeline<'_> {
    /// Chooses the server's channel.
    pub(super) fn connect(&self, mut exchange: Box<Exchange>) -> Stage {
        if let Some(fill) = &exchange.fill {
            // With the cache's validators.
            exchange.forward.head = fill.request().clone();
        }
        match dhttp_client(self.shared, &exchange.forward) {
            Some(client) => Stage::SendDhttp(exchange, client),
            None => self.connect_by_http(exchange, true),
        }
    }

    /// Takes a pooled connection if there is one and `may_be_used` is set, or opens a new one.
    pub(super) fn connect_by_http(&self, mut exchange: Box<Exchange>, may_be_used: bool) -> Stage {
        match Upstream::open(self.shared, &exchange.forward, may_be_used) {
            Ok(server) => {
                if server.is_used {
                    count_shared(&self.shared.counters.reused);
                }
                Stage::Send(exchange, Box::new(server))
            }
            Err((status, reason)) => {
                exchange.request.keep_alive &= exchange.forward.framing == Framing::Length(0);
                Stage::Fail(exchange, status, reason)
            }
        }
    }

    /// Connects a tunnel, and sends the bytes behind the client's request.
    pub(super) fn connect_tunnel(&self, request: ClientRequest, host: &str, port: u16) -> Stage {
        let server = match connect(host, port, self.shared) {
            Ok(server) => server,
            Err((status, reason)) => {
                return Stage::Refuse(Some(ClientRequest { keep_alive: false, ..request }), status, reason);
            }
        };
        count_shared(&self.shared.counters.tunnels);
        let (mut client, mut first) = (self.stream(), &server);
        let written = client.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        Stage::End(match written.and_then(|()| first.write_all(self.incoming.unread())) {
            Ok(()) => ExchangeEnd::Tunnel(Box::new((server, request.head))),
            Err(_) => ExchangeEnd::Broken,
        })
    }
}

/// Idle connections.
#[derive(Debug, Default)]
pub(super) struct Pool {
    idle: Mutex<BTreeMap<String, Vec<PooledConnection>>>,
}

/// A connection, and the start of its idle time.
type PooledConnection = (Arc<TcpStream>, Time);

/// Idle timeout of a pooled connection: shorter than usual for servers, so that both sides seldom close simultaneously.
const MAX_IDLE: wire::Duration = wire::Duration::from_secs(4);
/// Maximum number of pooled connections to one server: as many as clients used concurrently. With fewer, each of the others
/// would leave a port in TIME-WAIT for a minute.
const MAX_POOLED: usize = 256;

impl Pool {
    /// Takes a pooled connection that appears to be open.
    pub(super) fn take(&self, authority: &str, now: Time) -> Option<Arc<TcpStream>> {
        let mut idle = self.idle.lock().ok()?;
        idle.retain(|_, stored| {
            // The last one has been idle for the shortest time.
            let first = stored.partition_point(|(_, since)| now.since(*since) >= MAX_IDLE);
            stored.drain(..first);
            !stored.is_empty()
        });
        let stored = idle.get_mut(authority)?;
        while let Some((stream, _)) = stored.pop() {
            if is_quiet(&stream) {
                return Some(stream);
            }
        }
        None
    }

    pub(super) fn keep(&self, authority: &str, stream: Arc<TcpStream>, now: Time) {
        if let Ok(mut idle) = self.idle.lock() {
            let stored = idle.entry(authority.to_owned()).or_default();
            if stored.len() < MAX_POOLED {
                stored.push((stream, now));
            }
        }
    }
}

/// Whether neither unsolicited bytes nor the end of the stream have arrived.
fn is_quiet(stream: &TcpStream) -> bool {
    let peeked = recv(stream, &mut [0_u8; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT);
    matches!(peeked, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}

/// Connects to the first of a name's addresses that responds.
///
/// # Errors
/// A status and a sentence for the client.
pub(super) fn connect(host: &str, port: u16, shared: &super::Shared) -> Result<TcpStream, (u16, String)> {
    let addresses = (host, port).to_socket_addrs();
    let addresses = addresses.map_err(|error| (502, format!("{host} has no address: {error}")))?;
    let mut reason = (502, format!("{host} has no address"));
    let (own, config) = (shared.address, shared.config());
    for address in addresses {
        if address.port() == own.port() && is_own(address, own) {
            return Err((508, format!("{host} port {port} is this gateway itself")));
        }
        if !config.client.reaches(address.ip()) {
            return Err((403, unreached(address)));
        }
        match TcpStream::connect_timeout(&address, config.timeout) {
            Ok(stream) => {
                // Writes are complete messages already.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Err(error) => {
                let status = if error.kind() == io::ErrorKind::TimedOut { 504 } else { 502 };
                reason = (status, format!("cannot connect to {address}: {error}"));
            }
        }
    }
    Err(reason)
}

fn is_own(address: SocketAddr, own: SocketAddr) -> bool {
    let (address, own) = (address.ip().to_canonical(), own.ip().to_canonical());
    address == own || (own.is_unspecified() && (address.is_loopback() || address.is_unspecified()))
}
