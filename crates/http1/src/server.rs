//! One connection of a server: requests to the application, responses from it, bytes in both directions.
//!
//! Not a listener, and not an application ([`crate::site`] is one). Requests of one connection are handed over one at a time,
//! as by servers at the time of the papers. Later ones stay unread, and [`ServerConnection::is_reading`] reports that to the
//! socket's reader.
//!
//! ```text
//! Received, EndOfStream, Reset -> handle -> poll -> Request, RequestBody, RequestEnd -> application
//!        application -> respond, send_part, finish -> poll -> Send, HalfClose, Close, Abort
//! ```

mod config;
mod exchange;
mod response;
mod unread;

use std::collections::VecDeque;

use wire::{Bytes, Time};

use crate::message::write::WriteBuffer;
use crate::message::{Event, Fields, Framing, PeerFault, RequestHead, RequestReader, Version};
use exchange::{Exchange, RemainingBody, TransferCoding, write_last_chunk};
use response::{Head, check_interim, write_interim};
use unread::UnreadBytes;

pub use config::{Closing, ConnectionTimeouts, ServerConfig};
pub use response::{Misuse, Response, ResponseBody};

/// Input from the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input<'a> {
    /// Received bytes.
    Received(&'a [u8]),
    /// The client will send no more.
    EndOfStream,
    /// The connection was reset.
    Reset,
}

/// Actions for the application, the socket and the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Application: a request has begun; a response is permitted from now on.
    Request(RequestId, RequestHead),
    /// Application: part of its body.
    RequestBody(RequestId, Vec<u8>),
    /// Application: it is complete.
    RequestEnd(RequestId),
    /// Application: it was aborted; do not respond to it.
    RequestAborted(RequestId),
    /// Socket: send this in one write.
    Send(Vec<u8>),
    /// Socket: send no more, but still receive.
    HalfClose,
    /// Socket: close; there is no more output.
    Close,
    /// Socket: close with a reset, so that the client notices missing data.
    Abort,
    /// Log: the client's fault. The client has been notified where possible.
    Fault(PeerFault),
    /// No output before the next input, or before this time, when to poll again.
    Timeout(Option<Time>),
}

/// Number of a request on its connection, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestId(pub u64);

/// One connection of a server. `handle` an input or call one of the application's methods, then `poll` until
/// it returns a timeout.
#[derive(Debug)]
pub struct ServerConnection {
    config: ServerConfig,
    reader: RequestReader,
    unread: UnreadBytes,
    phase: Phase,
    exchange: Option<Exchange>,
    /// Number of requests so far.
    requests: u64,
    writes: WriteBuffer,
    outputs: VecDeque<Output>,
}

/// Awaited event, with the start of the wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// A request.
    Idle(Time),
    /// The rest of its header section.
    Head(Time),
    /// More of its body; the time is the deadline.
    Body(Time),
    /// The application.
    Respond,
    /// The client's end of the stream; the server's is sent.
    Linger(Time),
    /// Nothing more.
    Closed,
}

static NO_FIELDS: Fields = Fields::new();

impl ServerConnection {
    /// Creates a connection that was accepted `now`.
    pub fn new(now: Time, config: ServerConfig) -> Self {
        Self {
            config,
            reader: RequestReader::new(config.limits),
            unread: UnreadBytes::default(),
            phase: Phase::Idle(now),
            exchange: None,
            requests: 0,
            writes: WriteBuffer::new(config.writes),
            outputs: VecDeque::new(),
        }
    }

