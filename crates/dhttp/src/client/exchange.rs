//! Events of one request: a header section, a body in parts, an end.
//!
//! Events are awaited by a thread ([`Exchange::next`]) or by a task of any runtime ([`Exchange::poll_next`]).

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Waker};

use dhttp_proto::Id;
use dhttp_proto::client::ConnectionId;
use http1::message::ResponseHead;

use super::{Command, Shared};

/// Event of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Header section of the response, and its channel.
    Head(Via, ResponseHead),
    /// Part of its body, at least one byte.
    Body(Vec<u8>),
    /// End of the response; it is complete.
    End,
    /// Error message: the request failed, and any response so far is incomplete.
    Failed(String),
}

/// Channel of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// One datagram.
    Udp,
    /// A connection that the server opened.
    TcpOpened,
    /// A connection that this client opened: plain HTTP.
    TcpClient,
}

impl Via {
    /// Returns the name in a server's log.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::TcpOpened => "tcp-opened",
            Self::TcpClient => "tcp-client",
        }
    }
}

/// Exchange of one request and its response. Dropping it cancels the request.
pub struct Exchange {
    id: Id,
    sink: Arc<Sink>,
    shared: Arc<Shared>,
    is_over: bool,
}

/// Queue of a response's events, between the client's threads and the caller.
#[derive(Default)]
pub(super) struct Sink {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    events: VecDeque<Event>,
    bytes: usize,
    is_abandoned: bool,
    /// Number of threads that wait here.
    sleepers: usize,
    waker: Option<Waker>,
    /// Connection of the response, if it is not read until enough events are taken.
    paused: Option<ConnectionId>,
}

/// Buffered bytes of a response beyond which no more of it is read.
const MAX_BUFFERED_BYTES: usize = 1 << 20;
/// Buffered bytes at which it is read again.
const RESUME_BYTES: usize = MAX_BUFFERED_BYTES / 2;

impl Exchange {
    pub(super) const fn new(id: Id, sink: Arc<Sink>, shared: Arc<Shared>) -> Self {
        Self { id, sink, shared, is_over: false }
    }

    /// Returns the next event, and waits for it. `None` after the last.
    #[expect(clippy::should_implement_trait, reason = "it is the blocking twin of `poll_next`")]
    pub fn next(&mut self) -> Option<Event> {
        if self.is_over {
            return None;
        }
        let mut state = self.sink.state.lock().ok()?;
        loop {
            if let Some(event) = self.sink.take(&mut state) {
                self.is_over = is_last(&event);
                let resumed = state.resumed();
                drop(state);
                self.resume(resumed);
                return Some(event);
            }
            state.sleepers += 1;
            state = self.sink.changed.wait(state).ok()?;
            state.sleepers -= 1;
        }
    }

    /// Whether an event is ready, so that `next` does not wait.
    pub fn is_ready(&self) -> bool {
        self.is_over || self.sink.state.lock().is_ok_and(|state| !state.events.is_empty())
    }

    /// Returns the next event if there is one; else the task is woken when there is.
    pub fn poll_next(&mut self, context: &Context<'_>) -> Poll<Option<Event>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let Ok(mut state) = self.sink.state.lock() else { return Poll::Ready(None) };
        let Some(event) = self.sink.take(&mut state) else {
            state.waker = Some(context.waker().clone());
            return Poll::Pending;
        };
        self.is_over = is_last(&event);
        let resumed = state.resumed();
        drop(state);
        self.resume(resumed);
        Poll::Ready(Some(event))
    }

    fn resume(&self, connection: Option<ConnectionId>) {
        if let Some(connection) = connection {
            self.shared.send_command(Command::Resume(connection));
        }
    }

    /// Returns the next event, in a task.
    pub async fn wait(&mut self) -> Option<Event> {
        std::future::poll_fn(|context| self.poll_next(context)).await
    }

    /// Returns the whole response, and waits for it.
    ///
    /// # Errors
    /// The reason for its failure, as a sentence.
    pub fn whole(mut self) -> Result<(Via, ResponseHead, Vec<u8>), String> {
        let (mut head, mut body) = (None, Vec::new());
        while let Some(event) = self.next() {
            match event {
                Event::Head(via, found) => head = Some((via, found)),
                Event::Body(part) => body.extend_from_slice(&part),
                Event::End => {}
                Event::Failed(reason) => return Err(reason),
            }
        }
        let (via, head) = head.ok_or("the client has been stopped")?;
        Ok((via, head, body))
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if !self.is_over {
            let paused = self.sink.abandon();
            self.shared.send_command(Command::Cancel(self.id));
            self.resume(paused);
        }
    }
}

impl Sink {
    /// Queues an event, and never waits; `false` if the exchange was dropped.
    pub(super) fn give(&self, event: Event) -> bool {
        let Ok(mut state) = self.state.lock() else { return false };
        if state.is_abandoned {
            return false;
        }
        if let Event::Body(part) = &event {
            state.bytes += part.len();
        }
        state.events.push_back(event);
        self.has_changed(&state);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }

    /// Whether the caller holds so much of the response that this connection must not be read. The caller then resumes it.
    pub(super) fn pause_if_full(&self, connection: ConnectionId) -> bool {
        let Ok(mut state) = self.state.lock() else { return false };
        let is_full = state.is_full();
        state.paused = is_full.then_some(connection);
        is_full
    }

    /// Waits until the caller has taken enough of the response; for threads that serve no other.
    pub(super) fn wait_for_capacity(&self) {
        let Ok(mut state) = self.state.lock() else { return };
        while state.is_full() {
            state.sleepers += 1;
            let Ok(again) = self.changed.wait(state) else { return };
            state = again;
            state.sleepers -= 1;
        }
    }

    pub(super) fn fail(&self, reason: String) {
        self.give(Event::Failed(reason));
    }

    fn take(&self, state: &mut State) -> Option<Event> {
        let event = state.events.pop_front()?;
        if let Event::Body(part) = &event {
            state.bytes -= part.len();
        }
        self.has_changed(state);
        Some(event)
    }

    /// Notifies waiting threads, and makes no system call if there are none, as in most cases.
    fn has_changed(&self, state: &State) {
        if state.sleepers > 0 {
            self.changed.notify_all();
        }
    }

    /// Discards all events, and returns the paused connection.
    fn abandon(&self) -> Option<ConnectionId> {
        let paused = self.state.lock().ok().and_then(|mut state| {
            state.is_abandoned = true;
            state.events.clear();
            state.paused.take()
        });
        self.changed.notify_all();
        paused
    }
}

impl State {
    const fn is_full(&self) -> bool {
        self.bytes > MAX_BUFFERED_BYTES && !self.is_abandoned
    }

    /// Takes the paused connection, if it is to be read again.
    const fn resumed(&mut self) -> Option<ConnectionId> {
        if self.bytes > RESUME_BYTES { None } else { self.paused.take() }
    }
}

const fn is_last(event: &Event) -> bool {
    match event {
        Event::Head(..) | Event::Body(_) => false,
        Event::End | Event::Failed(_) => true,
    }
}
