//! A client that fetches a whole page: a plan in, connections and requests out, a report of each arrival.
//!
//! It reads no content except the document's, if it discovers objects there, and returns none. It always ends: at the
//! plan's deadline at the latest every object has arrived or failed, and every connection is closed soon after.
//!
//! ```text
//! Connected, Received, EndOfStream, Broken -> handle -> poll -> Open, Send, Close, Abort, Report, Timeout
//! ```

mod arrivals;
mod connection;
mod document;
mod parts;
mod pipelining;
mod plan;
mod report;
mod visit_stats;

use std::collections::{BTreeMap, VecDeque};

use wire::{Bytes, Duration, Time};

use connection::{Connection, Orphan};
use document::Document;
pub use document::named_at;
use http1::message::Method;
use parts::ReceivedParts;
pub use parts::{FirstBytes, FirstBytesPolicy};
pub use pipelining::{Flush, Pipelining};
pub use plan::{EmbeddedObjects, Plan, PlanError, PlannedObject, Release, Shape};
pub use report::{Break, Failure, PageEvent, Report};
pub use visit_stats::VisitStats;

/// Input from the sockets. Events of a connection that the robot has closed are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input<'a> {
    /// A connection that was requested is open.
    Connected(ConnectionId),
    /// Bytes received.
    Received(ConnectionId, &'a [u8]),
    /// The server will send no more.
    EndOfStream(ConnectionId),
    /// The connection is broken, or could not be opened.
    Broken(ConnectionId, Break),
}

/// A connection of a robot; numbered from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionId(pub u32);

/// Output of the robot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Open a connection to the server.
    Open(ConnectionId),
    /// Send this in one write.
    Send(ConnectionId, Vec<u8>),
    /// Close the connection; it is not used again.
    Close(ConnectionId),
    /// Close it with a reset; it is not used again.
    Abort(ConnectionId),
    /// An event of the page.
    Report(Report),
    /// No output before the next input, or this time, when to poll again.
    Timeout(Option<Time>),
}

/// A client that fetches one page. `poll` until it returns a timeout, then `handle` an input, and so on until
/// it is done.
#[derive(Debug)]
pub struct Robot {
    plan: Plan,
    /// Encoded request of each object.
    requests: Vec<Vec<u8>>,
    /// Remaining number of tries of each object.
    tries: Vec<u8>,
    /// Objects to be requested, in order.
    waiting: VecDeque<usize>,
    /// Objects whose rest is to be requested, after the first bytes of all others.
    postponed: VecDeque<usize>,
    parts: ReceivedParts,
    /// Number of objects in the plan; later ones were discovered.
    planned: usize,
    /// Whether each object has arrived or failed.
    resolved: Vec<bool>,
    /// Number of objects that have neither arrived nor failed.
    unresolved: usize,
    /// The first object that has neither arrived nor failed.
    first_unresolved: usize,
    /// Time at which the next page begins, while the client pauses after one.
    resume_time: Option<Time>,
    /// Time at which the connections have been idle for too long, if that is before.
    idle_until: Option<Time>,
    failed: usize,
    /// Received bytes of the page's first object, which contain its references.
    document_bytes: Bytes,
    /// Whether the response to that object is the document, and not an error page.
    is_document: bool,
    /// The page's first object, if objects are discovered in it.
    document: Option<Document>,
    connections: BTreeMap<ConnectionId, Connection>,
    opened: u32,
    /// Whether the last connection that ended before its responses broke without announcing it.
    is_cautious: bool,
    deadline: Time,
    outputs: VecDeque<Output>,
}

impl Robot {
    /// A robot that starts on its plan at `now`.
    ///
    /// # Errors
    /// An invalid plan.
    pub fn new(now: Time, plan: Plan) -> Result<Self, PlanError> {
        let parts = ReceivedParts::new(plan.first_bytes, plan.begins_at, plan.objects.len());
        let requests = plan.requests(&parts)?;
        let count = requests.len();
        let mut robot = Self {
            requests,
            tries: vec![plan.tries.get(); count],
            waiting: (0..count).collect(),
            postponed: VecDeque::new(),
            parts,
            planned: count,
            resolved: vec![false; count],
            unresolved: count,
            first_unresolved: 0,
            resume_time: None,
            idle_until: None,
            failed: 0,
            document_bytes: Bytes::ZERO,
            is_document: false,
            document: Document::of(&plan),
            connections: BTreeMap::new(),
            opened: 0,
            is_cautious: false,
            deadline: now + plan.deadline,
            outputs: VecDeque::new(),
            plan,
        };
        robot.dispatch(now);
        Ok(robot)
    }

    /// Handles input from the sockets.
    pub fn handle(&mut self, now: Time, input: Input<'_>) {
        self.expire(now);
        match input {
            Input::Connected(id) => {
                if let Some(connection) = self.connections.get_mut(&id) {
                    connection.open();
                }
            }
            Input::Received(id, bytes) => self.receive(now, id, bytes),
            Input::EndOfStream(id) => self.end_of_stream(now, id),
            Input::Broken(id, cause) => self.lose(now, id, Failure::Broken(cause)),
        }
        self.dispatch(now);
    }

