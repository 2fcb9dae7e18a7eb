//! Events of one request: a header section, a body in parts, an end.
//!
//! Events are awaited by a thread ([`Exchange::next`]) or by a task of any runtime ([`Exchange::poll_next`]).

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Waker};

use dhttp_proto::Id;
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
}

/// Buffered bytes beyond which the sender of events waits.
const MAX_WAITING_BYTES: usize = 8 << 20;

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
        Poll::Ready(Some(event))
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
                Event::Failed(why) => return Err(why),
            }
        }
        let (via, head) = head.ok_or("the client has been stopped")?;
        Ok((via, head, body))
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if !self.is_over {
            self.sink.abandon();
            self.shared.tell(Command::Cancel(self.id));
        }
    }
}

impl Sink {
    /// Queues an event; `false` if the exchange was dropped.
    pub(super) fn give(&self, event: Event) -> bool {
        let Ok(mut state) = self.state.lock() else { return false };
        while state.bytes > MAX_WAITING_BYTES && !state.is_abandoned {
            state.sleepers += 1;
            let Ok(again) = self.changed.wait(state) else { return false };
            state = again;
            state.sleepers -= 1;
        }
        if let Event::Body(part) = &event {
            state.bytes += part.len();
        }
        state.events.push_back(event);
        self.has_changed(&state);
        let waker = state.waker.take();
        let is_wanted = !state.is_abandoned;
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        is_wanted
    }

    pub(super) fn fail(&self, why: String) {
        self.give(Event::Failed(why));
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

    fn abandon(&self) {
        if let Ok(mut state) = self.state.lock() {
            state.is_abandoned = true;
            state.events.clear();
        }
        self.changed.notify_all();
    }
}

const fn is_last(event: &Event) -> bool {
    match event {
        Event::Head(..) | Event::Body(_) => false,
        Event::End | Event::Failed(_) => true,
    }
}
