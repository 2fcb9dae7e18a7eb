//! HTTP/1 over connections of the client's own, by the plan's connection policy.
//!
//! Requests wait here until a connection to their origin has capacity. Those that no server has processed are retried.
//!
//! ```text
//! Connected, Received, EndOfStream, Broken -> handle -> Open, Send, Close; Sent, Head, Bytes, Done, Failed
//! ```

mod connection;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use http1::message::{Method, PeerFault};
use page::Priority;
use wire::Time;

use super::backup::Backups;
use super::{
    ConnectionId, Ending, Endpoint, FromTransport, FromWire, Outcome, Progress, Request, RequestId,
    ToTransport, Wire,
};
use crate::pipelining::Flush;
use crate::plan::Http1Config;
use crate::report::Failure;
use crate::web::Browser;
use connection::{Arrival, Connection, Orphan};

/// State of the transport.
#[derive(Debug)]
pub(crate) struct Http1 {
    config: Http1Config,
    /// Requests that have not ended.
    requests: BTreeMap<RequestId, PendingRequest>,
    /// Requests that wait for a connection: by priority, and in order within one.
    queue: VecDeque<RequestId>,
    connections: BTreeMap<ConnectionId, Connection>,
    backups: Backups,
    pub(super) opened: u32,
    /// Origins where the last connection that ended before its responses broke without announcing it.
    cautious: BTreeSet<Endpoint>,
    /// Whether unused connections are to be closed, once the queue is empty.
    closes_idle: bool,
    /// Whether connections or requests have changed since the last [`Http1::settle`]. Part of a body changes none.
    is_changed: bool,
    /// Next timer, as of then.
    timer: Option<Time>,
    outcomes: VecDeque<Outcome>,
}

/// A request that has not ended.
#[derive(Debug)]
struct PendingRequest {
    request: Request,
    /// Remaining number of tries.
    tries: u8,
    /// Whether it may leave once there is a connection.
    is_scheduled: bool,
}

impl PendingRequest {
    const fn new(request: Request, tries: u8) -> Self {
        Self { request, tries, is_scheduled: false }
    }
}

impl Http1 {
    pub(crate) const fn new(config: Http1Config) -> Self {
        Self {
            config,
            requests: BTreeMap::new(),
            queue: VecDeque::new(),
            connections: BTreeMap::new(),
            backups: Backups::new(),
            opened: 0,
            cautious: BTreeSet::new(),
            closes_idle: false,
            is_changed: false,
            timer: None,
            outcomes: VecDeque::new(),
        }
    }

    /// Handles input from the policy.
    pub(crate) fn request(&mut self, input: ToTransport) {
        self.is_changed = true;
        match input {
            ToTransport::Send(request) => {
                let id = request.id;
                self.requests.insert(id, PendingRequest::new(request, self.config.tries.get()));
                let place = self.queue.partition_point(|other| self.priority(*other) >= self.priority(id));
                self.queue.insert(place, id);
            }
            ToTransport::Cancel(id) => self.cancel(id),
            ToTransport::CloseIdle => self.closes_idle = true,
            ToTransport::Abort => {
                self.queue.clear();
                self.requests.clear();
                for (id, _) in std::mem::take(&mut self.connections) {
                    self.wire(Wire::Close(id, Ending::Reset));
                }
            }
        }
    }

    /// Sends a request on a connection of its own with this number, which the caller counts.
    pub(crate) fn request_on(&mut self, now: Time, id: ConnectionId, request: Request) {
        self.is_changed = true;
        let mut connection = Connection::new(&self.config, request.origin, false);
        connection.request(now, &request);
        self.wire(Wire::Open(id, request.origin));
        self.connections.insert(id, connection);
        self.requests.insert(request.id, PendingRequest::new(request, 0));
    }

    /// Forgets a connection and its requests; returns whether there was one.
    pub(crate) fn abort(&mut self, id: ConnectionId) -> bool {
        self.is_changed = true;
        let Some(connection) = self.connections.remove(&id) else { return false };
        for orphan in connection.into_orphans() {
            self.requests.remove(&orphan.request);
        }
        true
    }

