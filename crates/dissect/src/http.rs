//! HTTP/1.x of a connection, as far as it can be read: where messages begin and end, and which response belongs to
//! which request.
//!
//! Not a strict reader (`http1` has one). TLS, a database protocol, a capture of headers only, or a hole counts as not
//! HTTP. The connection is then treated as turns of two sides. Bodies are counted, not stored.

use std::collections::VecDeque;

use crate::message_facts::{Certainty, MessageFacts};
use crate::{Both, Mark, Side, stream};
use wire::Duration;

mod poll;

/// Both directions, and the exchanges between them. `C` is what the caller wants to have with each exchange: its own state
/// when the request was sent.
#[derive(Debug, Default)]
pub struct Conversation<C> {
    streams: Both<Stream>,
    /// Requests without a complete response, oldest first.
    open: VecDeque<Exchange<C>>,
    /// Exchanges completed since they were last taken.
    pub answered: Vec<Exchange<C>>,
    /// Number of requests.
    pub requests: u64,
    is_lost: bool,
    /// Whether the server sends without requests: an event stream, or another protocol after 101.
    is_pushed: bool,
    handover: Option<Box<Handover>>,
}

/// A request and its response.
#[derive(Clone, Debug)]
pub struct Exchange<C> {
    /// The request's method.
    pub method: String,
    /// The request's target; its first 200 characters.
    pub target: String,
    /// The status code of the final response, once its header section was read.
    pub status: Option<u16>,
    /// The end of the request's header section.
    pub requested: Mark,
    /// The end of the response.
    pub ended: Mark,
    /// The caller's state at the time of the request.
    pub context: C,
    expects_continue: bool,
    is_continued: bool,
    /// Longest wait that the request permits the server, if it names one.
    named_wait: Option<Duration>,
}

impl<C> Exchange<C> {
    /// Creates the exchange of a stream of HTTP/2 or HTTP/3, with the method and the target of its request.
    pub(crate) fn of_stream(
        (method, target): (String, String),
        status: Option<u16>,
        requested: Mark,
        ended: Mark,
        context: C,
    ) -> Self {
        Self {
            method,
            target,
            status,
            requested,
            ended,
            context,
            expects_continue: false,
            is_continued: false,
            named_wait: None,
        }
    }
}

#[derive(Debug, Default)]
struct Stream {
    reader: Reader,
    /// Body bytes of the message so far.
    body: u64,
}

#[derive(Debug)]
enum Reader {
    /// The start line and the fields received so far.
    Head(Vec<u8>),
    /// Number of body bytes still to come.
    Length(u64),
    /// The chunk-size line.
    ChunkSize(Vec<u8>),
    /// A chunk and its CRLF: bytes still to come.
    Chunk(u64),
    /// The trailer section.
    Trailer(Vec<u8>),
    UntilClose,
}

impl Default for Reader {
    fn default() -> Self {
        Self::Head(Vec::new())
    }
}

/// Limits on the memory of one connection.
const MAX_HEAD_BYTES: usize = 1 << 16;
const MAX_OPEN: usize = 1_024;
const MAX_TARGET_BYTES: usize = 200;
const MAX_FIELDS: usize = 128;

/// The conversation as a reader of ordered bytes; requests get the caller's state.
#[derive(Debug)]
pub struct ConversationReader<'a, C> {
    /// The conversation.
    pub conversation: &'a mut Conversation<C>,
    /// The caller's state now.
    pub context: &'a C,
}

impl<C: Clone> stream::Reader for ConversationReader<'_, C> {
    fn bytes(&mut self, side: Side, data: &[u8], mark: Mark) {
        self.conversation.read(side, data, 0, mark, self.context);
    }

    fn hole(&mut self, side: Side, length: u64, mark: Mark) {
        self.conversation.read(side, &[], length, mark, self.context);
    }
}

impl<C: Clone> Conversation<C> {
    /// Handles the end of the data of `side`.
    pub fn ended(&mut self, side: Side, mark: Mark) {
        if matches!(self.streams.of(side).reader, Reader::UntilClose) && side == Side::Server {
            self.respond_ends(mark);
            self.streams.of_mut(side).reader = Reader::default();
        }
    }

