//! One connection of a server: requests out to the application, responses back in, bytes either way.
//!
//! Not a listener, and not an application ([`crate::site`] is one). Requests of one connection are handed over
//! one at a time, as servers of the papers' day did; those that wait stay unread, and
//! [`ServerConnection::is_reading`] says so to whoever reads the socket.
//!
//! ```text
//! Received, EndOfStream, Reset -> handle -> poll -> Request, RequestBody, RequestEnd -> application
//!        application -> respond, send_part, finish -> poll -> Send, HalfClose, Close, Abort
//! ```

mod config;
mod response;

use std::collections::VecDeque;

use wire::Time;

use crate::http::write::WriteBuffer;
use crate::http::{Event, Method, PeerFault, RequestHead, RequestReader, Version, persists};
pub use config::{Patience, ServerConfig};
pub use response::{Misuse, Response, ResponseBody};

/// What the socket tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input<'a> {
    /// Bytes came in.
    Received(&'a [u8]),
    /// The client will send no more.
    EndOfStream,
    /// The connection is gone.
    Reset,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Application: a request has begun; it may be answered from now on.
    Request(RequestId, RequestHead),
    /// Application: a part of its body.
    RequestBody(RequestId, Vec<u8>),
    /// Application: it is complete.
    RequestEnd(RequestId),
    /// Application: it came to nothing; do not answer it.
    RequestAborted(RequestId),
    /// Socket: send this in one write.
    Send(Vec<u8>),
    /// Socket: send no more, still receive.
    HalfClose,
    /// Socket: close; nothing more will come out.
    Close,
    /// Socket: close with a reset, so that the client knows that something is missing.
    Abort,
    /// Log: what the client did wrong. It has been told, where that was possible.
    Fault(PeerFault),
    /// Nothing more before the next input, or this time, when to poll again.
    Timeout(Option<Time>),
}

/// A request of one connection; they count from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestId(pub u64);

/// One connection of a server. `handle` an input or call one of the application's methods, then `poll` until
/// it returns a timeout.
#[derive(Debug)]
pub struct ServerConnection {
    config: ServerConfig,
    reader: RequestReader,
    unread: Unread,
    phase: Phase,
    exchange: Option<Exchange>,
    /// Requests so far.
    requests: u64,
    writes: WriteBuffer,
    outputs: VecDeque<Output>,
}

/// What the connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// A request.
    Idle { since: Time },
    /// The rest of its head.
    Head { since: Time },
    /// More of its body.
    Body { since: Time },
    /// The application.
    Answer,
    /// The client's end of the stream; ours is out.
    Linger { since: Time },
    /// Nothing more.
    Closed,
}

/// A request and what has become of it.
#[derive(Debug)]
struct Exchange {
    id: RequestId,
    method: Method,
    version: Version,
    /// Whether the connection stays afterwards.
    persists: bool,
    request_ended: bool,
    answer: Answer,
}

/// What the client has been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// Nothing.
    Awaited,
    /// The head; so many bytes of the body are due.
    Length(u64),
    /// The head, and chunks follow.
    Chunked,
    /// The head, and a body that ends with the connection.
    UntilClose,
}

impl ServerConnection {
    /// A connection that was accepted `now`.
    pub fn new(now: Time, config: ServerConfig) -> Self {
        Self {
            config,
            reader: RequestReader::new(config.limits),
            unread: Unread::default(),
            phase: Phase::Idle { since: now },
            exchange: None,
            requests: 0,
            writes: WriteBuffer::new(config.writes),
            outputs: VecDeque::new(),
        }
    }

    /// Takes what the socket tells.
    pub fn handle(&mut self, now: Time, input: Input<'_>) {
        self.expire(now);
        match (self.phase, input) {
            (Phase::Closed, _) | (Phase::Linger { .. }, Input::Received(_)) => {}
            (Phase::Linger { .. }, Input::EndOfStream) => self.close(Output::Close),
            (_, Input::Reset) => self.close(Output::Close),
            (_, Input::Received(bytes)) => {
                self.unread.push(bytes);
                self.advance(now);
            }
            (_, Input::EndOfStream) => {
                self.unread.ended = true;
                self.advance(now);
            }
        }
    }

    /// The next thing to do.
    pub fn poll(&mut self, now: Time) -> Output {
        self.expire(now);
        self.outputs.pop_front().unwrap_or(Output::Timeout(self.deadline()))
    }

    /// Whether the socket should be read: not while more than enough waits unread.
    pub fn is_reading(&self) -> bool {
        match self.phase {
            Phase::Idle { .. } | Phase::Head { .. } | Phase::Body { .. } | Phase::Answer => {
                !self.unread.ended && self.unread.rest().len() < self.config.limits.head_bytes
            }
            Phase::Linger { .. } => true,
            Phase::Closed => false,
        }
    }

