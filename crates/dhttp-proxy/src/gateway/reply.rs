//! An answer, framed for a program's connection, and written as it comes.
//!
//! Not where it comes from: that is for `browser`.

use std::io::{self, Write};
use std::net::TcpStream;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use http1::message::head::{write_decimal, write_status_line};
use http1::message::{Fields, Method, RequestHead, ResponseHead, Version, persists};

use super::chunked;
use crate::cache::streaming_fill::StreamingFill;
use dhttp::fields::copy;
use dhttp::handler::{Body, Response};
use dhttp::socket;

/// Length of a response's body, as known from its header section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    /// So many bytes.
    Known(u64),
    /// As many as come.
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

/// An answer that is being written.
#[derive(Debug)]
pub(super) struct Reply<'a> {
    stream: &'a TcpStream,
    pub(super) status: u16,
    body: ReplyFraming,
    /// Whether the connection may carry another.
    pub(super) stays: bool,
    /// Bytes of the body so far.
    pub(super) bytes: u64,
    /// Waits to be written together.
    out: Vec<u8>,
    /// Keeps what passes.
    keeping: Option<Box<StreamingFill>>,
    /// It was kept, and is whole: what comes of the server is not for the program.
    is_kept: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReplyFraming {
    Nothing,
    /// So many bytes are still due.
    Length(u64),
    Chunked,
    UntilClose,
}

/// Properties of a client's request that the framing of the response depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReplyContext<'a> {
    pub(super) method: &'a Method,
    pub(super) version: Version,
    /// Whether it wants to go on with this connection.
    pub(super) stays: bool,
}

impl<'a> ReplyContext<'a> {
    pub(super) fn of(head: &'a RequestHead) -> Self {
        let stays = persists(head.version, &head.fields) || is_kept_in_the_old_way(head);
        Self { method: &head.method, version: head.version, stays }
    }
}

/// As programs of the nineties tell a proxy that they can keep the connection.
fn is_kept_in_the_old_way(head: &RequestHead) -> bool {
    head.version == Version::Http10 && head.fields.has_token("Proxy-Connection", "keep-alive")
}

/// Small parts wait for one another up to so many bytes.
const TOGETHER: usize = 16 << 10;

impl<'a> Reply<'a> {
    /// Begins with the head, which is written with the first of the body.
    pub(super) fn begin(
        stream: &'a TcpStream,
        requested: ReplyContext<'_>,
        head: &ResponseHead,
        size: Size,
    ) -> Self {
        let mut out = Vec::with_capacity(1_024);
        let (body, stays) = frame(&mut out, requested, head, size);
        let (keeping, is_kept) = (None, false);
        Self { stream, status: head.status, body, stays, bytes: 0, out, keeping, is_kept }
    }

    /// An answer that is kept, whole but for its end.
    ///
    /// # Errors
    /// That the program is gone, or that the file is.
    pub(super) fn given(
        stream: &'a TcpStream,
        requested: ReplyContext<'_>,
        response: &Response,
    ) -> io::Result<Self> {
        let mut out = Vec::with_capacity(1_024);
        let has_body = write_head(&mut out, requested, response);
        let length = response.body.len();
        let body = if has_body { ReplyFraming::Length(length) } else { ReplyFraming::Nothing };
        let (status, stays) = (response.status, requested.stays);
        let mut reply = Self { stream, status, body, stays, bytes: 0, out, keeping: None, is_kept: false };
        match &response.body {
            Body::Whole(bytes) if has_body => reply.part(bytes)?,
            Body::File { file, offset, length } if has_body => {
                let (mut buffer, end) = (vec![0; TOGETHER], offset + length);
                let mut offset = *offset;
                while offset < end {
                    let most = usize::try_from(end - offset).unwrap_or(TOGETHER).min(TOGETHER);
                    let buffer = buffer.get_mut(..most).unwrap_or_default();
                    file.read_exact_at(buffer, offset)?;
                    reply.part(buffer)?;
                    offset += most as u64;
                }
            }
            Body::Whole(_) | Body::File { file: _, offset: _, length: _ } | Body::Described(_) => {}
        }
        reply.is_kept = true;
        Ok(reply)
    }

    /// The same, which is kept meanwhile.
    pub(super) fn keeping(self, passing: Box<StreamingFill>) -> Self {
        Self { keeping: Some(passing), ..self }
    }

