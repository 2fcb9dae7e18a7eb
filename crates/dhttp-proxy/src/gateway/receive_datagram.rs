//! A request by DHTTP that the event loop sends, and whose response it forwards without a thread if that comes in one datagram.
//!
//! All other responses, and failures, are for a thread (`receive`).

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use http1::gateway;
use http1::message::{ResponseHead, Version};

use super::completions::Completions;
use super::connection::ConnectionContext;
use super::dhttp_request::{DhttpRequest, STOPPING, dhttp_client};
use super::stage::{Exchange, Next, Stage};
use super::write_response;
use crate::cache::streaming_fill::Disposition;
use dhttp::client::{Event, Via};
use dhttp::handler::Body;
use dhttp::log::Channel;

/// A request whose response is awaited.
pub(super) struct PendingRequest {
    exchange: Exchange,
    request: DhttpRequest,
    waker: Waker,
    /// The header section of a response by datagram, and the bytes of its body so far.
    datagram: Option<(ResponseHead, Vec<u8>)>,
}

/// Notifies the event loop of progress for the connection with this number.
struct ConnectionWaker {
    completions: Arc<Completions>,
    number: u64,
}

impl Wake for ConnectionWaker {
    fn wake(self: Arc<Self>) {
        self.completions.ring(self.number);
    }
}

impl PendingRequest {
    /// Sends the request.
    ///
    /// # Errors
    /// The exchange, unchanged: it is not sent by DHTTP, or the disk or another request must be awaited before.
    pub(super) fn send(
        context: &ConnectionContext<'_>,
        mut exchange: Exchange,
    ) -> Result<Box<Self>, Box<Exchange>> {
        let shared = context.shared;
        let Some(client) = dhttp_client(shared, &exchange.forward) else { return Err(Box::new(exchange)) };
        if !exchange.lease_origin(shared) {
            return Err(Box::new(exchange));
        }
        if let Some(cache) = &shared.cache {
            let Some(fill) = cache.fill_without_waiting(&exchange.forward) else {
                return Err(Box::new(exchange));
            };
            // With the cache's validators; a thread that must retry takes them from the fill again.
            exchange.forward.head = fill.request().clone();
            exchange.fill = Some(fill);
        }
        match DhttpRequest::send(client, &exchange.forward) {
            Ok(request) => {
                let completions = Arc::clone(context.completions);
                let waker = Waker::from(Arc::new(ConnectionWaker { completions, number: context.number }));
                Ok(Box::new(Self { exchange, request, waker, datagram: None }))
            }
            Err(_) => Err(Box::new(exchange)),
        }
    }

    /// Handles what has arrived for a pending request, which stays in its place unless its response is complete or for a thread.
    /// A complete response is written to `context.out`.
    pub(super) fn poll(pending: &mut Option<Box<Self>>, context: &mut ConnectionContext<'_>) -> Next {
        // Without one, the wake-up belonged to an earlier request.
        let Some(mut waiting) = pending.take() else { return Next::Wait };
        loop {
            let Self { exchange: _, request, waker, datagram } = &mut *waiting;
            let Poll::Ready(event) = request.exchange.poll_next(&Context::from_waker(waker)) else {
                *pending = Some(waiting);
                return Next::Wait;
            };
            match (event, datagram) {
                (Some(Event::Head(Via::Udp, head)), datagram) => *datagram = Some((head, Vec::new())),
                (Some(Event::Head(via @ (Via::TcpOpened | Via::TcpClient), head)), _) => {
                    let Self { exchange, request, waker: _, datagram: _ } = *waiting;
                    let stage = Stage::ReceiveDhttp(Box::new(exchange), request, via, head);
                    return Next::Lease(Box::new(stage));
                }
                (Some(Event::Body(part)), Some((_, body))) if body.is_empty() => *body = part,
                (Some(Event::Body(part)), Some((_, body))) => body.extend_from_slice(&part),
                (Some(Event::End), datagram @ Some(_)) => {
                    if let Some((head, body)) = datagram.take() {
                        return waiting.forward(context, &head, &body);
                    }
                }
                (Some(Event::Failed(reason)), _) => return waiting.fail(reason),
                (Some(Event::Body(_) | Event::End) | None, _) => return waiting.fail(STOPPING.to_owned()),
            }
        }
    }

    fn fail(self, reason: String) -> Next {
        Next::Lease(Box::new(Stage::Fail(Box::new(self.exchange), 502, reason)))
    }

    /// Writes the response, and stores it if allowed.
    fn forward(self, context: &mut ConnectionContext<'_>, head: &ResponseHead, body: &[u8]) -> Next {
        let mut exchange = self.exchange;
        let mut head = gateway::response(head, &context.shared.name);
        if let Some(fill) = &mut exchange.fill {
            match fill.head(&head, Some(body.len() as u64)) {
                Disposition::Forward(fields) => {
                    head = ResponseHead { version: Version::Http11, status: head.status, fields };
                }
                Disposition::Complete(stored) => {
                    let request = exchange.request;
                    let Body::Whole(whole) = &stored.body else {
                        return Next::Lease(Box::new(Stage::WriteStored(request, stored)));
                    };
                    let has_body = write_response::write_head(context.out, request.context(), &stored);
                    let bytes = if has_body { whole } else { &[][..] };
                    context.out.extend_from_slice(bytes);
                    context.report(&request.head, stored.status, bytes.len() as u64, Channel::Udp);
                    return Next::written(request.keep_alive);
                }
                Disposition::Retry => {
                    return Next::Lease(Box::new(Stage::Connect(Box::new(exchange))));
                }
            }
        }
        let Exchange { request, forward: _, fill, origin: _ } = exchange;
        let (keep_alive, bytes) = write_response::write_passed(context.out, request.context(), &head, body);
        if let Some(mut fill) = fill {
            fill.part(body);
            fill.end();
        }
        context.report(&request.head, head.status, bytes, Channel::Udp);
        Next::written(keep_alive)
    }
}
