//! HTTP/2 over connections of the client's own: one for each group of origins that share an address and a certificate. While none is
//! open, a browser opens more, and closes them when it has one.
//!
//! Origins that do not offer HTTP/2 are left to HTTP/1.1 over several connections. Requests that no server has processed are
//! retried.
//!
//! ```text
//! Connected, Received, EndOfStream, Broken -> handle -> Open, Send, Close; Sent, Head, Bytes, Done, Failed
//! ```

pub(super) mod message;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use http1::message::{PeerFault, ResponseHead};
use http2::Event;
use http2::endpoint::{CANCEL, REFUSED_STREAM};
use wire::Time;

use super::backup::Backups;
use super::connections::{Connections, ToOrigin};
use super::http1::Http1;
use super::pending::{PendingRequests, QueuedRequest};
use super::{
    ConnectionId, Ending, Endpoint, FromTransport, FromWire, Outcome, Progress, RequestId, ToTransport, Wire,
};
use crate::browser::Browser;
use crate::plan::Http1Config;
use crate::report::{Break, Failure};
use crate::web::WebConfig;

/// State of the transport.
#[derive(Debug)]
pub(crate) struct Http2 {
    config: WebConfig,
    /// Requests to origins without HTTP/2.
    http1: Http1,
    pending: PendingRequests,
    connections: Connections<ConnectionId, Connection>,
    backups: Backups,
    /// The browser whose policy decides on connections, if any.
    browser: Option<Browser>,
    /// Number of connections opened so far.
    pub(super) opened: u32,
    closes_idle: bool,
    /// Origins to which a connection is to be opened without a request, if there is none.
    preconnects: Vec<Endpoint>,
    /// Whether a waiting request may have found a connection since the last [`Http2::settle`].
    is_changed: bool,
    /// Connections that may have something to send.
    touched: BTreeSet<ConnectionId>,
    outcomes: VecDeque<Outcome>,
}

/// A connection, and the requests that it carries.
#[derive(Debug)]
struct Connection {
    origin: Endpoint,
    is_open: bool,
    /// Whether the server takes no more requests on it.
    is_leaving: bool,
    /// Whether it could not take a request.
    is_full: bool,
    endpoint: http2::Endpoint,
    exchanges: BTreeMap<u32, Exchange>,
}

impl ToOrigin for Connection {
    fn origin(&self) -> Endpoint {
        self.origin
    }
}

/// A request, and whether its response has begun.
#[derive(Clone, Copy, Debug)]
struct Exchange {
    request: RequestId,
    wants_content: bool,
    has_response: bool,
}

/// An event of a connection that concerns one of its requests.
enum StreamEvent {
    Head(u32, Option<ResponseHead>, bool),
    Body(u32, u64, Vec<u8>, bool),
    Reset(u32, u32),
    Leaving(u32),
}

impl Http2 {
    pub(crate) const fn new(config: WebConfig, http1: Http1Config) -> Self {
        Self {
            config,
            browser: http1.browser,
            http1: Http1::new(http1),
            pending: PendingRequests::new(http1.tries),
            connections: Connections::new(),
            backups: Backups::new(),
            opened: 0,
            closes_idle: false,
            preconnects: Vec::new(),
            is_changed: false,
            touched: BTreeSet::new(),
            outcomes: VecDeque::new(),
        }
    }

    /// Handles input from the policy.
    pub(crate) fn request(&mut self, input: ToTransport) {
        self.is_changed = true;
        match input {
            ToTransport::Send(request) if !self.config.has_http2(request.origin) => {
                self.http1.request(ToTransport::Send(request));
            }
            ToTransport::Send(request) => self.pending.add(request),
            ToTransport::Preconnect(origin) if !self.config.has_http2(origin) => {
                self.http1.request(ToTransport::Preconnect(origin));
            }
            ToTransport::Preconnect(origin) => self.preconnects.push(self.config.endpoint(origin)),
            ToTransport::Cancel(id) => {
                self.cancel(id);
                self.http1.request(ToTransport::Cancel(id));
            }
            ToTransport::CloseIdle => {
                self.closes_idle = true;
                self.http1.request(ToTransport::CloseIdle);
            }
            ToTransport::Abort => {
                self.pending.clear();
                for id in self.connections.clear() {
                    self.wire(Wire::Close(id, Ending::Reset));
                }
                self.http1.request(ToTransport::Abort);
            }
        }
    }

