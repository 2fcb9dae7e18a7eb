//! Processing of responses: an object, a part of one, references to others, or a failure.
//!
//! Responses are parsed by transports; [`Policy`] chooses the next request.

use http1::message::ResponseHead;
use wire::{Bytes, Time};

use super::Policy;
use super::client_threads::Work;
use super::dependencies::Progress;
use super::document::Document;
use super::parts::Outcome;
use crate::plan::{PlannedObject, Release};
use crate::report::{Failure, PageEvent};
use crate::transport::{FromTransport, RequestId};

impl Policy {
    /// Handles an event of the transport.
    pub(crate) fn handle(&mut self, now: Time, event: FromTransport) {
        self.quiet_until = None;
        match event {
            FromTransport::Sent(request, connection) => {
                if let Some(&object) = self.requests.get(&request) {
                    self.report(now, PageEvent::RequestSent { object, connection });
                    self.note(now, object, Progress::Begun);
                }
            }
            FromTransport::Head(request, head) => {
                if let Some(&object) = self.requests.get(&request) {
                    self.begin_response(now, object, &head);
                }
            }
            FromTransport::Bytes(request, count, content) => {
                if let Some(&object) = self.requests.get(&request) {
                    self.receive(now, object, count, &content);
                }
            }
            FromTransport::Done(request) => self.work(now, Work::Complete(request)),
            FromTransport::Failed(request, failure) => {
                if let Some(object) = self.requests.remove(&request) {
                    self.fail(now, object, failure);
                }
            }
            FromTransport::Fault(connection, fault) => {
                self.report(now, PageEvent::Fault { connection, fault });
            }
        }
    }

    fn begin_response(&mut self, now: Time, object: usize, head: &ResponseHead) {
        let status = head.status;
        self.report(now, PageEvent::HeadReceived { object, status });
        self.parts.head(object, head);
        (self.objects[object].status, self.objects[object].body) = (status, Bytes::ZERO);
        if object == self.plan.begins_at {
            self.document_bytes = Bytes::ZERO;
            self.is_document = (200..300).contains(&status);
            self.document.iter_mut().for_each(|document| document.begin(head));
        }
    }

    fn receive(&mut self, now: Time, object: usize, count: u64, content: &[u8]) {
        self.objects[object].body += Bytes::new(count);
        let received = self.objects[object].body;
        self.note(now, object, Progress::Delivered(received));
        if object == self.plan.begins_at && self.is_document {
            self.document_bytes += Bytes::new(count);
            self.discover(now, content);
        }
        if self.parts.body(object, count) {
            self.report(now, PageEvent::FirstBytesReceived { object });
        }
    }

    /// Handles a complete response: the object, a part of it, or a failure.
    pub(super) fn complete(&mut self, now: Time, request: RequestId) {
        let Some(object) = self.requests.remove(&request) else { return };
        self.has_ended = true;
        let (status, body) = (self.objects[object].status, self.objects[object].body);
        let outcome = self.parts.complete(object, status, body);
        let failure = match &outcome {
            Outcome::Whole(body) => self.response_failure(object, status, *body),
            Outcome::Rest => None,
            Outcome::Failed(failure) => Some(*failure),
        };
        if let Some(failure) = failure {
            return self.fail(now, object, failure);
        }
        if self.parts.mark_known(object) {
            self.report(now, PageEvent::FirstBytesReceived { object });
        }
        match outcome {
            Outcome::Whole(body) => {
                self.resolve(now, object, PageEvent::ObjectComplete { object, status, body })
            }
            Outcome::Rest => self.request_rest(object),
            Outcome::Failed(_) => {}
        }
    }

    fn request_rest(&mut self, object: usize) {
        let planned = &self.plan.objects[object];
        self.objects[object].head = Some(self.plan.later_request(planned, &self.parts.portion(object)));
        self.postponed.push_back(object);
    }

    /// Reason why a complete response is not the requested object.
    fn response_failure(&mut self, object: usize, status: u16, received: Bytes) -> Option<Failure> {
        let is_document = object == self.plan.begins_at;
        let PlannedObject { expected, validator, .. } = &self.plan.objects[object];
        if status == 304 && validator.is_some() {
            return None;
        }
        // 416 means that an object whose first bytes were requested is empty.
        if status >= 300 && !(status == 416 && received == Bytes::ZERO && self.parts.is_parted(object)) {
            let is_missing = matches!(status, 404 | 410) && object >= self.planned;
            return Some(if is_missing { Failure::Missing } else { Failure::Status(status) });
        }
        let document = self.document.as_mut().filter(|_| is_document);
        if let Some(fault) = document.and_then(Document::end) {
            return Some(Failure::Content(fault));
        }
        let expected = expected.filter(|expected| *expected != received)?;
        Some(Failure::Size { expected, received })
    }

    /// Whether references are discovered in the document's contents.
    pub(super) const fn reads_document(&self) -> bool {
        match &self.document {
            Some(document) => document.reads_contents(),
            None => false,
        }
    }

    /// Adds the references in the document's next bytes to the plan.
    fn discover(&mut self, now: Time, content: &[u8]) {
        let Some(document) = &mut self.document else { return };
        let (paths, max) = (document.take(content, self.document_bytes), document.max());
        let origin = self.plan.objects[self.plan.begins_at].origin;
        for path in paths {
            let object = self.plan.objects.len();
            if object >= max {
                return self.report(now, PageEvent::TooManyObjects { max });
            }
            let named_at = Some(self.document_bytes);
            let planned = PlannedObject { named_at, origin, ..PlannedObject::get(&path, None) };
            self.parts.add();
            let portion = self.parts.portion(object);
            self.objects.push(super::ObjectState::new(self.plan.later_request(&planned, &portion)));
            self.plan.objects.push(planned);
            match self.plan.release {
                Release::Graph => self.dependencies.add(object),
                Release::Independent | Release::AfterFirst | Release::AsNamed | Release::Dependent => {
                    self.waiting.push_back(object);
                }
            }
            self.unresolved += 1;
            self.report(now, PageEvent::ObjectFound { object, path });
        }
    }
}
