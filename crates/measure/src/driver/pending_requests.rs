//! Requests of a connection that have no response yet, beside the state machine that reads them.

use std::collections::BTreeMap;

use fetch::serving::{HttpConnection, Wish};
use http1::message::RequestHead;
use http1::server::{Input, Output, RequestId, Response};
use wire::Time;

/// The state machine of a connection's HTTP, and the requests that it has read.
#[derive(Debug)]
pub(super) struct PendingRequests {
    http: HttpConnection,
    heads: BTreeMap<RequestId, RequestHead>,
}

/// Progress of a connection.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Complete requests, with their targets.
    pub(super) requests: Vec<(RequestId, String)>,
    /// The client's protocol errors, in sentences.
    pub(super) faults: Vec<String>,
    /// Whether the connection is over.
    pub(super) is_over: bool,
}

impl PendingRequests {
    pub(super) const fn new(http: HttpConnection) -> Self {
        Self { http, heads: BTreeMap::new() }
    }

    pub(super) fn handle(&mut self, now: Time, input: Input<'_>) {
        self.http.handle(now, input);
    }

    /// Takes complete requests and protocol errors; returns the next timeout.
    pub(super) fn read(&mut self, now: Time, progress: &mut Progress) -> Option<Time> {
        loop {
            match self.http.next(now) {
                Wish::Response(id, head) => {
                    progress.requests.push((id, head.target.clone()));
                    self.heads.insert(id, head);
                }
                Wish::Aborted(id) => drop(self.heads.remove(&id)),
                Wish::Fault(fault) => progress.faults.push(fault.to_string()),
                Wish::Timeout(until) => return until,
            }
        }
    }

    /// Responds to a request, unless it has been aborted; `response` is called with its header section and whether it came
    /// over HTTP/2.
    pub(super) fn respond(
        &mut self,
        now: Time,
        id: RequestId,
        response: impl FnOnce(&RequestHead, bool) -> Response,
    ) {
        if let Some(head) = self.heads.remove(&id) {
            self.http.respond(now, id, response(&head, self.http.is_http2()));
        }
    }

    pub(super) fn next_output(&mut self) -> Option<Output> {
        self.http.next_output()
    }
}
