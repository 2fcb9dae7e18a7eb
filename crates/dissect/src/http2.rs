//! HTTP/2 of one connection in the clear: streams as exchanges, and the windows that stop a sender.
//!
//! A layer on [`crate::stream`]. Field blocks are not decoded; DATA is counted.

use std::collections::{BTreeMap, VecDeque};

use http2::field::{MessageKind, message_kind, status};
use http2::frame::{Frame, FrameHeader, FrameReader, FrameType, HEADER_BYTES, Part};
use http2::settings::{Setting, error_code};
use http2::window::{SendWindows, WindowLimit};
use http2::{DEFAULT_WINDOW, PREFACE};

use crate::http::Exchange;
pub use crate::message_facts::BlockedSender;
use crate::message_facts::{Certainty, MessageFacts};
use crate::{Both, Mark, Side, stream};
use wire::{Duration, Time};

/// Both directions of a connection, and its streams. `C` is what the caller wants to have with each exchange.
#[derive(Debug)]
pub struct Http2<C> {
    readers: Both<FrameReader>,
    /// Bytes of the client's preface that were read.
    preface: usize,
    has_preface: bool,
    /// Windows that limit the DATA of each side.
    windows: Both<SendWindows>,
    /// Updates of each side's windows that may not have reached it yet, oldest first.
    updates: Both<VecDeque<WindowChange>>,
    /// Round trip between the point of capture and each side: an update takes this long to show.
    pub distance: Both<Duration>,
    /// Whether the windows are known from the beginning.
    pub is_whole: bool,
    has_client_sent: bool,
    /// The packet that completed the client's preface, until the server's own or the first request.
    greeted: Option<Mark>,
    streams: BTreeMap<u32, StreamState<C>>,
    /// The stream of each side's last DATA or HEADERS.
    last: Both<u32>,
    blocked: Both<Option<BlockedSender>>,
    /// Exchanges completed since they were last taken.
    pub answered: Vec<Exchange<C>>,
    /// Number of requests.
    pub requests: u64,
    /// The first error that a side reported by RST_STREAM or GOAWAY.
    pub error: Option<StreamError>,
}

/// A change of a sender's windows by its peer.
#[derive(Clone, Copy, Debug)]
struct WindowChange {
    mark: Mark,
    kind: WindowChangeKind,
}

#[derive(Clone, Copy, Debug)]
enum WindowChangeKind {
    /// WINDOW_UPDATE: the stream, 0 for the connection, and the increment.
    Update(u32, u32),
    /// SETTINGS_INITIAL_WINDOW_SIZE.
    Initial(u32),
}

/// An error reported by RST_STREAM or GOAWAY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamError {
    /// Side that reported it.
    pub from: Side,
    /// The stream; 0 for the connection.
    pub stream: u32,
    /// Its code.
    pub code: u32,
    /// The request of that stream.
    pub requested: Option<Mark>,
    /// Its packet.
    pub mark: Mark,
}

#[derive(Debug)]
struct StreamState<C> {
    requested: Mark,
    is_requested: bool,
    /// Whether the client has ended its side (END_STREAM).
    has_request_ended: bool,
    has_response: bool,
    /// Whether its response is a sequence of messages that the server sends as they occur.
    is_pushed: bool,
    status: Option<u16>,
    context: C,
}

/// Maximum number of streams that are followed.
const MAX_STREAMS: usize = 1_024;
/// Maximum number of frames of a segment that are looked at.
const MAX_FRAMES: usize = 64;
/// Maximum number of updates that are in flight; further ones count immediately.
const MAX_UPDATES: usize = 1_024;

/// Returns whether a connection whose opening was not captured speaks HTTP/2, by the frames in its first bytes.
pub fn begins(payload: &[u8]) -> bool {
    let mut at = 0;
    let mut count = 0;
    while let Some(header) =
        payload.get(at..).and_then(<[u8]>::first_chunk).map(|bytes| FrameHeader::read(*bytes))
    {
        if !header.is_plausible() {
            return false;
        }
        (at, count) = (at + HEADER_BYTES + header.length as usize, count + 1);
        if count >= 2 && at >= payload.len() {
            return true;
        }
    }
    count >= 1 && at == payload.len()
}

