//! Writing of a response to the client, framed for its connection: forwarded as it arrives, cached, or the gateway's own.

use std::io::{self, Write};
use std::net::TcpStream;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use http1::message::head::{write_decimal, write_status_line};
use http1::message::{Fields, Method, RequestHead, ResponseHead, Version};

use super::stage::{ClientRequest, ExchangeEnd, Pipeline, ReplyContext, Stage};
use super::upstream::is_late;
use super::{chunked, log_response};
use crate::cache::streaming_fill::{Disposition, StreamingFill};
use dhttp::counters::count_shared;
use dhttp::fields::copy;
use dhttp::handler::{Body, Response};
use dhttp::log::Channel;
use dhttp::server::queue::Queue;
use dhttp::socket;

/// Length of a response's body, according to its header section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    /// This number of bytes.
    Known(u64),
    /// Unknown in advance.
    Unknown,
}

impl Size {
    pub(super) const fn known(self) -> Option<u64> {
        match self {
            Self::Known(length) => Some(length),
            Self::Unknown => None,
        }
    }
}

/// A response that is being written.
#[derive(Debug)]
pub(super) struct Reply<'a> {
    stream: &'a TcpStream,
    pub(super) status: u16,
    body: ReplyFraming,
    /// Whether the connection may carry another request.
    keep_alive: bool,
    /// Bytes of the body so far.
    bytes: u64,
    /// Bytes to be written together.
    out: Vec<u8>,
    /// Cache entry that is filled from the response.
    cache_fill: Option<Box<StreamingFill>>,
    /// Whether it was served from the cache, whole: the server's body is not for the program.
    is_from_cache: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReplyFraming {
    Nothing,
    /// Remaining bytes.
    Length(u64),
    Chunked,
    UntilClose,
}

/// Media type of the gateway's sentences.
const TEXT: &str = "text/plain; charset=utf-8";
/// Maximum bytes of small parts that are gathered for one write.
const MAX_GATHERED_BYTES: usize = 16 << 10;
/// A body of the event loop up to this length is copied behind its header section.
const MAX_COPIED_BYTES: usize = 16 << 10;

/// Outcome of the header section of a response.
pub(super) enum ReplyStart<'a> {
    /// The response to the client has begun.
    Reply(Reply<'a>),
    /// The request is to be retried.
    Retry,
}

/// Begins the response to a client, and stores it meanwhile if allowed.
///
/// # Errors
/// The client is disconnected.
pub(super) fn begin<'a>(
    fill: &mut Option<Box<StreamingFill>>,
    stream: &'a TcpStream,
    requested: ReplyContext<'_>,
    response: &ResponseHead,
    size: Size,
) -> io::Result<ReplyStart<'a>> {
    let Some(mut filling) = fill.take() else {
        return Ok(ReplyStart::Reply(Reply::begin(stream, requested, response, size)));
    };
    let reply = match filling.head(response, size.known()) {
        Disposition::Complete(stored) => Reply::serve_from(stream, requested, &stored)?,
        Disposition::Forward(fields) => {
            let (version, status) = (response.version, response.status);
            let head = ResponseHead { version, status, fields };
            Reply { cache_fill: Some(filling), ..Reply::begin(stream, requested, &head, size) }
        }
        Disposition::Retry => {
            *fill = Some(filling);
            return Ok(ReplyStart::Retry);
        }
    };
    Ok(ReplyStart::Reply(reply))
}

