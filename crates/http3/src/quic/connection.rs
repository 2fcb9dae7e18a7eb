//! A connection: its streams, their messages, and what they wait for.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use http2::Priority;
use quinn_proto::{
    ConnectionError, Dir, ReadError, ReadableError, StreamEvent, StreamId, VarInt, WriteError,
};
use wire::{Duration, Time};

use crate::frame;
use crate::profile::{self, Profile, QPACK_BLOCKED_STREAMS, QPACK_MAX_TABLE_CAPACITY, Scheduling};
use crate::qpack::dynamic::{Decoder, Encoder, Section};
use crate::quic::clock::Instant;
use crate::stream::{
    CONTROL, Delivery, QPACK_DECODER, QPACK_ENCODER, REQUEST_CANCELLED, StreamError, StreamReader,
};
use crate::{CloseReason, ConnectionId, Event, Recovery, varint};

/// Priority of the control streams, before that of any message.
const CONTROL_PRIORITY: i32 = 1_000;

/// A connection.
pub(crate) struct Connection {
    pub(crate) id: ConnectionId,
    pub(crate) quic: quinn_proto::Connection,
    pub(crate) readers: BTreeMap<StreamId, StreamReader>,
    writes: BTreeMap<StreamId, Write>,
    pub(crate) encoder: Encoder,
    decoder: Decoder,
    /// Stream of the encoder's instructions.
    instructions: Option<StreamId>,
    /// Data that streams have delivered after a section that waits for insertions.
    held: BTreeMap<StreamId, VecDeque<Held>>,
    pub(crate) has_control: bool,
    pub(crate) is_connected: bool,
    pub(crate) timer: Option<Instant>,
    /// The state of recovery that was last recorded.
    recovery: Option<Recovery>,
}

/// Data that a stream has delivered, and that is not reported yet.
enum Held {
    Section(Vec<u8>),
    Data(Vec<u8>),
    End,
}

/// Data that remains to be written to a stream, which ends after it.
struct Write {
    chunks: Vec<Bytes>,
    is_last: bool,
}

impl Connection {
    /// A connection of an end with this behaviour.
    pub(crate) fn new(id: ConnectionId, quic: quinn_proto::Connection, profile: &Profile) -> Self {
        let is_connected = quic.side().is_client() && quic.has_0rtt();
        Self {
            id,
            quic,
            readers: BTreeMap::new(),
            writes: BTreeMap::new(),
            encoder: Encoder::default(),
            decoder: Decoder::new(profile.setting(QPACK_MAX_TABLE_CAPACITY)),
            instructions: None,
            held: BTreeMap::new(),
            has_control: false,
            is_connected,
            timer: None,
            recovery: None,
        }
    }

    /// The state of recovery, if it has changed since the last call.
    pub(crate) fn changed_recovery(&mut self, at: Time) -> Option<Recovery> {
        let path = self.quic.stats().path;
        let of = |time: core::time::Duration| {
            Duration::from_nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
        };
        let now = Recovery {
            at: self.recovery.map_or(at, |before| before.at),
            peer: self.quic.remote_address(),
            window: path.cwnd,
            round_trip: of(path.rtt),
            min_round_trip: of(path.min_rtt),
            lost: path.lost_packets,
        };
        if self.recovery == Some(now) {
            return None;
        }
        self.recovery = Some(Recovery { at, ..now });
        self.recovery
    }

    /// Opens the streams for control and for QPACK, if the peer's parameters are known.
    pub(crate) fn open_control(&mut self, profile: &Profile) {
        let Some(control) = self.quic.streams().open(Dir::Uni) else { return };
        self.has_control = true;
        let mut first = Vec::new();
        varint::put(CONTROL, &mut first);
        frame::settings(profile.settings, &mut first);
        self.write(control, vec![first.into()], CONTROL_PRIORITY);
        for kind in [QPACK_ENCODER, QPACK_DECODER] {
            if let Some(stream) = self.quic.streams().open(Dir::Uni) {
                if kind == QPACK_ENCODER {
                    self.instructions = Some(stream);
                }
                let mut first = Vec::new();
                varint::put(kind, &mut first);
                self.write(stream, vec![first.into()], CONTROL_PRIORITY);
            }
        }
    }

    /// Writes to a stream that never ends.
    fn write(&mut self, stream: StreamId, chunks: Vec<Bytes>, priority: i32) {
        let _ = self.quic.send_stream(stream).set_priority(priority);
        let write = self.writes.entry(stream).or_insert(Write { chunks: Vec::new(), is_last: false });
        write.chunks.extend(chunks);
        self.proceed(stream);
    }

