//! Connections that clients open: plain HTTP/1.1, by [`http1::server`]'s machine.
//!
//! A client that reads slowly is not read from, and one that reads nothing is reset. Not DHTTP: whoever connects is
//! served as by any other server.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use dhttp_proto::Server as Machine;
use dhttp_proto::token::{PORT_FIELD, TOKEN_FIELD, read_port};
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
    /// Its place in its client's account.
    pub(super) seat: ConnectionSlot,
    request: Option<(RequestId, RequestHead, Vec<u8>)>,
    /// One whose answer comes later.
    promised: Option<(RequestId, RequestHead)>,
    file: Option<FileRest>,
    /// When it last took bytes, or had none to take.
    progress: Time,
    /// Since when it has had something to take, or was judged last, and how many bytes it has taken since.
    taken: (Time, u64),
    end: End,
}

/// Rest of a file that the state machine has not received yet.
#[derive(Debug)]
struct FileRest {
    id: RequestId,
    file: Arc<File>,
    at: u64,
    end: u64,
    /// Trailers after it.
    trailers: Fields,
}

/// Way of closing, once nothing waits.
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
    /// Fields of every answer.
    pub(super) today: &'a DateHeader,
    /// Maker of tokens for clients that name the port on which they accept connections.
    pub(super) tokens: &'a Machine,
    /// For what comes in.
    pub(super) buffer: &'a mut [u8],
    pub(super) body_bytes: usize,
    /// Counters of clients.
    pub(super) counters: &'a Counters,
    /// For answers that come later, and the number of this connection there.
    pub(super) desk: &'a mut DeferredRequests,
    pub(super) number: u64,
    pub(super) answered: ResponseCallback<'a>,
}

/// Parts of a file that are read at once.
const PART_BYTES: usize = 64 << 10;

impl PlainConnection {
    pub(super) fn new(
        stream: TcpStream,
        client: IpAddr,
        seat: ConnectionSlot,
        machine: ServerConnection,
        now: Time,
    ) -> Self {
        Self {
            stream,
            client,
            seat,
            is_watched_for: (true, false),
            machine,
            queue: Queue::default(),
            request: None,
            promised: None,
            file: None,
            progress: now,
            taken: (now, 0),
            end: End::Open,
        }
    }

    /// Reads what came in, answers and writes. `false`: it is over, and to be dropped.
    pub(super) fn ready<H: Handler>(&mut self, around: &mut ConnectionContext<'_, H>) -> bool {
        if self.is_reading() {
            match self.stream.read(around.buffer) {
                Ok(0) => self.machine.handle(around.now, Input::EndOfStream),
                Ok(length) => {
                    let bytes = around.buffer.get(..length).unwrap_or_default();
                    self.machine.handle(around.now, Input::Received(bytes));
                }
                Err(error) if is_temporary(&error) => {}
                Err(_) => self.machine.handle(around.now, Input::Reset),
            }
        }
        self.go_on(around)
    }

    /// The same without reading: a moment has come, or there is room to write.
    pub(super) fn go_on<H: Handler>(&mut self, around: &mut ConnectionContext<'_, H>) -> bool {
        loop {
            if !self.poll(around) {
                return false;
            }
            let before = self.queue.is_empty();
            match self.queue.write(&self.stream) {
                Ok(written) => {
                    self.taken.1 += written.bytes;
                    if written.bytes > 0 || before {
                        self.progress = around.now;
                    }
                }
                Err(_) => return false,
            }
            if !self.queue.is_empty() {
                return true;
            }
            self.taken = (around.now, 0);
            if !self.give_file(around.now) {
                break;
            }
        }
        match self.end {
            End::Open => true,
            End::HalfClose => {
                // If it is gone already, reading will say so.
                let _ = self.stream.shutdown(Shutdown::Write);
                self.end = End::Open;
                true
            }
            End::Close => false,
        }
    }

    /// Whether the client has taken nothing for longer than this, though something waits.
    pub(super) fn is_stalled(&self, now: Time, timeout: wire::Duration) -> bool {
        !self.queue.is_empty() && now.since(self.progress) > timeout
    }

    /// Whether the client has taken fewer bytes per second than this for so long, though something waits.
    pub(super) fn is_too_slow(&mut self, now: Time, window: wire::Duration, min_rate: u64) -> bool {
        let (since, bytes) = self.taken;
        if self.queue.is_empty() || now.since(since) < window {
            return false;
        }
        self.taken = (now, 0);
        let seconds = now.since(since).as_nanos() / 1_000_000_000;
        bytes < min_rate.saturating_mul(seconds)
    }

