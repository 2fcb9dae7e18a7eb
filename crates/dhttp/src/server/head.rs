//! The head of an answer as it goes into a datagram or onto a connection that the server opened.
//!
//! Written into memory that is used again. Heads of plain HTTP are written by [`proto::server`].

use std::io::Write;

use proto::dhttp::token::{TOKEN_FIELD, Token};
use proto::http::head::reason;

use crate::clock::seconds_of_the_calendar;
use crate::date;
use crate::handler::Answer;

/// Writes a head, its empty line included.
pub(super) fn write(out: &mut Vec<u8>, answer: &Answer, date: &str, token: Option<&Token>) {
    let Answer { status, fields, body } = answer;
    let mut line = |parts: &[&[u8]]| parts.iter().for_each(|part| out.extend_from_slice(part));
    let mut digits = [b'0'; 3];
    for (place, digit) in [100, 10, 1].into_iter().zip(&mut digits) {
        *digit += u8::try_from(status / place % 10).unwrap_or(0);
    }
    line(&[b"HTTP/1.1 ", &digits, b" ", reason(*status).as_bytes(), b"\r\nDate: ", date.as_bytes(), b"\r\n"]);
    for (name, value) in fields.iter() {
        line(&[name, b": ", value, b"\r\n"]);
    }
    if let Some(token) = token {
        line(&[TOKEN_FIELD.as_bytes(), b": ", token.as_str().as_bytes(), b"\r\n"]);
    }
    if !answer.is_bodiless() {
        // Writing to memory cannot fail.
        let _ = write!(out, "Content-Length: {}\r\n", body.len());
    }
    out.extend_from_slice(b"\r\n");
}

/// The value of `Date`, made once a second.
#[derive(Debug, Default)]
pub(super) struct Today {
    second: u64,
    text: String,
}

impl Today {
    pub(super) fn look(&mut self) -> &str {
        let second = seconds_of_the_calendar();
        if second != self.second {
            (self.second, self.text) = (second, date::http(second));
        }
        &self.text
    }

    pub(super) const fn second(&self) -> u64 {
        self.second
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }
}