    /// Server of a connection.
    pub(crate) fn origin(&self, id: ConnectionId) -> Option<Endpoint> {
        self.connections.get(&id).map(|connection| connection.origin)
    }

    /// Handles input from the network.
    pub(crate) fn handle(&mut self, now: Time, input: FromWire<'_>) {
        match input {
            FromWire::Connected(id) => {
                if let Some(connection) = self.connections.get_mut(&id) {
                    connection.open();
                    self.is_changed = true;
                }
            }
            FromWire::Received(id, bytes) => self.receive(now, id, bytes),
            FromWire::EndOfStream(id) => self.end_of_stream(now, id),
            FromWire::Broken(id, cause) => self.lose(id, Failure::Broken(cause)),
            // It listens nowhere.
            FromWire::Accepted(..) | FromWire::Datagram(..) | FromWire::Unreachable(_) => {}
        }
    }

    /// Next queued output.
    pub(crate) fn take(&mut self) -> Option<Outcome> {
        self.outcomes.pop_front()
    }

    /// Assigns waiting requests, sends what can be sent, and closes connections that are not needed any more.
    pub(crate) fn settle(&mut self, now: Time) {
        if !std::mem::take(&mut self.is_changed) && self.timer.is_none_or(|timer| now < timer) {
            return;
        }
        self.expire(now);
        self.open_backups(now);
        self.assign(now);
        if self.flush_policy() == Some(Flush::Idle) {
            self.connections.values_mut().for_each(Connection::flush);
        }
        self.send();
        if std::mem::take(&mut self.closes_idle) {
            self.close_idle();
        }
        self.timer = self.next_timer();
    }

    /// Next timer.
    pub(crate) fn poll(&self) -> Progress {
        Progress::Timeout(if self.is_changed { self.next_timer() } else { self.timer })
    }

    fn next_timer(&self) -> Option<Time> {
        let linger = self.config.linger;
        let times = self
            .connections
            .values()
            .flat_map(|connection| [connection.deadline(linger), connection.flush_time()])
            .flatten();
        times.chain(self.backups.next()).min()
    }

    /// Whether no request and no connection is left.
    pub(crate) fn is_idle(&self) -> bool {
        self.requests.is_empty() && self.connections.is_empty() && self.outcomes.is_empty()
    }

    fn priority(&self, id: RequestId) -> Priority {
        self.requests.get(&id).map_or(Priority::Lowest, |pending| pending.request.priority)
    }

    fn event(&mut self, event: FromTransport) {
        self.outcomes.push_back(Outcome::Event(event));
    }

    fn wire(&mut self, wire: Wire) {
        self.outcomes.push_back(Outcome::Wire(wire));
    }

    /// Ends a request. The connection that carries it cannot be used any more: its response would come first.
    fn cancel(&mut self, id: RequestId) {
        self.requests.remove(&id);
        self.queue.retain(|other| *other != id);
        let carrier = self.connections.iter().find(|(_, connection)| connection.carries(id));
        let Some(carrier) = carrier.map(|(carrier, _)| *carrier) else { return };
        self.wire(Wire::Close(carrier, Ending::Reset));
        if let Some(connection) = self.connections.remove(&carrier) {
            let others =
                connection.into_orphans().into_iter().filter(|orphan| orphan.request != id).collect();
            self.abandon(others);
        }
    }