    /// Returns the facts before `side` sends `payload`.
    pub fn message_facts(&self, side: Side, payload: &[u8]) -> MessageFacts {
        if self.is_lost || self.requests == 0 {
            return MessageFacts { is_pushed: self.is_pushed, ..MessageFacts::default() };
        }
        let stream = self.streams.of(side);
        let is_first = self.streams.of(Side::Client).body == 0;
        let asks = self.open.back().filter(|last| last.expects_continue && is_first);
        // Empty lines between messages begin none (RFC 9112, section 2.2).
        let is_empty = |begun: &[u8]| begun.iter().all(|byte| matches!(byte, b'\r' | b'\n'));
        let is_within = !matches!(&stream.reader, Reader::Head(begun) if is_empty(begun));
        MessageFacts {
            certainty: Certainty::Parsed,
            pending: self.first_unanswered().filter(|_| side == Side::Server && !is_within),
            is_within: Some(is_within),
            is_within_head: is_within && matches!(stream.reader, Reader::Head(_)),
            is_until_close: matches!(stream.reader, Reader::UntilClose),
            is_pushed: self.is_pushed,
            unanswered: Some(self.open.len()),
            expects_continue: asks.is_some_and(|last| !last.is_continued)
                && (side == Side::Client || payload.starts_with(b"HTTP/1.1 1")),
            permitted: asks
                .filter(|last| last.is_continued && side == Side::Client)
                .map(|last| last.requested),
            poll: self.open.front().and_then(|first| poll::end(&first.method, first.named_wait, payload)),
            ..MessageFacts::default()
        }
    }

    /// Returns the bytes that the body of the server's last message lacks, where its length is announced.
    pub const fn missing(&self) -> Option<u64> {
        match self.streams.server.reader {
            Reader::Length(left) => Some(left),
            _ => None,
        }
    }

    /// Returns the number of requests without complete responses; `None` if this is not HTTP.
    pub fn unanswered(&self) -> Option<usize> {
        let is_read = !self.is_lost && self.requests > 0;
        is_read.then_some(self.open.len())
    }

    /// Returns when the oldest request without a complete response was sent.
    pub fn first_unanswered(&self) -> Option<Mark> {
        self.open.front().map(|exchange| exchange.requested)
    }

    /// Returns the target of that request.
    pub fn first_target(&self) -> Option<&str> {
        self.open.front().map(|exchange| exchange.target.as_str())
    }

    /// Returns whether this is not HTTP, or cannot be followed further.
    pub const fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Returns whether another protocol follows (101), or the connection is a tunnel (CONNECT).
    pub fn handover(&self) -> Option<&Handover> {
        self.handover.as_deref()
    }

    /// Returns whether WebSocket follows.
    pub fn is_websocket(&self) -> bool {
        self.handover().is_some_and(|handover| handover.protocol.as_deref() == Some("websocket"))
    }

    /// Stops reading: this is not HTTP, or it cannot be followed further.
    pub(crate) fn lose(&mut self) {
        self.is_lost = true;
        self.streams = Both::default();
        self.open.clear();
    }

    /// Reads bytes in order; `missing` more were sent but not captured.
    fn read(&mut self, side: Side, bytes: &[u8], mut missing: u64, mark: Mark, context: &C) {
        let mut retained: Vec<u8>;
        let mut rest = bytes;
        while !self.is_lost && (!rest.is_empty() || missing > 0) {
            let reader = std::mem::take(&mut self.streams.of_mut(side).reader);
            match reader {
                Reader::Length(left) | Reader::Chunk(left) => {
                    let here = left.min(rest.len() as u64);
                    rest = usize::try_from(here).ok().and_then(|here| rest.get(here..)).unwrap_or_default();
                    let unseen = (left - here).min(missing);
                    missing -= unseen;
                    let is_chunk = matches!(reader, Reader::Chunk(_));
                    let left = left - here - unseen;
                    self.body(side, is_chunk, left, here + unseen, mark);
                }
                Reader::UntilClose => {
                    let stream = self.streams.of_mut(side);
                    (stream.reader, stream.body) = (reader, stream.body + rest.len() as u64 + missing);
                    return;
                }
                Reader::Head(_) | Reader::ChunkSize(_) | Reader::Trailer(_)
                    if missing > 0 && rest.is_empty() =>
                {
                    return self.lose();
                }
                Reader::Head(begun) => {
                    let (head, length) = match self.head(side, begun, rest, mark, context) {
                        Some(read) => read,
                        None => return,
                    };
                    retained = head;
                    rest = retained.get(length..).unwrap_or_default();
                }
                Reader::ChunkSize(mut line) => {
                    rest = until_line_end(&mut line, rest);
                    self.streams.of_mut(side).reader = match (line.ends_with(b"\n"), chunk_size(&line)) {
                        (false, _) if line.len() < MAX_TARGET_BYTES => Reader::ChunkSize(line),
                        (true, Some(0)) => Reader::Trailer(Vec::new()),
                        // Includes the CRLF after the chunk.
                        (true, Some(size)) => Reader::Chunk(size.saturating_add(2)),
                        (false, _) | (true, None) => return self.lose(),
                    };
                }
                Reader::Trailer(mut line) => {
                    rest = until_line_end(&mut line, rest);
                    match line.as_slice() {
                        b"\r\n" | b"\n" => self.message_ends(side, mark),
                        line if line.ends_with(b"\n") => {
                            self.streams.of_mut(side).reader = Reader::Trailer(Vec::new());
                        }
                        unended if unended.len() < MAX_HEAD_BYTES => {
                            self.streams.of_mut(side).reader = Reader::Trailer(line);
                        }
                        _ => return self.lose(),
                    }
                }
            }
        }
    }

