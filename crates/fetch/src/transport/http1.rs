//! HTTP/1 over connections of the client's own, by the plan's connection policy.
//!
//! Requests wait here until a connection to their origin has capacity. Those that no server has processed are retried.
//!
//! ```text
//! Connected, Received, EndOfStream, Broken -> handle -> Open, Send, Close; Sent, Head, Bytes, Done, Failed
//! ```

mod connection;
mod pacer;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use http1::message::{Method, PeerFault};
use page::Priority;
use wire::Time;

use super::backup::Backups;
use super::connections::Connections;
use super::{
    ConnectionId, Ending, Endpoint, FromTransport, FromWire, Outcome, Progress, Request, RequestId,
    ToTransport, Wire,
};
use crate::browser::Browser;
use crate::pipelining::Flush;
use crate::plan::Http1Config;
use crate::report::Failure;
use connection::{Arrival, Connection, Orphan};
use pacer::Pacer;

/// State of the transport.
#[derive(Debug)]
pub(crate) struct Http1 {
    config: Http1Config,
    /// Requests that have not ended.
    requests: BTreeMap<RequestId, PendingRequest>,
    /// Requests that wait for a connection: by priority, and in order within one.
    queue: VecDeque<QueuedRequest>,
    delayable: DelayableRequests,
    pacer: Pacer,
    /// The next time at which a request that is held back has its token.
    paced_until: Option<Time>,
    connections: Connections<ConnectionId, Connection>,
    backups: Backups,
    pub(super) opened: u32,
    /// Origins where the last connection that ended before its responses broke without announcing it.
    cautious: BTreeSet<Endpoint>,
    /// Whether unused connections are to be closed, once the queue is empty.
    closes_idle: bool,
    /// Origins to which a connection is to be opened without a request, if there is none.
    preconnects: Vec<Endpoint>,
    /// Whether connections or requests have changed since the last [`Http1::settle`]. Only the end of a response changes them.
    is_changed: bool,
    /// Connections that may have something to send.
    touched: BTreeSet<ConnectionId>,
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

/// A request that waits for a connection.
#[derive(Clone, Copy, Debug)]
struct QueuedRequest {
    id: RequestId,
    origin: Endpoint,
    priority: Priority,
    is_scheduled: bool,
}

/// Scheduled requests that a browser may delay, and that have not ended: of each origin, and of all.
#[derive(Debug, Default)]
struct DelayableRequests {
    of: BTreeMap<Endpoint, usize>,
    all: usize,
}

impl DelayableRequests {
    /// Whether a browser has requests of this priority wait for others.
    fn includes(priority: Priority) -> bool {
        priority < Priority::High
    }

    /// Counts one more, if the browser permits it.
    fn add(&mut self, origin: Endpoint, browser: &Browser) -> bool {
        let of = self.of.entry(origin).or_default();
        let is_permitted = *of < browser.delayable_to_origin && self.all < browser.delayable;
        if is_permitted {
            *of += 1;
            self.all += 1;
        }
        is_permitted
    }

