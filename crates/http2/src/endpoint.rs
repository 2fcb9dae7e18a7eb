//! One end of a connection as a state machine (RFC 9113): bytes of the peer in, events out; messages in, writes out.
//!
//! Without clock and socket. A caller passes what arrives to [`Endpoint::receive`] and sends [`Endpoint::next_write`] whenever
//! its connection can take more: what is not yet written can still be overtaken by something more urgent.
//!
//! ```
//! use roundtrip_http2::{Endpoint, Event, Priority, Profile};
//!
//! let (mut client, mut server) = (Endpoint::client(Profile::CHROMIUM), Endpoint::server(Profile::NGINX));
//! let fields = [(&b":method"[..], &b"GET"[..]), (b":scheme", b"https"), (b":authority", b"a"), (b":path", b"/")];
//! let stream = client.request(fields, Priority::default(), [].into()).expect("it may open a stream");
//! let mut paths = Vec::new();
//! while let Some(bytes) = client.next_write() {
//!     server.receive(&bytes, &mut |event| {
//!         if let Event::Fields { fields, .. } = event {
//!             paths.extend(fields.get(b":path").map(<[u8]>::to_vec));
//!         }
//!     }).expect("it is valid");
//! }
//! assert_eq!((stream, paths), (1, vec![b"/".to_vec()]));
//! ```

mod deframe;
mod streams;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::frame::{FrameHeader, FrameType, HEADER_BYTES};
use crate::hpack::{Decoder, Encoder, FieldList};
use crate::profile::Profile;
use crate::settings::Setting;
use crate::window::SendWindows;
use crate::{PREFACE, write};
use deframe::{Deframer, Part};
use streams::{Bodies, Chunk};

pub use streams::Priority;

/// An event of the peer.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// The fields of a message.
    Fields {
        /// Its stream.
        stream: u32,
        /// The fields, pseudo-fields first.
        fields: FieldList,
        /// Whether no body follows.
        ends: bool,
    },
    /// Bytes of a body.
    Data {
        /// Its stream.
        stream: u32,
        /// The bytes, perhaps none.
        bytes: &'a [u8],
        /// Whether the body ends with them.
        ends: bool,
    },
    /// The peer has reset a stream, with this code.
    Reset {
        /// The stream.
        stream: u32,
        /// The code.
        code: u32,
    },
    /// The peer processes no stream after this one.
    GoAway {
        /// The last stream.
        last: u32,
    },
}

/// The peer's error, which ends the connection: the code of the GOAWAY frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionError(pub u32);

const PROTOCOL_ERROR: ConnectionError = ConnectionError(1);
const FLOW_CONTROL_ERROR: ConnectionError = ConnectionError(3);
const FRAME_SIZE_ERROR: ConnectionError = ConnectionError(6);
const COMPRESSION_ERROR: ConnectionError = ConnectionError(9);
/// REFUSED_STREAM: it was not processed.
pub const REFUSED_STREAM: u32 = 7;
/// CANCEL.
pub const CANCEL: u32 = 8;

/// Maximum bytes of a field block.
const MAX_BLOCK_BYTES: usize = 1 << 18;
/// Maximum of the peer's streams where the profile has none.
const MAX_STREAMS: u32 = 1_000;
/// Streams before the server's SETTINGS arrive: Chromium, net/spdy/spdy_session.h (`kInitialMaxConcurrentStreams`).
const INITIAL_MAX_STREAMS: u32 = 100;

/// One end of a connection.
#[derive(Clone, Debug)]
pub struct Endpoint {
    profile: Profile,
    is_client: bool,
    /// Bytes of the client's preface that have arrived; complete at a client.
    preface: usize,
    deframer: Deframer,
    decoder: Decoder,
    encoder: Encoder,
    /// Windows of the peer, which limit what is sent.
    windows: SendWindows,
    /// Bytes received on the connection and on streams since the last WINDOW_UPDATE.
    unacknowledged: u32,
    unacknowledged_streams: BTreeMap<u32, u32>,
    /// Maximum bytes of DATA that the peer takes.
    max_frame: u32,
    /// Maximum number of streams that the peer takes.
    max_streams: u32,
    /// Streams that the peer has not ended.
    open: BTreeSet<u32>,
    next_stream: u32,
    /// A block that is continued: its stream, and whether it ends that.
    block: Option<(u32, bool, Vec<u8>)>,
    bodies: Bodies,
    /// Frames to send before any DATA.
    control: Vec<u8>,
}