    /// A part of the body.
    ///
    /// # Errors
    /// That the program is gone, or that there is more than the head said.
    pub(super) fn part(&mut self, part: &[u8]) -> io::Result<()> {
        if self.is_kept {
            return Ok(());
        }
        if let Some(keeping) = &mut self.keeping {
            keeping.part(part);
        }
        self.bytes += part.len() as u64;
        match &mut self.body {
            ReplyFraming::Nothing => return Ok(()),
            ReplyFraming::Length(left) => {
                *left = left.checked_sub(part.len() as u64).ok_or(io::ErrorKind::InvalidData)?;
                self.out.extend_from_slice(part);
            }
            ReplyFraming::Chunked => chunked::part(&mut self.out, part),
            ReplyFraming::UntilClose => self.out.extend_from_slice(part),
        }
        if self.out.len() >= TOGETHER { self.flush() } else { Ok(()) }
    }

    /// Writes what waits: more may be long in coming.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        let mut stream = self.stream;
        stream.write_all(&self.out)?;
        self.out.clear();
        Ok(())
    }

    /// The end, with trailers where there is room for them.
    ///
    /// # Errors
    /// That the program is gone, or that there was less than the head said.
    pub(super) fn end(mut self, trailers: &Fields) -> io::Result<(bool, u64)> {
        match self.body {
            ReplyFraming::Nothing | ReplyFraming::UntilClose | ReplyFraming::Length(0) => {}
            ReplyFraming::Length(_) => return Err(io::ErrorKind::UnexpectedEof.into()),
            ReplyFraming::Chunked => chunked::end(&mut self.out, trailers),
        }
        if let Some(keeping) = self.keeping.take() {
            keeping.end();
        }
        self.flush()?;
        Ok((self.stays, self.bytes))
    }
}

/// Writes a head, with what says how its body ends; and whether the connection stays.
fn frame(
    out: &mut Vec<u8>,
    requested: ReplyContext<'_>,
    head: &ResponseHead,
    size: Size,
) -> (ReplyFraming, bool) {
    let ReplyContext { method, version, stays } = requested;
    let has_no_body = *method == Method::Head || matches!(head.status, 204 | 304);
    let body = match (has_no_body, size, version) {
        (true, _, _) => ReplyFraming::Nothing,
        (false, Size::Known(length), _) => ReplyFraming::Length(length),
        (false, Size::Unknown, Version::Http11) => ReplyFraming::Chunked,
        (false, Size::Unknown, Version::Http10) => ReplyFraming::UntilClose,
    };
    let stays = stays && body != ReplyFraming::UntilClose;
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
    match (stays, version) {
        (false, _) => copy(&mut fields, b"Connection", b"close"),
        (true, Version::Http10) => copy(&mut fields, b"Connection", b"keep-alive"),
        (true, Version::Http11) => {}
    }
    ResponseHead { version: Version::Http11, status: head.status, fields }.encode(out);
    (body, stays)
}

/// Writes an answer that is all here; whether the connection stays, and how many bytes of a body there were.
pub(super) fn write_passed(
    out: &mut Vec<u8>,
    requested: ReplyContext<'_>,
    head: &ResponseHead,
    body: &[u8],
) -> (bool, u64) {
    let (framed, stays) = frame(out, requested, head, Size::Known(body.len() as u64));
    let body = if framed == ReplyFraming::Nothing { &[] } else { body };
    out.extend_from_slice(body);
    (stays, body.len() as u64)
}

/// Writes the head of an answer that is kept; whether its body follows.
pub(super) fn write_head(out: &mut Vec<u8>, requested: ReplyContext<'_>, response: &Response) -> bool {
    let Response { status, fields, body } = response;
    write_status_line(Version::Http11, *status, out);
    out.extend_from_slice(fields.lines());
    if let Some(length) = body.told_length().filter(|_| !response.is_bodiless()) {
        out.extend_from_slice(b"Content-Length: ");
        write_decimal(length, out);
        out.extend_from_slice(b"\r\n");
    }
    let end: &[u8] = match (requested.stays, requested.version) {
        (false, _) => b"Connection: close\r\n\r\n",
        (true, Version::Http10) => b"Connection: keep-alive\r\n\r\n",
        (true, Version::Http11) => b"\r\n",
    };
    out.extend_from_slice(end);
    *requested.method != Method::Head && !response.is_bodiless()
}

/// Ends a connection so that nobody takes what came for a whole answer.
pub(super) fn break_off(stream: &TcpStream) {
    socket::reset_on_close(stream);
    let _ = stream.shutdown(std::net::Shutdown::Both);
}

/// Tells a program that there are too many.
pub(super) fn turn_away(mut stream: &TcpStream) {
    let _ = stream.set_write_timeout(Some(Duration::from_secs(1)));
    let _ = stream.write_all(
        b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    );
}
