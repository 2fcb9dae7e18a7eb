//! Exchanges: requests and their responses, of whatever protocol, through one interface.
//!
//! Ordered bytes ([`stream`](crate::stream)) are read as HTTP/1 ([`http`](crate::http)), HTTP/2 ([`http2`](mod@crate::http2)) or TLS
//! ([`tls`](crate::tls)), by the first bytes of the connection; everything else is turns of two sides. The facts are the same
//! for all; [`Certainty`] states how sure they are.
//!
//! Two rules hold for every protocol. A segment whose acknowledgement does not cover the end of the request cannot be its
//! response. Control traffic ([`Content::Control`]) is neither a request nor a response.

mod kind;
mod opened;
mod turn;

use std::sync::Arc;

use crate::http::{Conversation, ConversationReader, Exchange};
use crate::http2::{self, Http2, Http2Reader, StreamError};
use crate::stream::Streams;
use crate::tls::Tls;
use crate::warm_up::RequestShape;
use crate::{Both, Mark, Side};
use ::tls::KeyLog;
use wire::Time;

pub use crate::message_facts::{Certainty, MessageFacts, PollEnd};
pub use crate::tls::Content;
pub use kind::Kind;
pub use opened::KeyUse;
use opened::{MessageReaders, OpenedReader, OpenedTls};
use turn::Turn;

/// The exchanges of one connection. `C` is what the caller wants to have with each exchange.
#[derive(Debug, Default)]
pub struct Exchanges<C> {
    kind: Kind,
    streams: Streams,
    http1: Conversation<C>,
    http2: Option<Box<Http2<C>>>,
    tls: Option<Box<Tls>>,
    /// A key log for TLS, and its content.
    keys: Option<Arc<KeyLog>>,
    opened: Option<Box<OpenedTls>>,
    turn: Turn,
    /// Whether TLS carries PostgreSQL, as its `SSLRequest` showed, and whether its startup message has passed.
    is_postgresql: bool,
    has_started_up: bool,
    /// Whether a side has sent the Close frame of WebSocket.
    has_close_frame: bool,
    /// The target of a tunnel (CONNECT) that the connection has become.
    pub tunnel: Option<Box<str>>,
}

/// A segment with data.
#[derive(Clone, Copy, Debug)]
pub struct SegmentData<'a> {
    /// Side that sent it.
    pub side: Side,
    /// Position of its first byte.
    pub start: u64,
    /// Its captured bytes.
    pub payload: &'a [u8],
    /// Its bytes on the wire.
    pub length: u64,
    /// Its packet.
    pub mark: Mark,
    /// Whether it acknowledges everything that its peer had sent, apart from control traffic.
    pub covers_all: bool,
}

impl<C: Clone + Default> Exchanges<C> {
    /// Returns the kind of protocol whose messages are read: that within TLS, if keys decrypt it and its handshake is over.
    pub fn kind(&self) -> Kind {
        let within = self.opened.as_ref().map_or(Kind::Undetermined, |opened| opened.kind);
        let is_within = within != Kind::Undetermined && !self.is_within_handshake();
        if self.kind == Kind::Tls && is_within { within } else { self.kind }
    }

    /// Sets the key log for a segment that may begin TLS.
    pub fn unlock(&mut self, payload: &[u8], keys: &Arc<KeyLog>) {
        if self.tls.is_none() && matches!(payload, [20..=23, 3, 0..=4, ..]) {
            self.keys = Some(Arc::clone(keys));
        }
    }

    /// Returns the use of a key log; `None` if there is none, or nothing was encrypted.
    pub fn key_use(&self) -> Option<KeyUse> {
        self.opened.as_ref()?.key_use()
    }

    /// Returns the content of the segment that was last passed to [`Self::content`], for readers of first bytes.
    pub fn text<'a>(&'a self, side: Side, payload: &'a [u8]) -> &'a [u8] {
        match &self.opened {
            Some(opened) if self.kind == Kind::Tls && self.kind() != Kind::Tls => {
                opened.next(side).map_or(&[], |next| &next.data)
            }
            _ => payload,
        }
    }

    /// Returns TLS of the connection, if it is spoken.
    pub fn tls(&self) -> Option<&Tls> {
        self.tls.as_deref()
    }

    /// The same, to be changed.
    pub fn tls_mut(&mut self) -> Option<&mut Tls> {
        self.tls.as_deref_mut()
    }

