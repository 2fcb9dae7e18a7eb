//! Frames: from JSON, to bytes (RFC 9000, section 19). Bytes of streams, of the handshake and of datagrams are zeros.

use std::ops::RangeInclusive;

use serde_json::Value;
use wire::varint;

use crate::json::{self, member};

/// A logged frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// ACK: its delay in microseconds, and the packets, the latest first.
    Ack(u64, Vec<RangeInclusive<u64>>),
    /// CRYPTO: offset and length.
    Crypto(u64, usize),
    /// STREAM.
    Stream {
        /// The stream.
        id: u64,
        /// Position of the first byte.
        offset: u64,
        /// Number of bytes.
        length: usize,
        /// Whether they are its last.
        is_end: bool,
    },
    /// DATAGRAM: its length.
    Datagram(usize),
    /// Another one that needs an acknowledgement or none, by its bytes.
    Other(Vec<u8>),
    /// One that is not understood, or has no valid fields.
    Unreadable,
}

/// Maximum bytes of a frame's data: those of a datagram.
const MAX_DATA: u64 = 65_000;
/// Maximum number of ranges of an acknowledgement.
const MAX_RANGES: usize = 1_024;
const PING: u8 = 0x01;
/// A type that no document defines: what stands there is not known.
const UNDEFINED: u8 = 0x21;

impl Frame {
    /// Reads a frame, whose times have units of so many microseconds; `None` for PADDING, which fills packets anyway.
    pub fn read(value: &Value, unit: f64) -> Option<Self> {
        let kind = json::any(value, &["frame_type", "type"]).and_then(json::name);
        let kind = kind.unwrap_or_default();
        if kind == "padding" {
            return None;
        }
        Some(Self::of(&kind, value, unit).unwrap_or(Self::Unreadable))
    }

    fn of(kind: &str, value: &Value, unit: f64) -> Option<Self> {
        let stream = || member(value, &["stream_id", "id"]);
        let field = |names: &[&str]| member(value, names);
        let limit =
            || field(&["maximum", "limit", "max_data", "max_stream_data", "maximum_data", "max_streams"]);
        Some(match kind {
            "ack" => Self::Ack(delay(value, unit), ranges(json::any(value, &["acked_ranges"])?)?),
            "crypto" | "cryptohandshake" => Self::Crypto(field(&["offset"]).unwrap_or(0), length(value)?),
            "stream" => Self::Stream {
                id: stream()?,
                offset: field(&["offset"]).unwrap_or(0),
                length: length(value)?,
                is_end: value.get("fin").and_then(Value::as_bool).unwrap_or(false),
            },
            "datagram" => Self::Datagram(length(value).unwrap_or(0)),
            "maxdata" => numbers(0x10, &[limit()?]),
            "maxstreamdata" => numbers(0x11, &[stream()?, limit()?]),
            "maxstreams" => numbers(if is_unidirectional(value) { 0x13 } else { 0x12 }, &[limit()?]),
            "datablocked" => numbers(0x14, &[limit()?]),
            "streamdatablocked" => numbers(0x15, &[stream()?, limit()?]),
            "streamsblocked" => numbers(if is_unidirectional(value) { 0x17 } else { 0x16 }, &[limit()?]),
            "resetstream" | "rststream" => {
                numbers(0x04, &[stream()?, 0, field(&["final_size"]).unwrap_or(0)])
            }
            "stopsending" => numbers(0x05, &[stream()?, 0]),
            "connectionclose" | "applicationclose" => numbers(0x1d, &[0, 0]),
            "handshakedone" => Self::Other(vec![0x1e]),
            // An acknowledgement of one of these is what they have to do with time.
            "ping" | "newconnectionid" | "retireconnectionid" | "pathchallenge" | "pathresponse"
            | "newtoken" | "ackfrequency" | "immediateack" | "resetstreamat" | "unknown" => {
                Self::Other(vec![PING])
            }
            _ => return None,
        })
    }

