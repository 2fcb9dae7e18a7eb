//! Answers that are not there at once: what a handler says when it must wait for somebody else.
//!
//! The handler makes a [`promise`], hands one half to whoever will know, and gives the other back. Not a queue of work:
//! who does it, and where, is for the handler.

use std::io;
use std::mem;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use http1::message::Fields;
use rustix::event::{EventfdFlags, eventfd};

use crate::handler::Response;

/// Reply of a handler to a request.
#[derive(Debug)]
pub enum Reply {
    /// This.
    Now(Response),
    /// It comes by the other half of this promise.
    Later(DeferredResponse),
    /// None by UDP: the client is to retry over plain HTTP, by which its address is known. What a handler says that would have
    /// to wait, or to do much, for a request without a known client ([`crate::Request::client`]).
    PlainHttp,
}

impl From<Response> for Reply {
    fn from(response: Response) -> Self {
        Self::Now(response)
    }
}

/// Response to a client whose request got none.
pub(crate) const NO_RESPONSE: &str = "500 Internal Server Error: the application gave no response";

/// Two halves: one for whoever will know the answer, in any thread, and one for the server.
pub fn promise() -> (ResponseSender, DeferredResponse) {
    let slot = Arc::new(Slot { state: Mutex::new(State::Open(Vec::new())) });
    (ResponseSender { slot: Arc::clone(&slot) }, DeferredResponse { slot })
}

/// Takes the answer. If it is dropped without one, the client is told that there is none (500).
#[derive(Debug)]
pub struct ResponseSender {
    slot: Arc<Slot>,
}

/// Waits for the answer; for the server.
#[derive(Debug)]
pub struct DeferredResponse {
    slot: Arc<Slot>,
}

#[derive(Debug)]
struct Slot {
    state: Mutex<State>,
}

/// Message of a promise.
#[derive(Debug)]
pub(crate) enum ResponseEvent {
    /// Something before the answer: its status, 100 to 199, and fields.
    Interim(u16, Fields),
    /// The answer, and trailers for whoever takes them.
    Answer(Response, Fields),
    /// None by UDP.
    PlainHttp,
}

#[derive(Debug)]
enum State {
    /// Neither half has said anything, but for what comes before an answer.
    Open(Vec<ResponseEvent>),
    /// The answer was quicker than the server.
    Given(Vec<ResponseEvent>),
    /// It is waited for there, under this number.
    Awaited(Arc<Mailbox>, u64),
    Over,
}

impl ResponseSender {
    /// Here it is.
    pub fn give(self, response: Response) {
        self.give_with(response, Fields::new());
    }

    /// Here it is, and trailers: for a client that takes them (`TE: trailers`), if it asked on a connection of its own.
    pub fn give_with(self, response: Response, trailers: Fields) {
        self.slot.say(ResponseEvent::Answer(response, trailers));
    }

    /// There is none by UDP: the client is to retry over plain HTTP ([`Reply::PlainHttp`]).
    pub fn refer(self) {
        self.slot.say(ResponseEvent::PlainHttp);
    }

    /// Returns a sender of interim responses, for use in any thread.
    pub fn interims(&self) -> Interims {
        Interims { slot: Arc::clone(&self.slot), left: Arc::new(AtomicUsize::new(MAX_INTERIMS)) }
    }
}

/// Says to a client what comes before its answer (1xx), if it asked on a connection of its own; a datagram has no room for
/// more than an answer. After the answer it says nothing any more.
#[derive(Clone, Debug)]
pub struct Interims {
    slot: Arc<Slot>,
    left: Arc<AtomicUsize>,
}

/// Nobody needs more before one answer, and what a client does not read takes memory.
const MAX_INTERIMS: usize = 16;

impl Interims {
    /// A status of 100 to 199, and fields.
    pub fn say(&self, status: u16, fields: Fields) {
        let is_one_left =
            self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if is_one_left.is_ok() {
            self.slot.say(ResponseEvent::Interim(status, fields));
        }
    }
}

impl Drop for ResponseSender {
    fn drop(&mut self) {
        // After `give` there is nothing left to do.
        let response = Response::text(500, NO_RESPONSE);
        self.slot.say(ResponseEvent::Answer(response, Fields::new()));
    }
}

