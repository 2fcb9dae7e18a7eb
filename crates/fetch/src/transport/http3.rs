//! HTTP/3: a QUIC connection for each group of origins that share an address and a certificate.
//!
//! Origins that do not offer HTTP/3 are left to HTTP/2. So are the requests to those that have not named it yet, and those that
//! come while their QUIC connection opens beside the first ([`Discovery::AltSvc`]). Requests that no server has processed are
//! retried.
//!
//! ```text
//! Datagram, timers -> handle, poll -> Datagram; Sent, Head, Bytes, Done, Failed
//! ```

use core::net::SocketAddr;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ::http3::{CloseReason, Event, REQUEST_REJECTED, Recovery};
use http1::message::{PeerFault, ResponseHead};
use wire::{Seed, Time};

use super::connections::{Connections, ToOrigin};
use super::http2::{Http2, message};
use super::pending::{PendingRequests, QueuedRequest};
use super::{
    ConnectionId, Endpoint, FromTransport, FromWire, Outcome, Progress, RequestId, ToTransport, Wire,
};
use crate::plan::{Discovery, Plan, PlanError};
use crate::report::{Break, Failure};
use crate::web::{Http3Config, WebConfig};

/// State of the transport.
#[derive(Debug)]
pub(crate) struct Http3 {
    config: WebConfig,
    discovery: Discovery,
    names: Vec<String>,
    /// Requests that HTTP/2 or HTTP/1.1 carries.
    http2: Http2,
    /// Origins of those of them that may name HTTP/3.
    unnamed: BTreeMap<RequestId, Endpoint>,
    /// Origins that are known to speak HTTP/3.
    known: BTreeSet<Endpoint>,
    /// Those of them to which a connection is wanted before a request uses it.
    wanted: BTreeSet<Endpoint>,
    quic: ::http3::Endpoint,
    pending: PendingRequests,
    connections: Connections<::http3::ConnectionId, Connection>,
    opened: u32,
    closes_idle: bool,
    /// Whether connections or requests may have changed since the last [`Http3::settle`].
    is_changed: bool,
    /// Next timer of QUIC, as of then.
    timer: Option<Time>,
    outcomes: VecDeque<Outcome>,
}

/// A connection, and the requests that it carries.
#[derive(Debug)]
struct Connection {
    id: ConnectionId,
    origin: Endpoint,
    is_open: bool,
    /// Whether the server takes no more requests on it.
    is_leaving: bool,
    exchanges: BTreeMap<u64, Exchange>,
}

/// A request, and whether its response has begun.
#[derive(Clone, Copy, Debug)]
struct Exchange {
    request: RequestId,
    has_response: bool,
}

/// An event that outlives its bytes.
enum QuicEvent {
    Connected,
    Head(u64, Option<ResponseHead>),
    Body(u64, u64, Vec<u8>),
    End(u64),
    Reset(u64, u64),
    Leaving,
    Closed(CloseReason),
}

impl Http3 {
    pub(crate) fn new(config: WebConfig, plan: &Plan) -> Result<Self, PlanError> {
        let http3 = config.http3.ok_or(PlanError::Http3(None))?;
        let Http3Config { discovery, client: profile, server, handshake, max_datagram, seed } = http3;
        let seed = Seed::new(seed.stream("quic-client", 0).next_u64());
        let client = ::http3::ClientConfig { profile, server, handshake, max_datagram, seed };
        let quic = ::http3::Endpoint::client(client).map_err(|reason| PlanError::Http3(Some(reason)))?;
        Ok(Self {
            http2: Http2::new(config.clone(), plan.http1()),
            config,
            discovery,
            names: plan.origins.clone(),
            unnamed: BTreeMap::new(),
            known: BTreeSet::new(),
            wanted: BTreeSet::new(),
            quic,
            pending: PendingRequests::new(plan.http1().tries),
            connections: Connections::new(),
            opened: 0,
            closes_idle: false,
            is_changed: false,
            timer: None,
            outcomes: VecDeque::new(),
        })
    }

    /// Records the state of recovery from now on.
    pub(crate) fn record(&mut self) {
        self.quic.record();
    }

    /// Changes of recovery and their servers, in order.
    pub(crate) fn recoveries(&self) -> impl Iterator<Item = (Endpoint, Recovery)> {
        self.quic.recoveries().iter().map(|recovery| (origin(recovery.peer), *recovery))
    }

