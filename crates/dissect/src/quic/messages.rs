//! Messages of HTTP/3 (RFC 9114): the method and the target of each request, and the status of its response, whose fields are
//! compressed by QPACK (RFC 9204).
//!
//! Bytes of streams flow in, in the order of the capture; heads of messages flow out. A stream is put in order up to its head, those
//! of QPACK's encoders and of SETTINGS up to a hole. What cannot be read has no head.

use std::collections::BTreeMap;

use http2::hpack::FieldList;
use http3::frame::read_settings;
use http3::profile::QPACK_MAX_TABLE_CAPACITY;
use http3::qpack::dynamic::{Decoder, MAX_TABLE_BYTES, Section};
use http3::stream::{Delivery, StreamReader};
use quic::frame::StreamData;

use crate::stream::{OrderedBytes, Part};
use crate::{Both, Side};

/// Head of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Head {
    /// Method and target of a request.
    Request(String, String),
    /// Status of a response that is not interim.
    Response(u16),
}

/// Messages of both ends of a connection.
#[derive(Debug, Default)]
pub(super) struct Messages(Both<Sender>);

/// Messages of one end.
#[derive(Debug)]
struct Sender {
    /// Streams by their ids; `None`: nothing more of it is read.
    streams: BTreeMap<u64, Option<Stream>>,
    /// Bytes that they hold.
    bytes: usize,
    /// Decoder of its fields; `None` once its instructions cannot be followed.
    decoder: Option<Decoder>,
    /// Sections that wait for insertions, by their streams.
    held: BTreeMap<u64, Vec<u8>>,
}

/// A stream, read up to its first hole.
#[derive(Debug)]
struct Stream {
    ordered: OrderedBytes,
    /// Bytes of a head that is not complete.
    unread: usize,
    reader: StreamReader,
}

/// Result of bytes of a stream.
#[derive(Debug, Default)]
struct Delivered {
    sections: Vec<Vec<u8>>,
    /// Maximum of the peer's table.
    capacity: Option<u64>,
    has_insertions: bool,
    is_invalid: bool,
}

/// Maximum number of streams of one end.
const MAX_STREAMS: usize = 1_024;
/// Maximum bytes that the streams of one end hold.
const MAX_BYTES: usize = 1 << 18;
/// Maximum number of sections that wait for insertions, and of their bytes.
const MAX_HELD: usize = 128;
const MAX_HELD_BYTES: usize = 1 << 14;
/// Maximum length of a target.
const MAX_TARGET_BYTES: usize = 200;

impl Default for Sender {
    fn default() -> Self {
        let (streams, held) = (BTreeMap::new(), BTreeMap::new());
        // The peer's setting, which early data precedes, is for larger counts of insertions than there are before it.
        Self { streams, bytes: 0, decoder: Some(Decoder::new(MAX_TABLE_BYTES as u64)), held }
    }
}

impl Messages {
    /// Handles bytes of a stream that `side` has sent; passes on heads and their streams.
    pub(super) fn read(&mut self, side: Side, data: &StreamData<'_>, on: &mut dyn FnMut(u64, Head)) {
        /// Bits of an id: whether a server opened the stream, and whether only its opener sends on it (RFC 9000, section 2.1).
        const OF_SERVER: u64 = 1;
        const UNIDIRECTIONAL: u64 = 2;
        let is_own = (data.id & OF_SERVER != 0) == (side == Side::Server);
        let reader: fn() -> StreamReader = match data.id & 3 {
            0 => StreamReader::message,
            kind if kind & UNIDIRECTIONAL != 0 && is_own => StreamReader::unidirectional,
            // A server opens no stream of requests.
            _ => return,
        };
        let delivered = self.0.of_mut(side).bytes(data, reader);
        if let Some(capacity) = delivered.capacity
            && let Some(decoder) = &mut self.0.of_mut(side.other()).decoder
        {
            decoder.set_max(capacity);
        }
        let has_decoded = delivered.capacity.is_some() || delivered.has_insertions;
        let sender = self.0.of_mut(side);
        for section in delivered.sections {
            sender.section(data.id, section, on);
        }
        for side in [side, side.other()].into_iter().filter(|_| has_decoded) {
            let sender = self.0.of_mut(side);
            for (stream, section) in std::mem::take(&mut sender.held) {
                sender.section(stream, section, on);
            }
        }
    }
}

