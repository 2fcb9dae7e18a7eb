//! Policy of a client that fetches a page: what is requested, when, with which priority, on which origin.
//!
//! Connections, bytes and retries belong to a transport. It reads no content except the document's, if it discovers
//! objects there.
//!
//! ```text
//! Sent, Head, Bytes, Done, Failed -> handle -> poll -> Send, Cancel, Report, Timeout
//! ```

mod client_threads;
mod dependencies;
mod document;
mod lookups;
pub(crate) mod parts;
mod responses;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use http1::message::RequestHead;
use page::Priority;
use wire::{Bytes, Duration, Time};

use crate::browser::Browser;
use crate::plan::{Hint, Plan, PlanError, PlannedObject, Release};
use crate::report::{Failure, PageEvent, Report};
use crate::transport::{Request, RequestId, ToTransport};
use client_threads::{ClientThreads, Work};
use dependencies::{Dependencies, Progress};
use document::Document;
pub use document::named_at;
use lookups::Lookups;
use parts::ReceivedParts;
pub use parts::{FirstBytes, FirstBytesPolicy};

/// Output of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// For the transport.
    Transport(ToTransport),
    /// An event of the page.
    Report(Report),
    /// No output before the next input, or this time, when to poll again.
    Timeout(Option<Time>),
}

/// State of one page. `poll` until it returns a timeout, then `handle` an input, and so on until it is finished.
#[derive(Debug)]
pub(crate) struct Policy {
    plan: Plan,
    objects: Vec<ObjectState>,
    dependencies: Dependencies,
    /// Dependencies of the plan's hints.
    hints: Dependencies,
    /// Objects to be requested, in order.
    waiting: VecDeque<usize>,
    /// Objects of a graph that are known and held back until the document's body.
    held: Vec<usize>,
    /// Whether a request has ended since the held objects were last looked at.
    has_ended: bool,
    /// Objects of a graph that hold others back, and have neither arrived nor failed.
    blocking: BTreeSet<usize>,
    /// Objects whose rest is to be requested, after the first bytes of all others.
    postponed: VecDeque<usize>,
    parts: ReceivedParts,
    lookups: Lookups,
    threads: ClientThreads,
    /// Number of objects in the plan; later ones were discovered.
    planned: usize,
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
    /// Object of each request that the transport has.
    requests: BTreeMap<RequestId, usize>,
    sent: u32,
    deadline: Time,
    /// The last timeout, if nothing has happened since.
    quiet_until: Option<Option<Time>>,
    outputs: VecDeque<Output>,
}

/// State of one object.
#[derive(Debug)]
struct ObjectState {
    /// Its next request, until that is sent.
    head: Option<RequestHead>,
    /// Whether it has arrived or failed.
    is_resolved: bool,
    /// Status of its current response.
    status: u16,
    /// Received bytes of the body of that response.
    body: Bytes,
}

impl ObjectState {
    const fn new(head: RequestHead) -> Self {
        Self { head: Some(head), is_resolved: false, status: 0, body: Bytes::ZERO }
    }
}

/// Objects before the body that hold others back from the start, if a graph decides.
fn blocking(plan: &Plan) -> BTreeSet<usize> {
    if plan.release != Release::Graph || !plan.browser.holds_before_request() {
        return BTreeSet::new();
    }
    let is_blocking = |(_, object): &(usize, &PlannedObject)| object.is_before_body;
    plan.objects.iter().enumerate().filter(is_blocking).map(|(index, _)| index).collect()
}

impl Policy {
    pub(crate) fn new(now: Time, plan: Plan) -> Result<Self, PlanError> {
        let parts = ReceivedParts::new(plan.first_bytes, plan.begins_at, plan.objects.len());
        let objects: Vec<_> = plan.requests(&parts)?.into_iter().map(ObjectState::new).collect();
        let count = objects.len();
        Ok(Self {
            objects,
            // Objects of a graph wait in its dependencies.
            waiting: if plan.release == Release::Graph { VecDeque::new() } else { (0..count).collect() },
            held: Vec::new(),
            has_ended: false,
            blocking: blocking(&plan),
            postponed: VecDeque::new(),
            lookups: Lookups::new(&plan.lookups),
            threads: ClientThreads::new(plan.client_time),
            parts,
            planned: count,
            unresolved: count,
            first_unresolved: 0,
            resume_time: None,
            idle_until: None,
            failed: 0,
            document_bytes: Bytes::ZERO,
            is_document: false,
            document: Document::of(&plan),
            dependencies: Dependencies::of(&plan),
            hints: Dependencies::of_hints(&plan),
            requests: BTreeMap::new(),
            sent: 0,
            deadline: now + plan.deadline,
            quiet_until: None,
            outputs: VecDeque::new(),
            plan,
        })
    }

    /// Next output.
    pub(crate) fn poll(&mut self, now: Time) -> Output {
        if let Some(until) = self.quiet_until.filter(|until| until.is_none_or(|until| now < until)) {
            return Output::Timeout(until);
        }
        self.expire(now);
        if self.outputs.is_empty() {
            self.release(now);
        }
        if let Some(output) = self.outputs.pop_front() {
            return output;
        }
        let until = self.timeout();
        self.quiet_until = Some(until);
        Output::Timeout(until)
    }

