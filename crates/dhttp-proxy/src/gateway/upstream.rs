//! A connection to a server by plain HTTP/1.1, with one request in flight.
//!
//! It is opened in `pool`, and its response is forwarded in `receive`.

use std::io::{self, Write};
use std::net::{IpAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http1::client::{Event, Responses};
use http1::gateway::Forward;
use http1::message::{Fields, Framing, Limits, ResponseHead};

use super::abort::{ABORTED, Abort};
use super::incoming::{Incoming, ReadBuffer};
use super::pool::connect;
use dhttp::Client;

/// A connection to a server, with one request in flight.
pub(super) struct Upstream {
    incoming: Incoming<Arc<TcpStream>>,
    responses: Responses,
    authority: String,
    /// The DHTTP client, which may await responses of the same server, and that server's address.
    client: Arc<Client>,
    server: Option<IpAddr>,
    /// Whether it carried another request before: then the server may just have closed it.
    pub(super) is_used: bool,
}

/// Next item of the response.
#[derive(Debug)]
pub(super) enum ResponseItem<'a> {
    /// An interim response (1xx).
    Interim(ResponseHead),
    /// The final response, and its framing.
    Head(ResponseHead, Framing),
    Body(&'a [u8]),
    /// All received bytes are read: buffered output may be written.
    Pause,
}

impl Upstream {
    /// Takes a pooled connection, or opens a new one.
    ///
    /// # Errors
    /// A status and a sentence.
    pub(super) fn open(
        shared: &super::Shared,
        forward: &Forward,
        may_be_used: bool,
        abort: &Abort,
    ) -> Result<Self, (u16, String)> {
        let stored = may_be_used.then(|| shared.pool.take(&forward.authority, shared.clock.now())).flatten();
        let is_used = stored.is_some();
        let timeout = shared.config().timeout;
        let stream = match stored {
            Some(stream) if abort.watch(&stream) => stream,
            Some(_) => return Err((503, ABORTED.to_owned())),
            None => connect(&forward.host, forward.port, shared, abort)?,
        };
        let server = stream.peer_addr().ok().map(|peer| peer.ip().to_canonical());
        let set = stream.set_write_timeout(Some(timeout));
        set.map_err(|error| (502, format!("cannot use the connection to {}: {error}", forward.authority)))?;
        Ok(Self {
            incoming: Incoming::new(stream, ReadBuffer::default(), &[]),
            responses: Responses::new(Limits::default()),
            authority: forward.authority.clone(),
            client: shared.client(),
            server,
            is_used,
        })
    }

    /// Sends a request's header section.
    ///
    /// # Errors
    /// The connection's error.
    pub(super) fn send_head(&self, forward: &Forward) -> io::Result<()> {
        let mut head = forward.head.clone();
        if forward.framing == Framing::Chunked {
            // Constant, and a valid field; the request's own was hop-by-hop.
            let _ = head.fields.push("Transfer-Encoding", "chunked");
        }
        let mut bytes = Vec::with_capacity(1_024);
        head.encode(&mut bytes);
        (&*self.incoming.stream).write_all(&bytes)
    }

    /// Returns the socket, for writing.
    pub(super) fn stream(&self) -> Arc<TcpStream> {
        Arc::clone(&self.incoming.stream)
    }

    /// Reads the response, and passes each item to `each` until that returns that it is done.
    ///
    /// Returns the trailers and whether the connection can carry another request. The server may be silent for as long as
    /// `has_progressed` is set repeatedly: the request's body is still being sent.
    ///
    /// # Errors
    /// The reason for a missing or incomplete response, in a sentence, and whether not a byte of one had arrived.
    pub(super) fn respond(
        &mut self,
        forward: &Forward,
        timeout: Duration,
        has_progressed: &AtomicBool,
        each: &mut dyn FnMut(ResponseItem<'_>) -> io::Result<()>,
    ) -> Result<(bool, Fields), UpstreamError> {
        let mut is_silent = true;
        loop {
            let mut input = self.incoming.unread();
            let unread_length = input.len();
            let event = self.responses.read(&mut input, &forward.head.method);
            let used = unread_length - input.len();
            let event =
                event.map_err(|fault| UpstreamError::server(&self.authority, &fault.to_string(), false))?;
            match event {
                Some(Event::Interim(head)) => {
                    each(ResponseItem::Interim(head)).map_err(|error| UpstreamError::program(&error))?;
                }
                Some(Event::Head(head, framing)) => {
                    self.client.learn_from_response(&self.authority, &head.fields);
                    each(ResponseItem::Head(head, framing))
                        .map_err(|error| UpstreamError::program(&error))?;
                }
                Some(Event::Body(part)) => {
                    each(ResponseItem::Body(part)).map_err(|error| UpstreamError::program(&error))?
                }
                Some(Event::End { persists }) => {
                    self.incoming.consume(used);
                    // A server that sends more than one response is not reused.
                    let keep_alive = persists && self.incoming.unread().is_empty();
                    return Ok((keep_alive, self.responses.trailers().clone()));
                }
                None => {
                    self.incoming.consume(used);
                    each(ResponseItem::Pause).map_err(|error| UpstreamError::program(&error))?;
                    let mut filled = self.incoming.fill(timeout);
                    while filled.as_ref().is_err_and(is_late) && has_progressed.swap(false, Ordering::Relaxed)
                    {
                        filled = self.incoming.fill(timeout);
                    }
                    let broken = |reason: &str| UpstreamError::server(&self.authority, reason, is_silent);
                    let filled = filled.map_err(|error| match is_late(&error) {
                        true => UpstreamError::late(&self.authority, timeout),
                        false => broken(&error.to_string()),
                    });
                    if !filled? {
                        return match self.responses.end_of_stream() {
                            Ok(true) => Ok((false, Fields::new())),
                            Ok(false) => Err(broken("it closed the connection")),
                            Err(fault) => Err(broken(&fault.to_string())),
                        };
                    }
                    is_silent = false;
                    if let Some(server) = self.server {
                        self.client.count_received_bytes(server, self.incoming.unread().len());
                    }
                    continue;
                }
            }
            self.incoming.consume(used);
        }
    }

    /// Returns the connection to the pool, for the next request to the same server.
    pub(super) fn keep(self, shared: &super::Shared) {
        shared.pool.keep(&self.authority, self.incoming.stream, shared.clock.now());
    }
}

/// Whether a connection's error is a timeout.
pub(super) fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// Reason why a response is missing or incomplete.
#[derive(Debug)]
pub(super) struct UpstreamError {
    /// 502 or 504, for a client that has received nothing yet.
    pub(super) status: u16,
    /// The reason, as a sentence.
    pub(super) reason: String,
    /// Whether not a byte of a response had arrived.
    pub(super) is_silent: bool,
    /// Whether the client read too slowly.
    pub(super) is_slow: bool,
}

impl UpstreamError {
    fn server(authority: &str, reason: &str, is_silent: bool) -> Self {
        Self { status: 502, reason: format!("{authority}: {reason}"), is_silent, is_slow: false }
    }

    /// Error of a timeout. It is not retried: a server this slow once is as slow again.
    fn late(authority: &str, timeout: Duration) -> Self {
        let reason = format!("{authority} has sent nothing for {} s", timeout.as_secs_f32());
        Self { status: 504, reason, is_silent: false, is_slow: false }
    }

    fn program(error: &io::Error) -> Self {
        let reason = "the client closed the connection, or does not read".to_owned();
        Self { status: 502, reason, is_silent: false, is_slow: is_late(error) }
    }
}