    /// Handles an input from the socket.
    pub fn handle(&mut self, now: Time, input: Input<'_>) {
        self.expire(now);
        match (self.phase, input) {
            (Phase::Closed, _) | (Phase::Linger(_), Input::Received(_)) => {}
            (Phase::Linger(_), Input::EndOfStream) => self.close(Output::Close),
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

    /// Returns the next output.
    pub fn poll(&mut self, now: Time) -> Output {
        self.expire(now);
        self.outputs.pop_front().unwrap_or(Output::Timeout(self.deadline()))
    }

    /// Returns whether the socket should be read: not while `limits.head_bytes` or more wait unread. A driver whose
    /// writes the socket does not accept should not read or respond either. This state machine cannot tell how slowly a
    /// client reads.
    pub fn is_reading(&self) -> bool {
        match self.phase {
            Phase::Idle(_) | Phase::Head(_) | Phase::Body(_) | Phase::Respond => {
                !self.unread.ended && self.unread.rest().len() < self.config.limits.head_bytes
            }
            Phase::Linger(_) => true,
            Phase::Closed => false,
        }
    }

    /// Sends the application's response: all of it, or the header section of one that follows in parts. A response without a
    /// body (to HEAD, 204, 304) is then complete.
    ///
    /// # Errors
    /// The application's mistake; nothing has been sent.
    pub fn respond(&mut self, now: Time, id: RequestId, response: Response) -> Result<(), Misuse> {
        let Response { status, fields, body } = response;
        self.respond_sharing(now, id, status, [&fields, &NO_FIELDS], body)
    }

    /// Responds like [`Self::respond`] with fields shared by other responses, which are copied only into the bytes sent.
    /// The response's own fields come first, then those of every response.
    ///
    /// # Errors
    /// As for [`ServerConnection::respond`].
    pub fn respond_sharing(
        &mut self,
        now: Time,
        id: RequestId,
        status: u16,
        fields: [&Fields; 2],
        body: ResponseBody,
    ) -> Result<(), Misuse> {
        let last = self.config.requests.is_some_and(|max| self.requests >= u64::from(max.get()));
        let (head, remaining_body) = self.exchange(id)?.begin(status, fields, body, last)?;
        self.writes.head(|out| head.write(fields, out));
        match remaining_body {
            RemainingBody::Whole(body) => {
                if !body.is_empty() {
                    self.writes.body(|out| out.extend_from_slice(&body));
                }
                self.complete(now);
            }
            RemainingBody::Nothing => self.complete(now),
            RemainingBody::Parts => self.send_writes(),
        }
        Ok(())
    }

    /// Sends an interim response (RFC 9110, section 15.2): any but 101. A client of HTTP/1.0 gets none.
    ///
    /// # Errors
    /// The application's mistake; nothing has been sent.
    pub fn interim(&mut self, id: RequestId, status: u16, fields: &Fields) -> Result<(), Misuse> {
        check_interim(status, fields)?;
        if self.exchange(id)?.may_wait()? {
            self.writes.head(|out| write_interim(status, fields, out));
            self.writes.flush();
            self.send_writes();
        }
        Ok(())
    }

    /// Sends part of the body of a response that was begun.
    ///
    /// # Errors
    /// The application's mistake; nothing has been sent.
    pub fn send_part(&mut self, id: RequestId, part: &[u8]) -> Result<(), Misuse> {
        let coding = self.exchange(id)?.part(part.len())?;
        // An empty part needs no bytes, and an empty chunk would end the body.
        if !part.is_empty() {
            self.writes.part(|out| coding.encode(part, out));
            self.send_writes();
        }
        Ok(())
    }

    /// Ends a response that was begun without its whole body.
    ///
    /// # Errors
    /// The application's mistake. If the body is shorter than its declared length, the connection is aborted.
    pub fn finish(&mut self, now: Time, id: RequestId) -> Result<(), Misuse> {
        self.finish_with(now, id, &NO_FIELDS)
    }

    /// Does the same with trailers after the body, if its coding permits them: only chunked does (RFC 9112, section 7.1.2).
    ///
    /// # Errors
    /// As for [`ServerConnection::finish`].
    pub fn finish_with(&mut self, now: Time, id: RequestId, trailers: &Fields) -> Result<(), Misuse> {
        match self.exchange(id)?.end() {
            Ok(TransferCoding::Plain) => {}
            Ok(TransferCoding::Chunked) => self.writes.part(|out| write_last_chunk(trailers, out)),
            Err(misuse) => {
                if misuse == Misuse::TooShort(id) {
                    self.exchange = None;
                    self.close(Output::Abort);
                }
                return Err(misuse);
            }
        }
        self.complete(now);
        Ok(())
    }

    /// Returns the exchange with this request, if it is the open one.
    fn exchange(&mut self, id: RequestId) -> Result<&mut Exchange, Misuse> {
        self.exchange.as_mut().filter(|exchange| exchange.id == id).ok_or(Misuse::NotAwaited(id))
    }

    /// Completes the response.
    fn complete(&mut self, now: Time) {
        // The rest of a request whose response preceded its end is not read.
        let persists =
            self.exchange.take().is_some_and(|exchange| exchange.persists && exchange.request_ended);
        self.writes.end_message(persists);
        self.send_writes();
        if persists {
            self.phase = Phase::Idle(now);
            self.advance(now);
        } else {
            self.close_after_responses(now);
        }
    }

    fn send_writes(&mut self) {
        self.outputs.extend(std::iter::from_fn(|| self.writes.take()).map(Output::Send));
    }

    /// Reads until a request is complete and waits for its response, or there is no more input.
    fn advance(&mut self, now: Time) {
        let mut unread = std::mem::take(&mut self.unread);
        let mut input = unread.rest();
        let mut fault = None;
        while fault.is_none() && self.phase != Phase::Respond {
            match self.reader.read(&mut input) {
                Ok(Some(event)) => self.event(now, event),
                Ok(None) => break,
                Err(found) => fault = Some(found),
            }
        }
        unread.retain_last(input.len());
        self.unread = unread;
        match fault {
            Some(fault) => self.refuse(now, fault),
            None => self.starve(now),
        }
    }

    fn event(&mut self, now: Time, event: Event<'_, RequestHead>) {
        match (event, &mut self.exchange) {
            (Event::Head(head, framing), exchange) => {
                let id = RequestId(self.requests);
                self.requests += 1;
                *exchange = Some(Exchange::new(id, &head));
                self.phase = Phase::Body(now + self.config.timeout.request);
                let waits = framing != Framing::Length(0) && head.fields.has_token("Expect", "100-continue");
                self.outputs.push_back(Output::Request(id, head));
                if waits {
                    // A client that waits with its body gets 100 (RFC 9110, section 10.1.1). The request is open, so this
                    // cannot fail.
                    let _ = self.interim(id, 100, &NO_FIELDS);
                }
            }
            (Event::Body(part), Some(exchange)) => {
                if let Phase::Body(deadline) = self.phase {
                    let ConnectionTimeouts { idle: _, request, least_rate, linger: _ } = self.config.timeout;
                    let extended = deadline + least_rate.time_for(Bytes::new(part.len() as u64));
                    self.phase = Phase::Body(extended.min(now + request));
                }
                self.outputs.push_back(Output::RequestBody(exchange.id, part.to_vec()));
            }
            (Event::End, Some(exchange)) => {
                exchange.request_ended = true;
                self.phase = Phase::Respond;
                self.outputs.push_back(Output::RequestEnd(exchange.id));
            }
            // A head creates the exchange, which lasts until its request has been read.
            (Event::Body(_) | Event::End, None) => {}
        }
    }

    /// Handles the end of the available input.
    fn starve(&mut self, now: Time) {
        let has_begun = self.exchange.as_ref().is_some_and(Exchange::has_begun);
        if self.phase != Phase::Respond && !has_begun {
            // No request is complete, so no response follows those that have gathered.
            self.writes.flush();
            self.send_writes();
        }
        match self.phase {
            Phase::Idle(_) | Phase::Head(_) | Phase::Body(_) if self.unread.ended => {
                match self.reader.end_of_stream() {
                    Ok(_) => self.close(Output::Close),
                    Err(fault) => self.refuse(now, fault),
                }
            }
            Phase::Idle(_) if !self.reader.is_between_messages() => self.phase = Phase::Head(now),
            Phase::Idle(_)
            | Phase::Head(_)
            | Phase::Body(_)
            | Phase::Respond
            | Phase::Linger(_)
            | Phase::Closed => {}
        }
    }

    /// Reports the fault to the client if a response is still possible, and reads no more.
    fn refuse(&mut self, now: Time, fault: PeerFault) {
        self.outputs.push_back(Output::Fault(fault));
        if let Some(exchange) = self.exchange.take() {
            self.outputs.push_back(Output::RequestAborted(exchange.id));
            if exchange.has_begun() {
                return self.close(Output::Abort);
            }
        }
        let status = fault.status();
        let head = Head { version: Version::Http11, status, persists: false, length: Some(0) };
        self.writes.head(|out| head.write([&NO_FIELDS; 2], out));
        self.writes.flush();
        self.send_writes();
        self.close_after_responses(now);
    }

    /// Closes the connection after the last response.
    fn close_after_responses(&mut self, now: Time) {
        match self.config.closing {
            Closing::Careful if !self.unread.ended => {
                self.outputs.push_back(Output::HalfClose);
                self.unread = UnreadBytes::default();
                self.phase = Phase::Linger(now);
            }
            Closing::Careful | Closing::Naive => self.close(Output::Close),
        }
    }

    /// Ends the connection.
    fn close(&mut self, how: Output) {
        self.outputs.extend(self.exchange.take().map(|exchange| Output::RequestAborted(exchange.id)));
        self.outputs.push_back(how);
        self.unread = UnreadBytes::default();
        self.phase = Phase::Closed;
    }

    fn deadline(&self) -> Option<Time> {
        let ConnectionTimeouts { idle, request, least_rate: _, linger } = self.config.timeout;
        match self.phase {
            Phase::Idle(since) => Some(since + idle),
            Phase::Head(since) => Some(since + request),
            Phase::Body(deadline) => Some(deadline),
            Phase::Linger(since) => Some(since + linger),
            Phase::Respond | Phase::Closed => None,
        }
    }

    fn expire(&mut self, now: Time) {
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return;
        }
        match self.phase {
            Phase::Idle(_) => self.close_after_responses(now),
            Phase::Head(_) | Phase::Body(_) => self.refuse(now, PeerFault::TooSlow),
            Phase::Linger(_) => self.close(Output::Close),
            Phase::Respond | Phase::Closed => {}
        }
    }
}
