//! Connections that clients open: plain HTTP/1.1, by [`http1::server`]'s state machine.
//!
//! The server stops reading from a client that reads slowly, and resets one that reads nothing. Not DHTTP: any HTTP client is
//! served.

use std::fs::File;
use std::io::{self, Read};
use std::net::{IpAddr, Shutdown, TcpStream};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use http1::message::{Fields, RequestHead, Version};
use http1::server::{Input, Output, RequestId, Response as Http1Response, ResponseBody, ServerConnection};
use wire::Time;

use super::clients::ConnectionSlot;
use super::date_header::DateHeader;
use super::deferred_requests::{DeferredRequests, RequestChannel};
use super::queue::Queue;
use crate::counters::{Counters, count};
use crate::deferred::{NO_RESPONSE, Reply};
use crate::fields::copy;
use crate::handler::{Body, Handler, Request, Response};
use crate::socket;

/// A connection of a client.
#[derive(Debug)]
pub(super) struct PlainConnection {
    pub(super) stream: TcpStream,
    pub(super) client: IpAddr,
    pub(super) is_watched_for: (bool, bool),
    machine: ServerConnection,
    queue: Queue,
    /// Slot in its client's account.
    pub(super) slot: ConnectionSlot,
    request: Option<(RequestId, RequestHead, Vec<u8>)>,
    /// A request whose response is deferred, and the number of the wait.
    promised: Option<(RequestId, RequestHead, u64)>,
    rest: Option<BodyRest>,
    /// Time at which it last accepted bytes, or had none pending.
    progress: Time,
    /// Time at which bytes last moved, in any direction.
    used: Time,
    /// Bytes that the kernel has accepted for it.
    written: u64,
    /// Pace of the client within a request or a response; `None` in between.
    pace: Option<Pace>,
    /// Bytes of the current request's body that have arrived.
    body_bytes: u64,
    end: End,
}

/// Rest of a body that the state machine has not received yet: a client that does not read has one part buffered.
#[derive(Debug)]
struct BodyRest {
    id: RequestId,
    source: Source,
    at: u64,
    end: u64,
    /// Trailers after the body.
    trailers: Fields,
}

/// Source of a body that is sent in parts.
#[derive(Debug)]
enum Source {
    File(Arc<File>),
    Memory(Arc<[u8]>),
}

impl Source {
    /// Passes the part from `at` on, of at most `wanted` bytes, and returns its length: 0 if it cannot be read.
    fn read(&self, at: u64, wanted: usize, part: impl FnOnce(&[u8])) -> usize {
        match self {
            Self::File(file) => {
                let mut buffer = [0; PART_BYTES];
                let wanted = buffer.get_mut(..wanted).unwrap_or_default();
                let read = file.read_at(wanted, at).unwrap_or(0);
                part(wanted.get(..read).unwrap_or_default());
                read
            }
            Self::Memory(bytes) => {
                let start = usize::try_from(at).unwrap_or(usize::MAX);
                let read = bytes.get(start..start.saturating_add(wanted)).unwrap_or_default();
                part(read);
                read.len()
            }
        }
    }
}

/// Pace of a client within a request or a response. A bucket of time: each byte adds its duration at the minimum rate, up to a
/// window, and empties as time passes.
#[derive(Clone, Copy, Debug)]
struct Pace {
    began: Time,
    /// Bytes before, and bytes up to the last look.
    moved_before: u64,
    moved: u64,
    deadline: Time,
}

impl Pace {
    fn is_over(&mut self, now: Time, moved: u64, window: wire::Duration, min_rate: u64) -> bool {
        let gained = moved.saturating_sub(self.moved).saturating_mul(1_000_000_000) / min_rate.max(1);
        self.moved = self.moved.max(moved);
        self.deadline = (self.deadline + wire::Duration::from_nanos(gained)).min(now + window);
        now > self.deadline
    }
}

/// Seconds after which a client's rate is compared with others'.
const MIN_JUDGED_SECONDS: u64 = 2;

/// Closing action, once nothing is pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Open,
    HalfClose,
    Close,
}

/// Callback for each response, for the log and the counters.
pub(super) type ResponseCallback<'a> = &'a mut dyn FnMut(&Request<'_>, u16, u64);

/// Context that a connection needs of its thread.
pub(super) struct ConnectionContext<'a, H> {
    pub(super) now: Time,
    pub(super) handler: &'a mut H,
    /// Fields of every response.
    pub(super) today: &'a DateHeader,
    /// Buffer for received data.
    pub(super) buffer: &'a mut [u8],
    pub(super) body_bytes: usize,
    /// Counters of the thread.
    pub(super) counters: &'a Counters,
    /// Deferred requests, and the number of this connection there.
    pub(super) deferred_requests: &'a mut DeferredRequests,
    pub(super) number: u64,
    pub(super) on_response: ResponseCallback<'a>,
}

