//! HTTP/3 (RFC 9114) by the crates h3 and quinn: always encrypted, over datagrams. Returning users with a ticket send
//! requests in the first of them (0-RTT, RFC 9001, section 4.6), if configured.
//!
//! Bodies are counted and discarded.

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use bytes::{Buf, Bytes};
use h3::error::{Code, ConnectionError as Ended, StreamError};
use h3_quinn::OpenStreams;
use http::Request;
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Connection, ConnectionError, Endpoint, EndpointConfig, TokioRuntime, VarInt};
use socket2::{Domain, Protocol, Socket, Type};

use super::connection_task::{Driver, Fetch, StreamOutcome};
use crate::record::{Channel, FailureReason};

/// ALPN protocol name of HTTP/3.
pub(crate) const NAME: &[u8] = b"h3";

/// Reason why there is no connection.
#[derive(Debug)]
pub(crate) enum ConnectError {
    /// This host has no port for it.
    Io(io::Error),
    /// The handshake failed.
    Quic(ConnectionError),
    /// The server speaks another protocol.
    Protocol,
}

/// QUIC configuration, from that of TLS.
pub(crate) fn config(mut tls: rustls::ClientConfig, has_early: bool) -> ClientConfig {
    tls.enable_early_data = has_early;
    let tls = QuicClientConfig::try_from(tls).expect("ring has the cipher of QUIC's first packets");
    ClientConfig::new(Arc::new(tls))
}

/// Receive buffer of a port's socket, in bytes: that of Chrome, if the system permits it.
const SOCKET_BUFFER_BYTES: usize = 1 << 20;

/// A user's UDP port; to be called inside the runtime.
pub(crate) fn endpoint(server: SocketAddr) -> io::Result<Endpoint> {
    let any: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = Socket::new(Domain::for_address(server), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_recv_buffer_size(SOCKET_BUFFER_BYTES)?;
    socket.bind(&SocketAddr::from((any, 0)).into())?;
    Endpoint::new(EndpointConfig::default(), None, socket.into(), Arc::new(TokioRuntime))
}

/// Opens a connection; with a ticket, and where configured, without waiting for the handshake.
pub(crate) async fn open(
    endpoint: Endpoint,
    config: ClientConfig,
    address: SocketAddr,
    name: &str,
) -> Result<(Sender, Driver), ConnectError> {
    let connecting = endpoint
        .connect_with(config, address, name)
        .map_err(|error| ConnectError::Io(io::Error::other(error)))?;
    let early = EarlyData::default();
    let connection = match connecting.into_0rtt() {
        Ok((connection, accepted)) => {
            early.set(PENDING);
            let early = early.clone();
            tokio::spawn(async move { early.set(if accepted.await { ACCEPTED } else { REJECTED }) });
            connection
        }
        Err(connecting) => connecting.await.map_err(ConnectError::Quic)?,
    };
    let carried = h3_quinn::Connection::new(connection.clone());
    let (mut driver, sender) =
        h3::client::builder().send_grease(false).build(carried).await.map_err(|_| failed(&connection))?;
    // Every request on the connection gets the error that ends it.
    let driver: Driver = Box::pin(async move {
        let _ = poll_fn(|context| driver.poll_close(context)).await;
        connection.close(VarInt::from_u32(NO_ERROR), b"");
    });
    Ok((Sender { sender, early }, driver))
}

/// RFC 9114, section 8.1.
const NO_ERROR: u32 = 0x100;

fn failed(connection: &Connection) -> ConnectError {
    connection.close_reason().map_or(ConnectError::Protocol, ConnectError::Quic)
}

/// Server's decision on early data; 0: none was sent.
#[derive(Clone, Debug, Default)]
struct EarlyData(Arc<AtomicU8>);

const PENDING: u8 = 1;
const ACCEPTED: u8 = 2;
const REJECTED: u8 = 3;

impl EarlyData {
    fn set(&self, state: u8) {
        let Self(word) = self;
        word.store(state, Ordering::Relaxed);
    }

    fn get(&self) -> u8 {
        let Self(word) = self;
        word.load(Ordering::Relaxed)
    }
}

/// An open connection, or one that accepts early data.
#[derive(Clone)]
pub(crate) struct Sender {
    sender: h3::client::SendRequest<OpenStreams, Bytes>,
    early: EarlyData,
}

/// Status of a request that the server does not accept in early data (RFC 8470).
const TOO_EARLY: u16 = 425;

impl Fetch for Sender {
    async fn fetch(self, request: Request<Bytes>) -> StreamOutcome {
        let Self { mut sender, early } = self;
        let is_early = early.get() == PENDING;
        let channel = if is_early { Channel::QuicEarly } else { Channel::Quic };
        let mut has_begun = false;
        match respond(&mut sender, request, &mut has_begun).await {
            Ok((TOO_EARLY, _)) if is_early => StreamOutcome::Unseen,
            Ok((status, length)) => StreamOutcome::Response(status, length, channel),
            Err(_) if is_early && matches!(early.get(), PENDING | REJECTED) => StreamOutcome::Unseen,
            Err(error) => outcome_of(&error, has_begun),
        }
    }
}

async fn respond(
    sender: &mut h3::client::SendRequest<OpenStreams, Bytes>,
    request: Request<Bytes>,
    has_begun: &mut bool,
) -> Result<(u16, u64), StreamError> {
    let (head, body) = request.into_parts();
    let mut stream = sender.send_request(Request::from_parts(head, ())).await?;
    if !body.is_empty() {
        stream.send_data(body).await?;
    }
    stream.finish().await?;
    let response = stream.recv_response().await?;
    *has_begun = true;
    let mut length = 0;
    while let Some(bytes) = stream.recv_data().await? {
        length += bytes.remaining() as u64;
    }
    Ok((response.status().as_u16(), length))
}

/// Outcome of a request with this error.
fn outcome_of(error: &StreamError, has_begun: bool) -> StreamOutcome {
    match error {
        StreamError::RemoteClosing { .. } => StreamOutcome::Unseen,
        StreamError::RemoteTerminate { code, .. } if *code == Code::H3_REQUEST_REJECTED => {
            StreamOutcome::Unseen
        }
        StreamError::RemoteTerminate { .. } => StreamOutcome::Broken(true),
        StreamError::StreamError { .. } | StreamError::HeaderTooBig { .. } => {
            StreamOutcome::Failed(FailureReason::Garbage)
        }
        StreamError::ConnectionError { 0: ended @ Ended::Local { .. }, .. } if !ended.is_h3_no_error() => {
            StreamOutcome::Failed(FailureReason::Garbage)
        }
        _ => StreamOutcome::Broken(has_begun),
    }
}

/// Failure of all requests that wait for the connection.
pub(crate) fn failure_reason(failed: &ConnectError) -> FailureReason {
    match failed {
        ConnectError::Io(_) => FailureReason::Exhausted,
        ConnectError::Quic(ConnectionError::TimedOut) => FailureReason::Timeout,
        ConnectError::Quic(_) => FailureReason::Refused,
        ConnectError::Protocol => FailureReason::Garbage,
    }
}
