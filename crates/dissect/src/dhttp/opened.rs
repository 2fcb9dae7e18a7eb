//! The responses on a connection that a server opened: each its request's id, then an HTTP response with a recognizable end.
//!
//! Read in order; after a missing or invalid byte, the rest is not followed.

use wire::Bytes;

use crate::Mark;

/// A connection that a DHTTP server opened to send responses.
#[derive(Debug)]
pub struct OpenedConnection {
    /// Its SYN.
    pub opened: Mark,
    next: u32,
    state: State,
    is_fresh: bool,
}

#[derive(Debug)]
enum State {
    /// The eight bytes of the id, as far as received.
    Id(Vec<u8>),
    Head {
        id: u64,
        text: Vec<u8>,
    },
    Body {
        id: u64,
        status: u16,
        left: u64,
    },
    /// The line before or after a chunk, or the lines after the last.
    ChunkLine {
        id: u64,
        status: u16,
        line: Vec<u8>,
        is_trailer: bool,
    },
    /// A chunk and its CRLF.
    Chunk {
        id: u64,
        status: u16,
        left: u64,
    },
    Lost,
}

/// Event found in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A response to this request begins.
    Began {
        /// The id of the request.
        id: u64,
    },
    /// The response is complete.
    Ended {
        /// The id of the request.
        id: u64,
        /// The status code.
        status: u16,
    },
}

const MAX_HEAD_BYTES: usize = 1 << 16;
const MAX_LINE_BYTES: usize = 1 << 10;
const MAX_FIELDS: usize = 128;

impl OpenedConnection {
    /// Creates the state of a connection; `next` is the sequence number of its first byte.
    pub const fn new(opened: Mark, next: u32) -> Self {
        Self { opened, next, state: State::Id(Vec::new()), is_fresh: true }
    }

    /// Returns whether it has carried nothing yet.
    pub const fn is_fresh(&self) -> bool {
        self.is_fresh
    }

    /// Returns whether it is in the middle of a response.
    pub fn is_within(&self) -> bool {
        match &self.state {
            State::Id(begun) => !begun.is_empty(),
            State::Head { .. } | State::Body { .. } | State::ChunkLine { .. } | State::Chunk { .. } => true,
            State::Lost => false,
        }
    }

    /// Returns whether it cannot be followed any further.
    pub const fn is_lost(&self) -> bool {
        matches!(self.state, State::Lost)
    }

    /// Reads the next segment; `is_head` returns whether a request's response never has a body.
    pub fn read(
        &mut self,
        seq: u32,
        payload: &[u8],
        length: Bytes,
        is_head: impl Fn(u64) -> bool,
    ) -> Vec<Event> {
        let known = self.next.wrapping_sub(seq);
        let (Some(mut rest), true) = (payload.get(known as usize..), known < 1 << 20) else {
            // It was received before, or data before it is missing.
            if known > 1 << 20 && length > Bytes::ZERO {
                self.state = State::Lost;
            }
            return Vec::new();
        };
        if (payload.len() as u64) < length.get() {
            self.state = State::Lost;
            return Vec::new();
        }
        self.next = self.next.wrapping_add(u32::try_from(rest.len()).unwrap_or_default());
        self.is_fresh &= rest.is_empty();
        let mut events = Vec::new();
        while !rest.is_empty() && !self.is_lost() {
            let state = std::mem::replace(&mut self.state, State::Lost);
            self.state = state.read(&mut rest, &is_head, &mut events);
        }
        events
    }
}

