//! A request that is asked by DHTTP while its connection is watched: what comes in one datagram is passed on without a
//! thread of its own.
//!
//! Whatever comes otherwise, or not at all, is for a thread (`browser`). Not the asking: that is [`dhttp::client`].

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use http1::gateway::{self, Forward};
use http1::message::{RequestHead, ResponseHead, Version};

use super::Shared;
use super::kept::{url, without_host};
use super::reply::{self, Asked};
use super::waiting::Call;
use crate::cache::passing::{Came, Passing};
use dhttp::Client;
use dhttp::client::{Event, Exchange, Via};
use dhttp::handler::Body;

/// A request whose answer is waited for.
pub(super) struct Asking {
    head: RequestHead,
    forward: Forward,
    question: Question,
    /// The head of an answer by datagram, and what has come of its body.
    come: Option<(ResponseHead, Vec<u8>)>,
}

/// A request in progress, and what its response is stored with.
pub(super) struct Question {
    /// The DHTTP client, held as long as a response of it is awaited.
    client: Arc<Client>,
    exchange: Exchange,
    passing: Option<Box<Passing>>,
    waker: Waker,
}

/// An answer that has begun to come on a connection.
pub(super) struct Coming {
    pub(super) head: RequestHead,
    pub(super) forward: Forward,
    /// The DHTTP client, held until all has come.
    pub(super) client: Arc<Client>,
    pub(super) exchange: Exchange,
    pub(super) via: Via,
    pub(super) answer: ResponseHead,
    pub(super) passing: Option<Box<Passing>>,
}

/// An answer that was written.
pub(super) struct Passed {
    pub(super) head: RequestHead,
    pub(super) status: u16,
    /// Bytes of its body.
    pub(super) bytes: u64,
    pub(super) stays: bool,
}

/// Result of waiting.
pub(super) enum Heard {
    /// Not enough.
    Nothing(Box<Asking>),
    /// The answer, which was written.
    Answer(Passed),
    /// A task that a thread must go on with.
    Otherwise(Box<Call>),
}

/// Tells the thread that watches that something has come for the connection with this number.
struct Bell {
    shared: Arc<Shared>,
    number: u64,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.shared.desk.ring(self.number);
    }
}

impl Question {
    /// Asks, if that is by DHTTP and nothing must be waited for before.
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
        let waker = Waker::from(Arc::new(Bell { shared: Arc::clone(shared), number }));
        Some(Self { client, exchange, passing, waker })
    }
}

impl Asking {
    pub(super) const fn new(head: RequestHead, forward: Forward, question: Question) -> Self {
        Self { head, forward, question, come: None }
    }

    /// Takes what has come. An answer that is whole is written there.
    pub(super) fn hear(mut self: Box<Self>, shared: &Shared, out: &mut Vec<u8>) -> Heard {
        loop {
            let Question { client: _, exchange, passing: _, waker } = &mut self.question;
            let Poll::Ready(event) = exchange.poll_next(&Context::from_waker(waker)) else {
                return Heard::Nothing(self);
            };
            match (event, &mut self.come) {
                (Some(Event::Head(Via::Udp, answer)), come) => *come = Some((answer, Vec::new())),
                (Some(Event::Head(via @ (Via::TcpOpened | Via::TcpClient), answer)), _) => {
                    let Self { head, forward, question, come: _ } = *self;
                    let Question { client, exchange, passing, waker: _ } = question;
                    let coming = Coming { head, forward, client, exchange, via, answer, passing };
                    return Heard::Otherwise(Box::new(Call::Coming(coming)));
                }
                (Some(Event::Body(part)), Some((_, body))) if body.is_empty() => *body = part,
                (Some(Event::Body(part)), Some((_, body))) => body.extend_from_slice(&part),
                (Some(Event::End), come @ Some(_)) => {
                    if let Some((answer, body)) = come.take() {
                        return self.pass_on(shared, out, &answer, &body);
                    }
                }
                (Some(Event::Failed(why)), _) => return self.fail(why),
                (Some(Event::Body(_) | Event::End) | None, _) => {
                    return self.fail("the gateway is being stopped".to_owned());
                }
            }
        }
    }

    fn fail(self, why: String) -> Heard {
        Heard::Otherwise(Box::new(Call::Failed(self.head, self.question.passing, why)))
    }

    /// Writes the answer, and keeps it if it is to be kept.
    fn pass_on(self, shared: &Shared, out: &mut Vec<u8>, answer: &ResponseHead, body: &[u8]) -> Heard {
        let Self { head, forward, question, come: _ } = self;
        let answer = gateway::response(answer, &shared.name);
        let (asked, length) = (Asked::of(&head), body.len() as u64);
        let Some(mut passing) = question.passing else {
            let (stays, bytes) = reply::write_passed(out, asked, &answer, body);
            return Heard::Answer(Passed { status: answer.status, head, bytes, stays });
        };
        match passing.head(&answer, Some(length)) {
            Came::Passed(fields) => {
                let answer = ResponseHead { version: Version::Http11, status: answer.status, fields };
                let (stays, bytes) = reply::write_passed(out, asked, &answer, body);
                passing.part(body);
                passing.end();
                Heard::Answer(Passed { status: answer.status, head, bytes, stays })
            }
            Came::Given(kept) => {
                let Body::Whole(whole) = &kept.body else {
                    return Heard::Otherwise(Box::new(Call::Kept(head, kept)));
                };
                let stays = asked.stays;
                let has_body = reply::write_head(out, asked, &kept);
                let bytes = if has_body { whole } else { &[][..] };
                out.extend_from_slice(bytes);
                let bytes = bytes.len() as u64;
                Heard::Answer(Passed { status: kept.status, head, bytes, stays })
            }
            Came::Again => Heard::Otherwise(Box::new(Call::Again(head, forward, passing))),
        }
    }
}
