//! The types that the stages of a request pass on: the request, and what is next.
//!
//! | type | says what is next |
//! | --- | --- |
//! | [`Stage`] | for a request, in a thread that may block |
//! | [`ExchangeEnd`] | for its connection, after the last stage |
//! | [`Next`] | for a connection that the event loop watches |

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use http1::gateway::Forward;
use http1::message::{Method, RequestHead, RequestReader, ResponseHead, Version, persists};

use super::Shared;
use super::abort::Abort;
use super::dhttp_request::DhttpRequest;
use super::incoming::Incoming;
use super::origins::OriginLease;
use super::upstream::Upstream;
use crate::cache::streaming_fill::StreamingFill;
use dhttp::Client;
use dhttp::client::Via;
use dhttp::handler::Response;

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
    /// Its place among the exchanges with the server, from its first attempt on.
    pub(super) origin: Option<OriginLease>,
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

/// Next step of a connection in the event loop.
pub(super) enum Next {
    /// Read the next request: the response to this one is written.
    ReadOn,
    /// Wait for an event: of the socket, of the pending request, or a timeout.
    Wait,
    /// Continue with this stage in a thread.
    Lease(Box<Stage>),
    /// Close it once all bytes are written.
    HangUp,
    /// Drop it.
    Close,
}

/// A connection leased to a thread.
pub(super) struct Pipeline<'a> {
    pub(super) shared: &'a Arc<Shared>,
    pub(super) peer: SocketAddr,
    pub(super) abort: &'a Abort,
    pub(super) incoming: Incoming<Arc<TcpStream>>,
    pub(super) reader: RequestReader,
}

/// Properties of a client's request that the framing of the response depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReplyContext<'a> {
    pub(super) method: &'a Method,
    pub(super) version: Version,
    /// Whether it wants to keep the connection open.
    pub(super) keep_alive: bool,
}

impl Pipeline<'_> {
    pub(super) fn stream(&self) -> &TcpStream {
        &self.incoming.stream
    }
}

impl Next {
    /// Returns what follows a response that is written whole.
    pub(super) const fn written(keep_alive: bool) -> Self {
        if keep_alive { Self::ReadOn } else { Self::HangUp }
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
    pub(super) fn of(head: RequestHead) -> Self {
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

    /// Counts it among the exchanges with its server; `false` if that has as many as it may.
    pub(super) fn lease_origin(&mut self, shared: &Shared) -> bool {
        if self.origin.is_none() {
            let config = shared.config();
            let max = config.origin_exchanges.unwrap_or((config.connections / 2).max(1));
            self.origin = shared.origins.lease(&self.forward.authority, max, config.connections.max(1));
        }
        self.origin.is_some()
    }

    pub(super) fn fail(self, status: u16, reason: String) -> Stage {
        match self.fill.and_then(|fill| fill.failed()) {
            Some(response) => Stage::WriteStored(self.request, response),
            None => Stage::Refuse(Some(self.request), status, reason),
        }
    }
}