impl Pipeline<'_> {
    /// Writes a cached response.
    pub(super) fn write_stored(&self, request: &ClientRequest, response: &Response) -> Stage {
        let cached_reply = Reply::serve_from(self.stream(), request.context(), response);
        let ended = cached_reply.and_then(|reply| reply.end(&Fields::new()));
        self.conclude(&request.head, response.status, Channel::Cache, &ended)
    }

    /// Writes the gateway's `proxy.pac`, which leads to the address at which it was requested.
    pub(super) fn write_script(&self, request: &ClientRequest) -> Stage {
        let at = self.stream().local_addr().unwrap_or(self.shared.address);
        let script = format!(
            "function FindProxyForURL(url, host) {{\n  if (url.substring(0, 5) == \"http:\") return \"PROXY {at}; DIRECT\";\n  \
             return \"DIRECT\";\n}}\n"
        );
        self.write_own(Some(request), 200, "application/x-ns-proxy-autoconfig", &script)
    }

    /// Writes a refusal, or another sentence; `None` as the request: it was invalid.
    pub(super) fn refuse(&self, request: Option<&ClientRequest>, status: u16, reason: &str) -> Stage {
        self.write_own(request, status, TEXT, &format!("{reason}\n"))
    }

    /// Writes a response of the gateway itself.
    fn write_own(&self, request: Option<&ClientRequest>, status: u16, kind: &str, text: &str) -> Stage {
        count_shared(&self.shared.counters.own);
        let head = own_head(status, kind);
        let get = Method::Get;
        let unknown = ReplyContext { method: &get, version: Version::Http11, keep_alive: false };
        let to = request.map_or(unknown, ClientRequest::context);
        let mut reply = Reply::begin(self.stream(), to, &head, Size::Known(text.len() as u64));
        let ended = reply.part(text.as_bytes()).and_then(|()| reply.end(&Fields::new()));
        if let (Some(request), Ok((_, bytes))) = (request, &ended) {
            self.log(&request.head, status, *bytes, Channel::TcpClient);
        }
        Stage::End(exchange_end(&ended))
    }

    /// Counts and logs a response, complete or cut short, and ends the exchange.
    pub(super) fn conclude(
        &self,
        head: &RequestHead,
        status: u16,
        channel: Channel,
        ended: &io::Result<(bool, u64)>,
    ) -> Stage {
        let counters = &self.shared.counters;
        match ended {
            Ok((_, bytes)) => {
                count_shared(counters.responses(channel));
                self.log(head, status, *bytes, channel);
            }
            Err(error) => {
                count_shared(&counters.failed);
                if is_late(error) {
                    count_shared(&counters.slow);
                }
            }
        }
        Stage::End(exchange_end(ended))
    }

    fn log(&self, head: &RequestHead, status: u16, bytes: u64, channel: Channel) {
        if let Some(log) = self.shared.log() {
            log_response(&log, self.peer, head, status, bytes, channel);
            // One computer's programs are little load: the log always shows the last request.
            log.flush();
        }
    }
}

/// Returns the header section of a response of the gateway itself.
fn own_head(status: u16, kind: &str) -> ResponseHead {
    let mut fields = Fields::new();
    // Both fields are constant and valid.
    let _ = fields.push("Content-Type", kind).and_then(|()| fields.push("Cache-Control", "no-store"));
    if status == 503 {
        copy(&mut fields, b"Retry-After", b"1");
    }
    ResponseHead { version: Version::Http11, status, fields }
}

/// Writes a refusal (503) of the event loop; returns whether the connection stays open, and the length of the body.
pub(super) fn write_refusal(out: &mut Vec<u8>, requested: ReplyContext<'_>, reason: &str) -> (bool, u64) {
    let text = format!("{reason}\n");
    write_passed(out, requested, &own_head(503, TEXT), text.as_bytes())
}

const fn exchange_end(ended: &io::Result<(bool, u64)>) -> ExchangeEnd {
    match ended {
        Ok((true, _)) => ExchangeEnd::Whole,
        Ok((false, _)) => ExchangeEnd::Last,
        Err(_) => ExchangeEnd::Broken,
    }
}

impl<'a> Reply<'a> {
    /// Begins with the header section, which is written with the first part of the body.
    fn begin(stream: &'a TcpStream, requested: ReplyContext<'_>, head: &ResponseHead, size: Size) -> Self {
        let mut out = Vec::with_capacity(1_024);
        let (body, keep_alive) = frame(&mut out, requested, head, size);
        let (cache_fill, is_from_cache) = (None, false);
        Self { stream, status: head.status, body, keep_alive, bytes: 0, out, cache_fill, is_from_cache }
    }

