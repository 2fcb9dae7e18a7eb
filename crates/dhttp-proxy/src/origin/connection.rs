//! A connection to an origin: a request out, and the events of its response in.
//!
//! [`super::client`] pools and opens connections.

use std::fmt;
use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http1::client::{Event, Responses};
use http1::message::{Fields, Framing, Limits, Method, RequestHead, ResponseHead};
use rustix::net::{RecvFlags, recv};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// Maximum bytes of one read.
const READ_BYTES: usize = 32 << 10;

/// Maximum number of interim responses to one request. Clients get only the first few; the response timeout ends an endless
/// series.
const MAX_INTERIMS: usize = 256;

/// Failure of a request.
#[derive(Debug)]
pub(super) enum Failure {
    /// No connection could be opened.
    Connect(String),
    /// The connection ended before the first byte of a response.
    Ended(String),
    /// The response is invalid or incomplete.
    Invalid(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Connect(reason) | Self::Ended(reason) | Self::Invalid(reason)) = self;
        f.write_str(reason)
    }
}

/// Connection with at most one request in flight.
#[derive(Debug)]
pub(super) struct Connection {
    stream: Arc<TcpStream>,
    responses: Responses,
    buffer: Box<[u8]>,
    /// Unread bytes: those from `start` to `end`.
    start: usize,
    end: usize,
    /// Task that writes the bytes that the kernel did not accept immediately.
    writer: Option<JoinHandle<()>>,
    /// Whether a byte of the response has arrived.
    has_begun: bool,
}

impl Connection {
    pub(super) fn new(stream: TcpStream) -> Self {
        let limits = Limits { interim_responses: MAX_INTERIMS, ..Limits::default() };
        Self {
            stream: Arc::new(stream),
            responses: Responses::new(limits),
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
            start: 0,
            end: 0,
            writer: None,
            has_begun: false,
        }
    }

    /// Sends a request. The rest of a long body is sent while the response is read, so that an early refusal is seen. A write
    /// error shows as a missing response.
    pub(super) fn send(&mut self, head: &RequestHead, body: &Bytes) {
        self.has_begun = false;
        let mut bytes = Vec::with_capacity(1_024 + body.len());
        head.encode(&mut bytes);
        bytes.extend_from_slice(body);
        let written = self.stream.try_write(&bytes).unwrap_or(0);
        if written < bytes.len() {
            let stream = Arc::clone(&self.stream);
            self.writer = Some(tokio::spawn(async move {
                let _ = write_all(&stream, bytes.get(written..).unwrap_or_default()).await;
            }));
        }
    }

    /// Waits for the header section of the final response; `on_interim` gets those before it.
    pub(super) async fn head(
        &mut self,
        method: &Method,
        on_interim: impl Fn(&ResponseHead),
    ) -> Result<(ResponseHead, Framing), Failure> {
        loop {
            match self.event(method)? {
                Some(Event::Interim(head)) => {
                    on_interim(&head);
                    continue;
                }
                Some(Event::Head(head, framing)) => return Ok((head, framing)),
                Some(Event::Body(_) | Event::End { .. }) => {
                    return Err(Failure::Invalid("unexpected bytes after a response".to_owned()));
                }
                None => {}
            }
            match poll_fn(|context| self.poll_fill(context)).await {
                Ok(true) => {}
                Ok(false) if !self.has_begun => {
                    return Err(Failure::Ended("it closed the connection without a response".to_owned()));
                }
                Ok(false) => {
                    self.end_of_stream()?;
                    return Err(Failure::Invalid("it closed the connection".to_owned()));
                }
                Err(error) if !self.has_begun && is_closed(&error) => {
                    return Err(Failure::Ended(error.to_string()));
                }
                Err(error) => return Err(Failure::Invalid(error.to_string())),
            }
        }
    }

    /// Returns the next event of the received bytes; `None`: more bytes are needed.
    pub(super) fn event(&mut self, method: &Method) -> Result<Option<Event<'_>>, Failure> {
        let mut input = self.buffer.get(self.start..self.end).unwrap_or_default();
        let unread_length = input.len();
        let event = self.responses.read(&mut input, method);
        self.start += unread_length - input.len();
        event.map_err(|fault| Failure::Invalid(fault.to_string()))
    }

    /// Waits for more bytes, once all are read; `false` at the end of the stream.
    pub(super) fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
        loop {
            ready!(self.stream.poll_read_ready(context))?;
            match self.stream.try_read(&mut self.buffer) {
                Ok(length) => {
                    (self.start, self.end) = (0, length);
                    self.has_begun |= length > 0;
                    return Poll::Ready(Ok(length > 0));
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    /// Whether the response may end with the stream.
    pub(super) fn end_of_stream(&mut self) -> Result<(), Failure> {
        match self.responses.end_of_stream() {
            Ok(true) => Ok(()),
            Ok(false) => Err(Failure::Invalid("it closed the connection".to_owned())),
            Err(fault) => Err(Failure::Invalid(fault.to_string())),
        }
    }

    /// Returns the trailers of the response that has just ended, if it has any.
    pub(super) fn trailers(&self) -> Option<Fields> {
        let trailers = self.responses.trailers();
        (trailers.iter().next().is_some()).then(|| trailers.clone())
    }

    /// Whether another request may follow: this one is sent completely, and no unsolicited byte has arrived.
    pub(super) fn is_reusable(&self) -> bool {
        let is_sent = self.writer.as_ref().is_none_or(JoinHandle::is_finished);
        is_sent && self.start == self.end && self.responses.is_between_responses()
    }

    /// Whether neither bytes nor the end of the stream have arrived while it was idle.
    pub(super) fn is_quiet(&self) -> bool {
        let peeked = recv(&*self.stream, &mut [0_u8; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT);
        matches!(peeked, Err(error) if error.kind() == ErrorKind::WouldBlock)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(writer) = &self.writer {
            writer.abort();
        }
    }
}

async fn write_all(stream: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.writable().await?;
        match stream.try_write(bytes) {
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Whether a connection's error means that the peer closed it.
fn is_closed(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted)
}
