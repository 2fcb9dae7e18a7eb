//! HTTP/2 (RFC 9113) by the crate h2: over TLS where configured, else with prior knowledge (section 3.3).
//!
//! Bodies are counted and discarded.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use h2::client::{Builder, SendRequest};
use h2::{Reason, RecvStream};
use http::Request;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::connection_task::{Driver, Fetch, StreamOutcome};
use crate::record::{Channel, FailureReason};

/// ALPN protocol name of HTTP/2.
pub(crate) const NAME: &[u8] = b"h2";

/// Reason why there is no connection.
#[derive(Debug)]
pub(crate) enum ConnectError {
    /// TCP or TLS failed.
    Io(io::Error),
    /// The server chose another protocol, or none.
    Protocol,
}

/// Opens a connection, with TLS if there is a configuration for it.
pub(crate) async fn open(
    address: SocketAddr,
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
) -> Result<(Sender, Driver), ConnectError> {
    let stream = TcpStream::connect(address).await.map_err(ConnectError::Io)?;
    stream.set_nodelay(true).map_err(ConnectError::Io)?;
    let Some((config, name)) = tls else { return begin(stream).await };
    let stream = TlsConnector::from(config).connect(name, stream).await.map_err(ConnectError::Io)?;
    if stream.get_ref().1.alpn_protocol() != Some(NAME) {
        return Err(ConnectError::Protocol);
    }
    begin(stream).await
}

/// Flow-control windows of a stream, and of a connection, in bytes: those of Chrome.
const STREAM_WINDOW: u32 = 6 << 20;
const CONNECTION_WINDOW: u32 = 15 << 20;

async fn begin<T>(stream: T) -> Result<(Sender, Driver), ConnectError>
where
    T: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let mut builder = Builder::new();
    builder.enable_push(false);
    builder.initial_window_size(STREAM_WINDOW).initial_connection_window_size(CONNECTION_WINDOW);
    let (sender, connection) = builder.handshake(stream).await.map_err(|_| ConnectError::Protocol)?;
    // Every request on the connection gets the error that ends it.
    let driver: Driver = Box::pin(async move {
        let _ = connection.await;
    });
    Ok((Sender(sender), driver))
}

/// An open connection.
#[derive(Clone)]
pub(crate) struct Sender(SendRequest<Bytes>);

impl Fetch for Sender {
    async fn fetch(self, request: Request<Bytes>) -> StreamOutcome {
        let Self(sender) = self;
        match sender.ready().await {
            Ok(sender) => respond(sender, request).await,
            Err(error) => outcome_of(&error, false),
        }
    }
}

async fn respond(mut sender: SendRequest<Bytes>, request: Request<Bytes>) -> StreamOutcome {
    let (head, body) = request.into_parts();
    let has_body = !body.is_empty();
    let response = match sender.send_request(Request::from_parts(head, ()), !has_body) {
        Ok((response, mut stream)) => {
            // The library buffers data beyond the window: a body has a maximum size.
            if has_body && let Err(error) = stream.send_data(body, true) {
                return outcome_of(&error, false);
            }
            response
        }
        Err(error) => return outcome_of(&error, false),
    };
    // The library waits for this sender while it exists.
    drop(sender);
    match response.await {
        Err(error) => outcome_of(&error, false),
        Ok(response) => {
            let status = response.status().as_u16();
            match length(response.into_body()).await {
                Ok(length) => StreamOutcome::Response(status, length, Channel::TcpClient),
                Err(error) => outcome_of(&error, true),
            }
        }
    }
}

async fn length(body: RecvStream) -> Result<u64, h2::Error> {
    let mut body = pin!(body);
    let mut length = 0;
    while let Some(bytes) = poll_fn(|context| body.poll_data(context)).await {
        let taken = bytes?.len();
        length += taken as u64;
        body.flow_control().release_capacity(taken)?;
    }
    Ok(length)
}

/// Outcome of a request with this error.
fn outcome_of(error: &h2::Error, has_begun: bool) -> StreamOutcome {
    // Requests that the server did not process may be retried (RFC 9113, section 8.7).
    let is_unseen = error.is_go_away() || error.reason() == Some(Reason::REFUSED_STREAM);
    if error.is_remote() && is_unseen {
        StreamOutcome::Unseen
    } else if error.is_remote() {
        StreamOutcome::Broken(true)
    } else if error.is_library() {
        StreamOutcome::Failed(FailureReason::Garbage)
    } else {
        StreamOutcome::Broken(has_begun)
    }
}

/// Failure of all requests that wait for the connection.
pub(crate) fn failure_reason(failed: &ConnectError) -> FailureReason {
    match failed {
        // `EMFILE`, `EADDRNOTAVAIL`: this host's limits.
        ConnectError::Io(error) if is_own(error) => FailureReason::Exhausted,
        ConnectError::Io(_) => FailureReason::Refused,
        ConnectError::Protocol => FailureReason::Garbage,
    }
}

fn is_own(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let own = [Errno::MFILE, Errno::NFILE, Errno::ADDRNOTAVAIL, Errno::NOBUFS];
    own.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}