/// Bytes of a file that are read in one call.
const PART_BYTES: usize = 64 << 10;

impl PlainConnection {
    pub(super) fn new(
        stream: TcpStream,
        client: IpAddr,
        slot: ConnectionSlot,
        machine: ServerConnection,
        now: Time,
    ) -> Self {
        Self {
            stream,
            client,
            slot,
            is_watched_for: (true, false),
            machine,
            queue: Queue::default(),
            request: None,
            promised: None,
            rest: None,
            progress: now,
            used: now,
            written: 0,
            pace: None,
            body_bytes: 0,
            end: End::Open,
        }
    }

    /// Reads received data, responds and writes. Returns `false` if the connection is finished and must be dropped.
    pub(super) fn ready<H: Handler>(&mut self, context: &mut ConnectionContext<'_, H>) -> bool {
        self.used = context.now;
        if self.is_reading() {
            match self.stream.read(context.buffer) {
                Ok(0) => self.machine.handle(context.now, Input::EndOfStream),
                Ok(length) => {
                    let bytes = context.buffer.get(..length).unwrap_or_default();
                    self.machine.handle(context.now, Input::Received(bytes));
                }
                Err(error) if is_temporary(&error) => {}
                Err(_) => self.machine.handle(context.now, Input::Reset),
            }
        }
        self.advance_without_reading(context)
    }

    /// Does the same without reading: a timer has expired, or the socket is writable.
    pub(super) fn advance_without_reading<H: Handler>(
        &mut self,
        context: &mut ConnectionContext<'_, H>,
    ) -> bool {
        loop {
            if !self.poll(context) {
                return false;
            }
            let before = self.queue.is_empty();
            match self.queue.write(&self.stream) {
                Ok(written) => {
                    self.written += written.bytes;
                    if written.bytes > 0 {
                        self.used = context.now;
                    }
                    if written.bytes > 0 || before {
                        self.progress = context.now;
                    }
                }
                Err(_) => return false,
            }
            if !self.queue.is_empty() {
                return true;
            }
            if !self.send_next_part(context.now) {
                break;
            }
        }
        match self.end {
            End::Open => true,
            End::HalfClose => {
                // If the connection is closed already, the next read reports it.
                let _ = self.stream.shutdown(Shutdown::Write);
                self.end = End::Open;
                true
            }
            End::Close => false,
        }
    }

    /// Whether the client has accepted nothing for longer than `timeout`, with data pending.
    pub(super) fn is_stalled(&self, now: Time, timeout: wire::Duration) -> bool {
        !self.queue.is_empty() && now.since(self.progress) > timeout
    }

    /// Whether the client takes a response, or sends a request's body, more slowly than `min_rate` bytes per second. Each byte
    /// extends its deadline, which is never more than `window` ahead ([`Pace`]). Uploads count if `counts_uploads`: their usual
    /// minimum rate is the state machine's (408).
    pub(super) fn is_too_slow(
        &mut self,
        now: Time,
        window: wire::Duration,
        (min_rate, counts_uploads): (u64, bool),
    ) -> bool {
        let is_sending = !self.queue.is_empty() || self.rest.is_some();
        let is_receiving = self.body_bytes > 0 && self.request.is_some();
        if min_rate == 0 || !is_sending && !is_receiving {
            self.pace = None;
            return false;
        }
        // Bytes in the kernel's buffer have not reached the client.
        let unsent = if is_sending { socket::unacknowledged(&self.stream) } else { 0 };
        let moved = self.written.saturating_sub(unsent) + self.body_bytes;
        let pace =
            self.pace.get_or_insert(Pace { began: now, moved_before: moved, moved, deadline: now + window });
        pace.is_over(now, moved, window, min_rate) && (is_sending || counts_uploads)
    }

    /// Returns the client's rate within the current request or response in bytes per second; `None` for one that has just
    /// begun, or if the server is to act next.
    pub(super) fn rate(&self, now: Time) -> Option<u64> {
        let pace = self.pace?;
        let seconds = now.since(pace.began).as_nanos() / 1_000_000_000;
        (seconds >= MIN_JUDGED_SECONDS).then(|| (pace.moved - pace.moved_before) / seconds)
    }

