//! The servers' end of HTTP/3: all connections of a server, from datagrams.

use core::net::SocketAddr;
use std::collections::{BTreeMap, VecDeque};

use http1::message::RequestHead;
use http1::server::Response;
use http3::{ConnectionId, Event, Recovery, ServerConfig, Unavailable};
use wire::Time;

use super::{Request, with_fields};

/// A request: its connection and stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Http3Request(ConnectionId, u64);

/// The QUIC connections of a server.
#[derive(Debug)]
pub struct Http3Server {
    endpoint: http3::Endpoint,
    /// Requests without a response.
    requests: BTreeMap<Http3Request, Request>,
    /// Requests that are complete.
    complete: VecDeque<(Http3Request, RequestHead)>,
    /// Connections that requests may use, and have not been counted.
    accepted: u64,
}

impl Http3Server {
    /// A server without connections.
    ///
    /// # Errors
    /// Why it cannot be.
    pub fn new(config: ServerConfig) -> Result<Self, Unavailable> {
        let endpoint = http3::Endpoint::server(config)?;
        Ok(Self { endpoint, requests: BTreeMap::new(), complete: VecDeque::new(), accepted: 0 })
    }

    /// Records the state of recovery from now on.
    pub fn record(&mut self) {
        self.endpoint.record();
    }

    /// Changes of recovery of all connections, in order.
    pub fn recoveries(&self) -> &[Recovery] {
        self.endpoint.recoveries()
    }

    /// Handles a datagram of a client.
    pub fn receive(&mut self, now: Time, from: SocketAddr, datagram: &[u8]) {
        let Self { endpoint, requests, complete, accepted } = self;
        endpoint.receive(now, from, datagram, &mut |event| note(event, requests, complete, accepted));
    }

    /// Handles what is due.
    pub fn expire(&mut self, now: Time) {
        let Self { endpoint, requests, complete, accepted } = self;
        endpoint.expire(now, &mut |event| note(event, requests, complete, accepted));
    }

    /// Takes the next complete request.
    pub fn next_request(&mut self) -> Option<(Http3Request, RequestHead)> {
        self.complete.pop_front()
    }

    /// Number of connections since the last call.
    pub fn take_accepted(&mut self) -> u64 {
        std::mem::take(&mut self.accepted)
    }

    /// Sends a response. A request that was aborted in the meantime needs none.
    pub fn respond(&mut self, id: Http3Request, response: &Response) {
        let Some(Request { head: _, priority }) = self.requests.remove(&id) else { return };
        let Http3Request(connection, stream) = id;
        with_fields(response, |fields, body| {
            self.endpoint.respond(connection, stream, fields, priority, body);
        });
    }

    /// Next datagram, and its destination.
    pub fn next_datagram(&mut self, now: Time) -> Option<(SocketAddr, Vec<u8>)> {
        self.endpoint.next_datagram(now)
    }

    /// Time of the next [`Http3Server::expire`].
    pub fn timeout(&self) -> Option<Time> {
        self.endpoint.timeout()
    }
}

fn note(
    event: Event<'_>,
    requests: &mut BTreeMap<Http3Request, Request>,
    complete: &mut VecDeque<(Http3Request, RequestHead)>,
    accepted: &mut u64,
) {
    match event {
        Event::Connected(_) => *accepted += 1,
        Event::Fields { connection, stream, fields } => {
            // Trailers say nothing about the request.
            requests.entry(Http3Request(connection, stream)).or_insert_with(|| Request::new(&fields));
        }
        Event::End { connection, stream } => {
            let id = Http3Request(connection, stream);
            if let Some(head) = requests.get_mut(&id).and_then(|request| request.head.take()) {
                complete.push_back((id, head));
            }
        }
        Event::Reset { connection, stream, code: _ } => {
            requests.remove(&Http3Request(connection, stream));
        }
        Event::Closed(connection, _) => requests.retain(|Http3Request(other, _), _| *other != connection),
        Event::Data { .. } | Event::Leaving(_) => {}
    }
}