    /// Sends a message, and ends its stream.
    pub(crate) fn send<'a>(
        &mut self,
        stream: StreamId,
        fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
        (priority, scheduling): (Priority, Scheduling),
        body: Arc<[u8]>,
    ) {
        let (mut section, mut instructions, mut first) = (Vec::new(), Vec::new(), Vec::new());
        self.encoder.encode(fields, &mut section, &mut instructions);
        if let Some(encoder) = self.instructions.filter(|_| !instructions.is_empty()) {
            self.write(encoder, vec![instructions.into()], CONTROL_PRIORITY);
        }
        frame::frame(frame::HEADERS, &section, &mut first);
        let mut chunks = Vec::new();
        if body.is_empty() {
            chunks.push(first.into());
        } else {
            frame::header(frame::DATA, body.len(), &mut first);
            chunks.push(first.into());
            chunks.push(Bytes::from_owner(body));
        }
        if scheduling == Scheduling::Urgency {
            // Its stream may have ended: then there is nothing to order.
            let _ = self.quic.send_stream(stream).set_priority(-i32::from(priority.urgency));
        }
        self.writes.insert(stream, Write { chunks, is_last: true });
        self.proceed(stream);
    }

    /// Resets a stream that is no longer wanted.
    pub(crate) fn reset(&mut self, stream: StreamId) {
        let code = VarInt::from_u64(REQUEST_CANCELLED).unwrap_or_default();
        // Either fails if that half has ended.
        let _ = self.quic.recv_stream(stream).stop(code);
        let _ = self.quic.send_stream(stream).reset(code);
        self.readers.remove(&stream);
        self.writes.remove(&stream);
        self.held.remove(&stream);
    }

    /// Writes what the windows allow.
    fn proceed(&mut self, stream: StreamId) {
        let Some(Write { chunks, is_last }) = self.writes.get_mut(&stream) else { return };
        let mut sender = self.quic.send_stream(stream);
        while !chunks.is_empty() {
            match sender.write_chunks(chunks) {
                Ok(written) => drop(chunks.drain(..written.chunks)),
                Err(WriteError::Blocked) => return,
                // The peer wants no more, or the stream has ended.
                Err(WriteError::Stopped(code)) => {
                    let _ = sender.reset(code);
                    self.writes.remove(&stream);
                    return;
                }
                Err(WriteError::ClosedStream) => {
                    self.writes.remove(&stream);
                    return;
                }
            }
        }
        if *is_last {
            let _ = sender.finish();
        }
        self.writes.remove(&stream);
    }

    pub(crate) fn event(
        &mut self,
        event: quinn_proto::Event,
        profile: &Profile,
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), StreamError> {
        match event {
            quinn_proto::Event::Connected => {
                if !self.has_control {
                    self.open_control(profile);
                }
                if !std::mem::replace(&mut self.is_connected, true) {
                    on(Event::Connected(self.id));
                }
            }
            quinn_proto::Event::ConnectionLost { reason } => {
                on(Event::Closed(self.id, close_reason(&reason)));
            }
            quinn_proto::Event::Stream(StreamEvent::Opened { dir }) => {
                while let Some(stream) = self.quic.streams().accept(dir) {
                    let reader = match dir {
                        Dir::Bi => StreamReader::message(),
                        Dir::Uni => StreamReader::unidirectional(),
                    };
                    self.readers.insert(stream, reader);
                    self.read(stream, profile, on)?;
                }
            }
            quinn_proto::Event::Stream(StreamEvent::Readable { id }) => self.read(id, profile, on)?,
            quinn_proto::Event::Stream(StreamEvent::Writable { id }) => self.proceed(id),
            quinn_proto::Event::Stream(StreamEvent::Stopped { id, error_code }) => {
                let _ = self.quic.send_stream(id).reset(error_code);
                self.writes.remove(&id);
            }
            quinn_proto::Event::Stream(StreamEvent::Finished { .. } | StreamEvent::Available { .. })
            | quinn_proto::Event::HandshakeDataReady
            | quinn_proto::Event::DatagramReceived
            | quinn_proto::Event::DatagramsUnblocked => {}
        }
        Ok(())
    }

    /// Reads what has arrived on a stream.
    fn read(
        &mut self,
        stream: StreamId,
        profile: &Profile,
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), StreamError> {
        let Self { id, quic, readers, encoder, decoder, held, .. } = self;
        let Some(reader) = readers.get_mut(&stream) else { return Ok(()) };
        let mut receiver = quic.recv_stream(stream);
        let mut chunks = match receiver.read(true) {
            Ok(chunks) => chunks,
            Err(ReadableError::ClosedStream | ReadableError::IllegalOrderedRead) => {
                readers.remove(&stream);
                return Ok(());
            }
        };
        let mut messages = Messages { connection: *id, stream, decoder, held };
        let mut result = Ok(());
        let (mut is_over, mut has_insertions) = (true, false);
        while result.is_ok() {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => {
                    let mut delivered = Ok(());
                    let read = reader.read(&chunk.bytes, &mut |delivery| match delivery {
                        Delivery::Section(section) => delivered = messages.section(section, on),
                        Delivery::Data(bytes) => messages.data(bytes, on),
                        Delivery::Leaving => on(Event::Leaving(messages.connection)),
                        Delivery::Settings(payload) => allow(encoder, profile, payload),
                        Delivery::Instructions(bytes) => {
                            has_insertions = true;
                            delivered = messages.decoder.instruct(bytes).ok_or(StreamError);
                        }
                    });
                    result = read.and(delivered);
                }
                Ok(None) => {
                    match reader {
                        StreamReader::Message(_) if reader.ends_message() => messages.end(on),
                        StreamReader::Ignored | StreamReader::Untyped(_) => {}
                        // A message that is cut, or a control stream that ends (RFC 9114, section 6.2.1).
                        StreamReader::Message(_) | StreamReader::Control(_) | StreamReader::Instructions => {
                            result = Err(StreamError);
                        }
                    }
                    break;
                }
                Err(ReadError::Blocked) => {
                    is_over = false;
                    break;
                }
                Err(ReadError::Reset(code)) => {
                    messages.held.remove(&stream);
                    let stream = number(stream);
                    on(Event::Reset { connection: messages.connection, stream, code: code.into_inner() });
                    break;
                }
            }
        }
        // Windows that it opens leave with the next datagram.
        let _ = chunks.finalize();
        if is_over {
            readers.remove(&stream);
        }
        if has_insertions {
            self.report_held(on)?;
        }
        result
    }

    /// Reports what waited for insertions that have arrived.
    fn report_held(&mut self, on: &mut dyn FnMut(Event<'_>)) -> Result<(), StreamError> {
        for (stream, held) in std::mem::take(&mut self.held) {
            let Self { id, decoder, held: rest, .. } = self;
            let mut messages = Messages { connection: *id, stream, decoder, held: rest };
            for part in held {
                match part {
                    Held::Section(section) => messages.section(&section, on)?,
                    Held::Data(bytes) => messages.data(&bytes, on),
                    Held::End => messages.end(on),
                }
            }
        }
        Ok(())
    }
}