    fn body(&mut self, side: Side, is_chunk: bool, left: u64, received: u64, mark: Mark) {
        let stream = self.streams.of_mut(side);
        stream.body += received;
        match (is_chunk, left) {
            (false, 0) => self.message_ends(side, mark),
            (true, 0) => stream.reader = Reader::ChunkSize(Vec::new()),
            (false, left) => stream.reader = Reader::Length(left),
            (true, left) => stream.reader = Reader::Chunk(left),
        }
    }

    /// Appends `more` to a header section. Returns the section and its length once it is complete, and `None` if it is
    /// incomplete or invalid.
    fn head(
        &mut self,
        side: Side,
        mut begun: Vec<u8>,
        more: &[u8],
        mark: Mark,
        context: &C,
    ) -> Option<(Vec<u8>, usize)> {
        let is_first = begun.is_empty();
        if is_first && side == Side::Client {
            self.streams.of_mut(side).body = 0;
        }
        begun.extend_from_slice(more);
        let read = match side {
            Side::Client => self.request(&begun, mark, context),
            Side::Server => self.response(&begun, mark),
        };
        match read {
            Ok(Some(length)) => Some((begun, length)),
            Ok(None) if begun.len() < MAX_HEAD_BYTES => {
                self.streams.of_mut(side).reader = Reader::Head(begun);
                None
            }
            Ok(None) | Err(NotHttp) => {
                self.lose();
                None
            }
        }
    }

    fn request(&mut self, bytes: &[u8], mark: Mark, context: &C) -> Result<Option<usize>, NotHttp> {
        let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
        let mut request = httparse::Request::new(&mut fields);
        let httparse::Status::Complete(length) = request.parse(bytes).map_err(|_| NotHttp)? else {
            return Ok(None);
        };
        if self.open.len() >= MAX_OPEN {
            return Err(NotHttp);
        }
        let reported = BodyFraming::of(request.headers);
        let named_wait = poll::named_wait(request.path.unwrap_or_default(), request.headers);
        let shortened =
            |text: Option<&str>| text.unwrap_or_default().chars().take(MAX_TARGET_BYTES).collect();
        if self.open.is_empty() {
            self.open.reserve_exact(1);
        }
        self.open.push_back(Exchange {
            method: shortened(request.method),
            target: shortened(request.path),
            status: None,
            requested: mark,
            ended: mark,
            context: context.clone(),
            expects_continue: reported.expects_continue,
            is_continued: false,
            named_wait,
        });
        self.requests += 1;
        self.streams.of_mut(Side::Client).reader = match reported {
            BodyFraming { is_chunked: true, length: _, expects_continue: _, is_event_stream: _ } => {
                Reader::ChunkSize(Vec::new())
            }
            BodyFraming {
                is_chunked: false,
                length: Some(length @ 1..),
                expects_continue: _,
                is_event_stream: _,
            } => Reader::Length(length),
            BodyFraming {
                is_chunked: false,
                length: Some(0) | None,
                expects_continue: _,
                is_event_stream: _,
            } => Reader::default(),
        };
        Ok(Some(length))
    }

