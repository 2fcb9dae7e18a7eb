//! A request by DHTTP while the program's connection is watched: a response in one datagram is forwarded without a thread.
//!
//! All other outcomes are for a thread (`blocking_exchange`). The request itself is sent by [`dhttp::client`].

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use http1::gateway::{self, Forward};
use http1::message::{RequestHead, ResponseHead, Version};

use super::Shared;
use super::cached_reply::{url, without_host};
use super::reply::{self, ReplyContext};
use super::watched_connection::BlockingTask;
use crate::cache::streaming_fill::{Disposition, StreamingFill};
use dhttp::Client;
use dhttp::client::{Event, Exchange, Via};
use dhttp::handler::Body;

/// A request whose response is awaited.
pub(super) struct PendingRequest {
    head: RequestHead,
    forward: Forward,
    question: PendingExchange,
    /// The header section of a response by datagram, and the bytes of its body so far.
    come: Option<(ResponseHead, Vec<u8>)>,
}

/// A request in progress, and the cache entry that its response fills.
pub(super) struct PendingExchange {
    /// The DHTTP client, held as long as a response to it is awaited.
    client: Arc<Client>,
    exchange: Exchange,
    passing: Option<Box<StreamingFill>>,
    waker: Waker,
}

/// A response that has begun to arrive on a connection.
pub(super) struct IncomingResponse {
    pub(super) head: RequestHead,
    pub(super) forward: Forward,
    /// The DHTTP client, held until the response is complete.
    pub(super) client: Arc<Client>,
    pub(super) exchange: Exchange,
    pub(super) via: Via,
    pub(super) response: ResponseHead,
    pub(super) passing: Option<Box<StreamingFill>>,
}

/// A response that was written.
pub(super) struct WrittenResponse {
    pub(super) head: RequestHead,
    pub(super) status: u16,
    /// Length of its body.
    pub(super) bytes: u64,
    pub(super) stays: bool,
}

/// Result of waiting.
pub(super) enum PollOutcome {
    /// Incomplete: the request is still pending.
    Nothing(Box<PendingRequest>),
    /// The response, which was written.
    Answer(WrittenResponse),
    /// A task with which a thread must continue.
    Otherwise(Box<BlockingTask>),
}

/// Notifies the event loop of progress for the connection with this number.
struct ConnectionWaker {
    shared: Arc<Shared>,
    number: u64,
}

impl Wake for ConnectionWaker {
    fn wake(self: Arc<Self>) {
        self.shared.desk.ring(self.number);
    }
}

impl PendingExchange {
    /// Sends the request, if that is by DHTTP and nothing must be awaited before.
    pub(super) fn ask(shared: &Arc<Shared>, number: u64, forward: &Forward) -> Option<Self> {
        let (client, url) = (shared.client(), url(forward));
        if !forward.is_for_dhttp() || !client.speaks_dhttp(&url) {
            return None;
        }
        let passing = match &shared.keeper {
            Some(keeper) => Some(keeper.pass_at_once(forward)?),
            None => None,
        };
        let request = passing.as_ref().map_or(&forward.head, |passing| passing.request());
        let exchange = client.request(request.method.clone(), &url, &without_host(request)).ok()?;
        let waker = Waker::from(Arc::new(ConnectionWaker { shared: Arc::clone(shared), number }));
        Some(Self { client, exchange, passing, waker })
    }
}

impl PendingRequest {
    pub(super) const fn new(head: RequestHead, forward: Forward, question: PendingExchange) -> Self {
        Self { head, forward, question, come: None }
    }

    /// Handles what has arrived. A complete response is written to `out`.
    pub(super) fn hear(mut self: Box<Self>, shared: &Shared, out: &mut Vec<u8>) -> PollOutcome {
        loop {
            let PendingExchange { client: _, exchange, passing: _, waker } = &mut self.question;
            let Poll::Ready(event) = exchange.poll_next(&Context::from_waker(waker)) else {
                return PollOutcome::Nothing(self);
            };
            match (event, &mut self.come) {
                (Some(Event::Head(Via::Udp, response)), come) => *come = Some((response, Vec::new())),
                (Some(Event::Head(via @ (Via::TcpOpened | Via::TcpClient), response)), _) => {
                    let Self { head, forward, question, come: _ } = *self;
                    let PendingExchange { client, exchange, passing, waker: _ } = question;
                    let coming = IncomingResponse { head, forward, client, exchange, via, response, passing };
                    return PollOutcome::Otherwise(Box::new(BlockingTask::Coming(coming)));
                }
                (Some(Event::Body(part)), Some((_, body))) if body.is_empty() => *body = part,
                (Some(Event::Body(part)), Some((_, body))) => body.extend_from_slice(&part),
                (Some(Event::End), come @ Some(_)) => {
                    if let Some((response, body)) = come.take() {
                        return self.pass_on(shared, out, &response, &body);
                    }
                }
                (Some(Event::Failed(why)), _) => return self.fail(why),
                (Some(Event::Body(_) | Event::End) | None, _) => {
                    return self.fail("the gateway is being stopped".to_owned());
                }
            }
        }
    }

    fn fail(self, why: String) -> PollOutcome {
        PollOutcome::Otherwise(Box::new(BlockingTask::Failed(self.head, self.question.passing, why)))
    }

    /// Writes the response, and stores it if allowed.
    fn pass_on(
        self,
        shared: &Shared,
        out: &mut Vec<u8>,
        response: &ResponseHead,
        body: &[u8],
    ) -> PollOutcome {
        let Self { head, forward, question, come: _ } = self;
        let response = gateway::response(response, &shared.name);
        let (requested, length) = (ReplyContext::of(&head), body.len() as u64);
        let Some(mut passing) = question.passing else {
            let (stays, bytes) = reply::write_passed(out, requested, &response, body);
            return PollOutcome::Answer(WrittenResponse { status: response.status, head, bytes, stays });
        };
        match passing.head(&response, Some(length)) {
            Disposition::Passed(fields) => {
                let response = ResponseHead { version: Version::Http11, status: response.status, fields };
                let (stays, bytes) = reply::write_passed(out, requested, &response, body);
                passing.part(body);
                passing.end();
                PollOutcome::Answer(WrittenResponse { status: response.status, head, bytes, stays })
            }
            Disposition::Given(stored) => {
                let Body::Whole(whole) = &stored.body else {
                    return PollOutcome::Otherwise(Box::new(BlockingTask::Kept(head, stored)));
                };
                let stays = requested.stays;
                let has_body = reply::write_head(out, requested, &stored);
                let bytes = if has_body { whole } else { &[][..] };
                out.extend_from_slice(bytes);
                let bytes = bytes.len() as u64;
                PollOutcome::Answer(WrittenResponse { status: stored.status, head, bytes, stays })
            }
            Disposition::Again => {
                PollOutcome::Otherwise(Box::new(BlockingTask::Again(head, forward, passing)))
            }
        }
    }
}
