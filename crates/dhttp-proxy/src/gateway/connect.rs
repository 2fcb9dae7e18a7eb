//! Choice of a server's channel: DHTTP, a pooled connection, or a new one (`pool`).

use std::io::Write;
use std::sync::Arc;

use http1::message::Framing;

use super::dhttp_request::dhttp_client;
use super::pool::connect;
use super::stage::{ClientRequest, Exchange, ExchangeEnd, Pipeline, Stage};
use super::upstream::Upstream;
use dhttp::counters::count_shared;

/// Returns the sentence for a client whose server has as many requests as it may.
pub(super) fn full(authority: &str) -> String {
    format!("too many requests to {authority} in progress; retry later")
}

impl Pipeline<'_> {
    /// Chooses the server's channel.
    pub(super) fn connect(&self, mut exchange: Box<Exchange>) -> Stage {
        if !exchange.lease_origin(self.shared) {
            count_shared(&self.shared.counters.origin_full);
            let reason = full(&exchange.forward.authority);
            exchange.request.keep_alive &= exchange.forward.framing == Framing::Length(0);
            return Stage::Fail(exchange, 503, reason);
        }
        if let Some(fill) = &exchange.fill {
            // With the cache's validators.
            exchange.forward.head = fill.request().clone();
        }
        match dhttp_client(self.shared, &exchange.forward) {
            Some(client) => Stage::SendDhttp(exchange, client),
            None => self.connect_by_http(exchange, true),
        }
    }

    /// Takes a pooled connection if there is one and `may_be_used` is set, or opens a new one.
    pub(super) fn connect_by_http(&self, mut exchange: Box<Exchange>, may_be_used: bool) -> Stage {
        match Upstream::open(self.shared, &exchange.forward, may_be_used, self.abort) {
            Ok(server) => {
                if server.is_used {
                    count_shared(&self.shared.counters.reused);
                }
                Stage::Send(exchange, Box::new(server))
            }
            Err((status, reason)) => {
                exchange.request.keep_alive &= exchange.forward.framing == Framing::Length(0);
                Stage::Fail(exchange, status, reason)
            }
        }
    }

    /// Connects a tunnel, and sends the bytes behind the client's request.
    pub(super) fn connect_tunnel(&self, request: ClientRequest, host: &str, port: u16) -> Stage {
        let server = match connect(host, port, self.shared, self.abort) {
            // The handle has the only other reference.
            Ok(server) if self.abort.release() => server,
            Ok(_) => return Stage::End(ExchangeEnd::Broken),
            Err((status, reason)) => {
                return Stage::Refuse(Some(ClientRequest { keep_alive: false, ..request }), status, reason);
            }
        };
        count_shared(&self.shared.counters.tunnels);
        let Some(server) = Arc::into_inner(server) else { return Stage::End(ExchangeEnd::Broken) };
        let (mut client, mut first) = (self.stream(), &server);
        let written = client.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        Stage::End(match written.and_then(|()| first.write_all(self.incoming.unread())) {
            Ok(()) => ExchangeEnd::Tunnel(Box::new((server, request.head))),
            Err(_) => ExchangeEnd::Broken,
        })
    }
}
