//! Responses of an application, and its possible mistakes.
//!
//! Not the bytes on the wire: [`super::ServerConnection`] adds what belongs to the connection (`Connection`,
//! `Content-Length`, `Transfer-Encoding`) and leaves out the body where there is none.

use std::sync::Arc;

use super::RequestId;
use crate::message::head::{write_decimal, write_status_line};
use crate::message::{FieldError, Fields, Version};

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// Status code, 200 to 999.
    pub status: u16,
    /// Fields except `Connection`, `Content-Length` and `Transfer-Encoding`, which are the connection's.
    pub fields: Fields,
    /// Body, also for a HEAD request: its length is then declared, but it is not sent.
    pub body: ResponseBody,
}

/// Source of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResponseBody {
    /// The whole body: nothing more follows.
    Whole(Arc<[u8]>),
    /// This many bytes, in parts that follow ([`super::ServerConnection::send_part`]).
    Length(u64),
    /// Parts that follow until the application finishes: chunked in HTTP/1.1; in HTTP/1.0 the close of the connection
    /// ends the body.
    Unknown,
}

impl Response {
    /// Creates a response of these bytes and this type.
    ///
    /// # Errors
    /// If the type is not valid in a field.
    pub fn whole(status: u16, content_type: &str, body: Arc<[u8]>) -> Result<Self, FieldError> {
        let mut fields = Fields::new();
        fields.push("Content-Type", content_type)?;
        Ok(Self { status, fields, body: ResponseBody::Whole(body) })
    }

    /// Creates a response with only a status.
    pub fn empty(status: u16) -> Self {
        Self { status, fields: Fields::new(), body: ResponseBody::Whole(Arc::from([])) }
    }

    /// Checks whether it can be sent.
    ///
    /// # Errors
    /// A status or a field that an application must not send.
    pub fn check(&self) -> Result<(), Misuse> {
        check(self.status, [&self.fields, &Fields::new()])
    }

    /// Whether its status implies that there is no body.
    pub const fn is_bodiless(&self) -> bool {
        is_bodiless(self.status)
    }

    /// Appends the header section with these further fields, as HTTP/1.1 on a persistent connection: the part of a DHTTP
    /// message after the id.
    pub fn encode_head(&self, more: &Fields, out: &mut Vec<u8>) {
        let head = Head {
            version: Version::Http11,
            status: self.status,
            persists: true,
            length: self.body.length(),
        };
        head.write([&self.fields, more], out);
    }
}

/// Checks whether a response of an application can be sent.
pub(super) fn check(status: u16, fields: [&Fields; 2]) -> Result<(), Misuse> {
    if !(200..1_000).contains(&status) {
        return Err(Misuse::Status(status));
    }
    let names = fields.into_iter().flat_map(Fields::iter).map(|(name, _)| name);
    for name in names {
        let is_field = |reserved: &&str| name.eq_ignore_ascii_case(reserved.as_bytes());
        if let Some(name) = CONNECTION_FIELDS.into_iter().find(is_field) {
            return Err(Misuse::ConnectionField(name));
        }
    }
    Ok(())
}

/// Checks an interim response likewise. 101 is not allowed: no response would follow it.
pub(super) fn check_interim(status: u16, fields: &Fields) -> Result<(), Misuse> {
    if !(100..200).contains(&status) || status == 101 {
        return Err(Misuse::Status(status));
    }
    check(200, [fields; 2])
}

/// Writes an interim response.
pub(super) fn write_interim(status: u16, fields: &Fields, out: &mut Vec<u8>) {
    write_status_line(Version::Http11, status, out);
    out.extend_from_slice(fields.lines());
    out.extend_from_slice(b"\r\n");
}

/// Returns whether a status implies that there is no body.
pub(super) const fn is_bodiless(status: u16) -> bool {
    matches!(status, 204 | 304)
}

/// Contents of a header section other than its fields.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub(super) version: Version,
    pub(super) status: u16,
    pub(super) persists: bool,
    /// Length of the body; `None` if it is unknown.
    pub(super) length: Option<u64>,
}

impl Head {
    /// Writes it, with the fields of the connection after the others.
    pub(super) fn write(self, fields: [&Fields; 2], out: &mut Vec<u8>) {
        let Self { version, status, persists, length } = self;
        write_status_line(version, status, out);
        fields.into_iter().for_each(|fields| out.extend_from_slice(fields.lines()));
        out.extend_from_slice(match (version, persists) {
            (Version::Http10, true) => b"Connection: Keep-Alive\r\n",
            (Version::Http11, false) => b"Connection: close\r\n",
            (Version::Http10, false) | (Version::Http11, true) => b"",
        });
        match (length, version) {
            _ if is_bodiless(status) => {}
            (Some(length), _) => {
                out.extend_from_slice(b"Content-Length: ");
                write_decimal(length, out);
                out.extend_from_slice(b"\r\n");
            }
            (None, Version::Http11) => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
            (None, Version::Http10) => {}
        }
        out.extend_from_slice(b"\r\n");
    }
}

impl ResponseBody {
    pub(super) fn length(&self) -> Option<u64> {
        match self {
            Self::Whole(bytes) => Some(bytes.len() as u64),
            Self::Length(length) => Some(*length),
            Self::Unknown => None,
        }
    }
}

const CONNECTION_FIELDS: [&str; 3] = ["Connection", "Content-Length", "Transfer-Encoding"];

/// An application's wrong use of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misuse {
    /// This request awaits no response: it does not exist, has one already, or its client has disconnected. The last is not a
    /// mistake; the response is simply not needed.
    #[error("request {} is not pending; its client may have disconnected", .0.0)]
    NotAwaited(RequestId),
    /// A part or an end before the head, or a second head.
    #[error("request {} needs one header section, then parts, then an end, in this order", .0.0)]
    OutOfOrder(RequestId),
    /// Not a final status or, where an interim one is required, not one of those.
    #[error("invalid status {0}; use 200 to 999, or 100 to 199 but for 101 in interim responses")]
    Status(u16),
    /// A field that belongs to the connection.
    #[error("{0} belongs to the connection; leave it out, it will be added")]
    ConnectionField(&'static str),
    /// More body than the declared length.
    #[error("the body for request {} is longer than the length given; give the right length", .0.0)]
    TooLong(RequestId),
    /// Less body than the declared length; the connection is aborted, so that the client notices.
    #[error("the body for request {} is shorter than the length given; give the right length", .0.0)]
    TooShort(RequestId),
    /// A body in parts where the whole is required.
    #[error("one message holds the whole body; give it whole, not in parts")]
    Partial,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_section_shows_the_end_of_its_message() {
        let head = |response: Response| {
            let mut out = Vec::new();
            response.encode_head(&Fields::new(), &mut out);
            String::from_utf8(out).unwrap()
        };
        let whole = Response::whole(200, "text/plain", Arc::from(*b"body")).unwrap();
        let expected = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\n";
        assert_eq!(head(whole), expected);
        let unchanged = head(Response::empty(304));
        assert!(unchanged.ends_with("\r\n\r\n") && !unchanged.contains("Content-Length"), "{unchanged}");
    }

    #[test]
    fn rejects_a_status_that_is_not_final() {
        assert_eq!(Response::empty(100).check(), Err(Misuse::Status(100)));
    }
}
