//! Answers that are not there at once: what a handler says when it must wait for somebody else.
//!
//! The handler makes a [`promise`], hands one half to whoever will know, and gives the other back. Not a queue of work:
//! who does it, and where, is for the handler.

use std::io;
use std::mem;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::{EventfdFlags, eventfd};

use crate::handler::Answer;

/// What a handler says to a request.
#[derive(Debug)]
pub enum Reply {
    /// This.
    Now(Answer),
    /// It comes by the other half of this promise.
    Later(Later),
}

impl From<Answer> for Reply {
    fn from(answer: Answer) -> Self {
        Self::Now(answer)
    }
}

/// Two halves: one for whoever will know the answer, in any thread, and one for the server.
pub fn promise() -> (Promise, Later) {
    let slot = Arc::new(Slot { state: Mutex::new(State::Open) });
    (Promise { slot: Arc::clone(&slot) }, Later { slot })
}

/// Takes the answer. If it is dropped without one, the client is told that there is none (500).
#[derive(Debug)]
pub struct Promise {
    slot: Arc<Slot>,
}

/// Waits for the answer; for the server.
#[derive(Debug)]
pub struct Later {
    slot: Arc<Slot>,
}

#[derive(Debug)]
struct Slot {
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    /// Neither half has said anything.
    Open,
    /// The answer was quicker than the server.
    Given(Answer),
    /// It is waited for there, under this number.
    Awaited(Arc<Mailbox>, u64),
    Over,
}

impl Promise {
    /// Here it is.
    pub fn give(self, answer: Answer) {
        self.slot.give(answer);
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        // After `give` there is nothing left to do.
        self.slot.give(Answer::text(500, "500 Internal Server Error: the application gave no answer"));
    }
}

impl Slot {
    fn give(&self, answer: Answer) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *state = match mem::replace(&mut *state, State::Over) {
            State::Open => State::Given(answer),
            State::Awaited(mailbox, number) => {
                mailbox.put(number, answer);
                State::Over
            }
            // The first answer counts.
            given @ (State::Given(_) | State::Over) => given,
        };
    }
}

impl Later {
    /// From now on the answer goes there, under this number.
    pub(crate) fn await_in(self, mailbox: &Arc<Mailbox>, number: u64) {
        let mut state = self.slot.state.lock().unwrap_or_else(PoisonError::into_inner);
        *state = match mem::replace(&mut *state, State::Over) {
            State::Open => State::Awaited(Arc::clone(mailbox), number),
            State::Given(answer) => {
                mailbox.put(number, answer);
                State::Over
            }
            waits @ (State::Awaited(..) | State::Over) => waits,
        };
    }
}

/// Where a thread of the server finds answers that have come.
#[derive(Debug)]
pub(crate) struct Mailbox {
    answers: Mutex<Vec<(u64, Answer)>>,
    waker: OwnedFd,
}

impl Mailbox {
    /// # Errors
    /// If the system has no descriptor left.
    pub(crate) fn new() -> io::Result<Self> {
        let waker = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { answers: Mutex::default(), waker })
    }

    /// Readable when there is something.
    pub(crate) const fn waker(&self) -> &OwnedFd {
        &self.waker
    }

    fn put(&self, number: u64, answer: Answer) {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).push((number, answer));
        // If it is full, the thread has been woken already.
        let _ = rustix::io::write(&self.waker, &1_u64.to_ne_bytes());
    }

    /// All that has come.
    pub(crate) fn take(&self) -> Vec<(u64, Answer)> {
        // It only says that there is something.
        let _ = rustix::io::read(&self.waker, &mut [0_u8; 8]);
        mem::take(&mut *self.answers.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(mailbox: &Mailbox) -> Vec<(u64, u16)> {
        mailbox.take().into_iter().map(|(number, answer)| (number, answer.status)).collect()
    }

    #[test]
    fn an_answer_arrives_whoever_is_first() {
        let mailbox = Arc::new(Mailbox::new().unwrap());
        let (promise, later) = super::promise();
        promise.give(Answer::text(200, "quick"));
        later.await_in(&mailbox, 1);
        let (promise, later) = super::promise();
        later.await_in(&mailbox, 2);
        assert_eq!(taken(&mailbox), [(1, 200)]);
        promise.give(Answer::text(201, "slow"));
        assert_eq!(taken(&mailbox), [(2, 201)]);
    }

    #[test]
    fn a_promise_that_is_broken_is_an_answer_too() {
        let mailbox = Arc::new(Mailbox::new().unwrap());
        let (promise, later) = super::promise();
        later.await_in(&mailbox, 3);
        drop(promise);
        assert_eq!(taken(&mailbox), [(3, 500)]);
    }
}