impl State {
    /// Returns the state after some of the bytes; there is at least one.
    fn read(self, rest: &mut &[u8], is_head: &impl Fn(u64) -> bool, events: &mut Vec<Event>) -> Self {
        match self {
            Self::Id(mut begun) => {
                begun.extend_from_slice(take(rest, 8 - begun.len()));
                match begun.first_chunk() {
                    Some(id) => {
                        let id = u64::from_be_bytes(*id);
                        events.push(Event::Began { id });
                        Self::Head { id, text: Vec::new() }
                    }
                    None => Self::Id(begun),
                }
            }
            Self::Head { id, mut text } => {
                let before = text.len();
                text.extend_from_slice(rest);
                let end = text.windows(4).position(|four| four == b"\r\n\r\n").map(|index| index + 4);
                match end {
                    Some(end) => {
                        take(rest, end - before);
                        text.truncate(end);
                        Self::behind(&text, id, is_head(id), events)
                    }
                    None if text.len() > MAX_HEAD_BYTES => Self::Lost,
                    None => {
                        *rest = &[];
                        Self::Head { id, text }
                    }
                }
            }
            Self::Body { id, status, left } => {
                let left = left - take(rest, usize::try_from(left).unwrap_or(usize::MAX)).len() as u64;
                if left == 0 { Self::ended(id, status, events) } else { Self::Body { id, status, left } }
            }
            Self::Chunk { id, status, left } => {
                let left = left - take(rest, usize::try_from(left).unwrap_or(usize::MAX)).len() as u64;
                if left == 0 {
                    Self::ChunkLine { id, status, line: Vec::new(), is_trailer: false }
                } else {
                    Self::Chunk { id, status, left }
                }
            }
            Self::ChunkLine { id, status, mut line, is_trailer } => {
                line.extend_from_slice(take(rest, 1));
                let Some(text) = line.strip_suffix(b"\r\n") else {
                    let fits = line.len() < MAX_LINE_BYTES;
                    return if fits { Self::ChunkLine { id, status, line, is_trailer } } else { Self::Lost };
                };
                if is_trailer {
                    let is_last = text.is_empty();
                    return match is_last {
                        true => Self::ended(id, status, events),
                        false => Self::ChunkLine { id, status, line: Vec::new(), is_trailer },
                    };
                }
                let digits = text.split(|byte| *byte == b';').next().unwrap_or_default();
                let digits = std::str::from_utf8(digits).unwrap_or_default().trim();
                match u64::from_str_radix(digits, 16) {
                    Ok(0) => Self::ChunkLine { id, status, line: Vec::new(), is_trailer: true },
                    Ok(size) => Self::Chunk { id, status, left: size.saturating_add(2) },
                    Err(_) => Self::Lost,
                }
            }
            Self::Lost => Self::Lost,
        }
    }

    /// Returns the state after a header section.
    fn behind(head: &[u8], id: u64, is_head: bool, events: &mut Vec<Event>) -> Self {
        let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
        let mut response = httparse::Response::new(&mut fields);
        let Ok(httparse::Status::Complete(_)) = response.parse(head) else { return Self::Lost };
        let Some(status) = response.code else { return Self::Lost };
        let field = |name: &str| {
            let found = response.headers.iter().find(|field| field.name.eq_ignore_ascii_case(name));
            found.and_then(|field| std::str::from_utf8(field.value).ok())
        };
        let length = field("content-length").and_then(|length| length.trim().parse().ok());
        match (status, field("transfer-encoding"), length) {
            // Interim responses follow the same id.
            (100..=199, _, _) => Self::Head { id, text: Vec::new() },
            (204 | 304, _, _) => Self::ended(id, status, events),
            _ if is_head => Self::ended(id, status, events),
            (_, Some(_), _) => Self::ChunkLine { id, status, line: Vec::new(), is_trailer: false },
            (_, None, Some(0)) => Self::ended(id, status, events),
            (_, None, Some(left)) => Self::Body { id, status, left },
            (_, None, None) => Self::Lost,
        }
    }

    fn ended(id: u64, status: u16, events: &mut Vec<Event>) -> Self {
        events.push(Event::Ended { id, status });
        Self::Id(Vec::new())
    }
}

/// Takes the first `most` bytes, or all of them if there are fewer.
fn take<'a>(rest: &mut &'a [u8], most: usize) -> &'a [u8] {
    let (taken, left) = rest.split_at(most.min(rest.len()));
    *rest = left;
    taken
}