    /// The application's answer: all of it, or the head of what follows in parts. A response that has no body
    /// (to HEAD, 204, 304) is complete with this.
    ///
    /// # Errors
    /// The application's mistake; nothing has been sent.
    pub fn respond(&mut self, now: Time, id: RequestId, response: Response) -> Result<(), Misuse> {
        let last = self.config.requests.is_some_and(|most| self.requests >= u64::from(most.get()));
        let exchange = self.exchange(id)?;
        if exchange.answer != Answer::Awaited {
            return Err(Misuse::OutOfOrder(id));
        }
        response.check()?;
        exchange.answer = match (&response.body, exchange.version) {
            (ResponseBody::Whole(bytes), _) => Answer::Length(bytes.len() as u64),
            (ResponseBody::Length(length), _) => Answer::Length(*length),
            (ResponseBody::Unknown, Version::Http11) => Answer::Chunked,
            (ResponseBody::Unknown, Version::Http10) => Answer::UntilClose,
        };
        exchange.persists &= !last && exchange.answer != Answer::UntilClose;
        let bodiless = exchange.method == Method::Head || response.is_bodiless();
        let (head, body) = response.into_head(exchange.version, exchange.persists);
        self.writes.head(|out| head.encode(out));
        match body {
            ResponseBody::Whole(bytes) => {
                if !bodiless && !bytes.is_empty() {
                    self.writes.part(|out| out.extend_from_slice(&bytes));
                }
                self.complete(now);
            }
            ResponseBody::Length(_) | ResponseBody::Unknown if bodiless => self.complete(now),
            ResponseBody::Length(_) | ResponseBody::Unknown => self.send_writes(),
        }
        Ok(())
    }

    /// A part of the body of a response that was begun.
    ///
    /// # Errors
    /// The application's mistake; nothing has been sent.
    pub fn send_part(&mut self, id: RequestId, part: &[u8]) -> Result<(), Misuse> {
        let answer = &mut self.exchange(id)?.answer;
        match answer {
            Answer::Awaited => return Err(Misuse::OutOfOrder(id)),
            Answer::Length(left) => {
                *left = left.checked_sub(part.len() as u64).ok_or(Misuse::TooLong(id))?;
            }
            Answer::Chunked | Answer::UntilClose => {}
        }
        let chunked = *answer == Answer::Chunked;
        // An empty chunk would end the body.
        if !part.is_empty() {
            self.writes
                .part(|out| if chunked { encode_chunk(part, out) } else { out.extend_from_slice(part) });
            self.send_writes();
        }
        Ok(())
    }

    /// The end of a response that was begun without its whole body.
    ///
    /// # Errors
    /// The application's mistake. If less came than was promised, the connection is aborted.
    pub fn finish(&mut self, now: Time, id: RequestId) -> Result<(), Misuse> {
        match self.exchange(id)?.answer {
            Answer::Awaited => return Err(Misuse::OutOfOrder(id)),
            Answer::Length(0) | Answer::UntilClose => {}
            Answer::Length(1..) => {
                self.exchange = None;
                self.close(Output::Abort);
                return Err(Misuse::TooShort(id));
            }
            Answer::Chunked => self.writes.part(|out| out.extend_from_slice(b"0\r\n\r\n")),
        }
        self.complete(now);
        Ok(())
    }

    /// The exchange with this request, if that is the one that is open.
    fn exchange(&mut self, id: RequestId) -> Result<&mut Exchange, Misuse> {
        self.exchange.as_mut().filter(|exchange| exchange.id == id).ok_or(Misuse::NotAwaited(id))
    }

    /// The response is all there.
    fn complete(&mut self, now: Time) {
        self.writes.flush();
        self.send_writes();
        match self.exchange.take() {
            Some(Exchange { persists: true, request_ended: true, .. }) => {
                self.phase = Phase::Idle { since: now };
                self.advance(now);
            }
            // What is left of a request that was answered before its end is of no use to anybody.
            Some(_) | None => self.hang_up(now),
        }
    }

    fn send_writes(&mut self) {
        self.outputs.extend(std::iter::from_fn(|| self.writes.take()).map(Output::Send));
    }

    /// Reads on, until a request waits for its answer or there is nothing left to read.
    fn advance(&mut self, now: Time) {
        let mut unread = std::mem::take(&mut self.unread);
        let mut input = unread.rest();
        let mut fault = None;
        while fault.is_none() && self.phase != Phase::Answer {
            match self.reader.read(&mut input) {
                Ok(Some(event)) => self.event(now, event),
                Ok(None) => break,
                Err(found) => fault = Some(found),
            }
        }
        unread.keep(input.len());
        self.unread = unread;
        match fault {
            Some(fault) => self.refuse(now, fault),
            None => self.starve(now),
        }
    }