    /// Returns whether HTTP/2 is spoken, in the clear or over TLS: a stream begins with a request.
    pub fn is_http2(&self) -> bool {
        self.kind() == Kind::Http2 || self.tls().is_some_and(Tls::is_http2)
    }

    /// Returns whether WebSocket is spoken, in which no side has sent a Close frame.
    pub fn is_websocket_open(&self) -> bool {
        self.http1.is_websocket() && !self.has_close_frame
    }

    /// Returns whether a TLS handshake goes on.
    pub fn is_within_handshake(&self) -> bool {
        self.tls().is_some_and(|tls| !tls.is_over())
    }

    /// Sets the round trip from the point of capture to each side.
    pub fn set_distance(&mut self, distance: Both<wire::Duration>) {
        self.http2.iter_mut().for_each(|http2| http2.distance = distance);
    }

    /// Returns the content of a segment that was not read yet.
    pub fn content(&mut self, data: &SegmentData<'_>) -> Content {
        let SegmentData { side, start, payload, length, mark, covers_all: _ } = *data;
        let is_next = self.streams.is_next(side, start) && !payload.is_empty();
        if let Some(opened) = &mut self.opened {
            opened.forget_next();
            if is_next {
                opened.peek(side, payload);
            }
        }
        if !is_next || (payload.len() as u64) < length {
            return Content::Message;
        }
        if let Some(next) = self.opened.as_ref().and_then(|opened| opened.next(side))
            && self.kind() != Kind::Tls
            && (next.data.is_empty() || next.is_within)
        {
            let is_control = next.has_messages && !next.has_alert && !next.is_within;
            return if is_control { Content::Control } else { Content::Message };
        }
        let payload = self.text(side, payload);
        match (self.kind(), &self.http2, &self.tls) {
            (Kind::Http2, Some(http2), _) if http2.is_control(side, payload) => Content::Control,
            (Kind::Tls, _, Some(tls)) => tls.content(side, payload, mark),
            // A server of HTTP/2 may send its SETTINGS first.
            (Kind::Undetermined, ..)
                if http2::begins(payload) && Http2::<C>::new(false).is_control(side, payload) =>
            {
                Content::Control
            }
            (Kind::Other, ..) if self.http1.is_websocket() && turn::is_websocket_control(payload) => {
                Content::Control
            }
            _ => Content::Message,
        }
    }

    /// Handles the data of a segment with this content.
    pub fn sent(&mut self, data: &SegmentData<'_>, content: Content, context: &C) {
        let SegmentData { side, start, payload, length, mark, covers_all } = *data;
        if length == 0 {
            return;
        }
        if side == Side::Client && self.begins_another(payload) {
            self.begin_again();
        }
        if self.kind == Kind::Undetermined {
            self.detect(side, payload, mark);
        }
        let (before, was_opened) = (self.contents(side), self.is_opened());
        match (self.kind, &mut self.http2, &mut self.tls) {
            (Kind::Http1, ..) => {
                let mut reader = ConversationReader { conversation: &mut self.http1, context };
                self.streams.sent(side, start, payload, length, mark, &mut reader);
                self.leave_http1();
            }
            (Kind::Http2, Some(http2), _) => {
                let mut reader = Http2Reader { connection: http2, context };
                self.streams.sent(side, start, payload, length, mark, &mut reader);
                if http2.is_lost() {
                    self.leave(Kind::Other);
                }
            }
            (Kind::Tls, http2, Some(tls)) => match &mut self.opened {
                None => self.streams.sent(side, start, payload, length, mark, tls.as_mut()),
                Some(opened) => {
                    let messages = MessageReaders { http1: &mut self.http1, http2, context };
                    let mut reader = OpenedReader { opened, tls, messages };
                    self.streams.sent(side, start, payload, length, mark, &mut reader);
                }
            },
            _ => {}
        }
        self.has_close_frame |=
            content == Content::Control && payload.first() == Some(&turn::WEBSOCKET_CLOSE);
        let is_content = match (self.kind, content) {
            (_, Content::Control) => false,
            (Kind::Tls, Content::Message) => {
                let is_new = self.contents(side) > before || was_opened != self.is_opened();
                is_new || self.tls().is_some_and(|tls| !tls.is_read())
            }
            (_, Content::Message) => true,
        };
        if is_content && self.is_of_session(side, payload) {
            self.is_postgresql |= payload == turn::POSTGRESQL_TLS;
            return;
        }
        match side {
            Side::Client if is_content => self.turn.requests(mark, start + length),
            Side::Server if is_content && covers_all => self.turn.responds(mark),
            Side::Client | Side::Server => {}
        }
    }