impl Sender {
    fn bytes(&mut self, data: &StreamData<'_>, reader: fn() -> StreamReader) -> Delivered {
        let mut delivered = Delivered::default();
        let Self { streams, bytes, decoder, .. } = self;
        if streams.len() >= MAX_STREAMS && !streams.contains_key(&data.id) {
            return delivered;
        }
        let entry = streams.entry(data.id).or_insert_with(|| Some(Stream::new(reader())));
        let Some(stream) = entry else { return delivered };
        *bytes -= stream.bytes();
        let is_over = stream.sent(data.offset, data.data, decoder, &mut delivered);
        if delivered.is_invalid && matches!(stream.reader, StreamReader::Instructions) {
            *decoder = None;
        }
        if is_over || delivered.is_invalid || *bytes + stream.bytes() > MAX_BYTES {
            *entry = None;
        } else {
            *bytes += stream.bytes();
        }
        delivered
    }

    /// Decodes a section, or holds it until its insertions have come.
    fn section(&mut self, stream: u64, section: Vec<u8>, on: &mut dyn FnMut(u64, Head)) {
        let Some(decoder) = &self.decoder else { return };
        match decoder.decode(&section) {
            Section::Fields(fields) => {
                if let Some(head) = head(&fields) {
                    self.finish(stream);
                    on(stream, head);
                }
            }
            Section::Blocked if self.held.len() < MAX_HELD && section.len() <= MAX_HELD_BYTES => {
                self.held.entry(stream).or_insert(section);
            }
            Section::Blocked | Section::Invalid => {}
        }
    }

    /// Forgets a stream whose head was read.
    fn finish(&mut self, stream: u64) {
        if let Some(stream) = self.streams.get_mut(&stream).and_then(Option::take) {
            self.bytes -= stream.bytes();
        }
    }
}

impl Stream {
    const fn new(reader: StreamReader) -> Self {
        Self { ordered: OrderedBytes::from_the_first(), unread: 0, reader }
    }

    /// Returns the number of bytes that it holds.
    fn bytes(&self) -> usize {
        self.unread + self.ordered.stored()
    }

    /// Reads bytes at an offset; returns whether nothing more is to be read.
    fn sent(
        &mut self,
        offset: u64,
        data: &[u8],
        decoder: &mut Option<Decoder>,
        delivered: &mut Delivered,
    ) -> bool {
        let Self { ordered, unread, reader } = self;
        let mut is_over = false;
        ordered.sent(offset, data, data.len() as u64, &mut |part| match part {
            Part::Bytes(data) if !is_over => is_over = read(reader, unread, data, decoder, delivered),
            // Behind a hole no frame is found again.
            Part::Bytes(_) | Part::Hole(_) => is_over = true,
        });
        is_over
    }
}

/// Passes the next bytes of a stream to its reader; returns whether nothing more is to be read.
fn read(
    reader: &mut StreamReader,
    unread: &mut usize,
    data: &[u8],
    decoder: &mut Option<Decoder>,
    delivered: &mut Delivered,
) -> bool {
    let mut is_over = false;
    let result = reader.read(data, &mut |delivery| match delivery {
        Delivery::Section(section) => delivered.sections.push(section.to_vec()),
        // A body is not read: its head came before.
        Delivery::Data(_) => is_over = true,
        Delivery::Settings(payload) => {
            let capacity = read_settings(payload).find(|(id, _)| *id == QPACK_MAX_TABLE_CAPACITY);
            delivered.capacity = Some(capacity.map_or(0, |(_, value)| value));
            is_over = true;
        }
        Delivery::Instructions(bytes) => {
            let is_read = decoder.as_mut().is_some_and(|decoder| decoder.instruct(bytes).is_some());
            delivered.has_insertions |= is_read;
            delivered.is_invalid |= !is_read;
        }
        Delivery::Leaving => {}
    });
    delivered.is_invalid |= result.is_err();
    match reader {
        StreamReader::Message(_) | StreamReader::Untyped(_) => *unread += data.len(),
        StreamReader::Control(_) | StreamReader::Instructions => {}
        StreamReader::Ignored => is_over = true,
    }
    is_over
}