/// A stream's messages on their way to the caller.
struct Messages<'a> {
    connection: ConnectionId,
    stream: StreamId,
    decoder: &'a mut Decoder,
    held: &'a mut BTreeMap<StreamId, VecDeque<Held>>,
}

impl Messages<'_> {
    /// Holds a part back if one before it is.
    fn hold(&mut self, part: impl FnOnce() -> Held) -> bool {
        let held = self.held.get_mut(&self.stream);
        held.is_some_and(|held| {
            held.push_back(part());
            true
        })
    }

    fn section(&mut self, section: &[u8], on: &mut dyn FnMut(Event<'_>)) -> Result<(), StreamError> {
        if self.hold(|| Held::Section(section.to_vec())) {
            return Ok(());
        }
        match self.decoder.decode(section) {
            Section::Fields(fields) => {
                on(Event::Fields { connection: self.connection, stream: number(self.stream), fields });
                Ok(())
            }
            Section::Blocked => {
                self.held.insert(self.stream, [Held::Section(section.to_vec())].into());
                Ok(())
            }
            Section::Invalid => Err(StreamError),
        }
    }

    fn data(&mut self, bytes: &[u8], on: &mut dyn FnMut(Event<'_>)) {
        if !self.hold(|| Held::Data(bytes.to_vec())) {
            on(Event::Data { connection: self.connection, stream: number(self.stream), bytes });
        }
    }

    fn end(&mut self, on: &mut dyn FnMut(Event<'_>)) {
        if !self.hold(|| Held::End) {
            on(Event::End { connection: self.connection, stream: number(self.stream) });
        }
    }
}

/// Notes the peer's SETTINGS.
fn allow(encoder: &mut Encoder, profile: &Profile, payload: &[u8]) {
    if !profile.has_dynamic_fields {
        return;
    }
    let value = |id| profile::setting(frame::read_settings(payload), id);
    encoder.allow(value(QPACK_MAX_TABLE_CAPACITY), value(QPACK_BLOCKED_STREAMS) > 0);
}

fn close_reason(error: &ConnectionError) -> CloseReason {
    match error {
        ConnectionError::TimedOut => CloseReason::TimedOut,
        ConnectionError::ApplicationClosed(_)
        | ConnectionError::ConnectionClosed(_)
        | ConnectionError::Reset
        | ConnectionError::LocallyClosed => CloseReason::Peer,
        ConnectionError::VersionMismatch
        | ConnectionError::TransportError(_)
        | ConnectionError::CidsExhausted => CloseReason::Fault,
    }
}

/// The number of a stream.
pub(crate) fn number(stream: StreamId) -> u64 {
    VarInt::from(stream).into_inner()
}