    /// Handles the end of the data of `side`.
    pub fn ended(&mut self, side: Side, mark: Mark) {
        self.http1.ended(side, mark);
    }

    /// Takes the exchanges completed since they were last taken.
    pub fn take_answered(&mut self) -> Vec<Exchange<C>> {
        match &mut self.http2 {
            Some(http2) if !http2.answered.is_empty() => std::mem::take(&mut http2.answered),
            _ if self.http1.answered.is_empty() => Vec::new(),
            _ => std::mem::take(&mut self.http1.answered),
        }
    }

    /// Returns the facts before `side` sends `payload`.
    pub fn message_facts(&self, side: Side, payload: &[u8]) -> MessageFacts {
        let text = self.text(side, payload);
        let pending = self.turn.pending().filter(|_| side == Side::Server);
        let greeting = |tls: &Tls| tls.awaits_greeting(payload).filter(|_| side == Side::Server);
        match (self.kind(), &self.http2, &self.tls) {
            (Kind::Http2, Some(http2), _) => {
                MessageFacts { is_of_requests: true, ..http2.message_facts(side, text) }
            }
            (Kind::Tls, _, Some(tls)) => MessageFacts {
                certainty: Certainty::Records,
                pending: pending.or(greeting(tls)),
                is_greeting: greeting(tls).is_some(),
                is_of_requests: tls.is_of_requests(),
                is_sequential: tls.is_http1(),
                is_record_whole: tls.is_within_record(side) == Some(false),
                ..MessageFacts::default()
            },
            (Kind::Other, ..) => MessageFacts { pending, ..self.http1.message_facts(side, text) },
            _ => MessageFacts { is_of_requests: true, ..self.http1.message_facts(side, text) },
        }
    }

    /// Returns the last record of the peer of `side`, up to `until`, that only updates of HTTP/2's windows can be.
    pub fn update_until(&self, side: Side, until: Time) -> Option<Mark> {
        self.tls().filter(|_| self.kind() == Kind::Tls)?.update_until(side.other(), until)
    }

    /// Returns whether `side` is within a message, or within a record of TLS.
    pub fn is_within(&self, side: Side) -> bool {
        let record = self.tls().and_then(|tls| tls.is_within_record(side));
        let message = || self.message_facts(side, &[]).is_within;
        // Keys show where messages end, within records or not.
        let is_within = if self.kind() == Kind::Tls {
            record.or_else(message)
        } else {
            record.filter(|is| *is).or_else(message)
        };
        self.streams.is_read(side) && is_within == Some(true)
    }

    /// Returns whether the server's data ends within a response: not where a body is almost as long as announced, as that of servers
    /// that miscount.
    pub fn is_response_cut(&self) -> bool {
        const MISCOUNTED: u64 = 1_460;
        let facts = self.message_facts(Side::Server, &[]);
        let may_end = facts.is_until_close || facts.is_pushed;
        self.is_within(Side::Server) && !may_end && self.http1.missing().is_none_or(|left| left >= MISCOUNTED)
    }

    /// Returns the number of requests that were read.
    pub fn requests(&self) -> u64 {
        self.http1.requests + self.http2.as_ref().map_or(0, |http2| http2.requests)
    }

    /// Returns the number of requests of whatever protocol, without those that set up a session.
    pub fn count(&self) -> u64 {
        match self.kind() {
            Kind::Http1 | Kind::Http2 if self.requests() > 0 => self.requests(),
            _ => self.turn.count(),
        }
    }

    /// Handles data of which only the acknowledgement was captured, at `mark`.
    pub fn acknowledged_unseen(&mut self, side: Side, mark: Mark) {
        match side {
            Side::Client => {
                // What came before the server's hello was the client's.
                if self.tls.is_some() && !std::mem::replace(&mut self.has_started_up, true) {
                    self.turn = Turn::default();
                }
                self.turn.requests(mark, 0);
            }
            Side::Server => self.turn.responds(mark),
        }
    }

    /// Returns whether the last turn was the server's.
    pub fn is_turn_over(&self) -> bool {
        self.turn.pending().is_none()
    }

