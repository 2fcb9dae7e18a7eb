//! Requests of a transport with streams: those that have not ended, and the order of those that wait for a connection.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU8;

use page::Priority;

use super::{Endpoint, Request, RequestId};

/// Requests that have not ended.
#[derive(Debug)]
pub(super) struct PendingRequests {
    tries: NonZeroU8,
    requests: BTreeMap<RequestId, PendingRequest>,
    /// Requests that wait for a connection: by priority, and in order within one.
    queue: VecDeque<QueuedRequest>,
}

/// A request that waits for a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueuedRequest {
    pub(super) id: RequestId,
    pub(super) origin: Endpoint,
    priority: Priority,
}

#[derive(Debug)]
struct PendingRequest {
    request: Request,
    /// Remaining number of tries.
    tries: u8,
}

impl PendingRequests {
    /// No requests yet; each will be tried this often.
    pub(super) const fn new(tries: NonZeroU8) -> Self {
        Self { tries, requests: BTreeMap::new(), queue: VecDeque::new() }
    }

    /// Adds a request, which waits for a connection.
    pub(super) fn add(&mut self, request: Request) {
        let id = request.id;
        self.requests.insert(id, PendingRequest { request, tries: self.tries.get() });
        self.enqueue(id, false);
    }

    /// Adds a request to the queue: behind those of its priority, or before them.
    fn enqueue(&mut self, id: RequestId, is_first: bool) {
        let Some(&Request { origin, priority, .. }) = self.get(id) else { return };
        let is_before = |other: &QueuedRequest| match is_first {
            true => other.priority > priority,
            false => other.priority >= priority,
        };
        let place = self.queue.partition_point(is_before);
        self.queue.insert(place, QueuedRequest { id, origin, priority });
    }

    pub(super) fn get(&self, id: RequestId) -> Option<&Request> {
        self.requests.get(&id).map(|pending| &pending.request)
    }

    /// The request at this place of the queue.
    pub(super) fn waiting(&self, place: usize) -> Option<QueuedRequest> {
        self.queue.get(place).copied()
    }

    /// Whether a request to one of these origins waits.
    pub(super) fn waits_for(&self, is_to: impl Fn(Endpoint) -> bool) -> bool {
        self.queue.iter().any(|queued| is_to(queued.origin))
    }

    /// Notes that the request at this place of the queue has been sent.
    pub(super) fn sent(&mut self, place: usize) {
        if let Some(pending) = self.queue.remove(place).and_then(|queued| self.requests.get_mut(&queued.id)) {
            pending.tries -= 1;
        }
    }

    /// Retries a request where allowed; returns whether it has failed instead. One that was not processed may always be retried.
    pub(super) fn retry(&mut self, id: RequestId, has_response: bool, was_refused: bool) -> bool {
        let may_retry = self.requests.get(&id).is_some_and(|pending| {
            let is_allowed = was_refused || pending.request.head.method.is_safe();
            pending.tries > 0 && !has_response && is_allowed
        });
        if may_retry {
            self.enqueue(id, true);
            return false;
        }
        self.requests.remove(&id).is_some()
    }

    /// Takes a try off the requests that wait for a connection to these origins; returns those that had no other.
    pub(super) fn fail_waiting(&mut self, is_to: impl Fn(Endpoint) -> bool) -> Vec<RequestId> {
        let mut failed = Vec::new();
        for QueuedRequest { id, origin, .. } in &self.queue {
            let Some(pending) = self.requests.get_mut(id) else { continue };
            if is_to(*origin) {
                pending.tries -= 1;
                failed.extend((pending.tries == 0).then_some(*id));
            }
        }
        failed.iter().for_each(|id| self.cancel(*id));
        failed
    }

    /// Removes a request that has ended.
    pub(super) fn end(&mut self, id: RequestId) {
        self.requests.remove(&id);
    }

    pub(super) fn cancel(&mut self, id: RequestId) {
        self.requests.remove(&id);
        self.queue.retain(|queued| queued.id != id);
    }

    pub(super) fn clear(&mut self) {
        self.queue.clear();
        self.requests.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }
}