    /// Whether everything has arrived or failed.
    pub(crate) fn is_finished(&self) -> bool {
        self.unresolved == 0 && self.outputs.is_empty()
    }

    fn fail(&mut self, now: Time, object: usize, failure: Failure) {
        self.failed += usize::from(failure != Failure::Missing);
        self.resolve(now, object, PageEvent::ObjectFailed { object, failure });
    }

    /// Marks an object as arrived or failed.
    fn resolve(&mut self, now: Time, object: usize, event: PageEvent) {
        self.report(now, event);
        self.objects[object].is_resolved = true;
        self.blocking.remove(&object);
        self.has_ended = true;
        self.note(now, object, Progress::Ended);
        self.unresolved -= 1;
        self.advance(now);
        if self.unresolved == 0 {
            self.report(now, PageEvent::Finished { failed: self.failed });
            self.hints = Dependencies::default();
            self.lookups.abort();
            self.instruct(ToTransport::CloseIdle);
        }
    }

    /// Advances to the first unresolved object; the client pauses where that begins a page.
    fn advance(&mut self, now: Time) {
        let page = self.plan.first_object_of_page(self.first_unresolved);
        while self.objects.get(self.first_unresolved).is_some_and(|object| object.is_resolved) {
            self.first_unresolved += 1;
        }
        let Plan { pause, idle, .. } = self.plan;
        if self.plan.first_object_of_page(self.first_unresolved) > page && pause > Duration::ZERO {
            self.resume_time = Some(now + pause);
            self.idle_until = idle.filter(|idle| *idle < pause).map(|idle| now + idle);
        }
    }

    /// Notes the progress of an object.
    fn note(&mut self, now: Time, object: usize, progress: Progress) {
        self.dependencies.note(now, object, progress);
        self.hints.note(now, object, progress);
    }

    /// Prepares for the origins whose hints are known.
    fn take_hints(&mut self, now: Time) {
        for hint in self.hints.take_due(now, |_| true) {
            let Hint { origin, after: _, opens } = self.plan.hints[hint];
            if opens {
                self.pass(now, origin, ToTransport::Preconnect(origin));
            } else {
                self.lookups.begin(now, origin);
            }
        }
    }

    /// Instructs the transport once the name of an origin is known.
    fn pass(&mut self, now: Time, origin: usize, input: ToTransport) {
        if let Some(input) = self.lookups.pass(now, origin, input) {
            self.proceed(now, input);
        }
    }

    /// Instructs the transport. A request takes work of the client.
    fn proceed(&mut self, now: Time, input: ToTransport) {
        match input {
            ToTransport::Send(request) => self.work(now, Work::Send(request)),
            input => self.instruct(input),
        }
    }

    fn report(&mut self, at: Time, event: PageEvent) {
        self.outputs.push_back(Output::Report(Report { at, event }));
    }

    fn instruct(&mut self, input: ToTransport) {
        self.outputs.push_back(Output::Transport(input));
    }

    /// Sends the requests that may leave. In a graph no object waits for one that only stands before it.
    fn release(&mut self, now: Time) {
        if self.plan.release == Release::Graph {
            self.release_due(now);
            if !self.dependencies.is_done() || !self.held.is_empty() {
                return;
            }
        }
        while let Some(object) = self.next_waiting().filter(|object| self.may_release(*object)) {
            let is_rest = self.waiting.is_empty();
            let queue = if is_rest { &mut self.postponed } else { &mut self.waiting };
            queue.pop_front();
            self.request(now, object, is_rest);
        }
    }

    /// Requests the objects of a graph that are known, but for those that are held back.
    fn release_due(&mut self, now: Time) {
        let due = self.take_due(now);
        // What is held back stays so until a request ends.
        if due.is_empty() && !std::mem::take(&mut self.has_ended) {
            return;
        }
        self.has_ended = false;
        self.held.extend(due);
        self.held.sort_unstable();
        for object in std::mem::take(&mut self.held) {
            if self.is_held_back(object) {
                self.held.push(object);
            } else {
                self.request(now, object, false);
            }
        }
    }

    /// Whether a browser holds this object back: others come before the body, and as many requests are in flight as it permits;
    /// so are of its own kind, if it is boosted.
    fn is_held_back(&self, object: usize) -> bool {
        let first = self.plan.first_object_of_page(object);
        let PlannedObject { is_delayable, is_boosted, .. } = self.plan.objects[object];
        let in_flight = || self.requests.values().filter(|object| **object != first);
        let boosted = || in_flight().filter(|object| self.plan.objects[**object].is_boosted).count();
        let Browser { before_body, boosted_before_body, .. } = self.plan.browser;
        is_delayable
            && self.blocking.iter().any(|blocking| self.plan.first_object_of_page(*blocking) == first)
            && in_flight().count() >= before_body
            && !(is_boosted && boosted() < boosted_before_body)
    }