    /// Handles input from the policy.
    pub(crate) fn request(&mut self, input: ToTransport) {
        self.is_changed = true;
        match input {
            ToTransport::Send(request) => {
                let id = request.id;
                let Some(origin) = self.carrier(request.origin) else {
                    if let Some(origin) = self.config.http3_endpoint(request.origin) {
                        self.unnamed.insert(id, origin);
                    }
                    return self.http2.request(ToTransport::Send(request));
                };
                let is_ready = self.connections.to(origin).any(|(_, connection)| connection.is_ready());
                if self.discovery == Discovery::AltSvc && !is_ready {
                    self.wanted.insert(origin);
                    return self.http2.request(ToTransport::Send(request));
                }
                self.pending.add(request);
            }
            ToTransport::Preconnect(origin) => match self.carrier(origin) {
                Some(origin) => self.wanted.extend([origin]),
                None => self.http2.request(ToTransport::Preconnect(origin)),
            },
            ToTransport::Cancel(id) => {
                self.cancel(id);
                self.http2.request(ToTransport::Cancel(id));
            }
            ToTransport::CloseIdle => {
                self.closes_idle = true;
                self.http2.request(ToTransport::CloseIdle);
            }
            ToTransport::Abort => {
                self.pending.clear();
                self.connections.values_mut().for_each(|connection| connection.exchanges.clear());
                self.closes_idle = true;
                self.http2.request(ToTransport::Abort);
            }
        }
    }

    /// The origin whose QUIC connections serve this one, if it is known to have them.
    fn carrier(&self, origin: Endpoint) -> Option<Endpoint> {
        let origin = self.config.http3_endpoint(origin)?;
        match self.discovery {
            Discovery::Known => Some(origin),
            Discovery::AltSvc => self.known.contains(&origin).then_some(origin),
        }
    }

    /// Handles input from the network.
    pub(crate) fn handle(&mut self, now: Time, input: FromWire<'_>) {
        match input {
            FromWire::Datagram(origin, datagram) => {
                self.is_changed = true;
                let mut events = Vec::new();
                self.quic.receive(now, address(origin), datagram, &mut |event| {
                    events.extend(keep(event, &self.connections, &self.pending));
                });
                self.process(events);
            }
            FromWire::Unreachable(origin) => {
                self.is_changed = true;
                let lost: Vec<_> = self.connections.to(origin).map(|(id, _)| id).collect();
                for id in lost {
                    self.lose(id, Failure::Broken(Break::Unreachable));
                }
            }
            FromWire::Connected(_)
            | FromWire::Received(..)
            | FromWire::EndOfStream(_)
            | FromWire::Broken(..)
            | FromWire::Accepted(..) => self.http2.handle(now, input),
        }
    }

    fn process(&mut self, events: Vec<(::http3::ConnectionId, QuicEvent)>) {
        for (id, event) in events {
            self.quic_event(id, event);
        }
    }

    /// Next queued output.
    pub(crate) fn take(&mut self) -> Option<Outcome> {
        if let Some(outcome) = self.outcomes.pop_front() {
            return Some(outcome);
        }
        let outcome = self.http2.take()?;
        match &outcome {
            // A response whose host offers HTTP/3 names it.
            Outcome::Event(FromTransport::Head(request, _)) => {
                self.known.extend(self.unnamed.get(request).copied());
            }
            Outcome::Event(FromTransport::Done(request) | FromTransport::Failed(request, _)) => {
                self.unnamed.remove(request);
            }
            Outcome::Event(FromTransport::Sent(..) | FromTransport::Bytes(..) | FromTransport::Fault(..))
            | Outcome::Wire(_) => {}
        }
        Some(outcome)
    }

    /// Assigns waiting requests, and sends what can be sent.
    pub(crate) fn settle(&mut self, now: Time) {
        // Paced datagrams leave when a timer is due.
        if std::mem::take(&mut self.is_changed) || self.timer.is_some_and(|timer| timer <= now) {
            self.advance(now);
            self.timer = self.quic.timeout();
        }
        // Both count connections together.
        self.http2.opened = self.opened;
        self.http2.settle(now);
        self.opened = self.http2.opened;
    }