/// Returns whether the sender of a segment is the client, as its frames show.
pub fn is_from_client(payload: &[u8]) -> Option<bool> {
    if payload.starts_with(PREFACE) {
        return Some(true);
    }
    if !begins(payload) {
        return None;
    }
    let mut kind = None;
    FrameReader::default().read(payload, &mut |part| {
        if let Part::Frame(Frame { header, payload }) = part {
            kind = kind.or(message_kind(header, payload));
        }
    });
    kind.map(|kind| kind == MessageKind::Request)
}

impl<C: Clone> Http2<C> {
    /// Returns whether frames can no longer be followed in a direction.
    pub fn is_lost(&self) -> bool {
        self.readers.client.is_lost() || self.readers.server.is_lost()
    }

    /// Returns the number of requests without complete responses.
    pub fn unanswered(&self) -> usize {
        self.streams.values().filter(|stream| stream.is_requested).count()
    }

    /// Returns when the oldest request without a complete response was sent.
    pub fn first_unanswered(&self) -> Option<Mark> {
        self.streams.values().map(|stream| stream.requested).min_by_key(|mark| mark.frame)
    }

    /// Returns whether the next bytes of `side` are frames that control the connection, and nothing else.
    pub fn is_control(&self, side: Side, payload: &[u8]) -> bool {
        let payload = self.after_preface(side, payload);
        let reader = self.readers.of(side);
        // A client without a request may wait for the server's SETTINGS: they are the response to its preface.
        let is_awaited = side == Side::Server && self.greeted.is_some();
        if reader.is_lost() || reader.is_within() || is_awaited {
            return false;
        }
        let is_of_control = |header: &FrameHeader| {
            matches!(
                header.kind,
                FrameType::Settings
                    | FrameType::Ping
                    | FrameType::WindowUpdate
                    | FrameType::Priority
                    | FrameType::Other(_)
            )
        };
        let mut end = 0;
        let mut headers =
            frames(payload).inspect(|(at, header)| end = at + HEADER_BYTES + header.length as usize);
        headers.all(|(_, header)| is_of_control(&header)) && end == payload.len()
    }

    /// Returns the facts before `side` sends `payload`.
    pub fn message_facts(&self, side: Side, payload: &[u8]) -> MessageFacts {
        let payload = self.after_preface(side, payload);
        let next = match self.readers.of(side).is_within() {
            true => *self.last.of(side),
            false => frames(payload)
                .map(|(_, header)| header)
                .find(|header| header.kind.is_of_message())
                .map_or(*self.last.of(side), |header| header.stream),
        };
        let stream = self.streams.get(&next);
        // What a server sends before the end of a request is no response to all of it.
        let is_open = side == Side::Server && stream.is_some_and(|stream| !stream.has_request_ended);
        let is_pending =
            side == Side::Server && stream.is_some_and(|stream| !stream.has_response) && !is_open;
        let is_within = match side {
            Side::Client => stream.is_some_and(|stream| !stream.is_requested),
            Side::Server => stream.is_some_and(|stream| stream.has_response),
        };
        let greeted = self.greeted.filter(|_| side == Side::Server);
        MessageFacts {
            certainty: Certainty::Framed,
            is_within: Some(is_within),
            is_duplex: is_open,
            is_pushed: stream.is_some_and(|stream| stream.is_pushed) || self.begins_with_event(side, payload),
            unanswered: Some(self.unanswered() + usize::from(greeted.is_some())),
            pending: stream.filter(|_| is_pending).map(|stream| stream.requested).or(greeted),
            blocked: self.blocked_sender(side),
            ..MessageFacts::default()
        }
    }

    /// Returns whether the next bytes of a server are DATA with an event.
    fn begins_with_event(&self, side: Side, payload: &[u8]) -> bool {
        let is_next = side == Side::Server && !self.readers.server.is_within();
        let data = frames(payload).find(|(_, header)| header.kind == FrameType::Data);
        data.filter(|_| is_next).and_then(|(at, _)| payload.get(at + HEADER_BYTES..)).is_some_and(is_event)
    }