    /// Takes the objects of a graph that may leave.
    fn take_due(&mut self, now: Time) -> Vec<usize> {
        let Self { dependencies, plan, first_unresolved, resume_time: None, .. } = self else {
            return Vec::new();
        };
        dependencies.take_due(now, |object| plan.first_object_of_page(object) <= *first_unresolved)
    }

    fn request(&mut self, now: Time, object: usize, is_rest: bool) {
        let Some(head) = self.objects[object].head.take() else { return };
        let id = RequestId(self.sent);
        self.sent += 1;
        self.requests.insert(id, object);
        if self.plan.release == Release::Graph && self.plan.objects[object].is_before_body {
            self.blocking.insert(object);
        }
        let planned = &self.plan.objects[object];
        let priority = match is_rest {
            true => Priority::Lowest,
            false if object == self.plan.first_object_of_page(object) => Priority::Highest,
            false => planned.priority,
        };
        let wants_content = object == self.plan.begins_at && self.reads_document();
        let request = Request {
            id,
            origin: planned.origin,
            head,
            priority,
            wants_content,
            is_incremental: planned.is_incremental,
            body: planned.request_body.get(),
        };
        self.pass(now, request.origin, ToTransport::Send(request));
    }

    /// Does work of the client, now or when its threads come to it.
    fn work(&mut self, now: Time, work: Work) {
        if let Some(work) = self.threads.pass(now, work) {
            self.finish(now, work);
        }
    }

    fn finish(&mut self, now: Time, work: Work) {
        match work {
            Work::Send(request) => self.instruct(ToTransport::Send(request)),
            Work::Complete(request) => self.complete(now, request),
        }
    }

    /// Next object to be requested. A rest comes next only if no object waits and the document is complete.
    fn next_waiting(&self) -> Option<usize> {
        let rest = || self.postponed.front().filter(|_| self.objects[self.plan.begins_at].is_resolved);
        self.waiting.front().or_else(rest).copied()
    }

    fn may_release(&self, object: usize) -> bool {
        let first = self.plan.first_object_of_page(object);
        let is_document_resolved = || self.objects[first].is_resolved;
        self.resume_time.is_none()
            && first <= self.first_unresolved
            && match self.plan.release {
                Release::Independent => true,
                Release::AfterFirst => object == first || is_document_resolved(),
                Release::AsNamed => object == first || is_document_resolved() || self.is_named(object),
                Release::Dependent => self.requests.is_empty(),
                // Its dependencies are met: `take_due`.
                Release::Graph => true,
            }
    }

    fn is_named(&self, object: usize) -> bool {
        let named_at = self.plan.objects[object].named_at;
        object >= self.plan.begins_at && named_at.is_some_and(|named_at| named_at <= self.document_bytes)
    }

    fn timeout(&self) -> Option<Time> {
        let page = (self.unresolved > 0).then_some(self.deadline);
        let (ready, looked_up, done) = (self.next_ready(), self.next_lookup(), self.threads.next());
        let times = [page, self.resume_time, self.idle_until, ready, looked_up, done];
        times.into_iter().flatten().min()
    }

    /// Time at which the next lookup ends, or begins without a request.
    fn next_lookup(&self) -> Option<Time> {
        [self.lookups.next(), self.hints.next_ready(|_| true)].into_iter().flatten().min()
    }

    /// Time at which the next object is known whose dependencies are met.
    fn next_ready(&self) -> Option<Time> {
        match self.plan.release {
            Release::Graph if self.resume_time.is_none() => {
                let Self { plan, first_unresolved, .. } = self;
                self.dependencies.next_ready(|object| plan.first_object_of_page(object) <= *first_unresolved)
            }
            Release::Graph
            | Release::Independent
            | Release::AfterFirst
            | Release::AsNamed
            | Release::Dependent => None,
        }
    }

    fn expire(&mut self, now: Time) {
        if self.unresolved > 0 && now >= self.deadline {
            self.end_at_deadline(now);
        }
        while let Some(input) = self.lookups.take_due(now) {
            self.proceed(now, input);
        }
        while let Some(work) = self.threads.take_due(now) {
            self.finish(now, work);
        }
        self.take_hints(now);
        if self.idle_until.is_some_and(|until| now >= until) {
            self.idle_until = None;
            self.instruct(ToTransport::CloseIdle);
        }
        if self.resume_time.is_some_and(|resume_time| now >= resume_time) {
            (self.resume_time, self.idle_until) = (None, None);
        }
    }

    /// Ends the page at its deadline: objects that have not arrived have failed.
    fn end_at_deadline(&mut self, now: Time) {
        self.waiting.clear();
        self.held.clear();
        (self.dependencies, self.hints) = (Dependencies::default(), Dependencies::default());
        self.postponed.clear();
        self.lookups.abort();
        self.threads.abort();
        self.requests.clear();
        self.instruct(ToTransport::Abort);
        let unresolved: Vec<usize> =
            (0..self.objects.len()).filter(|object| !self.objects[*object].is_resolved).collect();
        for object in unresolved {
            self.fail(now, object, Failure::Deadline);
        }
        (self.resume_time, self.idle_until) = (None, None);
    }
}