    /// Handles input from the network.
    pub(crate) fn handle(&mut self, now: Time, input: FromWire<'_>) {
        let id = match input {
            FromWire::Connected(id)
            | FromWire::Received(id, _)
            | FromWire::EndOfStream(id)
            | FromWire::Broken(id, _) => id,
            // It listens nowhere.
            FromWire::Accepted(..) | FromWire::Datagram(..) | FromWire::Unreachable(_) => return,
        };
        if !self.connections.contains(id) {
            return self.http1.handle(now, input);
        }
        self.touched.insert(id);
        match input {
            FromWire::Connected(_) => self.connected(id),
            FromWire::Received(_, bytes) => self.receive(id, bytes),
            FromWire::EndOfStream(_) => {
                self.wire(Wire::Close(id, Ending::Fin));
                self.lose(id, Failure::Unanswered);
            }
            FromWire::Broken(_, cause) => self.lose(id, Failure::Broken(cause)),
            FromWire::Accepted(..) | FromWire::Datagram(..) | FromWire::Unreachable(_) => {}
        }
    }

    /// Next queued output.
    pub(crate) fn take(&mut self) -> Option<Outcome> {
        self.outcomes.pop_front().or_else(|| self.http1.take())
    }

    /// Assigns waiting requests, and sends what can be sent.
    pub(crate) fn settle(&mut self, now: Time) {
        let is_due = self.backups.next().is_some_and(|due| due <= now);
        let is_changed = std::mem::take(&mut self.is_changed);
        if is_changed || is_due {
            self.open_backups(now);
            for origin in std::mem::take(&mut self.preconnects) {
                self.connection_to(now, origin, 0);
            }
            self.assign(now);
        }
        if is_changed || !self.touched.is_empty() {
            self.advance();
        }
        // Both count connections together.
        self.http1.opened = self.opened;
        self.http1.settle(now);
        self.opened = self.http1.opened;
    }

    fn advance(&mut self) {
        for id in std::mem::take(&mut self.touched) {
            let Some(connection) = self.connections.get_mut(id).filter(|connection| connection.is_open)
            else {
                continue;
            };
            while let Some(bytes) = connection.endpoint.next_write() {
                self.outcomes.push_back(Outcome::Wire(Wire::Send(id, bytes)));
            }
        }
        if std::mem::take(&mut self.closes_idle) {
            for id in self.connections.retain(|connection| !connection.exchanges.is_empty()) {
                self.wire(Wire::Close(id, Ending::Fin));
            }
        }
    }

    pub(crate) fn poll(&self) -> Progress {
        match self.http1.poll() {
            Progress::Timeout(http1) => Progress::Timeout(http1.into_iter().chain(self.backups.next()).min()),
            Progress::Some => Progress::Some,
        }
    }

    /// Whether no request and no connection is left.
    pub(crate) fn is_idle(&self) -> bool {
        let is_empty = self.pending.is_empty() && self.connections.is_empty() && self.outcomes.is_empty();
        is_empty && self.http1.is_idle()
    }

    fn event(&mut self, event: FromTransport) {
        self.outcomes.push_back(Outcome::Event(event));
    }

    fn wire(&mut self, wire: Wire) {
        self.outcomes.push_back(Outcome::Wire(wire));
    }

    /// Passes waiting requests to their connections, which are opened where there are none.
    fn assign(&mut self, now: Time) {
        // Of each server, the number of requests that found no connection.
        let mut waiting = vec![0; self.config.origins.len()];
        let max = self.browser.map_or(1, |browser| browser.connections_per_origin);
        let mut place = 0;
        while let Some(QueuedRequest { id, origin, .. }) = self.pending.waiting(place) {
            let origin = self.config.endpoint(origin);
            let Some(waiting) = waiting.get_mut(origin) else { break };
            if *waiting >= max {
                // No more connections are opened for it, and none could take a request.
                place += 1;
                continue;
            }
            let carrier = self.connection_to(now, origin, *waiting);
            if carrier.is_some_and(|carrier| self.begin(carrier, id)) {
                self.pending.sent(place);
            } else {
                *waiting += 1;
                place += 1;
            }
        }
    }