    /// Next output.
    pub fn poll(&mut self, now: Time) -> Output {
        self.expire(now);
        self.outputs.pop_front().unwrap_or_else(|| Output::Timeout(self.timeout()))
    }

    /// Whether everything has arrived or failed, and every connection is closed.
    pub fn is_done(&self) -> bool {
        self.unresolved == 0 && self.connections.is_empty() && self.outputs.is_empty()
    }

    fn receive(&mut self, now: Time, id: ConnectionId, bytes: &[u8]) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let mut arrivals = Vec::new();
        let read = connection.receive(now, bytes, &mut arrivals);
        let abandoned = connection.take_abandoned();
        self.arrive(now, arrivals);
        self.abandon(now, abandoned);
        if let Err(fault) = read {
            self.outputs.push_back(Output::Abort(id));
            self.lose(now, id, Failure::Fault(fault));
        }
    }

    fn end_of_stream(&mut self, now: Time, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let mut arrivals = Vec::new();
        let read = connection.end_of_stream(now, &mut arrivals);
        self.arrive(now, arrivals);
        self.outputs.push_back(Output::Close(id));
        self.lose(now, id, read.map_or_else(Failure::Fault, |()| Failure::Unanswered));
    }

    /// Handles a closed connection. Requests without a response are retried; a request whose response had
    /// begun has failed, because its effect on the server is unknown.
    fn lose(&mut self, now: Time, id: ConnectionId, failure: Failure) {
        let Some(connection) = self.connections.remove(&id) else { return };
        let orphans = connection.into_orphans();
        self.is_cautious |= !orphans.is_empty();
        if let (true, Failure::Fault(fault)) = (orphans.is_empty(), failure) {
            self.report(now, PageEvent::Fault { connection: id, fault });
        }
        // The first request is the one that the server was processing when it ended.
        orphans.iter().skip(1).for_each(|orphan| self.tries[orphan.object] += 1);
        self.retry(now, orphans, failure);
    }

    /// Handles the server's announcement that it serves no more on this connection: it has not processed
    /// these requests.
    fn abandon(&mut self, now: Time, orphans: Vec<Orphan>) {
        if orphans.is_empty() {
            return;
        }
        self.is_cautious = false;
        orphans.iter().for_each(|orphan| self.tries[orphan.object] += 1);
        self.retry(now, orphans, Failure::Unanswered);
    }

    /// Retries requests where allowed; the others have failed.
    fn retry(&mut self, now: Time, orphans: Vec<Orphan>, failure: Failure) {
        let (retried, lost): (Vec<_>, Vec<_>) =
            orphans.into_iter().partition(|orphan| !orphan.has_response && self.may_retry(orphan.object));
        for orphan in retried.iter().rev() {
            self.waiting.push_front(orphan.object);
        }
        for orphan in lost {
            let failure = match failure {
                Failure::Fault(_) if !orphan.has_response => Failure::Unanswered,
                failure => failure,
            };
            self.fail(now, orphan.object, failure);
        }
    }

    fn may_retry(&self, object: usize) -> bool {
        self.tries[object] > 0 && self.plan.objects[object].method.is_safe()
    }

    fn fail(&mut self, now: Time, object: usize, failure: Failure) {
        self.failed += usize::from(failure != Failure::Missing);
        self.resolve(now, object, PageEvent::ObjectFailed { object, failure });
    }

    /// Marks an object as arrived or failed.
    fn resolve(&mut self, now: Time, object: usize, event: PageEvent) {
        self.report(now, event);
        self.resolved[object] = true;
        self.unresolved -= 1;
        self.advance(now);
        if self.unresolved == 0 {
            self.report(now, PageEvent::Finished { failed: self.failed });
        }
    }

    /// Advances to the first unresolved object; the client pauses where that begins a page.
    fn advance(&mut self, now: Time) {
        let page = self.plan.first_object_of_page(self.first_unresolved);
        while self.resolved.get(self.first_unresolved) == Some(&true) {
            self.first_unresolved += 1;
        }
        let Plan { pause, idle, .. } = self.plan;
        if self.plan.first_object_of_page(self.first_unresolved) > page && pause > Duration::ZERO {
            self.resume_time = Some(now + pause);
            self.idle_until = idle.filter(|idle| *idle < pause).map(|idle| now + idle);
        }
    }

    fn report(&mut self, at: Time, event: PageEvent) {
        self.outputs.push_back(Output::Report(Report { at, event }));
    }

    /// Assigns waiting objects, sends what can be sent, and closes connections that are not needed any more.
    fn dispatch(&mut self, now: Time) {
        self.assign(now);
        if self.flush_policy() == Some(Flush::Idle) {
            self.connections.values_mut().for_each(Connection::flush);
        }
        self.send(now);
        if self.unresolved == 0 {
            self.close_idle();
        }
    }

    /// Assigns waiting objects to connections with capacity, or to new ones.
    fn assign(&mut self, now: Time) {
        let flush = self.flush_policy();
        while let Some(object) = self.next_waiting().filter(|object| self.may_release(*object)) {
            let method = &self.plan.objects[object].method;
            let Some(id) = self.connection_for(method).or_else(|| self.open()) else { break };
            let is_first = object == self.plan.first_object_of_page(object);
            let Some(connection) = self.connections.get_mut(&id) else { break };
            let queue = if self.waiting.is_empty() { &mut self.postponed } else { &mut self.waiting };
            queue.pop_front();
            self.tries[object] -= 1;
            connection.request(now, object, &self.plan.objects[object].method, &self.requests[object]);
            if flush == Some(Flush::First) && is_first {
                connection.flush();
            }
        }
    }

    /// Next object to be requested. A rest comes next only if no object waits and the document is complete.
    fn next_waiting(&self) -> Option<usize> {
        let rest = || self.postponed.front().filter(|_| self.resolved[self.plan.begins_at]);
        self.waiting.front().or_else(rest).copied()
    }

    fn flush_policy(&self) -> Option<Flush> {
        self.plan.shape.pipelining().map(|pipelining| pipelining.flush)
    }

    fn send(&mut self, now: Time) {
        for (&id, connection) in &mut self.connections {
            while let Some((write, objects)) = connection.take_write() {
                self.outputs.push_back(Output::Send(id, write));
                let sent = |object| PageEvent::RequestSent { object, connection: id };
                self.outputs.extend(
                    objects.into_iter().map(sent).map(|event| Report { at: now, event }).map(Output::Report),
                );
            }
        }
    }

    /// Closes connections that the server is not going to close.
    fn close_idle(&mut self) {
        let outputs = &mut self.outputs;
        self.connections.retain(|id, connection| {
            if !connection.is_lingering() {
                outputs.push_back(Output::Close(*id));
            }
            connection.is_lingering()
        });
    }

    fn may_release(&self, object: usize) -> bool {
        let first = self.plan.first_object_of_page(object);
        self.resume_time.is_none()
            && first <= self.first_unresolved
            && match self.plan.release {
                Release::Independent => true,
                Release::AfterFirst => object == first || self.resolved[first],
                Release::AsNamed => object == first || self.resolved[first] || self.is_named(object),
                Release::Dependent => {
                    self.connections.values().all(|connection| connection.outstanding() == 0)
                }
            }
    }

    fn is_named(&self, object: usize) -> bool {
        let named_at = self.plan.objects[object].named_at;
        object >= self.plan.begins_at && named_at.is_some_and(|named_at| named_at <= self.document_bytes)
    }

    fn connection_for(&self, method: &Method) -> Option<ConnectionId> {
        let has_capacity = |connection: &Connection| connection.can_take(method);
        self.connections.iter().find(|(_, connection)| has_capacity(connection)).map(|(id, _)| *id)
    }

    /// Opens a new connection, if the plan allows one more. One that only waits for its end does not count.
    fn open(&mut self) -> Option<ConnectionId> {
        let open = self.connections.values().filter(|connection| !connection.is_lingering()).count();
        if open >= self.plan.shape.connections() {
            return None;
        }
        let id = ConnectionId(self.opened);
        self.opened += 1;
        self.connections.insert(id, Connection::new(&self.plan, self.is_cautious));
        self.outputs.push_back(Output::Open(id));
        Some(id)
    }

    fn timeout(&self) -> Option<Time> {
        let page = (self.unresolved > 0).then_some(self.deadline);
        self.connections
            .values()
            .flat_map(|connection| [connection.deadline(self.plan.linger), connection.flush_time()])
            .flatten()
            .chain(page)
            .chain(self.resume_time)
            .chain(self.idle_until)
            .min()
    }

    fn expire(&mut self, now: Time) {
        if self.unresolved > 0 && now >= self.deadline {
            self.end_at_deadline(now);
        }
        if self.idle_until.is_some_and(|until| now >= until) {
            self.idle_until = None;
            self.close_idle();
        }
        if self.resume_time.is_some_and(|resume_time| now >= resume_time) {
            (self.resume_time, self.idle_until) = (None, None);
            self.dispatch(now);
        }
        let (linger, outputs) = (self.plan.linger, &mut self.outputs);
        self.connections.retain(|id, connection| {
            let is_late = connection.deadline(linger).is_some_and(|deadline| now >= deadline);
            if is_late {
                outputs.push_back(Output::Close(*id));
            }
            !is_late
        });
        let due = |connection: &&mut Connection| connection.flush_time().is_some_and(|time| now >= time);
        self.connections.values_mut().filter(due).for_each(Connection::flush);
        self.send(now);
    }

    /// Ends the page at its deadline: objects that have not arrived have failed.
    fn end_at_deadline(&mut self, now: Time) {
        let mut objects = Vec::from(std::mem::take(&mut self.waiting));
        objects.extend(std::mem::take(&mut self.postponed));
        for (id, connection) in std::mem::take(&mut self.connections) {
            self.outputs.push_back(Output::Abort(id));
            objects.extend(connection.into_orphans().iter().map(|orphan| orphan.object));
        }
        objects.sort_unstable();
        for object in objects {
            self.fail(now, object, Failure::Deadline);
        }
        (self.resume_time, self.idle_until) = (None, None);
    }
}
