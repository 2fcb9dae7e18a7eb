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

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use http1::gateway::Forward;
use http1::message::{Framing, RequestHead, RequestReader, ResponseHead, Version, persists};

use super::Shared;
use super::check::check;
use super::event_loop::Completion;
use super::incoming::{Incoming, ReadBuffer};
use super::read_request::{Connection, ConnectionContext};
use super::receive_datagram::PendingRequest;
use super::send::DhttpRequest;
use super::tunnel::Tunnel;
use super::upstream::Upstream;
use super::write_response::{self, ReplyContext};
use crate::cache::streaming_fill::StreamingFill;
use dhttp::Client;
use dhttp::client::Via;
use dhttp::handler::{Body, Response};
use dhttp::log::Channel;
use dhttp::server::queue::Queue;

/// A client's request.
pub(super) struct ClientRequest {
    pub(super) head: RequestHead,
    /// Whether its connection may carry another request after the response.
    pub(super) keep_alive: bool,
}

/// A request to be forwarded.
pub(super) struct Exchange {
    pub(super) request: ClientRequest,
    /// The request as the server gets it.
    pub(super) forward: Forward,
    /// The cache entry that the response fills.
    pub(super) fill: Option<Box<StreamingFill>>,
}

/// Next stage of a request, for a thread that may block.
pub(super) enum Stage {
    /// Look it up in the cache, perhaps on disk, perhaps after a pending request for the same.
    LookUp(Box<Exchange>),
    /// Find the server's channel: DHTTP, a pooled connection, or a new one.
    Connect(Box<Exchange>),
    /// Open a new connection: the pooled one had just been closed.
    Reconnect(Box<Exchange>),
    /// Connect to this host and port, and relay bytes (CONNECT).
    Tunnel(ClientRequest, String, u16),
    /// Send the request's header section.
    Send(Box<Exchange>, Box<Upstream>),
    /// Send the request by DHTTP.
    SendDhttp(Box<Exchange>, Arc<Client>),
    /// Send the request's body and forward the response, concurrently.
    Receive(Box<Exchange>, Box<Upstream>),
    /// Forward the response by DHTTP that begins with this header section.
    ReceiveDhttp(Box<Exchange>, DhttpRequest, Via, ResponseHead),
    /// Write a cached response.
    WriteStored(ClientRequest, Response),
    /// Write the gateway's `proxy.pac`.
    WriteScript(ClientRequest),
    /// Refuse a request by this status and sentence; `None`: an invalid one.
    Refuse(Option<ClientRequest>, u16, String),
    /// Write the stored response that may replace a failed one, or refuse.
    Fail(Box<Exchange>, u16, String),
    /// Keep the connection, or close it.
    End(ExchangeEnd),
}

/// End of an exchange.
pub(super) enum ExchangeEnd {
    /// The connection can carry another request.
    Whole,
    /// It cannot, but the response is complete.
    Last,
    /// The response was cut short.
    Broken,
    /// It becomes a tunnel to this server, by this request.
    Tunnel(Box<(TcpStream, RequestHead)>),
}

/// State of a request after the stages that never block.
pub(super) enum PipelineState {
    /// A cached response is written; whether the connection stays open.
    Written(bool),
    /// A response by DHTTP is awaited.
    Pending(Box<PendingRequest>),
    /// A thread must continue with this stage.
    Blocks(Box<Stage>),
}

/// A connection leased to a thread.
pub(super) struct Pipeline<'a> {
    pub(super) shared: &'a Arc<Shared>,
    pub(super) peer: SocketAddr,
    pub(super) incoming: Incoming<Arc<TcpStream>>,
    pub(super) reader: RequestReader,
}