    /// Sends a request on this connection, if it can take it.
    fn begin(&mut self, carrier: ConnectionId, id: RequestId) -> bool {
        let Some(connection) = self.connections.get_mut(carrier).filter(|connection| connection.is_open)
        else {
            return false;
        };
        let Some(request) = self.pending.get(id) else { return false };
        let Some(stream) = message::send(&mut connection.endpoint, request, &self.config) else {
            connection.is_full = true;
            return false;
        };
        self.touched.insert(carrier);
        let wants_content = request.wants_content;
        connection.exchanges.insert(stream, Exchange { request: id, wants_content, has_response: false });
        self.event(FromTransport::Sent(id, carrier));
        true
    }

    /// The open connection to this origin, for a request that comes after so many waiting ones. Where none is open, a browser opens one
    /// for each request that waits, and by some a second with the first of a visit: it does not know that the server speaks HTTP/2
    /// (Chromium, net/http/http_stream_factory_job.cc). The first that is open carries all.
    fn connection_to(&mut self, now: Time, origin: Endpoint, waiting: usize) -> Option<ConnectionId> {
        let usable = || self.connections.to(origin).filter(|(_, connection)| !connection.is_leaving);
        if let Some((id, _)) = usable().find(|(_, connection)| connection.is_open) {
            return Some(id);
        }
        let wanted = match self.browser {
            None => 1,
            Some(browser) if self.opened == 0 && browser.opens_second => 2,
            Some(browser) => browser.connections_per_origin.min(waiting + 1),
        };
        let opening = usable().count();
        if opening == 0 {
            self.backups.begin(now, origin, self.browser.map(|browser| browser.backup_after));
        }
        for _ in opening..wanted {
            self.open(origin);
        }
        None
    }

    fn open(&mut self, origin: Endpoint) {
        let id = ConnectionId(self.opened);
        self.opened += 1;
        let endpoint = http2::Endpoint::client(self.config.profile);
        let connection = Connection {
            origin,
            is_open: false,
            is_leaving: false,
            is_full: false,
            endpoint,
            exchanges: BTreeMap::new(),
        };
        self.connections.insert(id, connection);
        self.wire(Wire::Open(id, origin));
    }

    /// Opens another connection to each origin whose first one has taken too long.
    fn open_backups(&mut self, now: Time) {
        let max = self.browser.map_or(1, |browser| browser.connections_per_origin);
        let Self { connections, backups, pending, config, .. } = self;
        let count = |origin| connections.to(origin).count();
        let is_opening =
            |origin| count(origin) > 0 && connections.to(origin).all(|(_, connection)| !connection.is_open);
        let mut due = backups.take_due(now, is_opening);
        due.retain(|origin| {
            count(*origin) < max && pending.waits_for(|other| config.endpoint(other) == *origin)
        });
        due.into_iter().for_each(|origin| self.open(origin));
    }

    /// Notes an open connection. Another one to its origin is not needed.
    fn connected(&mut self, id: ConnectionId) {
        self.is_changed = true;
        let Some(origin) = self.connections.get(id).map(|connection| connection.origin) else { return };
        let is_ready = |connection: &Connection| connection.is_open && !connection.is_leaving;
        if self.connections.to(origin).any(|(_, connection)| is_ready(connection)) {
            self.connections.remove(id);
            self.wire(Wire::Close(id, Ending::Fin));
        } else if let Some(connection) = self.connections.get_mut(id) {
            connection.is_open = true;
        }
    }