    /// Returns the first request, of whatever protocol.
    pub const fn first_request(&self) -> Option<Mark> {
        self.turn.first
    }

    /// Returns what is known of the oldest request without a response, of this many bytes, perhaps a command line.
    pub fn pending_shape(&self, bytes: u64, command: Option<u64>) -> RequestShape {
        let target = self.http1.first_target().map(RequestShape::of_target);
        // HTTP/2's preface is no command of another kind.
        let command = command.filter(|_| self.requests() == 0);
        RequestShape { bytes, target, command }
    }

    /// Returns the position at which the last request ends: what the client sent later is control traffic.
    pub fn request_end(&self) -> Option<u64> {
        // Where records cannot be followed, later data may be requests, too.
        let is_read = self.tls().is_none_or(Tls::is_read);
        self.turn.first.map(|_| self.turn.end).filter(|_| is_read)
    }

    /// Returns what connections must have in common to carry the same requests: the name of the server by TLS, and the target
    /// of a tunnel.
    pub fn authority(&self) -> Option<String> {
        let name = self.tls().and_then(Tls::server_name);
        match (self.tunnel.as_deref(), name) {
            (None, None) => None,
            (tunnel, name) => Some(format!("{} {}", tunnel.unwrap_or_default(), name.unwrap_or_default())),
        }
    }

    /// Returns whether each request so far has a response, as far as is known.
    pub fn is_idle(&self) -> bool {
        self.unanswered().map_or(self.turn.pending().is_none(), |count| count == 0)
    }

    /// Returns whether the client's last message only ended the session (QUIT, DISCONNECT): it closed right after that, at `closed`.
    pub fn has_said_goodbye(&self, closed: Time) -> bool {
        const RIGHT_AFTER: wire::Duration = wire::Duration::from_millis(5);
        let last = self.turn.pending().filter(|_| self.unanswered().is_none() && self.turn.count() > 1);
        last.is_some_and(|last| closed.since(last.at) <= RIGHT_AFTER)
    }

    /// Returns the number of requests without complete responses; `None` if messages cannot be read.
    pub fn unanswered(&self) -> Option<usize> {
        match (self.kind(), &self.http2) {
            (Kind::Http2, Some(http2)) => Some(http2.unanswered()),
            _ => self.http1.unanswered(),
        }
    }

    /// Returns when the oldest request without a complete response was sent.
    pub fn first_unanswered(&self) -> Option<Mark> {
        match (self.kind(), &self.http2) {
            (Kind::Http2, Some(http2)) => http2.first_unanswered(),
            _ => self.http1.first_unanswered(),
        }
    }

    /// Returns an error that a side reported in frames.
    pub fn error(&self) -> Option<StreamError> {
        self.http2.as_ref()?.error
    }

    /// Returns the number of records of application data of `side`, if TLS is spoken; if keys decrypt them, that of bytes.
    fn contents(&self, side: Side) -> u64 {
        match &self.opened {
            Some(opened) if opened.is_reading() => *opened.bytes.of(side),
            _ => self.tls.as_ref().map_or(0, |tls| *tls.contents.of(side)),
        }
    }

    /// Returns whether keys decrypt its records.
    fn is_opened(&self) -> bool {
        self.opened.as_ref().is_some_and(|opened| opened.is_reading())
    }

    /// Determines the protocol by the first bytes.
    fn detect(&mut self, side: Side, payload: &[u8], mark: Mark) {
        let (kind, is_preface) = Kind::of(side, payload);
        self.kind = kind;
        match kind {
            Kind::Tls => {
                self.tls = Some(Box::new(Tls::new(mark, Tls::begins(payload))));
                self.opened = self.keys.take().map(|keys| Box::new(OpenedTls::new(keys)));
            }
            Kind::Http2 => self.http2 = Some(Box::new(Http2::new(is_preface))),
            Kind::Undetermined | Kind::Http1 | Kind::Other => {}
        }
    }

    /// Returns whether a message sets up or ends a session.
    fn is_of_session(&mut self, side: Side, payload: &[u8]) -> bool {
        if self.kind() != Kind::Tls || !self.is_postgresql || side == Side::Server {
            return self.kind() == Kind::Other && turn::is_of_session(side, self.text(side, payload));
        }
        let size = self.tls().and_then(|tls| tls.plaintext_of(payload));
        let is_first = self.turn.count() == 0 && !std::mem::replace(&mut self.has_started_up, true);
        is_first || size.is_some_and(|size| turn::is_postgresql_size(size, self.turn.count() == 0))
    }

