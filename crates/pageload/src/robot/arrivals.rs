//! Processing of responses: an object, a part of one, references to others, or a failure.
//!
//! Responses are parsed in [`super::connection`]; [`Robot`] chooses the next request.

use wire::{Bytes, Time};

use super::connection::Arrival;
use super::document::Document;
use super::parts::Outcome;
use super::{Failure, PageEvent, PlannedObject, Robot};

impl Robot {
    pub(super) fn arrive(&mut self, now: Time, arrivals: Vec<Arrival<'_>>) {
        for arrival in arrivals {
            match arrival {
                Arrival::Head { object, head } => {
                    let status = head.status;
                    self.report(now, PageEvent::HeadReceived { object, status });
                    self.parts.head(object, &head);
                    if object == self.plan.begins_at {
                        self.document_bytes = Bytes::ZERO;
                        self.is_document = (200..300).contains(&status);
                        self.document.iter_mut().for_each(|document| document.begin(&head));
                    }
                }
                Arrival::Body { object, part } => {
                    if object == self.plan.begins_at && self.is_document {
                        self.document_bytes += Bytes::new(part.len() as u64);
                        self.discover(now, part);
                    }
                    if self.parts.body(object, part.len()) {
                        self.report(now, PageEvent::FirstBytesReceived { object });
                    }
                }
                Arrival::Complete { object, status, body } => self.complete(now, object, status, body),
            }
        }
    }

    /// Handles a complete response: the object, a part of it, or a failure.
    fn complete(&mut self, now: Time, object: usize, status: u16, body: Bytes) {
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
        self.requests[object] = self.plan.later_request(planned, &self.parts.portion(object));
        self.tries[object] = self.plan.tries.get();
        self.postponed.push_back(object);
    }

    /// Reason why a complete response is not the requested object.
    fn response_failure(&mut self, object: usize, status: u16, received: Bytes) -> Option<Failure> {
        let is_document = object == self.plan.begins_at;
        let PlannedObject { method: _, path: _, expected, validator, named_at: _ } =
            &self.plan.objects[object];
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

    /// Adds the references in the document's next bytes to the plan.
    fn discover(&mut self, now: Time, part: &[u8]) {
        let Some(document) = &mut self.document else { return };
        let (paths, max) = (document.take(part), document.max());
        for path in paths {
            let object = self.plan.objects.len();
            if object >= max {
                return self.report(now, PageEvent::TooManyObjects { max });
            }
            let named_at = Some(self.document_bytes);
            let planned = PlannedObject { named_at, ..PlannedObject::get(&path, None) };
            self.parts.add();
            let portion = self.parts.portion(object);
            let request = self.plan.later_request(&planned, &portion);
            self.plan.objects.push(planned);
            self.requests.push(request);
            self.tries.push(self.plan.tries.get());
            self.resolved.push(false);
            self.waiting.push_back(object);
            self.unresolved += 1;
            self.report(now, PageEvent::ObjectFound { object, path });
        }
    }
}
