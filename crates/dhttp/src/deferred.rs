//! Deferred responses: a handler that must wait for something else returns a promise.
//!
//! The handler creates a [`promise`], passes one half to the code that will produce the response, and returns the other half.
//! Not a work queue: the handler decides who produces it, and where.

use std::io;
use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http1::message::Fields;

use crate::readiness::Waker;
use crate::response::Response;

/// Reply of a handler to a request.
#[derive(Debug)]
pub enum Reply {
    /// The response itself.
    Now(Response),
    /// The response arrives later, through the other half of this promise.
    Later(DeferredResponse),
    /// None by UDP: the client is to retry over plain HTTP, by which its address is known. A handler returns it for a request
    /// without a known client ([`crate::Request::client`]) that would require waiting, or much work.
    PlainHttp,
}

impl From<Response> for Reply {
    fn from(response: Response) -> Self {
        Self::Now(response)
    }
}

/// Response to a request for which the application gave none.
pub(crate) const NO_RESPONSE: &str = "500 Internal Server Error: the application returned no response";

/// Creates two halves: one for the code that produces the response, in any thread, and one for the server.
pub fn promise() -> (ResponseSender, DeferredResponse) {
    let slot = Arc::new(Slot { state: Mutex::new(State::Open(Vec::new())) });
    (ResponseSender { slot: Arc::clone(&slot) }, DeferredResponse { slot })
}

/// Sends the response. If it is dropped without one, the client gets 500.
#[derive(Debug)]
pub struct ResponseSender {
    slot: Arc<Slot>,
}

/// Server's half: receives the response.
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
    /// Interim response: its status, 100 to 199, and fields.
    Interim(u16, Fields),
    /// The final response, and trailers for clients that accept them.
    Answer(Response, Fields),
    /// None by UDP.
    PlainHttp,
}

#[derive(Debug)]
enum State {
    /// Without a final response, and without a receiver; interim responses may be queued.
    Open(Vec<ResponseEvent>),
    /// The response arrived before the server waited for it.
    Complete(Vec<ResponseEvent>),
    /// The server waits for it in this mailbox, under this number.
    Pending(Arc<Mailbox>, u64),
    Over,
}

impl ResponseSender {
    /// Sends the response.
    pub fn give(self, response: Response) {
        self.send_with_trailers(response, Fields::new());
    }

    /// Sends the response with trailers, for a client that accepts them (`TE: trailers`) on a connection that it opened.
    pub fn send_with_trailers(self, response: Response, trailers: Fields) {
        self.slot.push(ResponseEvent::Answer(response, trailers));
    }

    /// Refers the client to plain HTTP instead of a response by UDP ([`Reply::PlainHttp`]).
    pub fn refer(self) {
        self.slot.push(ResponseEvent::PlainHttp);
    }

    /// Whether the server no longer waits for it: the client's connection was closed for a newcomer's.
    pub fn is_abandoned(&self) -> bool {
        matches!(*self.slot.state(), State::Over)
    }

    /// Returns a sender of interim responses, for use in any thread.
    pub fn interims(&self) -> Interims {
        Interims { slot: Arc::clone(&self.slot), remaining: Arc::new(AtomicUsize::new(MAX_INTERIMS)) }
    }
}

/// Sender of interim responses (1xx) on connections that clients opened; a datagram carries only the final response. After the
/// final response it sends nothing.
#[derive(Clone, Debug)]
pub struct Interims {
    slot: Arc<Slot>,
    remaining: Arc<AtomicUsize>,
}

/// Maximum number of interim responses to one request: those that a client does not read use memory.
const MAX_INTERIMS: usize = 16;

impl Interims {
    /// Sends an interim response: a status of 100 to 199, and fields.
    pub fn send(&self, status: u16, fields: Fields) {
        let is_one_left = self
            .remaining
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |remaining| remaining.checked_sub(1));
        if is_one_left.is_ok() {
            self.slot.push(ResponseEvent::Interim(status, fields));
        }
    }
}