    /// Returns whether a client's segment begins TLS on a connection that has spoken something else so far: STARTTLS of mail, LDAP and
    /// FTP, `SSLRequest` of PostgreSQL and MySQL, a PROXY or SOCKS header; or HTTP after a SOCKS header.
    fn begins_another(&self, payload: &[u8]) -> bool {
        /// Method, authentication, request (RFC 1928, sections 3 and 4).
        const MAX_SOCKS_TURNS: u64 = 3;
        let is_other = matches!(self.kind, Kind::Http1 | Kind::Other) && self.http1.requests == 0;
        let is_tls = Tls::begins(payload) && matches!(payload.get(9..11), Some([3, 0..=3]));
        let may_be_socks = self.kind == Kind::Other && (1..=MAX_SOCKS_TURNS).contains(&self.turn.count());
        is_other && (is_tls || may_be_socks && is_request_line(payload))
    }

    /// Reads the following bytes as those of a new connection; what came before has set up a session.
    fn begin_again(&mut self) {
        (self.kind, self.turn, self.streams) = (Kind::Undetermined, Turn::default(), Streams::default());
        self.http1 = Conversation::default();
    }

    /// Leaves HTTP/1 for what follows, or for turns where it cannot be read.
    fn leave_http1(&mut self) {
        if !self.http1.is_lost() {
            return;
        }
        let handover = self.http1.handover();
        let tunnel = handover.and_then(|handover| handover.target.as_deref()).map(Box::from);
        let is_http2 = handover.is_some_and(|handover| handover.protocol.as_deref() == Some("h2c"));
        if tunnel.is_some() {
            self.tunnel = tunnel;
            self.leave(Kind::Undetermined);
        } else if is_http2 {
            self.http2 = Some(Box::new(Http2::new(true)));
            self.leave(Kind::Http2);
        } else {
            self.leave(Kind::Other);
        }
    }

    fn leave(&mut self, kind: Kind) {
        if kind == Kind::Other {
            self.streams.close();
        }
        self.kind = kind;
    }
}

const METHODS: [&[u8]; 8] =
    [b"GET ", b"POST ", b"PUT ", b"HEAD ", b"DELETE ", b"OPTIONS ", b"PATCH ", b"CONNECT "];

/// Returns whether a segment begins with the whole request line of HTTP/1.
fn is_request_line(payload: &[u8]) -> bool {
    let line = payload.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let has_version = [&b" HTTP/1.0"[..], b" HTTP/1.1"].iter().any(|version| line.ends_with(version));
    has_version && METHODS.iter().any(|method| payload.starts_with(method))
}