    fn receive(&mut self, now: Time, id: ConnectionId, bytes: &[u8]) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let mut arrivals = Vec::new();
        let read = connection.receive(now, bytes, &mut arrivals);
        let abandoned = connection.take_abandoned();
        self.is_changed |= read.is_err() || !abandoned.is_empty();
        self.arrive(arrivals);
        self.abandon(abandoned);
        if let Err(fault) = read {
            self.wire(Wire::Close(id, Ending::Reset));
            self.lose(id, Failure::Fault(fault));
        }
    }

    fn end_of_stream(&mut self, now: Time, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let mut arrivals = Vec::new();
        let read = connection.end_of_stream(now, &mut arrivals);
        self.arrive(arrivals);
        self.wire(Wire::Close(id, Ending::Fin));
        self.lose(id, read.map_or_else(Failure::Fault, |()| Failure::Unanswered));
    }

    fn arrive(&mut self, arrivals: Vec<Arrival<'_>>) {
        for arrival in arrivals {
            self.is_changed |= !matches!(arrival, Arrival::Body(..));
            let event = match arrival {
                Arrival::Head(request, head) => FromTransport::Head(request, head),
                Arrival::Body(request, part, wants_content) => {
                    let content = if wants_content { part.to_vec() } else { Vec::new() };
                    FromTransport::Bytes(request, part.len() as u64, content)
                }
                Arrival::Complete(request) => {
                    self.requests.remove(&request);
                    FromTransport::Done(request)
                }
            };
            self.event(event);
        }
    }

    /// Handles a closed connection. Requests without a response are retried; a request whose response had
    /// begun has failed, because its effect on the server is unknown.
    fn lose(&mut self, id: ConnectionId, failure: Failure) {
        let Some(connection) = self.connections.remove(&id) else { return };
        self.is_changed = true;
        let origin = connection.origin;
        if self.config.browser.is_some() && connection.is_opening() {
            return self.note_unopened(origin, failure);
        }
        let orphans = connection.into_orphans();
        if !orphans.is_empty() {
            self.cautious.insert(origin);
        } else if let Failure::Fault(fault) = failure {
            self.fault(id, fault);
        }
        // The first request is the one that the server was processing when it ended.
        orphans.iter().skip(1).for_each(|orphan| self.add_try(orphan.request));
        self.retry(orphans, failure);
    }

    /// Handles a browser's connection that could not be opened: the first request that waits for it has one try less.
    fn note_unopened(&mut self, origin: Endpoint, failure: Failure) {
        let waiting = self.waiting(origin);
        let Some(&first) = waiting.first().filter(|_| self.opening(origin) < waiting.len()) else { return };
        if let Some(pending) = self.requests.get_mut(&first) {
            pending.tries = pending.tries.saturating_sub(1);
        }
        if !self.may_retry(first) {
            self.queue.retain(|id| *id != first);
            self.requests.remove(&first);
            self.event(FromTransport::Failed(first, failure));
        }
    }

    fn fault(&mut self, id: ConnectionId, fault: PeerFault) {
        self.event(FromTransport::Fault(id, fault));
    }

    /// Handles the server's announcement that it serves no more on this connection: it has not processed
    /// these requests.
    fn abandon(&mut self, orphans: Vec<Orphan>) {
        for orphan in &orphans {
            if let Some(pending) = self.requests.get(&orphan.request) {
                self.cautious.remove(&pending.request.origin);
            }
            self.add_try(orphan.request);
        }
        self.retry(orphans, Failure::Unanswered);
    }

    fn add_try(&mut self, request: RequestId) {
        if let Some(pending) = self.requests.get_mut(&request) {
            pending.tries += 1;
        }
    }

    /// Retries requests where allowed; the others have failed.
    fn retry(&mut self, orphans: Vec<Orphan>, failure: Failure) {
        let (retried, lost): (Vec<_>, Vec<_>) =
            orphans.into_iter().partition(|orphan| !orphan.has_response && self.may_retry(orphan.request));
        for orphan in retried.iter().rev() {
            let id = orphan.request;
            let place = self.queue.partition_point(|other| self.priority(*other) > self.priority(id));
            self.queue.insert(place, id);
        }
        for orphan in lost {
            let failure = match failure {
                Failure::Fault(_) if !orphan.has_response => Failure::Unanswered,
                failure => failure,
            };
            self.requests.remove(&orphan.request);
            self.event(FromTransport::Failed(orphan.request, failure));
        }
    }

    fn may_retry(&self, request: RequestId) -> bool {
        let pending = self.requests.get(&request);
        pending.is_some_and(|pending| pending.tries > 0 && pending.request.head.method.is_safe())
    }

    /// Assigns waiting requests to connections with capacity, or to new ones. A request waits for those before it to
    /// the same origin.
    fn assign(&mut self, now: Time) {
        let flush = self.flush_policy();
        // Of each origin, the number of requests that found no connection, or more than it can have.
        let mut waiting: BTreeMap<Endpoint, usize> = BTreeMap::new();
        let mut delayable = self.delayable_in_flight();
        let mut place = 0;
        while let Some(id) = self.queue.get(place).copied() {
            let Some(PendingRequest { request, is_scheduled, .. }) = self.requests.get_mut(&id) else {
                break;
            };
            let (origin, is_urgent) = (request.origin, request.priority == Priority::Highest);
            let method = request.head.method.clone();
            if let Some(browser) = self.config.browser
                && request.priority < Priority::High
                && !*is_scheduled
            {
                let to_origin = delayable.get(&origin).copied().unwrap_or(0);
                let all = delayable.values().sum::<usize>();
                if to_origin >= browser.delayable_to_origin || all >= browser.delayable {
                    place += 1;
                    continue;
                }
                delayable.insert(origin, to_origin + 1);
            }
            *is_scheduled = true;
            let waiting = waiting.entry(origin).or_default();
            let carrier = match self.config.browser {
                Some(browser) => self.connection_of_browser(now, &browser, (origin, &method), *waiting),
                None if *waiting > 0 => None,
                None => self.connection_for(origin, &method).or_else(|| self.open(now, origin)),
            };
            let Some(connection) = carrier.and_then(|carrier| self.connections.get_mut(&carrier)) else {
                *waiting += 1;
                place += 1;
                continue;
            };
            let Some(pending) = self.requests.get_mut(&id) else { break };
            self.queue.remove(place);
            pending.tries -= 1;
            connection.request(now, &pending.request);
            if flush == Some(Flush::First) && is_urgent {
                connection.flush();
            }
        }
    }

    /// A connection for a browser's request, which takes the first that is open: one that was used, or that was opened for another
    /// request (Chromium, net/socket/transport_client_socket_pool.cc). One is being opened for each request that waits, and by some a
    /// second with the first of a visit.
    fn connection_of_browser(
        &mut self,
        now: Time,
        browser: &Browser,
        (origin, method): (Endpoint, &Method),
        waiting: usize,
    ) -> Option<ConnectionId> {
        let is_open = |connection: &Connection| !connection.is_opening();
        let ready = self.connection_where(origin, method, is_open);
        if ready.is_some() {
            return ready;
        }
        let opening = self.opening(origin);
        let wanted = if self.opened == 0 && browser.opens_second { 2 } else { waiting + 1 };
        for _ in opening..wanted {
            self.open(now, origin)?;
        }
        None
    }

    /// Number of connections to this origin that are being opened.
    fn opening(&self, origin: Endpoint) -> usize {
        let is_opening = |connection: &&Connection| connection.origin == origin && connection.is_opening();
        self.connections.values().filter(is_opening).count()
    }

    /// Requests that wait for a connection to this origin.
    fn waiting(&self, origin: Endpoint) -> Vec<RequestId> {
        let waits = |pending: &PendingRequest| pending.is_scheduled && pending.request.origin == origin;
        self.queue.iter().copied().filter(|id| self.requests.get(id).is_some_and(waits)).collect()
    }

    /// Opens another connection to each origin whose first one has taken too long, if a request waits for it.
    fn open_backups(&mut self, now: Time) {
        let Self { connections, backups, .. } = self;
        let is_opening = |origin| {
            connections.values().any(|connection| connection.origin == origin && connection.is_opening())
        };
        let due = backups.take_due(now, is_opening);
        for origin in due {
            if !self.waiting(origin).is_empty() {
                self.open(now, origin);
            }
        }
    }

    fn flush_policy(&self) -> Option<Flush> {
        self.config.shape.pipelining().map(|pipelining| pipelining.flush)
    }

    fn connection_for(&self, origin: Endpoint, method: &Method) -> Option<ConnectionId> {
        self.connection_where(origin, method, |_| true)
    }

    fn connection_where(
        &self,
        origin: Endpoint,
        method: &Method,
        is_wanted: impl Fn(&Connection) -> bool,
    ) -> Option<ConnectionId> {
        let has_capacity = |connection: &Connection| {
            connection.origin == origin && connection.can_take(method) && is_wanted(connection)
        };
        self.connections.iter().find(|(_, connection)| has_capacity(connection)).map(|(id, _)| *id)
    }

    /// Opens a new connection, if the policy allows one more to this origin. One that only waits for its end does not
    /// count.
    fn open(&mut self, now: Time, origin: Endpoint) -> Option<ConnectionId> {
        let is_open = |connection: &&Connection| connection.origin == origin && !connection.is_lingering();
        if self.connections.values().filter(is_open).count() >= self.config.connections {
            return None;
        }
        let max = self.config.browser.map_or(usize::MAX, |browser| browser.connections);
        if self.connections.len() >= max && !self.close_unused() {
            return None;
        }
        if !self.connections.values().any(|connection| connection.origin == origin) {
            self.backups.begin(now, origin, self.config.browser.map(|browser| browser.backup_after));
        }
        let id = ConnectionId(self.opened);
        self.opened += 1;
        self.connections.insert(id, Connection::new(&self.config, origin, self.cautious.contains(&origin)));
        self.wire(Wire::Open(id, origin));
        Some(id)
    }

    /// Closes a connection that no request uses, to make place for another; returns whether there was one.
    fn close_unused(&mut self) -> bool {
        let is_unused = |(_, connection): &(&ConnectionId, &Connection)| {
            connection.is_unused() && !connection.is_opening()
        };
        let Some((&id, _)) = self.connections.iter().find(is_unused) else { return false };
        self.connections.remove(&id);
        self.wire(Wire::Close(id, Ending::Fin));
        true
    }

    /// Number of delayable requests in flight to each origin.
    fn delayable_in_flight(&self) -> BTreeMap<Endpoint, usize> {
        let mut in_flight = BTreeMap::new();
        for pending in self.requests.values().filter(|pending| pending.is_scheduled) {
            if pending.request.priority < Priority::High {
                *in_flight.entry(pending.request.origin).or_default() += 1;
            }
        }
        in_flight
    }

    fn send(&mut self) {
        for (&id, connection) in &mut self.connections {
            while let Some((write, requests)) = connection.take_write() {
                self.outcomes.push_back(Outcome::Wire(Wire::Send(id, write)));
                let sent = |request| Outcome::Event(FromTransport::Sent(request, id));
                self.outcomes.extend(requests.into_iter().map(sent));
            }
        }
    }

    /// Closes unused connections that the server is not going to close.
    fn close_idle(&mut self) {
        let outcomes = &mut self.outcomes;
        self.connections.retain(|id, connection| {
            let is_idle = connection.is_unused() && !connection.is_lingering();
            if is_idle {
                outcomes.push_back(Outcome::Wire(Wire::Close(*id, Ending::Fin)));
            }
            !is_idle
        });
    }

    fn expire(&mut self, now: Time) {
        let (linger, outcomes) = (self.config.linger, &mut self.outcomes);
        self.connections.retain(|id, connection| {
            let is_late = connection.deadline(linger).is_some_and(|deadline| now >= deadline);
            if is_late {
                outcomes.push_back(Outcome::Wire(Wire::Close(*id, Ending::Fin)));
            }
            !is_late
        });
        let due = |connection: &&mut Connection| connection.flush_time().is_some_and(|time| now >= time);
        self.connections.values_mut().filter(due).for_each(Connection::flush);
        self.send();
    }
}