impl Drop for ResponseSender {
    fn drop(&mut self) {
        // After `give` this has no effect.
        let response = Response::text(500, NO_RESPONSE);
        self.slot.push(ResponseEvent::Answer(response, Fields::new()));
    }
}

impl Slot {
    fn state(&self) -> MutexGuard<'_, State> {
        // A thread that panicked while it held the lock left no partial change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, event: ResponseEvent) {
        let mut state = self.state();
        let is_last = match &event {
            ResponseEvent::Interim(..) => false,
            ResponseEvent::Answer(..) | ResponseEvent::PlainHttp => true,
        };
        *state = match mem::replace(&mut *state, State::Over) {
            State::Open(mut events) => {
                events.push(event);
                if is_last { State::Complete(events) } else { State::Open(events) }
            }
            State::Pending(mailbox, number) => {
                mailbox.put(number, vec![event]);
                if is_last { State::Over } else { State::Pending(mailbox, number) }
            }
            // The first final response counts.
            given @ (State::Complete(_) | State::Over) => given,
        };
    }
}

impl DeferredResponse {
    /// Directs the events to this mailbox, under this number.
    pub(crate) fn await_in(&self, mailbox: &Arc<Mailbox>, number: u64) {
        let mut state = self.slot.state();
        *state = match mem::replace(&mut *state, State::Over) {
            State::Open(events) => {
                mailbox.put(number, events);
                State::Pending(Arc::clone(mailbox), number)
            }
            State::Complete(events) => {
                mailbox.put(number, events);
                State::Over
            }
            waits @ (State::Pending(..) | State::Over) => waits,
        };
    }

    /// Ends the wait; later events are dropped.
    pub(crate) fn abandon(&self) {
        *self.slot.state() = State::Over;
    }
}

/// Queue of events for a thread of the server.
#[derive(Debug)]
pub(crate) struct Mailbox {
    events: Mutex<Vec<(u64, ResponseEvent)>>,
    waker: Waker,
}

impl Mailbox {
    /// # Errors
    /// If the system has no descriptor left.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { events: Mutex::default(), waker: Waker::new()? })
    }

    /// Returns the waker, ready when events are queued.
    pub(crate) const fn waker(&self) -> &Waker {
        &self.waker
    }

    fn put(&self, number: u64, events: Vec<ResponseEvent>) {
        if events.is_empty() {
            return;
        }
        let events = events.into_iter().map(|event| (number, event));
        self.events.lock().unwrap_or_else(PoisonError::into_inner).extend(events);
        self.waker.wake();
    }

    /// Takes all queued events.
    pub(crate) fn take(&self) -> Vec<(u64, ResponseEvent)> {
        self.waker.clear();
        mem::take(&mut *self.events.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(mailbox: &Mailbox) -> Vec<(u64, u16)> {
        let events = mailbox.take().into_iter();
        let status = |event: ResponseEvent| match event {
            ResponseEvent::Interim(status, _) => status,
            ResponseEvent::Answer(response, _) => response.status,
            ResponseEvent::PlainHttp => 0,
        };
        events.map(|(number, event)| (number, status(event))).collect()
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
        interims.send(103, Fields::new());
        later.await_in(&mailbox, 1);
        interims.send(102, Fields::new());
        promise.give(Response::text(200, "slow"));
        interims.send(103, Fields::new());
        assert_eq!(taken(&mailbox), [(1, 103), (1, 102), (1, 200)]);
        let (promise, later) = super::promise();
        let interims = promise.interims();
        (0..100).for_each(|_| interims.send(103, Fields::new()));
        promise.give(Response::text(200, "quick"));
        later.await_in(&mailbox, 2);
        assert_eq!(taken(&mailbox).len(), MAX_INTERIMS + 1);
    }

    #[test]
    fn abandoned_promise_gives_nothing() {
        let mailbox = Arc::new(Mailbox::new().unwrap());
        let (promise, later) = super::promise();
        later.await_in(&mailbox, 1);
        assert!(!promise.is_abandoned());
        later.abandon();
        assert!(promise.is_abandoned());
        promise.give(Response::text(200, "late"));
        assert!(taken(&mailbox).is_empty());
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