/// Returns whether the sender of a segment is the client, as far as its bytes prove it: a request or a response of HTTP,
/// or a hello of TLS.
pub fn is_from_client(payload: &[u8]) -> Option<bool> {
    match payload {
        [22, 3, 0..=4, _, _, 1, ..] => Some(true),
        [22, 3, 0..=4, _, _, 2, ..] => Some(false),
        _ if payload.starts_with(b"HTTP/1.") => Some(false),
        _ if METHODS.iter().any(|method| payload.starts_with(method)) => Some(true),
        _ => http2::is_from_client(payload),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::tls::decrypt::Unread;

    struct Played {
        exchanges: Exchanges<()>,
        positions: [u64; 2],
        frame: u64,
    }

    impl Played {
        fn new() -> Self {
            Self { exchanges: Exchanges::default(), positions: [0; 2], frame: 0 }
        }

        fn send(&mut self, side: Side, payload: &[u8], covers_all: bool) -> Content {
            let position = &mut self.positions[usize::from(side == Side::Server)];
            self.frame += 1;
            let mark = Mark { at: Time::from_nanos(self.frame), frame: self.frame };
            let length = payload.len() as u64;
            let data = SegmentData { side, start: *position, payload, length, mark, covers_all };
            let content = self.exchanges.content(&data);
            self.exchanges.sent(&data, content, &());
            *position += length;
            content
        }

        fn pending(&self) -> Option<u64> {
            self.exchanges.message_facts(Side::Server, &[]).pending.map(|mark| mark.frame)
        }
    }

    #[test]
    fn segment_that_does_not_cover_the_request_is_no_response() {
        let mut played = Played::new();
        played.send(Side::Client, b"\x01\x02binary", true);
        played.send(Side::Server, b"\x07of an earlier request", false);
        assert_eq!((played.pending(), played.exchanges.count()), (Some(1), 1));
        played.send(Side::Server, b"\x07response", true);
        assert_eq!((played.pending(), played.exchanges.is_idle()), (None, true));
    }

    #[test]
    fn control_traffic_after_a_request_is_no_part_of_it() {
        let mut played = Played::new();
        let frame = |kind: u8, flags: u8, stream: u8, payload: &[u8]| {
            [&[0, 0, u8::try_from(payload.len()).unwrap(), kind, flags, 0, 0, 0, stream], payload].concat()
        };
        played.send(Side::Client, &[kind::PREFACE_START, b"\r\n\r\nSM\r\n\r\n"].concat(), true);
        played.send(Side::Client, &frame(1, 5, 1, &[0x82]), true);
        let end = played.exchanges.request_end();
        assert_eq!(end, Some(played.positions[0]));
        assert_eq!(played.send(Side::Client, &frame(4, 1, 0, &[]), true), Content::Control);
        assert_eq!(played.exchanges.request_end(), end);
    }

    #[test]
    fn tls_may_begin_after_another_protocol() {
        const HELLO: &[u8] = b"\x16\x03\x01\0\x06\x01\0\0\x02\x03\x03";
        for (request, response) in
            [(&b"\0\0\0\x08\x04\xd2\x16\x2f"[..], &b"S"[..]), (b"STARTTLS\r\n", b"220 go\r\n")]
        {
            let mut played = Played::new();
            played.send(Side::Client, request, true);
            played.send(Side::Server, response, true);
            assert_ne!(played.exchanges.kind(), Kind::Tls);
            played.send(Side::Client, HELLO, true);
            assert_eq!((played.exchanges.kind(), played.exchanges.count()), (Kind::Tls, 0));
        }
    }

    #[test]
    fn http_after_a_socks_header_is_read() {
        let mut played = Played::new();
        for (request, response) in [
            (&b"\x05\x01\0"[..], &b"\x05\0"[..]),
            (b"\x05\x01\0\x01\x7f\0\0\x01\0\x50", b"\x05\0\0\x01\0\0\0\0\0\0"),
            (b"GET /a HTTP/1.1\r\n\r\n", b"HTTP/1.1 204 No Content\r\n\r\n"),
        ] {
            played.send(Side::Client, request, true);
            played.send(Side::Server, response, true);
        }
        let read = played.exchanges.take_answered();
        let [exchange] = &read[..] else { panic!("{} exchanges", read.len()) };
        assert_eq!((exchange.target.as_str(), exchange.status), ("/a", Some(204)));
    }

    #[test]
    fn startup_of_postgresql_is_no_request_over_tls_either() {
        let mut played = Played::new();
        let record = |bytes: usize| {
            [&[23, 3, 3, 0, u8::try_from(bytes + 17).unwrap()][..], &vec![7; bytes + 17]].concat()
        };
        let hello = |kind: u8, rest: &[u8]| {
            let length = u8::try_from(rest.len()).unwrap();
            [&[22, 3, 3, 0, length + 4, kind, 0, 0, length][..], rest].concat()
        };
        let client = [&[3, 3][..], &[1; 32], &[0, 0, 2, 0x13, 1, 1, 0]].concat();
        let versions = [0, 6, 0, 43, 0, 2, 3, 4];
        let server = [&[3, 3][..], &[2; 32], &[0, 0x13, 1, 0], &versions].concat();
        played.send(Side::Client, turn::POSTGRESQL_TLS, true);
        played.send(Side::Server, b"S", true);
        played.send(Side::Client, &hello(1, &client), true);
        played.send(Side::Server, &hello(2, &server), true);
        played.send(Side::Client, &record(36), true);
        for (size, count) in [(84, 0), (81, 0), (181, 0), (14, 1), (5, 1)] {
            played.send(Side::Client, &record(size), true);
            played.send(Side::Server, &record(200), true);
            assert_eq!(played.exchanges.count(), count, "{size}");
        }
    }

    #[test]
    fn startup_of_a_session_is_no_request() {
        let mut played = Played::new();
        played.send(Side::Client, b"\0\0\0\x10\0\x03\0\0user\0a\0\0", true);
        played.send(Side::Server, b"R\0\0\0\x08\0\0\0\0", true);
        assert_eq!(played.exchanges.count(), 0);
        played.send(Side::Client, b"Q\0\0\0\x0dSELECT 1\0", true);
        assert_eq!((played.exchanges.count(), played.exchanges.is_idle()), (1, false));
    }

    /// Plays a transcript of OpenSSL, with a key log of its lines that are known.
    fn with_keys(text: &str, is_known: impl Fn(&str) -> bool) -> Played {
        let mut log = KeyLog::default();
        let secrets = text.lines().filter(|line| !line.starts_with("C ") && !line.starts_with("S "));
        secrets.filter(|line| is_known(line)).for_each(|line| log.read(line.as_bytes()));
        let (log, mut played) = (Arc::new(log), Played::new());
        for line in text.lines() {
            let side = match line.split_once(' ') {
                Some(("C", _)) => Side::Client,
                Some(("S", _)) => Side::Server,
                _ => continue,
            };
            let bytes: Vec<u8> = line.as_bytes()[2..]
                .chunks(2)
                .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
                .collect();
            played.exchanges.unlock(&bytes, &log);
            played.send(side, &bytes, true);
        }
        played
    }

    const TRANSCRIPTS: [&str; 2] = [
        include_str!("../../../fuzz/corpus/tls_decryption/tls12-aes-128-gcm"),
        include_str!("../../../fuzz/corpus/tls_decryption/tls13-aes-256-gcm"),
    ];

    #[test]
    fn messages_within_tls_are_read_with_keys() {
        for text in TRANSCRIPTS {
            let mut played = with_keys(text, |_| true);
            assert_eq!(
                (played.exchanges.kind(), played.exchanges.key_use()),
                (Kind::Http1, Some(KeyUse::Read))
            );
            let read = played.exchanges.take_answered();
            let [exchange] = &read[..] else { panic!("{} exchanges", read.len()) };
            assert_eq!((exchange.target.as_str(), exchange.status), ("/a", Some(200)));
            // The response ends with its second record.
            let packets = exchange.ended.frame - exchange.requested.frame;
            assert_eq!((packets, played.exchanges.unanswered()), (2, Some(0)));
            assert_eq!(played.exchanges.tls().unwrap().alert.map(|alert| alert.from), None);
        }
    }

    #[test]
    fn connection_without_its_keys_is_read_by_its_records() {
        for text in TRANSCRIPTS {
            let mut none = with_keys(text, |_| false);
            assert_eq!(none.exchanges.kind(), Kind::Tls);
            assert_eq!(none.exchanges.key_use(), Some(KeyUse::Unread(Unread::NotLogged)));
            assert_eq!((none.exchanges.take_answered().len(), none.exchanges.count()), (0, 1));
        }
        let partly = with_keys(TRANSCRIPTS[1], |line| !line.starts_with("SERVER_TRAFFIC"));
        assert_eq!(partly.exchanges.key_use(), Some(KeyUse::Partly(Unread::SecretMissing)));
        assert_eq!((partly.exchanges.kind(), partly.exchanges.requests()), (Kind::Tls, 0));
    }

    #[test]
    fn request_before_a_damaged_record_counts() {
        let text = TRANSCRIPTS[1];
        // The tag at the end of the response's first record.
        let response = text.lines().rfind(|line| line.starts_with("S ") && line.len() > 200).unwrap();
        let last = if response.ends_with('0') { "1" } else { "0" };
        let damaged = format!("{}{last}", &response[..response.len() - 1]);
        let partly = with_keys(&text.replace(response, &damaged), |_| true).exchanges;
        assert_eq!(partly.key_use(), Some(KeyUse::Partly(Unread::WrongSecret)));
        assert_eq!((partly.kind(), partly.requests(), partly.unanswered()), (Kind::Tls, 1, None));
    }

    #[test]
    fn kind_follows_from_the_first_bytes() {
        let kind = |payload: &[u8]| {
            let mut played = Played::new();
            played.send(Side::Client, payload, true);
            played.exchanges.kind()
        };
        assert_eq!(kind(b"GET / HTTP/1.1\r\n"), Kind::Http1);
        assert_eq!(kind(::http2::PREFACE), Kind::Http2);
        assert_eq!(kind(b"\x16\x03\x01\0\x05\x01\0\0\x01\xaa"), Kind::Tls);
        assert_eq!(kind(b"*1\r\n$4\r\nPING\r\n"), Kind::Other);
    }
}