/// Returns the head that these fields are.
fn head(fields: &FieldList) -> Option<Head> {
    let value = |name: &[u8]| {
        let value = fields.get(name)?;
        Some(String::from_utf8_lossy(value).chars().take(MAX_TARGET_BYTES).collect::<String>())
    };
    match (value(b":method"), value(b":status")) {
        // CONNECT has no path (RFC 9114, section 4.4).
        (Some(method), _) => Some(Head::Request(method, value(b":path").or(value(b":authority"))?)),
        (None, Some(status)) => status.parse().ok().filter(|status| *status >= 200).map(Head::Response),
        // Trailers.
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http3::frame::{DATA, HEADERS, frame, settings};
    use http3::qpack::dynamic::Encoder;

    type Fields<'a> = &'a [(&'a [u8], &'a [u8])];

    /// A HEADERS frame, and its instructions.
    fn headers(encoder: &mut Encoder, fields: Fields<'_>) -> (Vec<u8>, Vec<u8>) {
        let (mut section, mut instructions, mut message) = (Vec::new(), Vec::new(), Vec::new());
        encoder.encode(fields.iter().copied(), &mut section, &mut instructions);
        frame(HEADERS, &section, &mut message);
        (message, instructions)
    }

    fn read(messages: &mut Messages, side: Side, id: u64, offset: u64, data: &[u8]) -> Vec<(u64, Head)> {
        let mut heads = Vec::new();
        let data = StreamData { id, offset, data, is_end: false };
        messages.read(side, &data, &mut |stream, head| heads.push((stream, head)));
        heads
    }

    const GET: Fields<'static> =
        &[(b":method", b"GET"), (b":scheme", b"https"), (b":authority", b"www.example"), (b":path", b"/a?b")];

    fn get() -> Head {
        Head::Request("GET".to_owned(), "/a?b".to_owned())
    }

    #[test]
    fn heads_are_read_whatever_the_cut_and_order_of_packets() {
        let (request, _) = headers(&mut Encoder::default(), GET);
        for cut in 1..request.len() {
            let mut messages = Messages::default();
            let (head, tail) = request.split_at(cut);
            assert_eq!(read(&mut messages, Side::Client, 4, cut as u64, tail), [], "{cut}");
            assert_eq!(read(&mut messages, Side::Client, 4, 0, head), [(4, get())], "{cut}");
            assert_eq!(read(&mut messages, Side::Client, 4, 0, &request), [], "retransmitted");
            assert_eq!(messages.0.client.bytes, 0);
        }
    }

    #[test]
    fn interim_responses_and_trailers_are_no_status() {
        let mut encoder = Encoder::default();
        let mut response = headers(&mut encoder, &[(b":status", b"103")]).0;
        response.extend(headers(&mut encoder, &[(b":status", b"404"), (b"server", b"x")]).0);
        frame(DATA, b"not found", &mut response);
        response.extend(headers(&mut encoder, &[(b"checksum", b"1")]).0);
        let mut messages = Messages::default();
        assert_eq!(read(&mut messages, Side::Server, 0, 0, &response), [(0, Head::Response(404))]);
        assert_eq!(messages.0.server.bytes, 0);
    }

    #[test]
    fn sections_wait_for_their_insertions_and_for_the_setting_of_the_peer() {
        let (mut encoder, mut messages) = (Encoder::default(), Messages::default());
        encoder.allow(4_096, true);
        let (request, instructions) = headers(&mut encoder, GET);
        assert!(!instructions.is_empty());
        assert_eq!(read(&mut messages, Side::Client, 0, 0, &request), []);
        let mut control = vec![0];
        settings(&[(6, 1 << 18), (QPACK_MAX_TABLE_CAPACITY, 4_096), (7, 16)], &mut control);
        assert_eq!(read(&mut messages, Side::Server, 3, 0, &control), []);
        let encoder_stream = [&[2][..], &instructions].concat();
        let (first, second) = encoder_stream.split_at(5);
        assert_eq!(read(&mut messages, Side::Client, 2, 5, second), []);
        assert_eq!(read(&mut messages, Side::Client, 2, 0, first), [(0, get())]);
        // The next one refers to what is there.
        let (request, instructions) = headers(&mut encoder, GET);
        assert!(instructions.is_empty());
        assert_eq!(read(&mut messages, Side::Client, 4, 0, &request), [(4, get())]);
    }

    #[test]
    fn invalid_instructions_end_dynamic_fields_and_memory_is_bounded() {
        let mut messages = Messages::default();
        assert_eq!(read(&mut messages, Side::Client, 2, 0, &[2, 0x3f, 0xff, 0xff, 0x7f]), []);
        assert!(messages.0.client.decoder.is_none());
        let mut messages = Messages::default();
        for stream in 0..5_000 {
            assert_eq!(read(&mut messages, Side::Server, 4 * stream, 1, &[7; 1_000]), []);
        }
        let Sender { streams, bytes, .. } = &messages.0.server;
        let held = streams.values().flatten().map(Stream::bytes).sum::<usize>();
        assert!(streams.len() == MAX_STREAMS && *bytes == held && held <= MAX_BYTES, "{held}");
    }

    #[test]
    fn streams_of_the_other_end_are_not_read() {
        let mut messages = Messages::default();
        let (request, _) = headers(&mut Encoder::default(), GET);
        assert_eq!(read(&mut messages, Side::Server, 1, 0, &request), []);
        assert_eq!(read(&mut messages, Side::Server, 2, 0, &[2, 0x20]), []);
        assert!(messages.0.server.streams.is_empty());
    }
}