    /// Returns the sender whose window is used up, with the first update that opens it.
    fn blocked_sender(&self, side: Side) -> Option<BlockedSender> {
        let blocked = self.blocked.of(side).filter(|_| self.is_whole)?;
        let opens = |change: &&WindowChange| match (change.kind, blocked.limit) {
            (WindowChangeKind::Update(0, _), WindowLimit::Connection) => true,
            (WindowChangeKind::Update(updated, _), WindowLimit::Stream(stream)) => updated == stream,
            (WindowChangeKind::Initial(_), WindowLimit::Stream(_)) => true,
            (WindowChangeKind::Update(..) | WindowChangeKind::Initial(_), _) => false,
        };
        let updated = self.updates.of(side).iter().find(opens).map(|change| change.mark);
        Some(BlockedSender { updated, ..blocked })
    }

    /// Returns the bytes after the client's preface, if they begin within it.
    fn after_preface<'a>(&self, side: Side, payload: &'a [u8]) -> &'a [u8] {
        let left = PREFACE.get(self.preface..).unwrap_or_default();
        let may_be = self.has_preface || !self.has_client_sent;
        let is_within = side == Side::Client && may_be && payload.starts_with(left);
        if is_within { payload.get(left.len()..).unwrap_or_default() } else { payload }
    }

    /// Creates the state at the client's preface, or in the middle of a connection.
    pub fn new(is_whole: bool) -> Self {
        Self {
            readers: Both::default(),
            preface: 0,
            has_preface: is_whole,
            windows: Both { client: SendWindows::default(), server: SendWindows::default() },
            updates: Both::default(),
            distance: Both::default(),
            is_whole,
            has_client_sent: false,
            greeted: None,
            streams: BTreeMap::new(),
            last: Both::default(),
            blocked: Both::default(),
            answered: Vec::new(),
            requests: 0,
            error: None,
        }
    }

    fn part(&mut self, side: Side, part: Part<'_>, mark: Mark, context: &C) {
        match part {
            Part::Begins(header) if header.kind.is_of_message() => self.message_begins(side, header),
            Part::Begins(_) => {}
            Part::Frame(frame) => self.frame(side, frame, mark, context),
        }
    }

    fn message_begins(&mut self, side: Side, header: FrameHeader) {
        *self.last.of_mut(side) = header.stream;
        if header.kind == FrameType::Data {
            *self.blocked.of_mut(side) = None;
        }
    }

    fn frame(&mut self, side: Side, frame: Frame<'_>, mark: Mark, context: &C) {
        let Frame { header, payload } = frame;
        match header.kind {
            FrameType::Headers => self.headers(side, header, payload, mark, context),
            FrameType::Data => self.data(side, header, payload, mark),
            FrameType::WindowUpdate => {
                let increment = payload.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
                self.change(side.other(), WindowChangeKind::Update(header.stream, increment), mark);
            }
            FrameType::Settings if !header.has(FrameHeader::ACK) => {
                Setting::read(payload).filter(|setting| setting.id == Setting::INITIAL_WINDOW_SIZE).for_each(
                    |setting| self.change(side.other(), WindowChangeKind::Initial(setting.value), mark),
                )
            }
            FrameType::Reset | FrameType::GoAway => self.stopped(side, header, payload, mark),
            FrameType::Settings
            | FrameType::Priority
            | FrameType::PushPromise
            | FrameType::Ping
            | FrameType::Continuation
            | FrameType::Other(_) => {}
        }
        if header.ends_stream() {
            self.ends(side, header.stream, mark);
        }
    }

    fn headers(&mut self, side: Side, header: FrameHeader, payload: &[u8], mark: Mark, context: &C) {
        let is_full = self.streams.len() >= MAX_STREAMS;
        match (side, self.streams.get_mut(&header.stream)) {
            (Side::Client, None) if !header.stream.is_multiple_of(2) && !is_full => {
                self.greeted = None;
                self.requests += 1;
                let state = StreamState {
                    requested: mark,
                    is_requested: true,
                    has_request_ended: false,
                    has_response: false,
                    is_pushed: false,
                    status: None,
                    context: context.clone(),
                };
                self.streams.insert(header.stream, state);
            }
            (Side::Server, Some(stream)) => {
                let status = status(header, payload);
                stream.status = stream.status.or(status);
                stream.has_response = true;
            }
            (Side::Client | Side::Server, _) => {}
        }
    }

    fn data(&mut self, side: Side, header: FrameHeader, payload: &[u8], mark: Mark) {
        self.apply_known(side, header, mark.at);
        let windows = self.windows.of_mut(side);
        windows.sent(header.stream, header.length);
        if let (Some(limit), false) = (windows.limit(header.stream), header.ends_stream()) {
            let size = match limit {
                WindowLimit::Stream(_) => windows.initial(),
                WindowLimit::Connection => windows.widest,
            };
            let size = u64::try_from(size).unwrap_or(DEFAULT_WINDOW.into());
            *self.blocked.of_mut(side) = Some(BlockedSender { limit, size, since: mark, updated: None });
        }
        let Some(stream) = self.streams.get_mut(&header.stream) else { return };
        match side {
            Side::Client => stream.requested = mark,
            Side::Server => {
                stream.has_response = true;
                stream.is_pushed |= is_event(payload);
            }
        }
    }

    /// Records a change of the windows of `side`, which it does not know yet.
    fn change(&mut self, side: Side, kind: WindowChangeKind, mark: Mark) {
        let updates = self.updates.of_mut(side);
        updates.push_back(WindowChange { mark, kind });
        if updates.len() > MAX_UPDATES {
            self.apply_next(side);
        }
    }

    fn apply_next(&mut self, side: Side) {
        let Some(change) = self.updates.of_mut(side).pop_front() else { return };
        match change.kind {
            WindowChangeKind::Update(stream, increment) => {
                self.windows.of_mut(side).updated(stream, increment)
            }
            WindowChangeKind::Initial(size) => self.windows.of_mut(side).set_initial(size),
        }
    }

    /// Applies the changes that a sender knew when it sent at `at`: those that had reached it, and those without which it
    /// could not have sent.
    fn apply_known(&mut self, side: Side, header: FrameHeader, at: Time) {
        let distance = *self.distance.of(side);
        let slack = distance / 16 + Duration::from_micros(200);
        while let Some(change) = self.updates.of(side).front() {
            let is_known = change.mark.at + distance.saturating_sub(slack) <= at;
            if !is_known && self.windows.of(side).available(header.stream) >= header.length.into() {
                return;
            }
            self.apply_next(side);
        }
    }

    fn ends(&mut self, side: Side, stream: u32, mark: Mark) {
        self.windows.of_mut(side).close(stream);
        if side == Side::Client
            && let Some(state) = self.streams.get_mut(&stream)
        {
            state.has_request_ended = true;
        }
        if side == Side::Server
            && let Some(state) = self.streams.remove(&stream)
        {
            let StreamState { requested, status, context, .. } = state;
            // Its fields are compressed.
            let request = ("HTTP/2".to_owned(), format!("stream {stream}"));
            self.answered.push(Exchange::of_stream(request, status, requested, mark, context));
        }
    }

    /// Handles RST_STREAM and GOAWAY.
    fn stopped(&mut self, side: Side, header: FrameHeader, payload: &[u8], mark: Mark) {
        const NO_ERROR: u32 = 0;
        const CANCEL: u32 = 8;
        // A client that has closed its stream, with all that it wanted, reports later frames so.
        const STREAM_CLOSED: u32 = 5;
        let has_response = self.streams.get(&header.stream).is_some_and(|stream| stream.has_response);
        let requested = self.streams.get(&header.stream).map(|stream| stream.requested);
        // A stream whose response is complete loses nothing more.
        let is_complete = header.kind == FrameType::Reset && self.is_whole && requested.is_none();
        let is_closed = |code: &u32| *code == STREAM_CLOSED && side == Side::Client && has_response;
        let is_error = |code: &u32| ![NO_ERROR, CANCEL].contains(code) && !is_complete && !is_closed(code);
        let code = error_code(header.kind, payload).filter(is_error);
        if let Some(code) = code {
            let error = StreamError { from: side, stream: header.stream, code, requested, mark };
            self.error.get_or_insert(error);
        }
        if header.kind == FrameType::Reset {
            self.streams.remove(&header.stream);
        }
    }
}