    fn event(&mut self, now: Time, event: Event<'_, RequestHead>) {
        match (event, &mut self.exchange) {
            (Event::Head(head, _), exchange) => {
                let id = RequestId(self.requests);
                self.requests += 1;
                *exchange = Some(Exchange::new(id, &head));
                self.phase = Phase::Body { since: now };
                self.outputs.push_back(Output::Request(id, head));
            }
            (Event::Body(part), Some(exchange)) => {
                self.phase = Phase::Body { since: now };
                self.outputs.push_back(Output::RequestBody(exchange.id, part.to_vec()));
            }
            (Event::End, Some(exchange)) => {
                exchange.request_ended = true;
                self.phase = Phase::Answer;
                self.outputs.push_back(Output::RequestEnd(exchange.id));
            }
            // The head makes the exchange, and nothing unmakes it before its request is read.
            (Event::Body(_) | Event::End, None) => {}
        }
    }

    /// Everything that came in is read, or waits for its turn.
    fn starve(&mut self, now: Time) {
        match self.phase {
            Phase::Idle { .. } | Phase::Head { .. } | Phase::Body { .. } if self.unread.ended => {
                match self.reader.end_of_stream() {
                    Ok(_) => self.close(Output::Close),
                    Err(fault) => self.refuse(now, fault),
                }
            }
            Phase::Idle { .. } if !self.reader.is_between_messages() => {
                self.phase = Phase::Head { since: now }
            }
            Phase::Idle { .. }
            | Phase::Head { .. }
            | Phase::Body { .. }
            | Phase::Answer
            | Phase::Linger { .. }
            | Phase::Closed => {}
        }
    }

    /// Tells the client what it did wrong, if there is still a way, and reads no more.
    fn refuse(&mut self, now: Time, fault: PeerFault) {
        self.outputs.push_back(Output::Fault(fault));
        match self.exchange.take() {
            Some(Exchange {
                id, answer: Answer::Length(_) | Answer::Chunked | Answer::UntilClose, ..
            }) => {
                self.outputs.push_back(Output::RequestAborted(id));
                self.close(Output::Abort);
                return;
            }
            Some(Exchange { id, answer: Answer::Awaited, .. }) => {
                self.outputs.push_back(Output::RequestAborted(id));
            }
            None => {}
        }
        let (head, _) = Response::empty(fault.status()).into_head(Version::Http11, false);
        self.writes.head(|out| head.encode(out));
        self.writes.flush();
        self.send_writes();
        self.hang_up(now);
    }

    /// Closes carefully: our half now, the whole when the client has closed its own.
    fn hang_up(&mut self, now: Time) {
        if self.unread.ended {
            self.close(Output::Close);
        } else {
            self.outputs.push_back(Output::HalfClose);
            self.unread = Unread::default();
            self.phase = Phase::Linger { since: now };
        }
    }

    /// Ends it.
    fn close(&mut self, how: Output) {
        self.outputs.extend(self.exchange.take().map(|exchange| Output::RequestAborted(exchange.id)));
        self.outputs.push_back(how);
        self.unread = Unread::default();
        self.phase = Phase::Closed;
    }

    fn deadline(&self) -> Option<Time> {
        let Patience { idle, request, linger } = self.config.patience;
        match self.phase {
            Phase::Idle { since } => Some(since + idle),
            Phase::Head { since } | Phase::Body { since } => Some(since + request),
            Phase::Linger { since } => Some(since + linger),
            Phase::Answer | Phase::Closed => None,
        }
    }

    fn expire(&mut self, now: Time) {
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return;
        }
        match self.phase {
            Phase::Idle { .. } => self.hang_up(now),
            Phase::Head { .. } | Phase::Body { .. } => self.refuse(now, PeerFault::TooSlow),
            Phase::Linger { .. } => self.close(Output::Close),
            Phase::Answer | Phase::Closed => {}
        }
    }
}

impl Exchange {
    fn new(id: RequestId, head: &RequestHead) -> Self {
        Self {
            id,
            method: head.method.clone(),
            version: head.version,
            persists: persists(head.version, &head.fields),
            request_ended: false,
            answer: Answer::Awaited,
        }
    }
}

fn encode_chunk(part: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(format!("{:x}\r\n", part.len()).as_bytes());
    out.extend_from_slice(part);
    out.extend_from_slice(b"\r\n");
}

/// Bytes that came in before their turn.
#[derive(Debug, Default)]
struct Unread {
    bytes: Vec<u8>,
    read: usize,
    /// Whether the client will send no more.
    ended: bool,
}

impl Unread {
    fn push(&mut self, bytes: &[u8]) {
        if self.read > 0 {
            self.bytes.drain(..self.read);
            self.read = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    fn rest(&self) -> &[u8] {
        &self.bytes[self.read..]
    }

    /// Only the last so many bytes are still to be read.
    fn keep(&mut self, left: usize) {
        self.read = self.bytes.len() - left;
    }
}