    /// When it last took bytes, or was used.
    pub(super) const fn last_used(&self) -> Time {
        self.progress
    }

    pub(super) fn reset(&self) {
        socket::reset_on_close(&self.stream);
    }

    /// Whether nothing is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.request.is_none() && self.promised.is_none() && self.file.is_none()
    }

    pub(super) fn is_reading(&self) -> bool {
        self.machine.is_reading() && self.queue.is_empty() && self.file.is_none()
    }

    pub(super) fn is_writing(&self) -> bool {
        !self.queue.is_empty()
    }

    fn poll<H: Handler>(&mut self, around: &mut ConnectionContext<'_, H>) -> bool {
        loop {
            match self.machine.poll(around.now) {
                Output::Request(id, head) => self.request = Some((id, head, Vec::new())),
                Output::RequestBody(_, part) => self.body(around, &part),
                Output::RequestEnd(_) => self.serve_request(around),
                Output::RequestAborted(_) => {
                    (self.request, self.promised, self.file) = (None, None, None);
                    self.seat.release();
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
                    count(&around.counters.faults);
                }
                Output::Timeout(_) => return true,
            }
        }
    }

    /// Buffers a part of a body for a handler that looks at it. What is too much is refused before its end.
    fn body<H: Handler>(&mut self, around: &mut ConnectionContext<'_, H>, part: &[u8]) {
        let Some((_, _, body)) = self.request.as_mut().filter(|_| around.handler.takes_bodies()) else {
            return;
        };
        let response = if body.len() + part.len() > around.body_bytes {
            count(&around.counters.bodies_too_long);
            Response::text(413, "413 Content Too Large")
        } else if !self.seat.reserve(part.len()) {
            count(&around.counters.bodies_unbuffered);
            Response::text(503, "503 Service Unavailable: too many bodies wait")
        } else {
            return body.extend_from_slice(part);
        };
        if let Some((id, head, _)) = self.request.take() {
            self.respond(around, id, &head, response, Fields::new());
        }
    }

    fn serve_request<H: Handler>(&mut self, around: &mut ConnectionContext<'_, H>) {
        let Some((id, head, body)) = self.request.take() else { return };
        let request = Request::of_connection(&head, &body).from_client(Some(self.client.to_canonical()));
        match around.handler.respond(around.now, &request) {
            Reply::Now(response) => self.respond(around, id, &head, response, Fields::new()),
            Reply::PlainHttp => {
                // This is plain HTTP, and the client is known.
                let response = Response::text(500, NO_RESPONSE);
                self.respond(around, id, &head, response, Fields::new());
            }
            Reply::Later(_) if around.desk.is_full(Some(self.client)) => {
                let response = Response::text(503, "503 Service Unavailable");
                self.respond(around, id, &head, response, Fields::new());
            }
            Reply::Later(later) => {
                self.promised = Some((id, head));
                around.desk.wait(
                    around.now,
                    later,
                    Some(self.client),
                    RequestChannel::Connection(around.number),
                );
            }
        }
    }

    /// The answer that was promised has come, with trailers perhaps. `false`: the connection is over, and to be dropped.
    pub(super) fn respond_now<H: Handler>(
        &mut self,
        around: &mut ConnectionContext<'_, H>,
        response: Response,
        trailers: Fields,
    ) -> bool {
        if let Some((id, head)) = self.promised.take() {
            self.respond(around, id, &head, response, trailers);
        }
        self.go_on(around)
    }

    /// Something is to be said before that answer comes. `false`: as above.
    pub(super) fn say<H: Handler>(
        &mut self,
        around: &mut ConnectionContext<'_, H>,
        status: u16,
        fields: &Fields,
    ) -> bool {
        if let Some((id, _)) = &self.promised {
            // What cannot be said is no loss: the answer says everything.
            let _ = self.machine.interim(*id, status, fields);
        }
        self.go_on(around)
    }

    fn respond<H: Handler>(
        &mut self,
        around: &mut ConnectionContext<'_, H>,
        id: RequestId,
        head: &RequestHead,
        response: Response,
        trailers: Fields,
    ) {
        self.seat.release();
        let request = Request::of_connection(head, &[]);
        let has_body = !request.is_head() && !response.is_bodiless();
        let bytes = if has_body { response.body.len() } else { 0 };
        (around.answered)(&request, response.status, bytes);
        if has_body && takes_trailers(head) && trailers.iter().next().is_some() {
            return self.respond_with(around, id, head, response, trailers);
        }
        let (body, rest) = match response.body {
            Body::Whole(bytes) => (ResponseBody::Whole(bytes), None),
            Body::File { file, offset, length } => {
                let rest = FileRest { id, file, at: offset, end: offset + length, trailers: Fields::new() };
                (ResponseBody::Length(length), has_body.then_some(rest))
            }
            Body::Described(length) => (length.map_or(ResponseBody::Unknown, ResponseBody::Length), None),
        };
        let beside = self.beside(around, head, &response.fields);
        let fields = [&*response.fields, &*beside];
        match self.machine.respond_sharing(around.now, id, response.status, fields, body) {
            Ok(()) => self.file = rest,
            // A handler that answers with what cannot be sent, or a client that has gone meanwhile.
            Err(_) => {
                let _ = self.machine.respond(around.now, id, Http1Response::empty(500));
            }
        }
    }

    /// The fields of this second that a response with these fields has beside them, and a token if its request names the port
    /// on which the client accepts connections: the handshake of this connection has proved the client's address.
    fn beside<'a, H>(
        &self,
        around: &ConnectionContext<'a, H>,
        head: &RequestHead,
        fields: &Fields,
    ) -> Cow<'a, Fields> {
        let beside = around.today.beside(fields);
        let port = head.fields.get(PORT_FIELD).and_then(read_port);
        let client = port.map(|port| SocketAddr::new(self.client, port));
        match client.and_then(|client| around.tokens.token_for(around.now, client)) {
            Some(token) => {
                let mut beside = beside.clone();
                copy(&mut beside, TOKEN_FIELD.as_bytes(), token.as_str().as_bytes());
                Cow::Owned(beside)
            }
            None => Cow::Borrowed(beside),
        }
    }

    /// Gives an answer in chunks, with trailers behind them.
    fn respond_with<H>(
        &mut self,
        around: &mut ConnectionContext<'_, H>,
        id: RequestId,
        head: &RequestHead,
        response: Response,
        trailers: Fields,
    ) {
        let mut fields = Fields::clone(&response.fields);
        let names: Vec<&[u8]> = trailers.iter().map(|(name, _)| name).collect();
        copy(&mut fields, b"Trailer", &names.join(&b", "[..]));
        let beside = self.beside(around, head, &response.fields);
        let body = ResponseBody::Unknown;
        if self.machine.respond_sharing(around.now, id, response.status, [&fields, &*beside], body).is_err() {
            let _ = self.machine.respond(around.now, id, Http1Response::empty(500));
            return;
        }
        // As for a file below: misuse means that the client has gone.
        match response.body {
            Body::Whole(bytes) => {
                let _ = self.machine.send_part(id, &bytes);
                let _ = self.machine.finish_with(around.now, id, &trailers);
            }
            Body::File { file, offset, length } => {
                self.file = Some(FileRest { id, file, at: offset, end: offset + length, trailers });
            }
            // It describes a body that is elsewhere: nothing that a GET is answered with.
            Body::Described(_) => {
                let _ = self.machine.finish(around.now, id);
            }
        }
    }

    /// Gives the machine another part of the file; `false` if there is nothing to give.
    fn give_file(&mut self, now: Time) -> bool {
        let Some(rest) = &mut self.file else { return false };
        let mut part = [0; PART_BYTES];
        let wanted = usize::try_from(rest.end - rest.at).unwrap_or(PART_BYTES).min(PART_BYTES);
        let read =
            part.get_mut(..wanted).map_or(Ok(0), |buffer| rest.file.read_at(buffer, rest.at)).unwrap_or(0);
        rest.at += read as u64;
        let id = rest.id;
        // Misuse means that the client has gone, which the machine tells by itself; a file that has become shorter
        // ends in a reset.
        let _ = self.machine.send_part(id, part.get(..read).unwrap_or_default());
        if read == 0 && rest.at < rest.end {
            // In chunks nothing else would say that it is not whole.
            self.file = None;
            self.reset();
            self.machine.handle(now, Input::Reset);
        } else if rest.at >= rest.end
            && let Some(rest) = self.file.take()
        {
            let _ = self.machine.finish_with(now, id, &rest.trailers);
        }
        true
    }
}

/// Whether a client wants what comes behind a body (RFC 9110, section 10.1.4), and can have it.
fn takes_trailers(head: &RequestHead) -> bool {
    head.version == Version::Http11 && head.fields.has_token("TE", "trailers")
}

fn is_temporary(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