/// Returns whether DATA is an event of a stream of events (text/event-stream), which a server sends when it occurs.
fn is_event(payload: &[u8]) -> bool {
    payload.starts_with(b"data:") || payload.starts_with(b"event:")
}

/// Iterates over the frame headers in a segment that begins with one, with their positions.
fn frames(payload: &[u8]) -> impl Iterator<Item = (usize, FrameHeader)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let header = FrameHeader::read(*payload.get(at..)?.first_chunk()?);
        let begin = at;
        at += HEADER_BYTES + header.length as usize;
        Some((begin, header))
    })
    .take(MAX_FRAMES)
}

/// The connection as a reader of ordered bytes; requests get the caller's state.
#[derive(Debug)]
pub struct Http2Reader<'a, C> {
    /// The connection.
    pub connection: &'a mut Http2<C>,
    /// The caller's state now.
    pub context: &'a C,
}

impl<C: Clone> stream::Reader for Http2Reader<'_, C> {
    fn bytes(&mut self, side: Side, data: &[u8], mark: Mark) {
        let Self { connection, context } = self;
        let mut data = data;
        if side == Side::Client && !connection.has_client_sent {
            // A server may speak first; its first frames do not show whether the connection is whole.
            let is_preface = data.starts_with(PREFACE);
            connection.has_preface |= is_preface;
            connection.is_whole |= is_preface;
            connection.has_client_sent = true;
        }
        if side == Side::Client && connection.has_preface && connection.preface < PREFACE.len() {
            let here = (PREFACE.len() - connection.preface).min(data.len());
            connection.preface += here;
            data = data.get(here..).unwrap_or_default();
            connection.greeted = (connection.preface == PREFACE.len()).then_some(mark);
        }
        if side == Side::Server {
            connection.greeted = None;
        }
        let mut reader = std::mem::take(connection.readers.of_mut(side));
        reader.read(data, &mut |part| connection.part(side, part, mark, context));
        *connection.readers.of_mut(side) = reader;
    }

    fn hole(&mut self, side: Side, length: u64, mark: Mark) {
        let Self { connection, context } = self;
        let mut reader = std::mem::take(connection.readers.of_mut(side));
        reader.skip(length, &mut |part| connection.part(side, part, mark, context));
        *connection.readers.of_mut(side) = reader;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Reader as _;
    use wire::Time;

    fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        [&length[1..], &[kind, flags, 0, 0, 0, stream], payload].concat()
    }

    fn read(messages: &[(Side, Vec<u8>)]) -> Http2<()> {
        let mut connection = Http2::new(true);
        for (frame, (side, bytes)) in (1..).zip(messages) {
            let mark = Mark { at: Time::from_nanos(frame), frame };
            Http2Reader { connection: &mut connection, context: &() }.bytes(*side, bytes, mark);
        }
        connection
    }

    fn request(stream: u8) -> (Side, Vec<u8>) {
        (Side::Client, frame(1, 5, stream, &[0x82, 0x86]))
    }

    fn preface() -> (Side, Vec<u8>) {
        (Side::Client, [PREFACE, &frame(4, 0, 0, &[])].concat())
    }

    #[test]
    fn streams_are_exchanges_that_end_in_any_order() {
        let connection = read(&[
            preface(),
            request(1),
            request(3),
            (Side::Server, frame(1, 5, 3, &[0x88])),
            (Side::Server, [frame(1, 4, 1, &[0x8d]), frame(0, 1, 1, b"no")].concat()),
        ]);
        let ended: Vec<_> = connection
            .answered
            .iter()
            .map(|exchange| {
                (exchange.target.as_str(), exchange.status, exchange.requested.frame, exchange.ended.frame)
            })
            .collect();
        assert_eq!(ended, [("stream 3", Some(200), 3, 4), ("stream 1", Some(404), 2, 5)]);
        assert_eq!((connection.requests, connection.unanswered()), (2, 0));
    }

    #[test]
    fn control_frames_are_no_message() {
        let connection = read(&[preface(), request(1)]);
        let update = frame(8, 0, 0, &[0, 0, 1, 0]);
        let is_control = |bytes: &[u8]| connection.is_control(Side::Server, bytes);
        assert!(is_control(&[frame(4, 1, 0, &[]), update.clone(), frame(6, 0, 0, &[0; 8])].concat()));
        assert!(!is_control(&[update, frame(1, 4, 1, &[0x88])].concat()));
        assert!(!is_control(&frame(7, 0, 0, &[0; 8])), "GOAWAY ends something");
    }

    #[test]
    fn sender_is_blocked_until_its_window_opens() {
        let window = DEFAULT_WINDOW as usize;
        let data = |length| (Side::Server, frame(0, 0, 1, &vec![7; length]));
        let mut messages = vec![preface(), request(1), (Side::Server, frame(1, 4, 1, &[0x88])), data(window)];
        let blocked = |messages: &[_]| read(messages).message_facts(Side::Server, &[]).blocked;
        let reached = blocked(&messages).unwrap();
        assert_eq!((reached.limit, reached.since.frame, reached.updated), (WindowLimit::Stream(1), 4, None));
        messages
            .push((Side::Client, [frame(8, 0, 1, &[0, 0, 9, 0]), frame(8, 0, 0, &[0, 0, 9, 0])].concat()));
        assert_eq!(blocked(&messages).unwrap().updated.map(|mark| mark.frame), Some(5));
        messages.push(data(9));
        assert_eq!(blocked(&messages), None);
    }

    #[test]
    fn settings_respond_to_a_preface_without_a_request() {
        let preface = (Side::Client, [PREFACE, &frame(4, 0, 0, &[])].concat());
        let settings = frame(4, 0, 0, &[]);
        let greeted = read(std::slice::from_ref(&preface));
        assert!(!greeted.is_control(Side::Server, &settings));
        assert_eq!(greeted.message_facts(Side::Server, &settings).pending.map(|mark| mark.frame), Some(1));
        let requested = read(&[preface.clone(), (Side::Client, frame(1, 5, 1, &[0x82]))]);
        assert!(requested.is_control(Side::Server, &settings));
        let replied = read(&[preface, (Side::Server, settings.clone())]);
        assert!(replied.is_control(Side::Server, &frame(4, 1, 0, &[])));
    }

    #[test]
    fn client_that_reports_frames_of_a_closed_stream_has_its_response() {
        let error = |code: u8, response: &[u8]| {
            let reset = (Side::Client, frame(3, 0, 1, &[0, 0, 0, code]));
            let response = (Side::Server, frame(1, 4, 1, response));
            read(&[preface(), request(1), response, reset]).error.map(|error| error.code)
        };
        assert_eq!((error(5, &[0x88]), error(1, &[0x88])), (None, Some(1)));
    }

    #[test]
    fn data_before_the_end_of_a_request_is_duplex() {
        let response = (Side::Server, frame(1, 4, 1, &[0x88]));
        let data = frame(0, 0, 1, b"event");
        let is_duplex = |requests: &[(Side, Vec<u8>)]| {
            let connection = read(&[&[preface()], requests].concat());
            connection.message_facts(Side::Server, &data).is_duplex
        };
        let open = (Side::Client, frame(1, 4, 1, &[0x83, 0x86]));
        let [more, last] = [0, 1].map(|flags| (Side::Client, frame(0, flags, 1, b"a message")));
        assert!(is_duplex(&[open.clone(), response.clone(), more.clone()]));
        assert!(!is_duplex(&[open.clone(), response.clone(), more.clone(), last]), "its request has ended");
        assert!(is_duplex(&[open, more]) && !is_duplex(&[request(1), response]));
    }

    #[test]
    fn frames_show_which_side_requests() {
        assert_eq!(is_from_client(&frame(1, 4, 5, &[0x83, 0x86])), Some(true));
        assert_eq!(is_from_client(&[frame(1, 4, 5, &[0x88]), frame(0, 0, 5, b"abc")].concat()), Some(false));
        assert_eq!(is_from_client(&frame(8, 0, 0, &[0, 0, 1, 0])), None);
        assert_eq!(is_from_client(b"\x00\x00\x10 something else"), None);
    }
}