    /// Appends the frame. `exponent` is that of its sender's delays. The last frame of a packet needs no length.
    pub fn write(&self, exponent: u32, is_last: bool, into: &mut Vec<u8>) {
        match self {
            Self::Ack(delay, ranges) => acknowledgement(*delay >> exponent, ranges, into),
            Self::Crypto(offset, length) => crypto(*offset, &[], *length, into),
            Self::Stream { id, offset, length, is_end } => {
                into.push(0x0c | u8::from(!is_last) << 1 | u8::from(*is_end));
                varint::put(*id, into);
                varint::put(*offset, into);
                if !is_last {
                    varint::put(*length as u64, into);
                }
                into.resize(into.len() + length, 0);
            }
            Self::Datagram(length) => {
                into.push(0x31);
                varint::put(*length as u64, into);
                into.resize(into.len() + length, 0);
            }
            Self::Other(bytes) => into.extend_from_slice(bytes),
            Self::Unreadable => into.push(UNDEFINED),
        }
    }

    /// Returns whether it reaches to the end of its packet, so that PADDING comes before it.
    pub const fn is_open(&self) -> bool {
        matches!(self, Self::Stream { .. } | Self::Unreadable)
    }
}

/// Appends CRYPTO with these bytes, and zeros up to `length`.
pub(crate) fn crypto(offset: u64, bytes: &[u8], length: usize, into: &mut Vec<u8>) {
    into.push(0x06);
    varint::put(offset, into);
    let length = length.max(bytes.len());
    varint::put(length as u64, into);
    into.extend_from_slice(bytes);
    into.resize(into.len() + length - bytes.len(), 0);
}

/// A frame of numbers only.
fn numbers(kind: u8, numbers: &[u64]) -> Frame {
    let mut bytes = vec![kind];
    numbers.iter().for_each(|number| varint::put(*number, &mut bytes));
    Frame::Other(bytes)
}

fn is_unidirectional(value: &Value) -> bool {
    json::any(value, &["stream_type"]).and_then(json::name).is_some_and(|kind| kind.starts_with("uni"))
}

/// Length of the data: without its frame's header, where both are logged.
fn length(value: &Value) -> Option<usize> {
    let raw = value.get("raw");
    let of_raw = raw.and_then(|raw| member(raw, &["payload_length", "length"]));
    let length = member(value, &["length", "len"]).or(of_raw)?;
    usize::try_from(length).ok().filter(|_| length <= MAX_DATA)
}

/// Delay of an acknowledgement in microseconds.
fn delay(value: &Value, unit: f64) -> u64 {
    let delay = json::any(value, &["ack_delay"]).and_then(json::float).unwrap_or(0.0);
    // The cast is of a number in this range.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    let micros = (delay * unit).round().clamp(0.0, 1e12) as u64;
    micros
}

/// Ranges in descending order, of which none touches another. They are logged in any order, as pairs or single numbers.
fn ranges(value: &Value) -> Option<Vec<RangeInclusive<u64>>> {
    let mut all = Vec::new();
    for range in value.as_array()?.iter().take(MAX_RANGES) {
        let ends = match range.as_array() {
            Some(ends) => ends.iter().take(2).map(json::integer).collect::<Option<Vec<_>>>()?,
            None => vec![json::integer(range)?],
        };
        let (first, last) = (*ends.first()?, *ends.last()?);
        all.push(first.min(last)..=first.max(last));
    }
    all.sort_unstable_by_key(|range| std::cmp::Reverse(*range.end()));
    let mut merged: Vec<RangeInclusive<u64>> = Vec::new();
    for range in all {
        match merged.last_mut() {
            Some(last) if range.end() + 1 >= *last.start() => {
                *last = (*range.start()).min(*last.start())..=*last.end();
            }
            _ => merged.push(range),
        }
    }
    (!merged.is_empty()).then_some(merged)
}