    /// Handles received bytes.
    fn receive(&mut self, id: ConnectionId, bytes: &[u8]) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let Connection { endpoint, exchanges, is_full, .. } = connection;
        self.is_changed |= *is_full;
        let mut events = Vec::new();
        let result = endpoint.receive(bytes, &mut |event| {
            events.push(match event {
                Event::Fields { stream, fields, ends } => {
                    StreamEvent::Head(stream, message::response_head(&fields), ends)
                }
                Event::Data { stream, bytes, ends } => {
                    let is_wanted = exchanges.get(&stream).is_some_and(|exchange| exchange.wants_content);
                    let content = if is_wanted { bytes.to_vec() } else { Vec::new() };
                    StreamEvent::Body(stream, bytes.len() as u64, content, ends)
                }
                Event::Reset { stream, code } => StreamEvent::Reset(stream, code),
                Event::GoAway { last } => StreamEvent::Leaving(last),
            });
        });
        for event in events {
            self.stream_event(id, event);
        }
        if result.is_err() {
            self.wire(Wire::Close(id, Ending::Reset));
            self.lose(id, Failure::Fault(PeerFault::Unsolicited));
        }
    }

    fn stream_event(&mut self, id: ConnectionId, event: StreamEvent) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        match event {
            StreamEvent::Head(stream, head, ends) => {
                let Some(exchange) = connection.exchanges.get_mut(&stream) else { return };
                exchange.has_response = true;
                let request = exchange.request;
                // Trailers and interim responses say nothing about the object.
                if let Some(head) = head.filter(|head| !head.is_interim()) {
                    self.event(FromTransport::Head(request, head));
                }
                if ends {
                    self.done(id, stream);
                }
            }
            StreamEvent::Body(stream, count, content, ends) => {
                let Some(exchange) = connection.exchanges.get(&stream) else { return };
                let request = exchange.request;
                if count > 0 {
                    self.event(FromTransport::Bytes(request, count, content));
                }
                if ends {
                    self.done(id, stream);
                }
            }
            StreamEvent::Reset(stream, code) => {
                let Some(exchange) = connection.exchanges.remove(&stream) else { return };
                let was_refused = code == REFUSED_STREAM;
                self.retry(exchange, was_refused, Failure::Broken(Break::Reset));
            }
            StreamEvent::Leaving(last) => {
                connection.is_leaving = true;
                self.is_changed = true;
                for (_, exchange) in connection.exchanges.split_off(&(last + 1)) {
                    self.retry(exchange, true, Failure::Unanswered);
                }
            }
        }
    }

    fn done(&mut self, id: ConnectionId, stream: u32) {
        let exchanges = self.connections.get_mut(id).map(|connection| &mut connection.exchanges);
        if let Some(exchange) = exchanges.and_then(|exchanges| exchanges.remove(&stream)) {
            self.pending.end(exchange.request);
            self.event(FromTransport::Done(exchange.request));
        }
    }

    /// Retries a request where allowed; else it has failed. One that was not processed may always be retried.
    fn retry(&mut self, exchange: Exchange, was_refused: bool, failure: Failure) {
        self.is_changed = true;
        let Exchange { request, wants_content: _, has_response } = exchange;
        if self.pending.retry(request, has_response, was_refused) {
            self.event(FromTransport::Failed(request, failure));
        }
    }

    /// Handles a closed connection. Requests that wait for one that could not be opened have failed with it.
    fn lose(&mut self, id: ConnectionId, failure: Failure) {
        let Some(connection) = self.connections.remove(id) else { return };
        self.is_changed = true;
        for (_, exchange) in connection.exchanges {
            self.retry(exchange, false, failure);
        }
        let has_other = self.connections.to(connection.origin).any(|(_, other)| !other.is_leaving);
        if connection.is_open || has_other {
            return;
        }
        let failed = self.pending.fail_waiting(|origin| self.config.endpoint(origin) == connection.origin);
        failed.into_iter().for_each(|request| self.event(FromTransport::Failed(request, failure)));
    }

    fn cancel(&mut self, id: RequestId) {
        self.pending.cancel(id);
        for (number, connection) in self.connections.iter_mut() {
            let stream = connection.exchanges.iter().find(|(_, exchange)| exchange.request == id);
            if let Some(stream) = stream.map(|(stream, _)| *stream) {
                connection.exchanges.remove(&stream);
                connection.endpoint.reset(stream, CANCEL);
                self.touched.insert(number);
            }
        }
    }
}