    fn advance(&mut self, now: Time) {
        for origin in std::mem::take(&mut self.wanted) {
            self.connection_to(now, origin);
        }
        self.assign(now);
        if std::mem::take(&mut self.closes_idle) {
            for id in self.connections.retain(|connection| !connection.exchanges.is_empty()) {
                self.quic.close(now, id);
            }
        }
        while let Some((to, datagram)) = self.quic.next_datagram(now) {
            self.outcomes.push_back(Outcome::Wire(Wire::Datagram(origin(to), datagram)));
        }
    }

    /// Handles what is due.
    pub(crate) fn poll(&mut self, now: Time) -> Progress {
        let until = if self.is_changed { self.quic.timeout() } else { self.timer };
        if until.is_some_and(|until| until <= now) {
            let mut events = Vec::new();
            self.quic.expire(now, &mut |event| events.extend(keep(event, &self.connections, &self.pending)));
            self.process(events);
            self.is_changed = true;
            return Progress::Some;
        }
        match self.http2.poll() {
            Progress::Some => Progress::Some,
            Progress::Timeout(other) => Progress::Timeout(until.into_iter().chain(other).min()),
        }
    }

    /// Whether no request and no connection is left.
    pub(crate) fn is_idle(&self) -> bool {
        let is_empty = self.pending.is_empty() && self.connections.is_empty() && self.outcomes.is_empty();
        is_empty && self.http2.is_idle()
    }

    fn event(&mut self, event: FromTransport) {
        self.outcomes.push_back(Outcome::Event(event));
    }

    /// Passes waiting requests to their connections, which are opened where there are none.
    fn assign(&mut self, now: Time) {
        // Servers whose connections take no request now.
        let mut busy = BTreeSet::new();
        let mut place = 0;
        while let Some(QueuedRequest { id, origin, .. }) = self.pending.waiting(place) {
            let Some(origin) = self.config.http3_endpoint(origin) else { break };
            if busy.contains(&origin) {
                place += 1;
                continue;
            }
            let carrier = self.connection_to(now, origin);
            match carrier.is_some_and(|carrier| self.begin(carrier, id)) {
                true => self.pending.sent(place),
                false => {
                    busy.insert(origin);
                    place += 1;
                }
            }
        }
    }

    /// Sends a request on this connection, if it can take it.
    fn begin(&mut self, carrier: ::http3::ConnectionId, id: RequestId) -> bool {
        let Some(connection) = self.connections.get_mut(carrier).filter(|connection| connection.is_open)
        else {
            return false;
        };
        let Some(request) = self.pending.get(id) else { return false };
        let quic = &mut self.quic;
        let stream = message::with_fields(request, &self.config, |fields, priority, body| {
            quic.request(carrier, fields, priority, body)
        });
        let Some(stream) = stream else { return false };
        connection.exchanges.insert(stream, Exchange { request: id, has_response: false });
        let number = connection.id;
        self.event(FromTransport::Sent(id, number));
        true
    }

    /// The connection to this origin; a new one if there is none.
    fn connection_to(&mut self, now: Time, origin: Endpoint) -> Option<::http3::ConnectionId> {
        if let Some((id, _)) = self.connections.to(origin).find(|(_, connection)| !connection.is_leaving) {
            return Some(id);
        }
        let name = self.names.get(origin).map_or("", String::as_str);
        let carrier = self.quic.connect(now, address(origin), name)?;
        let id = ConnectionId(self.opened);
        self.opened += 1;
        let is_open = self.quic.can_request(carrier);
        let exchanges = BTreeMap::new();
        self.connections.insert(carrier, Connection { id, origin, is_open, is_leaving: false, exchanges });
        Some(carrier)
    }