/// RFC 9000, section 19.3.
fn acknowledgement(delay: u64, ranges: &[RangeInclusive<u64>], into: &mut Vec<u8>) {
    let Some(first) = ranges.first() else { return };
    into.push(0x02);
    let count = ranges.len() as u64 - 1;
    for number in [*first.end(), delay, count, first.end() - first.start()] {
        varint::put(number, into);
    }
    for [later, range] in ranges.array_windows() {
        varint::put(later.start() - range.end() - 2, into);
        varint::put(range.end() - range.start(), into);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The frames of a packet as a reader of packets sees them.
    fn written(values: &[Value]) -> Vec<String> {
        let mut bytes = Vec::new();
        let all: Vec<Frame> = values.iter().filter_map(|value| Frame::read(value, 1e3)).collect();
        for (index, frame) in all.iter().enumerate() {
            frame.write(3, index + 1 == all.len(), &mut bytes);
        }
        quic::frame::frames(&bytes).map(|frame| format!("{frame:?}")).collect()
    }

    #[test]
    fn frames_of_several_dialects_become_the_same_bytes() {
        let stream = "Stream(StreamData { id: 4, offset: 9, data: [0, 0], is_end: true })";
        let dialects = [
            json!({"frame_type": "stream", "stream_id": 4, "offset": 9, "length": 2, "fin": true}),
            json!({"frame_type": "stream", "stream_id": "4", "offset": "9", "length": "2", "fin": true}),
            json!({"frame_type": "STREAM", "id": 4, "offset": 9, "len": 2, "fin": true}),
            json!({"frame_type": "stream", "stream_id": 4, "offset": 9, "raw": {"length": 2}, "fin": true}),
            json!({"frame_type": "stream", "stream_id": 4, "offset": 9, "raw": {"length": 7, "payload_length": 2},
                "fin": true}),
        ];
        for dialect in dialects {
            assert_eq!(written(std::slice::from_ref(&dialect)), [stream], "{dialect}");
            assert_eq!(written(&[dialect, json!({"frame_type": "ping"})]), [stream, "Ping"]);
        }
        let limits = [
            json!({"frame_type": "padding"}),
            json!({"frame_type": "max_data", "maximum": 1_000}),
            json!({"frame_type": "max_stream_data", "stream_id": 8, "maximum": 70}),
            json!({"frame_type": "streams_blocked", "stream_type": "unidirectional", "limit": 3}),
        ];
        assert_eq!(written(&limits), ["MaxData(1000)", "MaxStreamData(8, 70)", "StreamsBlocked(false, 3)"]);
    }

    #[test]
    fn acknowledged_ranges_may_be_single_numbers_in_any_order_and_may_touch() {
        let ack = |ranges: Value| json!({"frame_type": "ack", "ack_delay": 0.8, "acked_ranges": ranges});
        let expected = "Ack(Ack { delay: 100, ranges: [8..=9, 2..=5, 0..=0] })";
        for ranges in [json!([[0], [2, 4], [5, 5], [8, 9]]), json!([[8, 9], [4, 5], 0, [2, 3]])] {
            assert_eq!(written(&[ack(ranges)]), [expected]);
        }
        for hostile in [json!([]), json!([[]]), json!([[-1, 2]]), json!({"a": 1}), json!([[1e40, 1]])] {
            assert_eq!(Frame::read(&ack(hostile), 1e3), Some(Frame::Unreadable));
        }
        let largest = json!([[0, varint::MAX], [varint::MAX, varint::MAX]]);
        assert_eq!(Frame::read(&ack(largest), 1.0), Some(Frame::Ack(1, vec![0..=varint::MAX])));
    }

    #[test]
    fn a_frame_that_is_not_understood_cuts_its_packet() {
        let bytes = {
            let mut bytes = Vec::new();
            for value in
                [json!({"frame_type": "ping"}), json!({"frame_type": "x-new"}), json!({"no": "type"})]
            {
                Frame::read(&value, 1e3).unwrap().write(3, false, &mut bytes);
            }
            bytes
        };
        let mut frames = quic::frame::frames(&bytes);
        assert_eq!((frames.by_ref().count(), frames.is_cut()), (1, true));
        let long = json!({"frame_type": "stream", "stream_id": 0, "length": 1_000_000});
        assert_eq!(Frame::read(&long, 1e3), Some(Frame::Unreadable));
    }
}
