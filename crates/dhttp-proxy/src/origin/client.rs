//! HTTP/1.1 client of an origin: persistent connections, and responses read by the same strict parser as the gateway's
//! ([`http1::client::Responses`]). A response whose end two readers could see at different places is an error.
//!
//! Requests flow in with their whole bodies; header sections, bodies and trailers flow out as they arrive. The timeouts of a
//! silent origin are the caller's.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http1::client::{Event, IdleConnections};
use http1::message::{Fields, Framing, Method, RequestHead, ResponseHead};
use linux::clock::Clock;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::connection::{Connection, Failure};
use super::{OriginError, headers_from};

/// Timeout of a connection attempt, for each address of the origin.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Client of one origin.
#[derive(Debug)]
pub(super) struct Client {
    host: String,
    port: u16,
    idle: Mutex<IdleConnections<Connection>>,
    clock: Clock,
}

/// Callback for interim responses, among a request's extensions. It gets neither 100 nor 101.
#[derive(Clone)]
pub(crate) struct OnInterim(pub(crate) Arc<dyn Fn(&ResponseHead) + Send + Sync>);

/// A request, with the fields that the origin gets.
pub(super) struct OriginRequest {
    pub(super) head: RequestHead,
    pub(super) body: Bytes,
    pub(super) on_interim: Option<OnInterim>,
}

impl Client {
    pub(super) fn new(host: &str, port: u16) -> Arc<Self> {
        Arc::new(Self { host: host.to_owned(), port, idle: Mutex::default(), clock: Clock::start() })
    }

    /// Sends a request, and returns its final response once the header section is there. A safe request is retried once,
    /// on a new connection, if its connection ended without a byte (RFC 9110, section 9.2.2).
    pub(super) async fn send(
        self: &Arc<Self>,
        request: &OriginRequest,
    ) -> Result<(ResponseHead, ResponseBody), Failure> {
        let connection = match self.idle_connection() {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        match self.exchange(connection, request).await {
            Err(Failure::Ended(_)) if request.head.method.is_safe() => {
                let connection = self.connect().await?;
                self.exchange(connection, request).await
            }
            result => result,
        }
    }

    async fn exchange(
        self: &Arc<Self>,
        mut connection: Connection,
        request: &OriginRequest,
    ) -> Result<(ResponseHead, ResponseBody), Failure> {
        let OriginRequest { head, body, on_interim } = request;
        connection.send(head, body);
        let call_back = |interim: &ResponseHead| {
            if let Some(OnInterim(call)) = on_interim.as_ref().filter(|_| interim.status != 100) {
                call(interim);
            }
        };
        let (response, framing) = connection.head(&head.method, call_back).await?;
        let (client, method) = (Arc::clone(self), head.method.clone());
        let mut body = ResponseBody { connection: Some(connection), client, method, framing };
        if framing == Framing::Length(0) {
            body.finish_empty()?;
        }
        Ok((response, body))
    }

    fn idle_connection(&self) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.take(self.clock.now(), Connection::is_quiet)
    }

    fn keep(&self, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.store(connection, self.clock.now());
    }

    async fn connect(&self) -> Result<Connection, Failure> {
        let addresses = tokio::net::lookup_host((&*self.host, self.port)).await;
        let addresses = addresses.map_err(|error| Failure::Connect(error.to_string()))?;
        let mut last = "its name has no address".to_owned();
        for address in addresses {
            match timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    // Requests are written whole.
                    let _ = stream.set_nodelay(true);
                    return Ok(Connection::new(stream));
                }
                Ok(Err(error)) => last = error.to_string(),
                Err(_) => last = format!("no connection within {} s", CONNECT_TIMEOUT.as_secs()),
            }
        }
        Err(Failure::Connect(last))
    }
}

/// Body of a response, as it arrives; once it is complete, its connection serves the next request.
#[derive(Debug)]
pub(super) struct ResponseBody {
    /// `None` once it is complete, or broken.
    connection: Option<Connection>,
    client: Arc<Client>,
    method: Method,
    framing: Framing,
}

impl ResponseBody {
    /// Ends a response without a body.
    fn finish_empty(&mut self) -> Result<(), Failure> {
        let Some(mut connection) = self.connection.take() else { return Ok(()) };
        if let Some(Event::End { persists }) = connection.event(&self.method)? {
            self.release(connection, persists);
        }
        Ok(())
    }

    fn release(&self, connection: Connection, persists: bool) {
        if persists && connection.is_reusable() {
            self.client.keep(connection);
        }
    }

    fn broken(&mut self, reason: &str) -> OriginError {
        self.connection = None;
        let authority = format!("{}:{}", self.client.host, self.client.port);
        tracing::warn!(origin = authority, reason, "incomplete response from the origin");
        OriginError::Broken(format!("{authority}: {reason}"))
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = OriginError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, OriginError>>> {
        let this = &mut *self;
        loop {
            let Some(connection) = &mut this.connection else { return Poll::Ready(None) };
            match connection.event(&this.method) {
                Ok(Some(Event::Body(part))) => {
                    return Poll::Ready(Some(Ok(Frame::data(Bytes::copy_from_slice(part)))));
                }
                Ok(Some(Event::End { persists })) => {
                    let trailers = connection.trailers();
                    if let Some(connection) = this.connection.take() {
                        this.release(connection, persists);
                    }
                    return Poll::Ready(
                        trailers.map(|fields: Fields| Ok(Frame::trailers(headers_from(&fields)))),
                    );
                }
                Ok(Some(Event::Interim(_) | Event::Head(..))) => {
                    return Poll::Ready(Some(Err(this.broken("a second response to one request"))));
                }
                Ok(None) => {}
                Err(failure) => return Poll::Ready(Some(Err(this.broken(&failure.to_string())))),
            }
            let filled: io::Result<bool> = ready!(connection.poll_fill(context));
            match filled {
                Ok(true) => {}
                Ok(false) => {
                    let ended = connection.end_of_stream();
                    let reason = match ended {
                        Ok(()) => {
                            this.connection = None;
                            return Poll::Ready(None);
                        }
                        Err(failure) => failure.to_string(),
                    };
                    return Poll::Ready(Some(Err(this.broken(&reason))));
                }
                Err(error) => return Poll::Ready(Some(Err(this.broken(&error.to_string())))),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.connection.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        match self.framing {
            // The remaining length is not tracked: the first hint is exact, and later ones are an upper bound.
            Framing::Length(length) => {
                let mut hint = SizeHint::new();
                hint.set_upper(length);
                hint
            }
            Framing::Chunked | Framing::UntilClose => SizeHint::new(),
        }
    }
}