    fn quic_event(&mut self, id: ::http3::ConnectionId, event: QuicEvent) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        match event {
            QuicEvent::Connected => connection.is_open = true,
            QuicEvent::Head(stream, head) => {
                let Some(exchange) = connection.exchanges.get_mut(&stream) else { return };
                exchange.has_response = true;
                let request = exchange.request;
                // Trailers and interim responses say nothing about the object.
                if let Some(head) = head.filter(|head| !head.is_interim()) {
                    self.event(FromTransport::Head(request, head));
                }
            }
            QuicEvent::Body(stream, count, content) => {
                if let Some(exchange) = connection.exchanges.get(&stream).copied() {
                    self.event(FromTransport::Bytes(exchange.request, count, content));
                }
            }
            QuicEvent::End(stream) => {
                if let Some(exchange) = connection.exchanges.remove(&stream) {
                    self.pending.end(exchange.request);
                    self.event(FromTransport::Done(exchange.request));
                }
            }
            QuicEvent::Reset(stream, code) => {
                if let Some(exchange) = connection.exchanges.remove(&stream) {
                    self.retry(exchange, code == REQUEST_REJECTED, Failure::Broken(Break::Reset));
                }
            }
            QuicEvent::Leaving => connection.is_leaving = true,
            QuicEvent::Closed(CloseReason::Peer) => self.lose(id, Failure::Unanswered),
            QuicEvent::Closed(CloseReason::TimedOut) => self.lose(id, Failure::Broken(Break::Unreachable)),
            QuicEvent::Closed(CloseReason::Fault) => self.lose(id, Failure::Fault(PeerFault::Unsolicited)),
        }
    }

    /// Retries a request where allowed; else it has failed. One that was not processed may always be retried.
    fn retry(&mut self, exchange: Exchange, was_refused: bool, failure: Failure) {
        let Exchange { request, has_response } = exchange;
        if self.pending.retry(request, has_response, was_refused) {
            self.event(FromTransport::Failed(request, failure));
        }
    }

    /// Handles a closed connection. Requests that wait for one that could not be opened have failed with it.
    fn lose(&mut self, id: ::http3::ConnectionId, failure: Failure) {
        let Some(connection) = self.connections.remove(id) else { return };
        for (_, exchange) in connection.exchanges {
            self.retry(exchange, false, failure);
        }
        if connection.is_open {
            return;
        }
        let failed =
            self.pending.fail_waiting(|origin| self.config.http3_endpoint(origin) == Some(connection.origin));
        failed.into_iter().for_each(|request| self.event(FromTransport::Failed(request, failure)));
    }

    fn cancel(&mut self, id: RequestId) {
        self.pending.cancel(id);
        for (carrier, connection) in self.connections.iter_mut() {
            let stream = connection.exchanges.iter().find(|(_, exchange)| exchange.request == id);
            if let Some(stream) = stream.map(|(stream, _)| *stream) {
                connection.exchanges.remove(&stream);
                self.quic.reset(carrier, stream);
            }
        }
    }
}

impl Connection {
    /// Whether a request may leave on it now.
    const fn is_ready(&self) -> bool {
        self.is_open && !self.is_leaving
    }
}

impl ToOrigin for Connection {
    fn origin(&self) -> Endpoint {
        self.origin
    }
}

/// An event without what it borrows: contents of responses that want none are counted.
fn keep(
    event: Event<'_>,
    connections: &Connections<::http3::ConnectionId, Connection>,
    pending: &PendingRequests,
) -> Option<(::http3::ConnectionId, QuicEvent)> {
    Some(match event {
        Event::Connected(id) => (id, QuicEvent::Connected),
        Event::Fields { connection, stream, fields } => {
            (connection, QuicEvent::Head(stream, message::response_head(&fields)))
        }
        Event::Data { connection, stream, bytes } => {
            let exchange = connections.get(connection)?.exchanges.get(&stream)?;
            let wants = pending.get(exchange.request)?.wants_content;
            let content = if wants { bytes.to_vec() } else { Vec::new() };
            (connection, QuicEvent::Body(stream, bytes.len() as u64, content))
        }
        Event::End { connection, stream } => (connection, QuicEvent::End(stream)),
        Event::Reset { connection, stream, code } => (connection, QuicEvent::Reset(stream, code)),
        Event::Leaving(id) => (id, QuicEvent::Leaving),
        Event::Closed(id, reason) => (id, QuicEvent::Closed(reason)),
    })
}

/// Address by which QUIC knows a server; the driver has the real one.
fn address(origin: Endpoint) -> SocketAddr {
    let [_, a, b, c] = u32::try_from(origin).unwrap_or(u32::MAX).to_be_bytes();
    SocketAddr::from(([10, a, b, c], PORT))
}

/// The server of an address.
fn origin(address: SocketAddr) -> Endpoint {
    match address {
        SocketAddr::V4(address) => {
            let [_, a, b, c] = address.ip().octets();
            u32::from_be_bytes([0, a, b, c]) as usize
        }
        SocketAddr::V6(_) => 0,
    }
}

const PORT: u16 = 443;