    pub(super) const fn last_used(&self) -> Time {
        self.used
    }

    pub(super) fn reset(&self) {
        socket::reset_on_close(&self.stream);
    }

    /// Returns the number of the wait for a deferred response, if that is all it does.
    pub(super) fn deferred(&self) -> Option<u64> {
        self.promised.as_ref().filter(|_| self.queue.is_empty()).map(|(.., number)| *number)
    }

    /// Whether nothing is in progress.
    pub(super) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.request.is_none() && self.promised.is_none() && self.rest.is_none()
    }

    pub(super) fn is_reading(&self) -> bool {
        self.machine.is_reading() && self.queue.is_empty() && self.rest.is_none()
    }

    pub(super) fn is_writing(&self) -> bool {
        !self.queue.is_empty()
    }

    fn poll<H: Handler>(&mut self, context: &mut ConnectionContext<'_, H>) -> bool {
        loop {
            match self.machine.poll(context.now) {
                Output::Request(id, head) => {
                    (self.pace, self.body_bytes) = (None, 0);
                    self.request = Some((id, head, Vec::new()));
                }
                Output::RequestBody(_, part) => {
                    self.body_bytes += part.len() as u64;
                    self.body(context, &part);
                }
                Output::RequestEnd(_) => self.serve_request(context),
                Output::RequestAborted(_) => {
                    (self.request, self.promised, self.rest) = (None, None, None);
                    self.slot.release();
                }
                Output::Send(bytes) => self.queue.push_bytes(bytes),
                Output::HalfClose => self.end = End::HalfClose,
                Output::Close => self.end = End::Close,
                Output::Abort => {
                    self.reset();
                    return false;
                }
                Output::Fault(fault) => {
                    tracing::debug!(client = %self.client, %fault, "a client's fault");
                    count(&context.counters.faults);
                }
                Output::Timeout(_) => return true,
            }
        }
    }

    /// Buffers part of a body for a handler that takes bodies. A body that is too large is refused before its end.
    fn body<H: Handler>(&mut self, context: &mut ConnectionContext<'_, H>, part: &[u8]) {
        let Some((_, _, body)) = self.request.as_mut().filter(|_| context.handler.takes_bodies()) else {
            return;
        };
        let response = if body.len() + part.len() > context.body_bytes {
            count(&context.counters.bodies_too_long);
            Response::text(413, "413 Content Too Large")
        } else if !self.slot.reserve(part.len()) {
            count(&context.counters.bodies_unbuffered);
            Response::text(503, "503 Service Unavailable: too many bodies wait")
        } else {
            return body.extend_from_slice(part);
        };
        if let Some((id, head, _)) = self.request.take() {
            self.respond(context, id, &head, response, Fields::new());
        }
    }

    fn serve_request<H: Handler>(&mut self, context: &mut ConnectionContext<'_, H>) {
        let Some((id, head, body)) = self.request.take() else { return };
        let request = Request::of_connection(&head, &body).from_client(Some(self.client.to_canonical()));
        match context.handler.respond(context.now, &request) {
            Reply::Now(response) => self.respond(context, id, &head, response, Fields::new()),
            Reply::PlainHttp => {
                // This is plain HTTP already, and the client's address is known.
                let response = Response::text(500, NO_RESPONSE);
                self.respond(context, id, &head, response, Fields::new());
            }
            Reply::Later(_) if context.deferred_requests.is_full(Some(self.client)) => {
                count(&context.counters.refused_pending);
                let response = Response::text(503, "503 Service Unavailable");
                self.respond(context, id, &head, response, Fields::new());
            }
            Reply::Later(later) => {
                let channel = RequestChannel::Connection(context.number);
                let number = context.deferred_requests.wait(context.now, later, Some(self.client), channel);
                self.promised = Some((id, head, number));
            }
        }
    }

    /// Sends the deferred response, with optional trailers. Returns `false` if the connection is finished and must be dropped.
    pub(super) fn respond_now<H: Handler>(
        &mut self,
        context: &mut ConnectionContext<'_, H>,
        response: Response,
        trailers: Fields,
    ) -> bool {
        if let Some((id, head, _)) = self.promised.take() {
            self.respond(context, id, &head, response, trailers);
        }
        self.advance_without_reading(context)
    }

    /// Sends an interim response before the deferred one. Returns `false` as above.
    pub(super) fn send_interim<H: Handler>(
        &mut self,
        context: &mut ConnectionContext<'_, H>,
        status: u16,
        fields: &Fields,
    ) -> bool {
        if let Some((id, ..)) = &self.promised {
            // An interim response that cannot be sent is no loss: the final one has everything.
            let _ = self.machine.interim(*id, status, fields);
        }
        self.advance_without_reading(context)
    }

    fn respond<H: Handler>(
        &mut self,
        context: &mut ConnectionContext<'_, H>,
        id: RequestId,
        head: &RequestHead,
        response: Response,
        trailers: Fields,
    ) {
        self.slot.release();
        let request = Request::of_connection(head, &[]);
        let has_body = !request.is_head() && !response.is_bodiless();
        let bytes = if has_body { response.body.len() } else { 0 };
        (context.on_response)(&request, response.status, bytes);
        if has_body && takes_trailers(head) && trailers.iter().next().is_some() {
            return self.respond_with(context, id, response, trailers);
        }
        let length = response.body.len();
        let (body, rest) = match response.body {
            Body::Whole(bytes) if !has_body || bytes.len() <= PART_BYTES => {
                (ResponseBody::Whole(bytes), None)
            }
            Body::Whole(bytes) => (ResponseBody::Length(length), Some((Source::Memory(bytes), 0..length))),
            Body::File { file, offset, .. } => {
                let rest = (Source::File(file), offset..offset + length);
                (ResponseBody::Length(length), has_body.then_some(rest))
            }
            Body::Described(length) => (length.map_or(ResponseBody::Unknown, ResponseBody::Length), None),
        };
        let fields = [&*response.fields, context.today.added_fields(&response.fields)];
        match self.machine.respond_sharing(context.now, id, response.status, fields, body) {
            Ok(()) => {
                self.rest = rest.map(|(source, Range { start, end })| BodyRest {
                    id,
                    source,
                    at: start,
                    end,
                    trailers: Fields::new(),
                });
            }
            // The handler's response cannot be sent, or the client has disconnected meanwhile.
            Err(_) => {
                let _ = self.machine.respond(context.now, id, Http1Response::empty(500));
            }
        }
    }

    /// Sends a response in chunks, followed by trailers.
    fn respond_with<H>(
        &mut self,
        context: &mut ConnectionContext<'_, H>,
        id: RequestId,
        response: Response,
        trailers: Fields,
    ) {
        let mut fields = Fields::clone(&response.fields);
        let names: Vec<&[u8]> = trailers.iter().map(|(name, _)| name).collect();
        copy(&mut fields, b"Trailer", &names.join(&b", "[..]));
        let beside = context.today.added_fields(&response.fields);
        let body = ResponseBody::Unknown;
        if self.machine.respond_sharing(context.now, id, response.status, [&fields, beside], body).is_err() {
            let _ = self.machine.respond(context.now, id, Http1Response::empty(500));
            return;
        }
        let length = response.body.len();
        let (source, at) = match response.body {
            Body::Whole(bytes) => (Source::Memory(bytes), 0),
            Body::File { file, offset, length: _ } => (Source::File(file), offset),
            // It describes a body that is elsewhere: never the response to a GET.
            Body::Described(_) => {
                let _ = self.machine.finish(context.now, id);
                return;
            }
        };
        self.rest = Some(BodyRest { id, source, at, end: at + length, trailers });
    }

    /// Gives the state machine another part of the body; `false` if there is no more.
    fn send_next_part(&mut self, now: Time) -> bool {
        let Some(rest) = &mut self.rest else { return false };
        let wanted = usize::try_from(rest.end - rest.at).unwrap_or(PART_BYTES).min(PART_BYTES);
        let (id, machine) = (rest.id, &mut self.machine);
        let read = rest.source.read(rest.at, wanted, |part| {
            // A misuse error means that the client has disconnected, which the state machine reports by itself.
            let _ = machine.send_part(id, part);
        });
        rest.at += read as u64;
        // A truncated file ends in a reset.
        if read == 0 && rest.at < rest.end {
            // In chunked encoding nothing else would show that it is incomplete.
            self.rest = None;
            self.reset();
            self.machine.handle(now, Input::Reset);
        } else if rest.at >= rest.end
            && let Some(rest) = self.rest.take()
        {
            let _ = self.machine.finish_with(now, id, &rest.trailers);
        }
        true
    }
}

/// Whether a client accepts trailers after a body (RFC 9110, section 10.1.4), and its version allows them.
fn takes_trailers(head: &RequestHead) -> bool {
    head.version == Version::Http11 && head.fields.has_token("TE", "trailers")
}

fn is_temporary(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