impl Endpoint {
    /// A client, whose first write begins with the preface.
    pub fn client(profile: Profile) -> Self {
        Self::new(profile, true)
    }

    /// A server.
    pub fn server(profile: Profile) -> Self {
        Self::new(profile, false)
    }

    fn new(profile: Profile, is_client: bool) -> Self {
        Self {
            profile,
            is_client,
            preface: if is_client { PREFACE.len() } else { 0 },
            deframer: Deframer::default(),
            decoder: Decoder::default(),
            encoder: Encoder::default(),
            windows: SendWindows::default(),
            unacknowledged: 0,
            unacknowledged_streams: BTreeMap::new(),
            max_frame: profile.max_data,
            max_streams: INITIAL_MAX_STREAMS,
            open: BTreeSet::new(),
            next_stream: 1,
            block: None,
            bodies: Bodies::new(profile.scheduling),
            control: profile.first_flight(is_client),
        }
    }

    /// Whether a client may open one more stream.
    pub fn can_request(&self) -> bool {
        self.open.len() < self.max_streams as usize
    }

    /// Sends a request; returns its stream, or `None` if the peer takes no more streams now.
    pub fn request<'a>(
        &mut self,
        fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
        priority: Priority,
        body: Arc<[u8]>,
    ) -> Option<u32> {
        if !self.can_request() {
            return None;
        }
        let stream = self.next_stream;
        self.next_stream += 2;
        self.open.insert(stream);
        self.send(stream, fields, Some(weight(priority)), priority, body);
        let increment = self.profile.request_increment();
        if increment > 0 {
            write::window_update(stream, increment, &mut self.control);
        }
        Some(stream)
    }

    /// Sends a response.
    pub fn respond<'a>(
        &mut self,
        stream: u32,
        fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
        priority: Priority,
        body: Arc<[u8]>,
    ) {
        self.send(stream, fields, None, priority, body);
    }

    fn send<'a>(
        &mut self,
        stream: u32,
        fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
        weight: Option<[u8; 5]>,
        priority: Priority,
        body: Arc<[u8]>,
    ) {
        let mut block = Vec::new();
        self.encoder.encode(fields, &mut block);
        write::headers(stream, body.is_empty(), weight, &block, &mut self.control);
        if !body.is_empty() {
            self.bodies.insert(stream, priority, body);
        }
    }

    /// Resets a stream with this code.
    pub fn reset(&mut self, stream: u32, code: u32) {
        self.close(stream);
        self.bodies.remove(stream);
        write::frame(FrameType::Reset, 0, stream, &code.to_be_bytes(), &mut self.control);
    }

    /// Whether a body has not been written completely.
    pub fn has_body(&self) -> bool {
        !self.bodies.is_empty()
    }

    /// The next write: frames that carry no DATA, and as much DATA as the profile puts into one write.
    pub fn next_write(&mut self) -> Option<Vec<u8>> {
        let mut bytes = std::mem::take(&mut self.control);
        loop {
            let space = self.profile.max_write.saturating_sub(bytes.len() + HEADER_BYTES);
            if space == 0 {
                break;
            }
            let max = u32::try_from(space).unwrap_or(u32::MAX).min(self.max_frame);
            let Some(Chunk { stream, bytes: body, from, to, is_last }) = self.bodies.next(&self.windows, max)
            else {
                break;
            };
            let flags = if is_last { FrameHeader::END_STREAM } else { 0 };
            let chunk = body.get(from..to).unwrap_or_default();
            // As much as the write may have, where more follows.
            bytes.reserve(if is_last { HEADER_BYTES + chunk.len() } else { space + HEADER_BYTES });
            self.windows.sent(stream, u32::try_from(chunk.len()).unwrap_or(u32::MAX));
            write::frame(FrameType::Data, flags, stream, chunk, &mut bytes);
            if is_last {
                self.windows.close(stream);
            }
        }
        (!bytes.is_empty()).then_some(bytes)
    }

    /// Handles bytes of the peer.
    ///
    /// # Errors
    /// An error of the peer that ends the connection.
    pub fn receive(&mut self, bytes: &[u8], on: &mut impl FnMut(Event<'_>)) -> Result<(), ConnectionError> {
        let mut input = self.take_preface(bytes)?;
        let mut deframer = std::mem::take(&mut self.deframer);
        let mut result = Ok(());
        while result.is_ok() {
            result = match deframer.next(&mut input) {
                Err(_) => Err(FRAME_SIZE_ERROR),
                Ok(None) => break,
                Ok(Some(Part::Data { stream, bytes, ends })) => self.data(stream, bytes, ends, on),
                Ok(Some(Part::Frame(header, payload))) => self.frame(header, payload, on),
            };
        }
        self.deframer = deframer;
        result
    }

    fn take_preface<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], ConnectionError> {
        let expected = PREFACE.get(self.preface..).unwrap_or_default();
        let (here, rest) = bytes.split_at(expected.len().min(bytes.len()));
        self.preface += here.len();
        if expected.starts_with(here) { Ok(rest) } else { Err(PROTOCOL_ERROR) }
    }

    fn data(
        &mut self,
        stream: u32,
        bytes: &[u8],
        ends: bool,
        on: &mut impl FnMut(Event<'_>),
    ) -> Result<(), ConnectionError> {
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.unacknowledged += length;
        if self.unacknowledged > self.profile.connection_window {
            return Err(FLOW_CONTROL_ERROR);
        }
        if self.unacknowledged > self.profile.connection_window / self.profile.update_divisor {
            write::window_update(0, self.unacknowledged, &mut self.control);
            self.unacknowledged = 0;
        }
        // Frames of a stream that was reset may still arrive.
        if !self.open.contains(&stream) {
            return Ok(());
        }
        if ends {
            self.close(stream);
        } else {
            self.acknowledge(stream, length)?;
        }
        on(Event::Data { stream, bytes, ends });
        Ok(())
    }

    /// Counts bytes of a stream, and grants its window again when enough have arrived.
    fn acknowledge(&mut self, stream: u32, length: u32) -> Result<(), ConnectionError> {
        let window = self.profile.stream_window();
        let received = self.unacknowledged_streams.entry(stream).or_default();
        *received += length;
        if *received > window {
            return Err(FLOW_CONTROL_ERROR);
        }
        if *received > window / self.profile.update_divisor {
            write::window_update(stream, *received, &mut self.control);
            *received = 0;
        }
        Ok(())
    }

    fn close(&mut self, stream: u32) {
        self.open.remove(&stream);
        self.unacknowledged_streams.remove(&stream);
    }

    fn frame(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        on: &mut impl FnMut(Event<'_>),
    ) -> Result<(), ConnectionError> {
        if self.block.is_some() && header.kind != FrameType::Continuation {
            return Err(PROTOCOL_ERROR);
        }
        let code = || payload.first_chunk().copied().map(u32::from_be_bytes).ok_or(FRAME_SIZE_ERROR);
        let stream = header.stream;
        match header.kind {
            FrameType::Headers => {
                let block = fields_of(header, payload).ok_or(PROTOCOL_ERROR)?;
                if header.has(FrameHeader::END_HEADERS) {
                    return self.fields(stream, header.ends_stream(), block, on);
                }
                self.block = Some((stream, header.ends_stream(), block.to_vec()));
                Ok(())
            }
            FrameType::Continuation => {
                let (of, _, block) = self.block.as_mut().ok_or(PROTOCOL_ERROR)?;
                if *of != stream || block.len() + payload.len() > MAX_BLOCK_BYTES {
                    return Err(PROTOCOL_ERROR);
                }
                block.extend_from_slice(payload);
                self.end_block(header, on)
            }
            FrameType::Settings => self.settings(header, payload),
            FrameType::WindowUpdate => self.window_update(stream, code()? & 0x7fff_ffff),
            FrameType::Ping => {
                if !header.has(FrameHeader::ACK) {
                    write::frame(FrameType::Ping, FrameHeader::ACK, 0, payload, &mut self.control);
                }
                Ok(())
            }
            FrameType::Reset => {
                self.close(stream);
                self.bodies.remove(stream);
                on(Event::Reset { stream, code: code()? });
                Ok(())
            }
            FrameType::GoAway => {
                on(Event::GoAway { last: code()? & 0x7fff_ffff });
                Ok(())
            }
            FrameType::PushPromise => Err(PROTOCOL_ERROR),
            FrameType::Data | FrameType::Priority | FrameType::Other(_) => Ok(()),
        }
    }

    /// Handles the end of CONTINUATION, which may be that of the block.
    fn end_block(
        &mut self,
        header: FrameHeader,
        on: &mut impl FnMut(Event<'_>),
    ) -> Result<(), ConnectionError> {
        if !header.has(FrameHeader::END_HEADERS) {
            return Ok(());
        }
        let Some((stream, ends, block)) = self.block.take() else { return Err(PROTOCOL_ERROR) };
        self.fields(stream, ends, &block, on)
    }

    /// Handles a complete block.
    fn fields(
        &mut self,
        stream: u32,
        ends: bool,
        block: &[u8],
        on: &mut impl FnMut(Event<'_>),
    ) -> Result<(), ConnectionError> {
        let fields = self.decoder.decode(block).ok_or(COMPRESSION_ERROR)?;
        if !self.is_client && !self.accepts(stream)? {
            self.reset(stream, REFUSED_STREAM);
            return Ok(());
        }
        if self.open.contains(&stream) {
            if ends {
                self.close(stream);
            }
            on(Event::Fields { stream, fields, ends });
        }
        Ok(())
    }

    /// Opens a client's stream, unless there are too many; trailers come on an open one.
    fn accepts(&mut self, stream: u32) -> Result<bool, ConnectionError> {
        if self.open.contains(&stream) {
            return Ok(true);
        }
        if stream.is_multiple_of(2) || stream < self.next_stream {
            return Err(PROTOCOL_ERROR);
        }
        self.next_stream = stream.saturating_add(2);
        let max = self.profile.setting(Setting::MAX_CONCURRENT_STREAMS).unwrap_or(MAX_STREAMS);
        let is_accepted = self.open.len() < max as usize;
        if is_accepted {
            self.open.insert(stream);
        }
        Ok(is_accepted)
    }

    fn settings(&mut self, header: FrameHeader, payload: &[u8]) -> Result<(), ConnectionError> {
        if header.has(FrameHeader::ACK) {
            return Ok(());
        }
        for Setting { id, value } in Setting::read(payload) {
            match id {
                Setting::INITIAL_WINDOW_SIZE if value > i32::MAX as u32 => return Err(FLOW_CONTROL_ERROR),
                Setting::INITIAL_WINDOW_SIZE => self.windows.set_initial(value),
                Setting::MAX_FRAME_SIZE if (value as usize) < write::MAX_FRAME_BYTES => {
                    return Err(PROTOCOL_ERROR);
                }
                Setting::MAX_FRAME_SIZE => self.max_frame = self.profile.max_data.min(value),
                Setting::MAX_CONCURRENT_STREAMS => self.max_streams = value,
                _ => {}
            }
        }
        write::frame(FrameType::Settings, FrameHeader::ACK, 0, &[], &mut self.control);
        Ok(())
    }

    fn window_update(&mut self, stream: u32, increment: u32) -> Result<(), ConnectionError> {
        let window = if stream == 0 { self.windows.connection() } else { self.windows.stream(stream) };
        if window + i64::from(increment) > i64::from(i32::MAX) {
            return Err(FLOW_CONTROL_ERROR);
        }
        self.windows.updated(stream, increment);
        Ok(())
    }
}

/// The field block of HEADERS, without padding and priority.
fn fields_of(header: FrameHeader, payload: &[u8]) -> Option<&[u8]> {
    let (padding, rest) = match header.has(FrameHeader::PADDED) {
        true => payload.split_first().map(|(padding, rest)| (usize::from(*padding), rest))?,
        false => (0, payload),
    };
    let priority = if header.has(FrameHeader::PRIORITY) { 5 } else { 0 };
    rest.get(priority..rest.len().checked_sub(padding)?)
}

/// Exclusive dependency on the root, and the weight of an urgency: Chromium, net/spdy (`Spdy3PriorityToHttp2Weight`).
fn weight(priority: Priority) -> [u8; 5] {
    let steps = u16::from(7 - priority.urgency.min(7));
    // 255.9 / 7 for each step, in thousandths.
    let weight = u32::from(steps) * 36_557 / 1_000;
    [0x80, 0, 0, 0, u8::try_from(weight).unwrap_or(u8::MAX)]
}

#[cfg(test)]
mod tests;
