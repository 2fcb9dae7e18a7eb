//! Connections to servers: pooled ones, and new ones to the first address that responds, each checked when it is connected.
//!
//! Which addresses may be reached is decided by [`dhttp::client`].

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http1::client::IdleConnections;
use rustix::net::{RecvFlags, recv};
use socket2::{Domain, SockRef, Socket, Type};
use wire::Time;

use super::abort::{ABORTED, Abort};
use dhttp::client::unreached;

/// Idle connections.
#[derive(Debug, Default)]
pub(super) struct Pool {
    idle: Mutex<BTreeMap<String, IdleConnections<Arc<TcpStream>>>>,
}

impl Pool {
    /// Takes a pooled connection that appears to be open.
    pub(super) fn take(&self, authority: &str, now: Time) -> Option<Arc<TcpStream>> {
        let mut idle = self.idle.lock().ok()?;
        idle.retain(|_, connections| {
            connections.close_expired(now);
            !connections.is_empty()
        });
        idle.get_mut(authority)?.take(now, |stream| is_quiet(stream))
    }

    pub(super) fn keep(&self, authority: &str, stream: Arc<TcpStream>, now: Time) {
        if let Ok(mut idle) = self.idle.lock() {
            idle.entry(authority.to_owned()).or_default().store(stream, now);
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
pub(super) fn connect(
    host: &str,
    port: u16,
    shared: &super::Shared,
    abort: &Abort,
) -> Result<Arc<TcpStream>, (u16, String)> {
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
        match connect_to(address, config.timeout, abort) {
            Ok(stream) => {
                // Writes are complete messages already.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Err(_) if abort.is_aborted() => return Err((503, ABORTED.to_owned())),
            Err(error) => {
                let status = if error.kind() == io::ErrorKind::TimedOut { 504 } else { 502 };
                reason = (status, format!("cannot connect to {address}: {error}"));
            }
        }
    }
    Err(reason)
}

/// Connects, unless the attempt is aborted.
fn connect_to(address: SocketAddr, timeout: Duration, abort: &Abort) -> io::Result<Arc<TcpStream>> {
    let stream = Arc::new(TcpStream::from(Socket::new(Domain::for_address(address), Type::STREAM, None)?));
    if !abort.watch(&stream) {
        return Err(io::ErrorKind::ConnectionAborted.into());
    }
    SockRef::from(&*stream).connect_timeout(&address.into(), timeout)?;
    Ok(stream)
}

fn is_own(address: SocketAddr, own: SocketAddr) -> bool {
    let (address, own) = (address.ip().to_canonical(), own.ip().to_canonical());
    address == own || (own.is_unspecified() && (address.is_loopback() || address.is_unspecified()))
}