impl Slot {
    fn say(&self, word: ResponseEvent) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_last = match &word {
            ResponseEvent::Interim(..) => false,
            ResponseEvent::Answer(..) | ResponseEvent::PlainHttp => true,
        };
        *state = match mem::replace(&mut *state, State::Over) {
            State::Open(mut words) => {
                words.push(word);
                if is_last { State::Given(words) } else { State::Open(words) }
            }
            State::Awaited(mailbox, number) => {
                mailbox.put(number, vec![word]);
                if is_last { State::Over } else { State::Awaited(mailbox, number) }
            }
            // The first answer counts.
            given @ (State::Given(_) | State::Over) => given,
        };
    }
}

impl DeferredResponse {
    /// From now on the answer goes there, under this number.
    pub(crate) fn await_in(self, mailbox: &Arc<Mailbox>, number: u64) {
        let mut state = self.slot.state.lock().unwrap_or_else(PoisonError::into_inner);
        *state = match mem::replace(&mut *state, State::Over) {
            State::Open(words) => {
                mailbox.put(number, words);
                State::Awaited(Arc::clone(mailbox), number)
            }
            State::Given(words) => {
                mailbox.put(number, words);
                State::Over
            }
            waits @ (State::Awaited(..) | State::Over) => waits,
        };
    }
}

/// Where a thread of the server finds answers that have come.
#[derive(Debug)]
pub(crate) struct Mailbox {
    words: Mutex<Vec<(u64, ResponseEvent)>>,
    waker: OwnedFd,
}

impl Mailbox {
    /// # Errors
    /// If the system has no descriptor left.
    pub(crate) fn new() -> io::Result<Self> {
        let waker = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { words: Mutex::default(), waker })
    }

    /// Readable when there is something.
    pub(crate) const fn waker(&self) -> &OwnedFd {
        &self.waker
    }

    fn put(&self, number: u64, words: Vec<ResponseEvent>) {
        if words.is_empty() {
            return;
        }
        let words = words.into_iter().map(|word| (number, word));
        self.words.lock().unwrap_or_else(PoisonError::into_inner).extend(words);
        // If it is full, the thread has been woken already.
        let _ = rustix::io::write(&self.waker, &1_u64.to_ne_bytes());
    }

    /// All that has come.
    pub(crate) fn take(&self) -> Vec<(u64, ResponseEvent)> {
        // It only says that there is something.
        let _ = rustix::io::read(&self.waker, &mut [0_u8; 8]);
        mem::take(&mut *self.words.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(mailbox: &Mailbox) -> Vec<(u64, u16)> {
        let words = mailbox.take().into_iter();
        let status = |word: ResponseEvent| match word {
            ResponseEvent::Interim(status, _) => status,
            ResponseEvent::Answer(response, _) => response.status,
            ResponseEvent::PlainHttp => 0,
        };
        words.map(|(number, word)| (number, status(word))).collect()
    }

    #[test]
    fn response_arrives_in_either_order_of_send_and_wait() {
        let mailbox = Arc::new(Mailbox::new().unwrap());
        let (promise, later) = super::promise();
        promise.give(Response::text(200, "quick"));
        later.await_in(&mailbox, 1);
        let (promise, later) = super::promise();
        later.await_in(&mailbox, 2);
        assert_eq!(taken(&mailbox), [(1, 200)]);
        promise.give(Response::text(201, "slow"));
        assert_eq!(taken(&mailbox), [(2, 201)]);
        let (promise, later) = super::promise();
        later.await_in(&mailbox, 3);
        promise.refer();
        assert_eq!(taken(&mailbox), [(3, 0)], "and nothing is said when the promise is gone");
    }

    #[test]
    fn interim_responses_precede_the_final_one() {
        let mailbox = Arc::new(Mailbox::new().unwrap());
        let (promise, later) = super::promise();
        let interims = promise.interims();
        interims.say(103, Fields::new());
        later.await_in(&mailbox, 1);
        interims.say(102, Fields::new());
        promise.give(Response::text(200, "slow"));
        interims.say(103, Fields::new());
        assert_eq!(taken(&mailbox), [(1, 103), (1, 102), (1, 200)]);
        let (promise, later) = super::promise();
        let interims = promise.interims();
        (0..100).for_each(|_| interims.say(103, Fields::new()));
        promise.give(Response::text(200, "quick"));
        later.await_in(&mailbox, 2);
        assert_eq!(taken(&mailbox).len(), MAX_INTERIMS + 1);
    }

    #[test]
    fn dropped_promise_gives_a_response() {
        let mailbox = Arc::new(Mailbox::new().unwrap());
        let (promise, later) = super::promise();
        later.await_in(&mailbox, 3);
        drop(promise);
        assert_eq!(taken(&mailbox), [(3, 500)]);
    }
}
