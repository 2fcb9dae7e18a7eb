//! Receiving of a response, and its forwarding to the client as it arrives, never buffered whole.
//!
//! The client's bytes are framed in `write_response`. A response in one datagram is usually forwarded by the event loop
//! (`receive_datagram`).

use std::io::{self, Write};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock, mpsc};
use std::thread;
use std::time::Duration;

use http1::gateway;
use http1::message::{Fields, Framing, ResponseHead, Version};

use super::abort::ABORTED;
use super::dhttp_request::{DhttpRequest, STOPPING};
use super::send::{self, Upload};
use super::stage::{Exchange, ExchangeEnd, Pipeline, ReplyContext, Stage};
use super::upstream::{ResponseItem, Upstream, UpstreamError};
use super::write_response::{Reply, ReplyStart, Size, begin};
use dhttp::client::{Event, Via};
use dhttp::counters::count_shared;
use dhttp::log::Channel;

/// Maximum delay between the last byte that a server reads and the report that it was sent.
const REPORT_DELAY: Duration = Duration::from_millis(100);

impl Pipeline<'_> {
    /// Sends the request's body and forwards the response, concurrently.
    pub(super) fn receive(&mut self, mut exchange: Box<Exchange>, mut server: Upstream) -> Stage {
        let Exchange { request, forward, fill, origin: _ } = &mut *exchange;
        let (shared, requested) = (self.shared, request.context());
        let (client, to) = (Arc::clone(&self.incoming.stream), server.stream());
        let has_body = forward.framing != Framing::Length(0);
        let (result_sender, upload_result) = mpsc::channel();
        // Whether the body has been sent whole, once that is known; and its error if it is invalid.
        let mut sent = (!has_body).then_some(true);
        let fault = OnceLock::new();
        let (mut reply, mut must_retry) = (None, false);
        let has_progressed = AtomicBool::new(false);
        let received = thread::scope(|scope| {
            if has_body {
                scope.spawn(|| {
                    let sent = self.upload(&to, forward.framing, &has_progressed);
                    if let Err(reason) = &sent {
                        if let Upload::Faulty(fault_kind) = reason {
                            let _ = fault.set(*fault_kind);
                        }
                        // The server must not wait for the rest of an invalid body.
                        send::abandon(&to);
                    }
                    // If the response was cut short, the receiver is gone.
                    let _ = result_sender.send(sent.is_ok());
                });
            }
            let mut each = |item: ResponseItem<'_>| -> io::Result<()> {
                match item {
                    ResponseItem::Interim(_) if requested.version == Version::Http10 => Ok(()),
                    ResponseItem::Interim(interim) => {
                        let mut bytes = Vec::new();
                        gateway::response(&interim, &shared.name).encode(&mut bytes);
                        (&*client).write_all(&bytes)
                    }
                    ResponseItem::Head(response, framing) => {
                        let size = match framing {
                            Framing::Length(length) => Size::Known(length),
                            Framing::Chunked | Framing::UntilClose => Size::Unknown,
                        };
                        // A response that precedes the end of the request's body is usually a refusal, and the connection is
                        // not reused.
                        sent = sent.or_else(|| upload_result.recv_timeout(REPORT_DELAY).ok());
                        let keep_alive = requested.keep_alive && sent == Some(true);
                        let response = gateway::response(&response, &shared.name);
                        match begin(fill, &client, ReplyContext { keep_alive, ..requested }, &response, size)?
                        {
                            ReplyStart::Reply(begun) => reply = Some(begun),
                            ReplyStart::Retry => must_retry = true,
                        }
                        Ok(())
                    }
                    ResponseItem::Body(part) => {
                        reply.as_mut().map_or(Ok(()), |reply: &mut Reply<'_>| reply.part(part))
                    }
                    ResponseItem::Pause => reply.as_mut().map_or(Ok(()), Reply::flush),
                }
            };
            let received = server.respond(forward, shared.config().timeout, &has_progressed, &mut each);
            sent = sent.or_else(|| upload_result.recv_timeout(REPORT_DELAY).ok());
            if sent != Some(true) {
                // Stops the upload: the response is complete, or will never be.
                send::abandon(&to);
                let _ = client.shutdown(std::net::Shutdown::Read);
            }
            received
        });
        match (received, reply) {
            (Ok((keep_alive, trailers)), Some(reply)) => {
                let status = reply.status;
                let ended = reply.end(&gateway::trailers(&trailers));
                if keep_alive && sent == Some(true) && self.abort.release() {
                    server.keep(shared);
                }
                self.conclude(&exchange.request.head, status, Channel::TcpClient, &ended)
            }
            (Err(broken), Some(_)) => {
                count_shared(&shared.counters.failed);
                if broken.is_slow {
                    count_shared(&shared.counters.slow);
                }
                Stage::End(ExchangeEnd::Broken)
            }
            (Err(_), None) if let Some(fault) = fault.get() => {
                exchange.request.keep_alive = false;
                Stage::Refuse(Some(exchange.request), fault.status(), fault.to_string())
            }
            (Err(broken), None) => self.fail(exchange, broken, server.is_used),
            (Ok(_), None) if must_retry => Stage::Connect(exchange),
            // A response cannot end without having begun: the reader returns the header section first.
            (Ok(_), None) => Stage::End(ExchangeEnd::Broken),
        }
    }

    /// Returns the stage after a response that has not begun.
    fn fail(&self, exchange: Box<Exchange>, broken: UpstreamError, was_used: bool) -> Stage {
        if self.abort.is_aborted() {
            return exchange.fail_and_close(503, ABORTED.to_owned());
        }
        // The server closed it just as the request was sent.
        if broken.is_silent && was_used && exchange.forward.may_be_repeated() {
            return Stage::Reconnect(exchange);
        }
        exchange.fail_and_close(broken.status, broken.reason)
    }

    /// Forwards a response by DHTTP that has begun to arrive.
    pub(super) fn receive_by_dhttp(
        &self,
        mut exchange: Box<Exchange>,
        mut request: DhttpRequest,
        via: Via,
        response: &ResponseHead,
    ) -> Stage {
        let events = &mut request.exchange;
        // A response in one datagram is complete, and its length known.
        let mut ready = Vec::new();
        let (channel, size) = match via {
            Via::Udp => loop {
                match events.next() {
                    Some(Event::Body(part)) => ready.extend_from_slice(&part),
                    Some(Event::Head(..)) => {}
                    Some(Event::End) => break (Channel::Udp, Size::Known(ready.len() as u64)),
                    Some(Event::Failed(reason)) => return Stage::Fail(exchange, 502, reason),
                    None => return Stage::Fail(exchange, 502, STOPPING.to_owned()),
                }
            },
            Via::TcpOpened => (Channel::TcpOpened, length(response)),
            Via::TcpClient => (Channel::TcpClient, length(response)),
        };
        let response = gateway::response(response, &self.shared.name);
        let requested = exchange.request.context();
        let mut reply = match begin(&mut exchange.fill, self.stream(), requested, &response, size) {
            Ok(ReplyStart::Reply(reply)) => reply,
            Ok(ReplyStart::Retry) => return Stage::Connect(exchange),
            Err(_) => return Stage::End(ExchangeEnd::Broken),
        };
        let status = reply.status;
        let written = if ready.is_empty() { Ok(()) } else { reply.part(&ready) }.and_then(|()| {
            if via == Via::Udp {
                return Ok(());
            }
            loop {
                if !events.is_ready() {
                    // A browser requests resources named in the first lines of a page before the last lines arrive.
                    reply.flush()?;
                }
                match events.next() {
                    Some(Event::Body(part)) => reply.part(&part)?,
                    Some(Event::Head(..)) => {}
                    Some(Event::End) => return Ok(()),
                    Some(Event::Failed(_)) | None => return Err(io::ErrorKind::UnexpectedEof.into()),
                }
            }
        });
        let ended = written.and_then(|()| reply.end(&Fields::new()));
        self.conclude(&exchange.request.head, status, channel, &ended)
    }
}

fn length(response: &ResponseHead) -> Size {
    let digits = response.fields.get("Content-Length").and_then(|digits| std::str::from_utf8(digits).ok());
    digits.and_then(|digits| digits.parse().ok()).map_or(Size::Unknown, Size::Known)
}