    /// Counts one less.
    fn remove(&mut self, origin: Endpoint) {
        self.all -= 1;
        self.of.entry(origin).and_modify(|of| *of -= 1);
    }
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
            delayable: DelayableRequests { of: BTreeMap::new(), all: 0 },
            pacer: Pacer::new(),
            paced_until: None,
            connections: Connections::new(),
            backups: Backups::new(),
            opened: 0,
            cautious: BTreeSet::new(),
            closes_idle: false,
            preconnects: Vec::new(),
            is_changed: false,
            touched: BTreeSet::new(),
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
                self.enqueue(id, false);
            }
            ToTransport::Preconnect(origin) => self.preconnects.push(origin),
            ToTransport::Cancel(id) => self.cancel(id),
            ToTransport::CloseIdle => self.closes_idle = true,
            ToTransport::Abort => {
                self.queue.clear();
                self.requests.clear();
                self.delayable = DelayableRequests::default();
                self.pacer = Pacer::new();
                for id in self.connections.clear() {
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
        self.touched.insert(id);
        self.connections.insert(id, connection);
        self.requests.insert(request.id, PendingRequest::new(request, 0));
    }

    /// Forgets a connection and its requests; returns whether there was one.
    pub(crate) fn abort(&mut self, id: ConnectionId) -> bool {
        self.is_changed = true;
        let Some(connection) = self.connections.remove(id) else { return false };
        for orphan in connection.into_orphans() {
            self.forget(orphan.request);
        }
        true
    }

    /// Server of a connection.
    pub(crate) fn origin(&self, id: ConnectionId) -> Option<Endpoint> {
        self.connections.get(id).map(|connection| connection.origin)
    }

    /// Handles input from the network.
    pub(crate) fn handle(&mut self, now: Time, input: FromWire<'_>) {
        match input {
            FromWire::Connected(id) => {
                if let Some(connection) = self.connections.get_mut(id) {
                    connection.open();
                    self.touched.insert(id);
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
        for origin in std::mem::take(&mut self.preconnects) {
            if self.connections.to(origin).next().is_none() {
                self.open(now, origin);
            }
        }
        self.assign(now);
        if self.flush_policy() == Some(Flush::Idle) {
            self.flush(|_| true);
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
        times.chain(self.backups.next()).chain(self.paced_until).min()
    }

    /// Whether no request and no connection is left.
    pub(crate) fn is_idle(&self) -> bool {
        self.requests.is_empty() && self.connections.is_empty() && self.outcomes.is_empty()
    }

    /// Adds a request to the queue: behind those of its priority, or before them.
    fn enqueue(&mut self, id: RequestId, is_first: bool) {
        let Some(PendingRequest { request, is_scheduled, .. }) = self.requests.get(&id) else { return };
        let Request { origin, priority, .. } = *request;
        let place = self.queue.partition_point(|other| match is_first {
            true => other.priority > priority,
            false => other.priority >= priority,
        });
        self.queue.insert(place, QueuedRequest { id, origin, priority, is_scheduled: *is_scheduled });
    }

    /// Removes a request that has ended.
    fn forget(&mut self, id: RequestId) {
        let Some(PendingRequest { request, is_scheduled, .. }) = self.requests.remove(&id) else { return };
        self.pacer.forget(id);
        if is_scheduled && self.config.browser.is_some() && DelayableRequests::includes(request.priority) {
            self.delayable.remove(request.origin);
        }
    }

    fn event(&mut self, event: FromTransport) {
        self.outcomes.push_back(Outcome::Event(event));
    }

    fn wire(&mut self, wire: Wire) {
        self.outcomes.push_back(Outcome::Wire(wire));
    }

    /// Ends a request. The connection that carries it cannot be used any more: its response would come first.
    fn cancel(&mut self, id: RequestId) {
        self.forget(id);
        self.queue.retain(|queued| queued.id != id);
        let carrier = self.connections.iter().find(|(_, connection)| connection.carries(id));
        let Some(carrier) = carrier.map(|(carrier, _)| carrier) else { return };
        self.wire(Wire::Close(carrier, Ending::Reset));
        if let Some(connection) = self.connections.remove(carrier) {
            let others =
                connection.into_orphans().into_iter().filter(|orphan| orphan.request != id).collect();
            self.abandon(others);
        }
    }

    fn receive(&mut self, now: Time, id: ConnectionId, bytes: &[u8]) {
        let Some(connection) = self.connections.get_mut(id) else { return };
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
        let Some(connection) = self.connections.get_mut(id) else { return };
        let mut arrivals = Vec::new();
        let read = connection.end_of_stream(now, &mut arrivals);
        self.arrive(arrivals);
        self.wire(Wire::Close(id, Ending::Fin));
        self.lose(id, read.map_or_else(Failure::Fault, |()| Failure::Unanswered));
    }

    fn arrive(&mut self, arrivals: Vec<Arrival<'_>>) {
        for arrival in arrivals {
            self.is_changed |= matches!(arrival, Arrival::Complete(_));
            let event = match arrival {
                Arrival::Head(request, head) => FromTransport::Head(request, head),
                Arrival::Body(request, part, wants_content) => {
                    let content = if wants_content { part.to_vec() } else { Vec::new() };
                    FromTransport::Bytes(request, part.len() as u64, content)
                }
                Arrival::Complete(request) => {
                    self.forget(request);
                    FromTransport::Done(request)
                }
            };
            self.event(event);
        }
    }

    /// Handles a closed connection. Requests without a response are retried; a request whose response had
    /// begun has failed, because its effect on the server is unknown.
    fn lose(&mut self, id: ConnectionId, failure: Failure) {
        let Some(connection) = self.connections.remove(id) else { return };
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
            self.queue.retain(|queued| queued.id != first);
            self.forget(first);
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
            self.enqueue(orphan.request, true);
        }
        for orphan in lost {
            let failure = match failure {
                Failure::Fault(_) if !orphan.has_response => Failure::Unanswered,
                failure => failure,
            };
            self.forget(orphan.request);
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
        // Origins whose connections are all in use.
        let mut full: BTreeSet<(Endpoint, bool)> = BTreeSet::new();
        self.paced_until = None;
        let mut place = 0;
        while let Some(queued) = self.queue.get(place).copied() {
            let QueuedRequest { id, origin, priority, is_scheduled: _ } = queued;
            if !self.schedule(place, queued) || self.is_paced(now, id, priority) {
                place += 1;
                continue;
            }
            let Some(pending) = self.requests.get(&id) else { break };
            let method = pending.request.head.method.clone();
            let waiting = waiting.entry(origin).or_default();
            let carrier = match self.config.browser {
                Some(_) if full.contains(&(origin, method.is_safe())) => None,
                Some(browser) => {
                    let carrier = self.connection_of_browser(now, &browser, (origin, &method), *waiting);
                    full.extend(carrier.is_err().then_some((origin, method.is_safe())));
                    carrier.unwrap_or_default()
                }
                None if *waiting > 0 => None,
                None => self.connection_for(origin, &method).or_else(|| self.open(now, origin)),
            };
            let Some(connection) = carrier.and_then(|carrier| self.connections.get_mut(carrier)) else {
                *waiting += 1;
                place += 1;
                continue;
            };
            let Some(pending) = self.requests.get_mut(&id) else { break };
            self.queue.remove(place);
            self.touched.extend(carrier);
            pending.tries -= 1;
            connection.request(now, &pending.request);
            if flush == Some(Flush::First) && priority == Priority::Highest {
                connection.flush();
            }
        }
    }

    /// Lets a request leave once there is a connection, unless it is a delayable one beyond a browser's limit; returns whether it
    /// may.
    fn schedule(&mut self, place: usize, queued: QueuedRequest) -> bool {
        let QueuedRequest { id, origin, priority, is_scheduled } = queued;
        let limit = self.config.browser.filter(|_| DelayableRequests::includes(priority) && !is_scheduled);
        if limit.is_some_and(|browser| !self.delayable.add(origin, &browser)) {
            return false;
        }
        if let (Some(queued), Some(pending)) = (self.queue.get_mut(place), self.requests.get_mut(&id)) {
            (queued.is_scheduled, pending.is_scheduled) = (true, true);
        }
        true
    }

    /// Whether a browser holds a request back until it has its token.
    fn is_paced(&mut self, now: Time, request: RequestId, priority: Priority) -> bool {
        let Some(pacing) = self.config.browser.and_then(|browser| browser.pacing) else { return false };
        let token = self.pacer.token(now, request, &pacing);
        let is_in_use = |connection: &&Connection| !connection.is_opening() && !connection.is_unused();
        let in_use = || self.connections.values().filter(is_in_use).count();
        let is_held = token > now && priority < Priority::Medium && in_use() > pacing.connections;
        if is_held {
            self.paced_until = self.paced_until.into_iter().chain([token]).min();
        }
        is_held
    }

    /// A connection for a browser's request, which takes the first that is open: one that was used, or that was opened for another
    /// request (Chromium, net/socket/transport_client_socket_pool.cc). One is being opened for each request that waits, and by some a
    /// second with the first of a visit.
    ///
    /// # Errors
    /// No connection is ready, and no more may be opened.
    fn connection_of_browser(
        &mut self,
        now: Time,
        browser: &Browser,
        (origin, method): (Endpoint, &Method),
        waiting: usize,
    ) -> Result<Option<ConnectionId>, ()> {
        let is_open = |connection: &Connection| !connection.is_opening();
        let ready = self.connection_where(origin, method, is_open);
        if ready.is_some() {
            return Ok(ready);
        }
        let opening = self.opening(origin);
        let wanted = if self.opened == 0 && browser.opens_second { 2 } else { waiting + 1 };
        for _ in opening..wanted {
            self.open(now, origin).ok_or(())?;
        }
        Ok(None)
    }

    /// Number of connections to this origin that are being opened.
    fn opening(&self, origin: Endpoint) -> usize {
        self.connections.to(origin).filter(|(_, connection)| connection.is_opening()).count()
    }

    /// Requests that wait for a connection to this origin.
    fn waiting(&self, origin: Endpoint) -> Vec<RequestId> {
        let waits = |queued: &&QueuedRequest| queued.is_scheduled && queued.origin == origin;
        self.queue.iter().filter(waits).map(|queued| queued.id).collect()
    }

    /// Opens another connection to each origin whose first one has taken too long, if a request waits for it.
    fn open_backups(&mut self, now: Time) {
        let Self { connections, backups, .. } = self;
        let is_opening = |origin| connections.to(origin).any(|(_, connection)| connection.is_opening());
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
        let has_capacity = |connection: &Connection| connection.can_take(method) && is_wanted(connection);
        self.connections.to(origin).find(|(_, connection)| has_capacity(connection)).map(|(id, _)| id)
    }

    /// Opens a new connection, if the policy allows one more to this origin. One that only waits for its end does not
    /// count.
    fn open(&mut self, now: Time, origin: Endpoint) -> Option<ConnectionId> {
        let open = self.connections.to(origin).filter(|(_, connection)| !connection.is_lingering());
        if open.count() >= self.config.connections {
            return None;
        }
        let max = self.config.browser.map_or(usize::MAX, |browser| browser.connections);
        if self.connections.len() >= max && !self.close_unused() {
            return None;
        }
        if self.connections.to(origin).next().is_none() {
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
        let is_unused = |(_, connection): &(ConnectionId, &Connection)| {
            connection.is_unused() && !connection.is_opening()
        };
        let Some((id, _)) = self.connections.iter().find(is_unused) else { return false };
        self.connections.remove(id);
        self.wire(Wire::Close(id, Ending::Fin));
        true
    }

    fn send(&mut self) {
        for id in std::mem::take(&mut self.touched) {
            let Some(connection) = self.connections.get_mut(id) else { continue };
            while let Some((write, requests)) = connection.take_write() {
                self.outcomes.push_back(Outcome::Wire(Wire::Send(id, write)));
                let sent = |request| Outcome::Event(FromTransport::Sent(request, id));
                self.outcomes.extend(requests.into_iter().map(sent));
            }
        }
    }

    /// Closes unused connections that the server is not going to close.
    fn close_idle(&mut self) {
        self.close_where(|connection| connection.is_unused() && !connection.is_lingering());
    }

    fn close_where(&mut self, is_closed: impl Fn(&Connection) -> bool) {
        for id in self.connections.retain(|connection| !is_closed(connection)) {
            self.wire(Wire::Close(id, Ending::Fin));
        }
    }

    fn expire(&mut self, now: Time) {
        let linger = self.config.linger;
        self.close_where(|connection| connection.deadline(linger).is_some_and(|deadline| now >= deadline));
        self.flush(|connection| connection.flush_time().is_some_and(|time| now >= time));
        self.send();
    }

    /// Flushes the requests in the buffers of some connections.
    fn flush(&mut self, is_due: impl Fn(&Connection) -> bool) {
        for (id, connection) in self.connections.iter_mut().filter(|(_, connection)| is_due(connection)) {
            connection.flush();
            self.touched.insert(id);
        }
    }
}
