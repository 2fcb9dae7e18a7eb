//! Turns of two sides: a request is a client's data up to the server's, where nothing else shows what it is.

use crate::{Mark, Side};

/// The current turn, and the number of turns.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Turn {
    /// The first request of the connection.
    pub(super) first: Option<Mark>,
    /// The last packet of the current request.
    last: Option<Mark>,
    /// Position at which that request ends.
    pub(super) end: u64,
    has_response: bool,
    count: u64,
}

impl Turn {
    /// Handles data of a request, up to the position `end`.
    pub(super) fn requests(&mut self, mark: Mark, end: u64) {
        self.end = self.end.max(end);
        if self.last.is_none() || self.has_response {
            self.count += 1;
            self.has_response = false;
        }
        self.first.get_or_insert(mark);
        self.last = Some(mark);
    }

    /// Handles data of a response.
    pub(super) fn responds(&mut self, _mark: Mark) {
        self.has_response = true;
    }

    /// Returns the last packet of a request without a response.
    pub(super) fn pending(&self) -> Option<Mark> {
        self.last.filter(|_| !self.has_response)
    }

    /// Returns the number of requests.
    pub(super) const fn count(&self) -> u64 {
        self.count
    }
}

/// Returns whether a client's message sets up or ends a session instead of requesting something: PostgreSQL's startup,
/// password and termination, MySQL's login, Redis' `AUTH`, `HELLO`, `SELECT` and `CLIENT`.
pub(super) fn is_of_session(side: Side, payload: &[u8]) -> bool {
    if side == Side::Server {
        return false;
    }
    match payload {
        // StartupMessage, SSLRequest, GSSENCRequest (PostgreSQL, section 53.7).
        [0, 0, _, _, 0, 3, 0, _, ..] | [0, 0, 0, 8, 4, 0xd2, 0x16, 0x2f | 0x30] => true,
        [b'p' | b'X', 0, 0, _, _, ..] => is_postgresql(payload),
        // A login continues the numbering of the server's greeting; a command restarts it.
        [_, _, 0, 1..=9, _, ..] => is_mysql(payload),
        [b'*', ..] => is_redis_session(payload),
        _ => false,
    }
}

/// PostgreSQL's `SSLRequest`.
pub(super) const POSTGRESQL_TLS: &[u8] = &[0, 0, 0, 8, 4, 0xd2, 0x16, 0x2f];

/// Returns whether a message of PostgreSQL of this size within TLS ends a session (Terminate), or authenticates before the first
/// query: by MD5, or in two steps by SCRAM-SHA-256, without and with channel binding.
pub(super) fn is_postgresql_size(size: u16, is_before_queries: bool) -> bool {
    const TERMINATE: u16 = 5;
    const AUTHENTICATION: [u16; 5] = [41, 55, 109, 81, 181];
    size == TERMINATE || is_before_queries && AUTHENTICATION.contains(&size)
}

fn is_postgresql(payload: &[u8]) -> bool {
    let length = payload.get(1..).and_then(<[u8]>::first_chunk).map(|bytes| u32::from_be_bytes(*bytes));
    length.is_some_and(|length| length as usize + 1 == payload.len())
}

fn is_mysql(payload: &[u8]) -> bool {
    let &[a, b, c, ..] = payload else { return false };
    u32::from_le_bytes([a, b, c, 0]) as usize + 4 == payload.len()
}

fn is_redis_session(payload: &[u8]) -> bool {
    const COMMANDS: [&[u8]; 5] = [b"AUTH", b"HELLO", b"SELECT", b"CLIENT", b"QUIT"];
    let command = payload.split(|byte| *byte == b'\n').nth(2).unwrap_or_default().trim_ascii();
    COMMANDS.iter().any(|name| command.eq_ignore_ascii_case(name))
}

/// First byte of a Close frame of WebSocket (RFC 6455, section 5.5.1).
pub(super) const WEBSOCKET_CLOSE: u8 = 0x88;

/// Returns whether a segment is one whole control frame of WebSocket (RFC 6455, section 5.5): ping, pong or close.
pub(super) fn is_websocket_control(payload: &[u8]) -> bool {
    const MASK_BYTES: usize = 4;
    let &[WEBSOCKET_CLOSE..=0x8a, length, ..] = payload else { return false };
    let mask = if length & 0x80 != 0 { MASK_BYTES } else { 0 };
    payload.len() == 2 + mask + usize::from(length & 0x7f)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_a_session_are_told_from_requests() {
        let is_of_session = |payload: &[u8]| is_of_session(Side::Client, payload);
        assert!(is_of_session(b"*2\r\n$4\r\nAUTH\r\n$1\r\nx\r\n"));
        assert!(!is_of_session(b"*2\r\n$3\r\nGET\r\n$1\r\nx\r\n"));
        assert!(is_of_session(b"X\0\0\0\x04"));
        assert!(!is_of_session(b"Q\0\0\0\x0dSELECT 1\0"));
        assert!(is_of_session(&[3, 0, 0, 1, 1, 2, 3]) && !is_of_session(&[3, 0, 0, 0, 3, 2, 3]));
    }

    #[test]
    fn only_whole_control_frames_are_control() {
        assert!(is_websocket_control(&[0x89, 0]) && is_websocket_control(&[0x8a, 0x81, 1, 2, 3, 4, 9]));
        assert!(!is_websocket_control(&[0x81, 0]) && !is_websocket_control(&[0x89, 0, 0x81, 0]));
    }
}