    fn response(&mut self, bytes: &[u8], mark: Mark) -> Result<Option<usize>, NotHttp> {
        let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
        let mut response = httparse::Response::new(&mut fields);
        let httparse::Status::Complete(length) = response.parse(bytes).map_err(|_| NotHttp)? else {
            return Ok(None);
        };
        let status = response.code.unwrap_or_default();
        let reported = BodyFraming::of(response.headers);
        let requested = self.open.front_mut();
        let method = requested.as_ref().map_or("GET", |requested| requested.method.as_str());
        // A different protocol follows.
        self.is_pushed = status == 101 || reported.is_event_stream;
        let is_tunnel = method == "CONNECT" && (200..300).contains(&status);
        if status == 101 || is_tunnel {
            let target = requested.map(|requested| requested.target.clone()).filter(|_| is_tunnel);
            let upgrade = response.headers.iter().find(|field| field.name.eq_ignore_ascii_case("Upgrade"));
            let protocol = upgrade.map(|field| String::from_utf8_lossy(field.value).to_ascii_lowercase());
            self.handover = Some(Box::new(Handover { target, protocol, length }));
            return Err(NotHttp);
        }
        let has_no_body = matches!(status, 100..200 | 204 | 304) || method == "HEAD";
        if let Some(requested) = requested {
            match status {
                100..200 => requested.is_continued = true,
                _ => requested.status = Some(status),
            }
        }
        let reader = match reported {
            _ if has_no_body => Reader::Length(0),
            BodyFraming { is_chunked: true, length: _, expects_continue: _, is_event_stream: _ } => {
                Reader::ChunkSize(Vec::new())
            }
            BodyFraming {
                is_chunked: false,
                length: Some(length),
                expects_continue: _,
                is_event_stream: _,
            } => Reader::Length(length),
            BodyFraming { is_chunked: false, length: None, expects_continue: _, is_event_stream: _ } => {
                Reader::UntilClose
            }
        };
        let is_whole = matches!(reader, Reader::Length(0));
        self.streams.of_mut(Side::Server).reader = if is_whole { Reader::default() } else { reader };
        if is_whole && status >= 200 {
            self.respond_ends(mark);
        }
        Ok(Some(length))
    }

    fn message_ends(&mut self, side: Side, mark: Mark) {
        self.streams.of_mut(side).reader = Reader::default();
        if side == Side::Server {
            self.respond_ends(mark);
        }
    }

    fn respond_ends(&mut self, mark: Mark) {
        if let Some(mut exchange) = self.open.pop_front() {
            exchange.ended = mark;
            self.answered.reserve_exact(1);
            self.answered.push(exchange);
            if self.open.is_empty() {
                self.open = VecDeque::new();
            }
        }
    }
}

/// End of HTTP/1 on a connection by agreement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handover {
    /// The target of a tunnel (CONNECT).
    pub target: Option<String>,
    /// The protocol that follows (`Upgrade`), in lower case.
    pub protocol: Option<String>,
    /// Bytes of the response's header section.
    pub length: usize,
}

struct NotHttp;

/// Framing of a body, by the header fields.
struct BodyFraming {
    is_chunked: bool,
    length: Option<u64>,
    expects_continue: bool,
    is_event_stream: bool,
}

impl BodyFraming {
    fn of(fields: &[httparse::Header<'_>]) -> Self {
        let mut reported =
            Self { is_chunked: false, length: None, expects_continue: false, is_event_stream: false };
        for httparse::Header { name, value } in fields {
            let value = value.trim_ascii();
            if name.eq_ignore_ascii_case("Content-Length") {
                reported.length = std::str::from_utf8(value).ok().and_then(|digits| digits.parse().ok());
            } else if name.eq_ignore_ascii_case("Transfer-Encoding") {
                reported.is_chunked = value.to_ascii_lowercase().ends_with(b"chunked");
            } else if name.eq_ignore_ascii_case("Expect") {
                reported.expects_continue = value.eq_ignore_ascii_case(b"100-continue");
            } else if name.eq_ignore_ascii_case("Content-Type") {
                reported.is_event_stream = value.to_ascii_lowercase().starts_with(b"text/event-stream");
            }
        }
        reported
    }
}

/// Appends bytes to `line` up to the end of the line; returns the remaining bytes.
fn until_line_end<'a>(line: &mut Vec<u8>, bytes: &'a [u8]) -> &'a [u8] {
    let end = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| end + 1);
    let (head, rest) = bytes.split_at(end);
    // The reader rejects a line without an end.
    line.extend(head.iter().take(MAX_HEAD_BYTES));
    rest
}

fn chunk_size(line: &[u8]) -> Option<u64> {
    let line = std::str::from_utf8(line).ok()?;
    let digits = line.split([';', '\r', '\n']).next()?.trim();
    u64::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests;
