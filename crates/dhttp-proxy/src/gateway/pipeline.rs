//! The stages of a request, in order, and the two hand-overs between threads.
//!
//! ```text
//! event loop   accept -> read_request -> check -> look_up (memory) -> write_response -> read_request, or close
//!                                          |         |                      ^
//!                            1. lease to a |         | send by DHTTP        | receive_datagram
//!                               thread and |         v                      |
//!                                     back |   DHTTP client's thread -------+ 2. waker
//!                                          v
//! pool thread  look_up -> connect -> send -> receive -> write_response
//! ```
//!
//! [`begin`] runs the stages that never block, in the event loop. [`serve`] runs the others in a thread of the pool, from the
//! stage at which the first had to stop. A tunnel returns to the event loop.

use std::sync::Arc;

use http1::message::{Framing, RequestHead, Version};

use super::Shared;
use super::abort::Abort;
use super::check::check;
use super::connect::full;
use super::connection::{Connection, ConnectionContext};
use super::incoming::{Incoming, ReadBuffer};
use super::receive_datagram::PendingRequest;
use super::stage::{ClientRequest, ExchangeEnd, Next, Pipeline, Stage};
use super::write_response;
use dhttp::counters::count_shared;
use dhttp::handler::Body;
use dhttp::log::Channel;
use dhttp::server::queue::Queue;

/// Runs the stages of a request that never block; a response by DHTTP may remain `pending`.
pub(super) fn begin(
    context: &mut ConnectionContext<'_>,
    queue: &mut Queue,
    head: RequestHead,
    framing: Framing,
    pending: &mut Option<Box<PendingRequest>>,
) -> Next {
    let request = ClientRequest::of(head);
    let is_plain = framing == Framing::Length(0) && request.head.version == Version::Http11;
    if let Some(cache) = context.cache.as_mut().filter(|_| is_plain && request.keep_alive)
        && let Some(response) = cache.fresh_in_memory(&request.head)
        && let Body::Whole(bytes) = &response.body
    {
        let status = response.status;
        let bytes = write_response::stored(queue, context.out, request.context(), response, bytes);
        context.report(&request.head, status, bytes, Channel::Cache);
        return Next::ReadOn;
    }
    let exchange = match check(context.shared, request, framing) {
        Ok(exchange) => exchange,
        Err(stage) => return Next::Lease(stage),
    };
    if let Some(cache) = &context.cache
        && let Some(response) = cache.respond_from_memory(&exchange.forward)
    {
        let request = exchange.request;
        let Body::Whole(bytes) = &response.body else {
            return Next::Lease(Box::new(Stage::WriteStored(request, response)));
        };
        let bytes = write_response::stored(queue, context.out, request.context(), &response, bytes);
        context.report(&request.head, response.status, bytes, Channel::Cache);
        return Next::written(request.keep_alive);
    }
    let mut exchange = match PendingRequest::send(context, exchange) {
        Ok(sent) => {
            *pending = Some(sent);
            return Next::Wait;
        }
        Err(exchange) => exchange,
    };
    // Where neither a stored response nor a body is involved, a refusal needs no thread.
    let may_be_refused = context.shared.cache.is_none() && is_plain;
    if !may_be_refused || exchange.lease_origin(context.shared) {
        return Next::Lease(Box::new(Stage::LookUp(exchange)));
    }
    count_shared(&context.shared.counters.origin_full);
    let (request, reason) = (&exchange.request, full(&exchange.forward.authority));
    let (keep_alive, bytes) = write_response::write_refusal(context.out, request.context(), &reason);
    context.report_own(&request.head, 503, bytes);
    Next::written(keep_alive)
}

/// Runs the other stages in this thread, and returns the connection and what it is for; `None` if it broke.
pub(super) fn serve(
    shared: &Arc<Shared>,
    connection: Connection,
    stage: Stage,
    abort: &Abort,
    buffer: &mut ReadBuffer,
) -> Option<(Connection, ExchangeEnd)> {
    let Connection { peer, stream, reader, unread, has_send_timeout, has_requested } = connection;
    let timeout = shared.config().timeout;
    if !has_send_timeout && stream.set_write_timeout(Some(timeout)).is_err() {
        return None;
    }
    let incoming = Incoming::new(stream, std::mem::take(buffer), &unread);
    let mut pipeline = Pipeline { shared, peer, abort, incoming, reader };
    let ended = pipeline.run(stage);
    let Pipeline { shared: _, peer, abort: _, incoming, reader } = pipeline;
    let (stream, unread, read_buffer) = incoming.end();
    *buffer = read_buffer;
    let mut connection = Connection { peer, stream, reader, unread, has_send_timeout: true, has_requested };
    match ended {
        ExchangeEnd::Whole => connection.skip_end(),
        ExchangeEnd::Last | ExchangeEnd::Tunnel(_) => {}
        ExchangeEnd::Broken => {
            write_response::break_off(&connection.stream);
            return None;
        }
    }
    Some((connection, ended))
}

impl Pipeline<'_> {
    fn run(&mut self, mut stage: Stage) -> ExchangeEnd {
        loop {
            stage = match stage {
                Stage::LookUp(exchange) => self.look_up(exchange),
                Stage::Connect(exchange) => self.connect(exchange),
                Stage::Reconnect(exchange) => self.connect_by_http(exchange, false),
                Stage::Tunnel(request, host, port) => self.connect_tunnel(request, &host, port),
                Stage::Send(exchange, server) => Self::send(exchange, server),
                Stage::SendDhttp(exchange, client) => Self::send_by_dhttp(exchange, client),
                Stage::Receive(exchange, server) => self.receive(exchange, *server),
                Stage::ReceiveDhttp(exchange, request, via, head) => {
                    self.receive_by_dhttp(exchange, request, via, &head)
                }
                Stage::WriteStored(request, response) => self.write_stored(&request, &response),
                Stage::WriteScript(request) => self.write_script(&request),
                Stage::Refuse(request, status, reason) => self.refuse(request.as_ref(), status, &reason),
                Stage::Fail(exchange, status, reason) => exchange.fail(status, reason),
                Stage::End(ended) => return ended,
            };
        }
    }
}