    /// Begins with a cached response, whole but for its end.
    ///
    /// # Errors
    /// The program is disconnected, or the cached file cannot be read.
    fn serve_from(
        stream: &'a TcpStream,
        requested: ReplyContext<'_>,
        response: &Response,
    ) -> io::Result<Self> {
        let mut out = Vec::with_capacity(1_024);
        let has_body = write_head(&mut out, requested, response);
        let length = response.body.len();
        let body = if has_body { ReplyFraming::Length(length) } else { ReplyFraming::Nothing };
        let (status, keep_alive) = (response.status, requested.keep_alive);
        let mut reply =
            Self { stream, status, body, keep_alive, bytes: 0, out, cache_fill: None, is_from_cache: false };
        match &response.body {
            Body::Whole(bytes) if has_body => reply.part(bytes)?,
            Body::File { file, offset, length } if has_body => {
                let (mut buffer, end) = (vec![0; MAX_GATHERED_BYTES], offset + length);
                let mut offset = *offset;
                while offset < end {
                    let max =
                        usize::try_from(end - offset).unwrap_or(MAX_GATHERED_BYTES).min(MAX_GATHERED_BYTES);
                    let buffer = buffer.get_mut(..max).unwrap_or_default();
                    file.read_exact_at(buffer, offset)?;
                    reply.part(buffer)?;
                    offset += max as u64;
                }
            }
            Body::Whole(_) | Body::File { file: _, offset: _, length: _ } | Body::Described(_) => {}
        }
        reply.is_from_cache = true;
        Ok(reply)
    }

    /// Writes a part of the body.
    ///
    /// # Errors
    /// The program is disconnected, or the body exceeds its length.
    pub(super) fn part(&mut self, part: &[u8]) -> io::Result<()> {
        if self.is_from_cache {
            return Ok(());
        }
        if let Some(cache_fill) = &mut self.cache_fill {
            cache_fill.part(part);
        }
        self.bytes += part.len() as u64;
        match &mut self.body {
            ReplyFraming::Nothing => return Ok(()),
            ReplyFraming::Length(remaining) => {
                *remaining = remaining.checked_sub(part.len() as u64).ok_or(io::ErrorKind::InvalidData)?;
                self.out.extend_from_slice(part);
            }
            ReplyFraming::Chunked => chunked::part(&mut self.out, part),
            ReplyFraming::UntilClose => self.out.extend_from_slice(part),
        }
        if self.out.len() >= MAX_GATHERED_BYTES { self.flush() } else { Ok(()) }
    }

    /// Writes gathered bytes: the next part may take long.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        let mut stream = self.stream;
        stream.write_all(&self.out)?;
        self.out.clear();
        Ok(())
    }

    /// Ends the response, with trailers where the framing allows them.
    ///
    /// # Errors
    /// The program is disconnected, or the body is too short.
    pub(super) fn end(mut self, trailers: &Fields) -> io::Result<(bool, u64)> {
        match self.body {
            ReplyFraming::Nothing | ReplyFraming::UntilClose | ReplyFraming::Length(0) => {}
            ReplyFraming::Length(_) => return Err(io::ErrorKind::UnexpectedEof.into()),
            ReplyFraming::Chunked => chunked::end(&mut self.out, trailers),
        }
        if let Some(cache_fill) = self.cache_fill.take() {
            cache_fill.end();
        }
        self.flush()?;
        Ok((self.keep_alive, self.bytes))
    }
}

