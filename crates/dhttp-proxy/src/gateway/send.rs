//! Sending of a request: its header section and its body by plain HTTP, or all of it by DHTTP.
//!
//! A separate thread sends the body while the response is read (`receive`). Interim and error responses thus reach the client
//! before the whole body is sent.

use std::io::{self, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http1::gateway;
use http1::message::{Event, Fields, Framing, PeerFault};

use super::chunked;
use super::dhttp_request::{DhttpRequest, STOPPING};
use super::stage::{Exchange, Pipeline, Stage};
use super::upstream::Upstream;
use dhttp::Client;
use dhttp::client::Event as DhttpEvent;
use dhttp::counters::count_shared;

/// Reason for an incomplete upload.
pub(super) enum Upload {
    /// The body was invalid.
    Faulty(PeerFault),
    /// One of the connections broke.
    Broken,
}

impl From<io::Error> for Upload {
    fn from(_: io::Error) -> Self {
        Self::Broken
    }
}

impl Pipeline<'_> {
    /// Sends the header section by plain HTTP.
    pub(super) fn send(exchange: Box<Exchange>, server: Box<Upstream>) -> Stage {
        if server.send_head(&exchange.forward).is_ok() {
            return Stage::Receive(exchange, server);
        }
        if server.is_used && exchange.forward.may_be_repeated() {
            return Stage::Reconnect(exchange);
        }
        let reason = format!("{} closed the connection", exchange.forward.authority);
        exchange.fail_and_close(502, reason)
    }

    /// Sends the whole request by DHTTP, and waits for the header section of the response.
    pub(super) fn send_by_dhttp(exchange: Box<Exchange>, client: Arc<Client>) -> Stage {
        let mut request = match DhttpRequest::send(client, &exchange.forward) {
            Ok(request) => request,
            Err(reason) => return Stage::Fail(exchange, 502, reason),
        };
        match request.exchange.next() {
            Some(DhttpEvent::Head(via, head)) => Stage::ReceiveDhttp(exchange, request, via, head),
            Some(DhttpEvent::Failed(reason)) => Stage::Fail(exchange, 502, reason),
            Some(DhttpEvent::Body(_) | DhttpEvent::End) | None => {
                Stage::Fail(exchange, 502, STOPPING.to_owned())
            }
        }
    }

    /// Sends the request's body as it arrives, and sets `has_progressed` with each part.
    pub(super) fn upload(
        &mut self,
        to: &TcpStream,
        framing: Framing,
        has_progressed: &AtomicBool,
    ) -> Result<(), Upload> {
        let config = self.shared.config();
        let (begun, timeout, min_rate, mut bytes) =
            (self.shared.clock.now(), config.timeout, config.min_upload_rate, 0_u64);
        loop {
            let mut input = self.incoming.unread();
            let unread_length = input.len();
            let event = self.reader.read(&mut input);
            let used = unread_length - input.len();
            let (mut is_over, mut is_dry) = (false, false);
            match event.map_err(Upload::Faulty)? {
                Some(Event::Body(part)) => send_part(to, framing, part)?,
                Some(Event::End) => is_over = true,
                None => is_dry = true,
                Some(Event::Head(..)) => {}
            }
            self.incoming.consume(used);
            bytes += used as u64;
            if used > 0 {
                has_progressed.store(true, Ordering::Relaxed);
            }
            if is_over {
                return Ok(send_end(to, framing, &gateway::trailers(self.reader.trailers()))?);
            }
            // Minimum rate: a trickle would occupy this thread and the server's connection indefinitely.
            let elapsed = Duration::from_nanos(self.shared.clock.now().since(begun).as_nanos());
            if is_dry && elapsed > timeout && bytes < min_rate.saturating_mul(elapsed.as_secs()) {
                count_shared(&self.shared.counters.slow);
                return Err(Upload::Faulty(PeerFault::TooSlow));
            }
            if is_dry && !self.incoming.fill(timeout)? {
                return Err(Upload::Faulty(PeerFault::Truncated));
            }
        }
    }
}

/// Sends a part of a request's body.
///
/// # Errors
/// The connection's error.
fn send_part(mut stream: &TcpStream, framing: Framing, part: &[u8]) -> io::Result<()> {
    match framing {
        Framing::Length(_) | Framing::UntilClose => stream.write_all(part),
        Framing::Chunked => {
            let mut chunk = Vec::with_capacity(part.len() + 20);
            chunked::part(&mut chunk, part);
            stream.write_all(&chunk)
        }
    }
}

/// Ends a request's body.
///
/// # Errors
/// The connection's error.
fn send_end(mut stream: &TcpStream, framing: Framing, trailers: &Fields) -> io::Result<()> {
    if framing != Framing::Chunked {
        return Ok(());
    }
    let mut bytes = Vec::with_capacity(64);
    chunked::end(&mut bytes, trailers);
    stream.write_all(&bytes)
}

/// Closes a connection in both directions.
pub(super) fn abandon(stream: &TcpStream) {
    let _ = stream.shutdown(Shutdown::Both);
}
