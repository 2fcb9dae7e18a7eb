//! One request and its response: the permitted next step, and its encoding.
//!
//! Not the connection: it sends nothing and has no timers.

use std::sync::Arc;

use crate::message::{Fields, Method, RequestHead, Version, persists};

use super::RequestId;
use super::response::{Head, Misuse, ResponseBody, check, is_bodiless};

/// A request and the state of its response.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) id: RequestId,
    method: Method,
    version: Version,
    /// Whether the connection persists afterwards.
    pub(super) persists: bool,
    /// Whether the request is complete.
    pub(super) request_ended: bool,
    response: ResponseProgress,
}

/// Progress of the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ResponseProgress {
    /// Nothing sent.
    Pending,
    /// Header section sent; this many bytes of the body remain.
    Length(u64),
    /// Header section sent; chunks follow.
    Chunked,
    /// Header section sent; the body ends with the connection.
    UntilClose,
}

/// Remainder of a response after its header section.
pub(super) enum RemainingBody {
    /// Nothing; the response is complete.
    Nothing,
    /// This body; the response is then complete.
    Whole(Arc<[u8]>),
    /// Parts that follow.
    Parts,
}

/// Encoding of a part of a body on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TransferCoding {
    /// Unencoded.
    Plain,
    /// As a chunk.
    Chunked,
}

/// Writes the end of a chunked body.
pub(super) fn write_last_chunk(trailers: &Fields, out: &mut Vec<u8>) {
    out.extend_from_slice(b"0\r\n");
    out.extend_from_slice(trailers.lines());
    out.extend_from_slice(b"\r\n");
}

impl Exchange {
    pub(super) fn new(id: RequestId, head: &RequestHead) -> Self {
        Self {
            id,
            method: head.method.clone(),
            version: head.version,
            persists: persists(head.version, &head.fields),
            request_ended: false,
            response: ResponseProgress::Pending,
        }
    }

    /// Whether any part of a response has been sent.
    pub(super) fn has_begun(&self) -> bool {
        self.response != ResponseProgress::Pending
    }

    /// Whether the client supports interim responses; an error if the response has begun.
    pub(super) fn may_wait(&self) -> Result<bool, Misuse> {
        if self.has_begun() {
            return Err(Misuse::OutOfOrder(self.id));
        }
        Ok(self.version == Version::Http11)
    }

    /// Begins the response, and returns its header section and the remaining body. `last`: the connection may carry no other.
    pub(super) fn begin(
        &mut self,
        status: u16,
        fields: [&Fields; 2],
        body: ResponseBody,
        last: bool,
    ) -> Result<(Head, RemainingBody), Misuse> {
        if self.has_begun() {
            return Err(Misuse::OutOfOrder(self.id));
        }
        check(status, fields)?;
        self.response = match (&body, self.version) {
            (ResponseBody::Whole(_), Version::Http10 | Version::Http11) => ResponseProgress::Length(0),
            (ResponseBody::Length(length), Version::Http10 | Version::Http11) => {
                ResponseProgress::Length(*length)
            }
            (ResponseBody::Unknown, Version::Http11) => ResponseProgress::Chunked,
            (ResponseBody::Unknown, Version::Http10) => ResponseProgress::UntilClose,
        };
        self.persists &= !last && self.response != ResponseProgress::UntilClose;
        let bodiless = self.method == Method::Head || is_bodiless(status);
        // A whole response before the end of its request is the last on its connection.
        self.persists &= self.request_ended || !(bodiless || matches!(body, ResponseBody::Whole(_)));
        let head = Head { version: self.version, status, persists: self.persists, length: body.length() };
        let rest = match body {
            ResponseBody::Whole(_) | ResponseBody::Length(_) | ResponseBody::Unknown if bodiless => {
                RemainingBody::Nothing
            }
            ResponseBody::Whole(bytes) => RemainingBody::Whole(bytes),
            ResponseBody::Length(_) | ResponseBody::Unknown => RemainingBody::Parts,
        };
        Ok((head, rest))
    }

    /// Records part of the body, and returns its coding.
    pub(super) fn part(&mut self, length: usize) -> Result<TransferCoding, Misuse> {
        match &mut self.response {
            ResponseProgress::Pending => Err(Misuse::OutOfOrder(self.id)),
            ResponseProgress::Length(left) => {
                *left = left.checked_sub(length as u64).ok_or(Misuse::TooLong(self.id))?;
                Ok(TransferCoding::Plain)
            }
            ResponseProgress::Chunked => Ok(TransferCoding::Chunked),
            ResponseProgress::UntilClose => Ok(TransferCoding::Plain),
        }
    }

    /// Records the end of the body.
    pub(super) fn end(&self) -> Result<TransferCoding, Misuse> {
        match self.response {
            ResponseProgress::Pending => Err(Misuse::OutOfOrder(self.id)),
            ResponseProgress::Length(1..) => Err(Misuse::TooShort(self.id)),
            ResponseProgress::Length(0) | ResponseProgress::UntilClose => Ok(TransferCoding::Plain),
            ResponseProgress::Chunked => Ok(TransferCoding::Chunked),
        }
    }
}

impl TransferCoding {
    /// Writes a part, which must not be empty.
    pub(super) fn encode(self, part: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Plain => out.extend_from_slice(part),
            Self::Chunked => {
                out.extend_from_slice(format!("{:x}\r\n", part.len()).as_bytes());
                out.extend_from_slice(part);
                out.extend_from_slice(b"\r\n");
            }
        }
    }
}