/// Runs the stages of a request that never block.
pub(super) fn begin(
    context: &mut ConnectionContext<'_>,
    queue: &mut Queue,
    head: RequestHead,
    framing: Framing,
) -> PipelineState {
    let request = ClientRequest::of(head);
    let is_plain = framing == Framing::Length(0) && request.head.version == Version::Http11;
    if let Some(cache) = context.cache.as_mut().filter(|_| is_plain && request.keep_alive)
        && let Some(response) = cache.fresh_in_memory(&request.head)
        && let Body::Whole(bytes) = &response.body
    {
        let status = response.status;
        let bytes = write_response::stored(queue, context.out, request.context(), response, bytes);
        context.report(&request.head, status, bytes, Channel::Cache);
        return PipelineState::Written(true);
    }
    let exchange = match check(context.shared, request, framing) {
        Ok(exchange) => exchange,
        Err(stage) => return PipelineState::Blocks(stage),
    };
    if let Some(cache) = &context.cache
        && let Some(response) = cache.respond_from_memory(&exchange.forward)
    {
        let request = exchange.request;
        let Body::Whole(bytes) = &response.body else {
            return PipelineState::Blocks(Box::new(Stage::WriteStored(request, response)));
        };
        let bytes = write_response::stored(queue, context.out, request.context(), &response, bytes);
        context.report(&request.head, response.status, bytes, Channel::Cache);
        return PipelineState::Written(request.keep_alive);
    }
    match PendingRequest::send(context.shared, context.number, exchange) {
        Ok(pending) => PipelineState::Pending(pending),
        Err(exchange) => PipelineState::Blocks(Box::new(Stage::LookUp(exchange))),
    }
}

/// Runs the other stages in this thread, and returns the connection.
pub(super) fn serve(
    shared: &Arc<Shared>,
    connection: Connection,
    stage: Stage,
    buffer: &mut ReadBuffer,
) -> Completion {
    let Connection { peer, stream, reader, unread, has_send_timeout } = connection;
    let timeout = shared.config().timeout;
    if !has_send_timeout && stream.set_write_timeout(Some(timeout)).is_err() {
        return Completion::Closed;
    }
    let incoming = Incoming::new(stream, std::mem::take(buffer), &unread);
    let mut pipeline = Pipeline { shared, peer, incoming, reader };
    let ended = pipeline.run(stage);
    let Pipeline { shared: _, peer, incoming, reader } = pipeline;
    let (stream, unread, read_buffer) = incoming.end();
    *buffer = read_buffer;
    let mut connection = Connection { peer, stream, reader, unread, has_send_timeout: true };
    match ended {
        ExchangeEnd::Whole => {
            connection.skip_end();
            Completion::Open(connection)
        }
        ExchangeEnd::Last => Completion::Ending(connection),
        ExchangeEnd::Tunnel(to) => {
            let (server, requested) = *to;
            Completion::Tunnel(Box::new(Tunnel::new(peer, requested, connection.stream, server)))
        }
        ExchangeEnd::Broken => {
            write_response::break_off(&connection.stream);
            Completion::Closed
        }
    }
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

    pub(super) fn stream(&self) -> &TcpStream {
        &self.incoming.stream
    }
}

impl Stage {
    /// Whether nothing has been sent to a server or the client: a request that may be dropped during the shutdown.
    pub(super) const fn is_first(&self) -> bool {
        match self {
            Self::LookUp(_) | Self::Tunnel(..) | Self::WriteScript(_) | Self::Refuse(..) => true,
            Self::Connect(_)
            | Self::Reconnect(_)
            | Self::Send(..)
            | Self::SendDhttp(..)
            | Self::Receive(..)
            | Self::ReceiveDhttp(..)
            | Self::WriteStored(..)
            | Self::Fail(..)
            | Self::End(_) => false,
        }
    }
}

impl ClientRequest {
    fn of(head: RequestHead) -> Self {
        // HTTP/1.0 programs keep connections to proxies alive by the historic `Proxy-Connection`.
        let is_kept_alive =
            head.version == Version::Http10 && head.fields.has_token("Proxy-Connection", "keep-alive");
        let keep_alive = is_kept_alive || persists(head.version, &head.fields);
        Self { head, keep_alive }
    }

    pub(super) const fn context(&self) -> ReplyContext<'_> {
        ReplyContext { method: &self.head.method, version: self.head.version, keep_alive: self.keep_alive }
    }
}

impl Exchange {
    /// Returns the stage after a failure after which the connection must end, since the request's body was not read.
    pub(super) fn fail_and_close(mut self: Box<Self>, status: u16, reason: String) -> Stage {
        self.request.keep_alive = false;
        Stage::Fail(self, status, reason)
    }

    fn fail(self, status: u16, reason: String) -> Stage {
        match self.fill.and_then(|fill| fill.failed()) {
            Some(response) => Stage::WriteStored(self.request, response),
            None => Stage::Refuse(Some(self.request), status, reason),
        }
    }
}