/// Writes a header section with the body's framing; returns whether the connection stays open.
fn frame(
    out: &mut Vec<u8>,
    requested: ReplyContext<'_>,
    head: &ResponseHead,
    size: Size,
) -> (ReplyFraming, bool) {
    let ReplyContext { method, version, keep_alive } = requested;
    let has_no_body = *method == Method::Head || matches!(head.status, 204 | 304);
    let body = match (has_no_body, size, version) {
        (true, _, _) => ReplyFraming::Nothing,
        (false, Size::Known(length), _) => ReplyFraming::Length(length),
        (false, Size::Unknown, Version::Http11) => ReplyFraming::Chunked,
        (false, Size::Unknown, Version::Http10) => ReplyFraming::UntilClose,
    };
    let keep_alive = keep_alive && body != ReplyFraming::UntilClose;
    let mut fields = Fields::new();
    for (name, value) in head.fields.iter() {
        let is_length = name.eq_ignore_ascii_case(b"Content-Length");
        if !is_length || body == ReplyFraming::Nothing {
            copy(&mut fields, name, value);
        }
    }
    match body {
        ReplyFraming::Length(length) => copy(&mut fields, b"Content-Length", length.to_string().as_bytes()),
        ReplyFraming::Chunked => copy(&mut fields, b"Transfer-Encoding", b"chunked"),
        ReplyFraming::Nothing | ReplyFraming::UntilClose => {}
    }
    match (keep_alive, version) {
        (false, _) => copy(&mut fields, b"Connection", b"close"),
        (true, Version::Http10) => copy(&mut fields, b"Connection", b"keep-alive"),
        (true, Version::Http11) => {}
    }
    ResponseHead { version: Version::Http11, status: head.status, fields }.encode(out);
    (body, keep_alive)
}

/// Writes a complete response; returns whether the connection stays open, and the length of the body.
pub(super) fn write_passed(
    out: &mut Vec<u8>,
    requested: ReplyContext<'_>,
    head: &ResponseHead,
    body: &[u8],
) -> (bool, u64) {
    let (framed, keep_alive) = frame(out, requested, head, Size::Known(body.len() as u64));
    let body = if framed == ReplyFraming::Nothing { &[] } else { body };
    out.extend_from_slice(body);
    (keep_alive, body.len() as u64)
}

/// Writes the header section of a cached response; returns whether its body follows.
pub(super) fn write_head(out: &mut Vec<u8>, requested: ReplyContext<'_>, response: &Response) -> bool {
    let Response { status, fields, body } = response;
    write_status_line(Version::Http11, *status, out);
    out.extend_from_slice(fields.lines());
    if let Some(length) = body.announced_length().filter(|_| !response.is_bodiless()) {
        out.extend_from_slice(b"Content-Length: ");
        write_decimal(length, out);
        out.extend_from_slice(b"\r\n");
    }
    let end: &[u8] = match (requested.keep_alive, requested.version) {
        (false, _) => b"Connection: close\r\n\r\n",
        (true, Version::Http10) => b"Connection: keep-alive\r\n\r\n",
        (true, Version::Http11) => b"\r\n",
    };
    out.extend_from_slice(end);
    *requested.method != Method::Head && !response.is_bodiless()
}

/// Writes a cached response of the event loop; returns the length of its body.
pub(super) fn stored(
    queue: &mut Queue,
    out: &mut Vec<u8>,
    requested: ReplyContext<'_>,
    response: &Response,
    bytes: &[u8],
) -> u64 {
    if !write_head(out, requested, response) {
        return 0;
    }
    if bytes.len() <= MAX_COPIED_BYTES {
        out.extend_from_slice(bytes);
    } else {
        queue.push_bytes(std::mem::take(out));
        queue.push_body(&response.body);
    }
    bytes.len() as u64
}

/// Resets a connection, so that the program does not take a truncated response for a whole one.
pub(super) fn break_off(stream: &TcpStream) {
    socket::reset_on_close(stream);
    let _ = stream.shutdown(std::net::Shutdown::Both);
}

/// Responds 503: too many connections.
pub(super) fn refuse_overload(mut stream: &TcpStream) {
    let _ = stream.set_write_timeout(Some(Duration::from_secs(1)));
    let _ = stream.write_all(
        b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    );
}
