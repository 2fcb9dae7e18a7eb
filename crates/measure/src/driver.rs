//! Client and server on kernel sockets: bytes between the state machines and the sockets, and the time between.
//!
//! Ready sockets flow in; the client's reports and the server's processing times flow out. One thread
//! in each namespace, non-blocking sockets, `ppoll`. Read in this order:
//!
//! | module | contents |
//! | --- | --- |
//! | [`client`] | a fetcher on its connections and datagrams: fetches a page and measures its duration |
//! | [`server`] | the listener and its connections: responds to each request after the scenario's processing time |
//! | [`service`] | what it serves, on which origins |
//! | [`dhttp_endpoint`] | its DHTTP part |
//! | `http3_endpoint` | its HTTP/3 part |
//! | `tls_server`, `quic_server` | servers for browsers, with TLS of real keys |
//! | `listeners`, `pending_requests` | what the servers have in common: accepting, and requests without a response |
//! | `wait` | waits for a socket or a deadline, to the microsecond |
//!
//! The state machines decide when to send, the kernel how.

pub mod client;
pub mod dhttp_endpoint;
mod http3_endpoint;
mod listeners;
mod pending_requests;
pub(crate) mod quic_server;
pub mod server;
pub mod service;
pub(crate) mod tls_server;
mod wait;

use std::net::{SocketAddr, UdpSocket};

use crate::Error;

/// Bytes of a datagram socket's receive buffer: more than arrives while its program is awakened. As root it is granted; for
/// others the kernel has a limit.
const RECEIVE_BUFFER: usize = 4 << 20;

/// A non-blocking UDP socket at this address, in the calling thread's namespace.
fn datagram_socket(address: SocketAddr) -> Result<UdpSocket, Error> {
    let doing = || format!("receive datagrams at {address}");
    let socket = UdpSocket::bind(address).map_err(Error::io(doing()))?;
    socket.set_nonblocking(true).map_err(Error::io(doing()))?;
    // A smaller buffer is a matter of chance on a busy host, not an error.
    if nix::sys::socket::setsockopt(&socket, nix::sys::socket::sockopt::RcvBufForce, &RECEIVE_BUFFER).is_err()
    {
        let _ = nix::sys::socket::setsockopt(&socket, nix::sys::socket::sockopt::RcvBuf, &RECEIVE_BUFFER);
    }
    Ok(socket)
}
