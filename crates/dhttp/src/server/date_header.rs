//! Header section of a response in a datagram, or on a connection that the server opened.
//!
//! Written into reused buffers. Headers of plain HTTP are written by [`http1::server`].

use dhttp_proto::token::{TOKEN_FIELD, Token};
use http1::message::head::{write_decimal, write_status_line};
use http1::message::{Fields, Version};
use wire::{Duration, Time, calendar};

use crate::fields::copy;
use crate::handler::Response;
use linux::clock;

/// Writes a header section with this token, including the final empty line.
pub(super) fn write(out: &mut Vec<u8>, response: &Response, today: &DateHeader, token: Option<&Token>) {
    let Response { status, fields, body } = response;
    write_status_line(Version::Http11, *status, out);
    // A cached response has a `Date` of its own.
    if fields.get("Date").is_none() {
        out.extend_from_slice(today.date.lines());
    }
    out.extend_from_slice(fields.lines());
    if let Some(length) = body.announced_length().filter(|_| !response.is_bodiless()) {
        out.extend_from_slice(b"Content-Length: ");
        write_decimal(length, out);
        out.extend_from_slice(b"\r\n");
    }
    if let Some(token) = token {
        for part in [TOKEN_FIELD, ": ", token.as_str(), "\r\n"] {
            out.extend_from_slice(part.as_bytes());
        }
    }
    out.extend_from_slice(b"\r\n");
}

/// Returns the header fields of a response except its length, for the first part of a response sent in parts.
pub(super) fn fields<'a>(
    response: &'a Response,
    today: &'a DateHeader,
) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
    today.date.iter().chain(response.fields.iter())
}

/// Fields common to all responses of this second, encoded once.
#[derive(Debug)]
pub(super) struct DateHeader {
    port: u16,
    /// When this second ends.
    until: Time,
    second: u64,
    date: Fields,
    plain: Fields,
    undated: Fields,
}

impl DateHeader {
    /// Creates the fields for a server at this port.
    pub(super) const fn at_port(port: u16) -> Self {
        Self {
            port,
            until: Time::ZERO,
            second: 0,
            date: Fields::new(),
            plain: Fields::new(),
            undated: Fields::new(),
        }
    }

    /// Updates the date if the second has changed.
    pub(super) fn look(&mut self, now: Time) {
        if now < self.until {
            return;
        }
        let since = clock::calendar();
        self.second = since.as_nanos() / 1_000_000_000;
        self.until = now + (Duration::from_secs(self.second + 1) - since);
        // All of them are generated here, and are valid fields.
        self.date = Fields::new();
        let _ = self.date.push("Date", &calendar::http(since));
        self.plain = self.date.clone();
        // Advertises DHTTP, so that the client may use UDP next time (RFC 7838).
        self.undated = Fields::new();
        let _ = self.undated.push("Alt-Svc", &format!("dhttp=\":{}\"", self.port));
        for (name, value) in self.undated.iter() {
            copy(&mut self.plain, name, value);
        }
    }

    pub(super) const fn second(&self) -> u64 {
        self.second
    }

    /// Returns the fields to add to a response with these fields on a connection of a client.
    pub(super) fn added_fields(&self, fields: &Fields) -> &Fields {
        if fields.get("Date").is_none() { &self.plain } else { &self.undated }
    }
}
