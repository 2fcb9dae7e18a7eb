//! Frames of a decrypted packet (RFC 9000, section 19; RFC 9221; draft-ietf-quic-ack-frequency;
//! draft-huitema-quic-ts).

use std::ops::RangeInclusive;

use wire::varint::take;

/// A frame, as far as it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// PADDING: a byte that carries nothing.
    Padding,
    /// PING, or a request for an immediate acknowledgement.
    Ping,
    /// ACK.
    Ack(Ack),
    /// RESET_STREAM: the stream, its error, and its length.
    ResetStream(u64, u64, u64),
    /// STOP_SENDING: the stream, and the error.
    StopSending(u64, u64),
    /// CRYPTO: bytes of the handshake at an offset.
    Crypto(u64, &'a [u8]),
    /// STREAM.
    Stream(StreamData<'a>),
    /// MAX_DATA: the limit of the connection.
    MaxData(u64),
    /// MAX_STREAM_DATA: the stream, and its limit.
    MaxStreamData(u64, u64),
    /// MAX_STREAMS: whether they are bidirectional, and the limit.
    MaxStreams(bool, u64),
    /// DATA_BLOCKED, or STREAM_DATA_BLOCKED (with the stream): the limit that held the sender.
    Blocked(Option<u64>, u64),
    /// STREAMS_BLOCKED: whether they are bidirectional, and the limit.
    StreamsBlocked(bool, u64),
    /// NEW_CONNECTION_ID.
    NewConnectionId(NewId<'a>),
    /// CONNECTION_CLOSE: whether it is the application's, and its error.
    ConnectionClose(bool, u64),
    /// HANDSHAKE_DONE.
    HandshakeDone,
    /// DATAGRAM: its bytes.
    Datagram(&'a [u8]),
    /// Another frame: tokens, retired IDs, path validation, preferences for acknowledgements.
    Other(u64),
}

/// Bytes of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamData<'a> {
    /// The stream.
    pub id: u64,
    /// Position of the first byte.
    pub offset: u64,
    /// The bytes.
    pub data: &'a [u8],
    /// Whether they are its last.
    pub is_end: bool,
}

/// A further connection ID of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewId<'a> {
    /// Its number.
    pub sequence: u64,
    /// Number up to which earlier ones are to be retired.
    pub retired: u64,
    /// The ID.
    pub id: &'a [u8],
}

/// An acknowledgement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ack {
    /// Time since the largest packet was received, in units that the transport parameters define.
    pub delay: u64,
    /// The acknowledged packets, the latest first.
    pub ranges: Vec<RangeInclusive<u64>>,
}

impl Ack {
    /// Returns the largest acknowledged packet.
    pub fn largest(&self) -> u64 {
        self.ranges.first().map_or(0, |range| *range.end())
    }
}

/// Type of a frame with the time at which its packet left.
const TIMESTAMP: u64 = 0x02f5;
/// Maximum number of ranges of an acknowledgement that are read; a packet has no more.
const MAX_RANGES: u64 = 1_024;
/// Maximum length of a connection ID (RFC 9000, section 17.2).
const MAX_ID_BYTES: usize = 20;

impl Frame<'_> {
    /// Returns whether its packet must be acknowledged (RFC 9002, section 2).
    pub const fn is_ack_eliciting(&self) -> bool {
        !matches!(self, Self::Padding | Self::Ack(_) | Self::ConnectionClose(..) | Self::Other(TIMESTAMP))
    }
}

/// Iterates over the frames of a packet, up to the first that is invalid or unknown.
pub const fn frames(packet: &[u8]) -> Frames<'_> {
    Frames { rest: packet, is_cut: false }
}

/// Iterator over the frames of a packet.
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    rest: &'a [u8],
    is_cut: bool,
}

impl Frames<'_> {
    /// Returns whether a frame so far was invalid or unknown, so that those after it are not read.
    pub const fn is_cut(&self) -> bool {
        self.is_cut
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Frame<'a>;

    fn next(&mut self) -> Option<Frame<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        let frame = read(&mut self.rest);
        if frame.is_none() {
            (self.rest, self.is_cut) = (&[], true);
        }
        frame
    }
}

fn read<'a>(rest: &mut &'a [u8]) -> Option<Frame<'a>> {
    let kind = take(rest)?;
    Some(match kind {
        0x00 => Frame::Padding,
        0x01 | 0x1f => Frame::Ping,
        0x02 | 0x03 => Frame::Ack(acknowledgement(rest, kind == 0x03)?),
        0x04 => {
            let [stream, error, length] = numbers(rest)?;
            Frame::ResetStream(stream, error, length)
        }
        0x05 => {
            let [stream, error] = numbers(rest)?;
            Frame::StopSending(stream, error)
        }
        0x06 => Frame::Crypto(take(rest)?, counted(rest)?),
        0x07 => {
            counted(rest)?;
            Frame::Other(kind)
        }
        0x08..=0x0f => Frame::Stream(stream(rest, kind)?),
        0x10 => Frame::MaxData(take(rest)?),
        0x11 => {
            let [stream, limit] = numbers(rest)?;
            Frame::MaxStreamData(stream, limit)
        }
        0x12 | 0x13 => Frame::MaxStreams(kind == 0x12, take(rest)?),
        0x14 => Frame::Blocked(None, take(rest)?),
        0x15 => {
            let [stream, limit] = numbers(rest)?;
            Frame::Blocked(Some(stream), limit)
        }
        0x16 | 0x17 => Frame::StreamsBlocked(kind == 0x16, take(rest)?),
        0x18 => Frame::NewConnectionId(new_connection_id(rest)?),
        0x19 => other(kind, rest, 1)?,
        0x1a | 0x1b => {
            *rest = rest.get(8..)?;
            Frame::Other(kind)
        }
        0x1c | 0x1d => close(rest, kind == 0x1d)?,
        0x1e => Frame::HandshakeDone,
        0x30 => Frame::Datagram(std::mem::take(rest)),
        0x31 => Frame::Datagram(counted(rest)?),
        0xaf => other(kind, rest, 4)?,
        TIMESTAMP => other(kind, rest, 1)?,
        _ => return None,
    })
}

/// Reads the numbers of another frame.
fn other<'a>(kind: u64, rest: &mut &[u8], count: usize) -> Option<Frame<'a>> {
    for _ in 0..count {
        take(rest)?;
    }
    Some(Frame::Other(kind))
}

fn numbers<const COUNT: usize>(rest: &mut &[u8]) -> Option<[u64; COUNT]> {
    let mut numbers = [0; COUNT];
    for number in &mut numbers {
        *number = take(rest)?;
    }
    Some(numbers)
}

/// Reads bytes behind their number.
fn counted<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(take(rest)?).ok()?;
    let (bytes, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(bytes)
}

/// RFC 9000, section 19.3.
fn acknowledgement(rest: &mut &[u8], has_ecn: bool) -> Option<Ack> {
    let [largest, delay, count, first] = numbers(rest)?;
    let mut smallest = largest.checked_sub(first)?;
    let mut ranges = vec![smallest..=largest];
    for _ in 0..count.min(MAX_RANGES) {
        let [gap, length] = numbers(rest)?;
        let end = smallest.checked_sub(gap)?.checked_sub(2)?;
        smallest = end.checked_sub(length)?;
        ranges.push(smallest..=end);
    }
    // Beyond the maximum the position of the next frame is unknown.
    (count <= MAX_RANGES).then_some(())?;
    if has_ecn {
        let [_, _, _] = numbers(rest)?;
    }
    Some(Ack { delay, ranges })
}

/// RFC 9000, section 19.8.
fn stream<'a>(rest: &mut &'a [u8], kind: u64) -> Option<StreamData<'a>> {
    let id = take(rest)?;
    let offset = if kind & 4 == 0 { 0 } else { take(rest)? };
    let data = if kind & 2 == 0 { std::mem::take(rest) } else { counted(rest)? };
    offset.checked_add(data.len() as u64).filter(|end| *end <= wire::varint::MAX)?;
    Some(StreamData { id, offset, data, is_end: kind & 1 == 1 })
}

/// RFC 9000, section 19.15.
fn new_connection_id<'a>(rest: &mut &'a [u8]) -> Option<NewId<'a>> {
    const RESET_TOKEN_BYTES: usize = 16;
    let [sequence, retired] = numbers(rest)?;
    let id = counted(rest).filter(|id| id.len() <= MAX_ID_BYTES)?;
    *rest = rest.get(RESET_TOKEN_BYTES..)?;
    Some(NewId { sequence, retired, id })
}

/// RFC 9000, section 19.19.
fn close<'a>(rest: &mut &[u8], is_of_application: bool) -> Option<Frame<'a>> {
    let error = take(rest)?;
    if !is_of_application {
        take(rest)?;
    }
    counted(rest)?;
    Some(Frame::ConnectionClose(is_of_application, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_after_a_timestamp_are_read() {
        let packet = [&[0x42, 0xf5, 0x44, 0][..], &[0x0b, 0, 1, 5]].concat();
        let frames: Vec<_> = frames(&packet).collect();
        assert_eq!(frames[0], Frame::Other(0x02f5));
        assert!(!frames[0].is_ack_eliciting());
        assert!(matches!(&frames[1], Frame::Stream(stream) if stream.is_end));
        let mut whole = super::frames(&packet);
        assert_eq!((whole.by_ref().count(), whole.is_cut()), (2, false));
    }

    #[test]
    fn frames_of_a_packet_are_read_in_order() {
        let packet = [
            &[0x02, 9, 0x40, 100, 1, 1, 0, 2][..],
            &[0x0e, 4, 0x40, 200, 2, 7, 8],
            &[0x11, 4, 0x44, 0, 0x10, 0x48, 0],
            &[0x18, 1, 0, 2, 0xaa, 0xbb],
            &[1; 16],
            &[0x15, 4, 50, 0x1f, 0, 0x1e],
            &[0x0b, 8, 1, 5, 0x1c, 0, 6, 0],
        ];
        let frames: Vec<_> = frames(&packet.concat()).map(|frame| format!("{frame:?}")).collect();
        let expected = [
            "Ack(Ack { delay: 100, ranges: [8..=9, 4..=6] })",
            "Stream(StreamData { id: 4, offset: 200, data: [7, 8], is_end: false })",
            "MaxStreamData(4, 1024)",
            "MaxData(2048)",
            "NewConnectionId(NewId { sequence: 1, retired: 0, id: [170, 187] })",
            "Blocked(Some(4), 50)",
            "Ping",
            "Padding",
            "HandshakeDone",
            "Stream(StreamData { id: 8, offset: 0, data: [5], is_end: true })",
            "ConnectionClose(false, 0)",
        ];
        assert_eq!(frames, expected);
    }

    #[test]
    fn cut_and_impossible_frames_end_the_packet() {
        let count = |packet: &[u8]| {
            let mut frames = frames(packet);
            let count = frames.by_ref().count();
            assert!(frames.is_cut());
            count
        };
        // A range below packet number 0; a length beyond the packet; an unknown type.
        assert_eq!(count(&[1, 0x02, 3, 0, 1, 1, 2, 0]), 1);
        assert_eq!(count(&[1, 0x06, 0, 9, 1]), 1);
        assert_eq!(count(&[1, 0x21, 1, 1]), 1);
        let whole = [0x02, 9, 0, 1, 2, 0, 1];
        assert!((1..whole.len()).all(|cut| count(&whole[..cut]) == 0));
    }

    #[test]
    fn stream_without_a_length_reaches_to_the_end() {
        let packet = [0x0c, 3, 5, 1, 2, 3];
        let expected = StreamData { id: 3, offset: 5, data: &[1, 2, 3], is_end: false };
        assert_eq!(frames(&packet).collect::<Vec<_>>(), [Frame::Stream(expected)]);
        // Beyond the largest position of a stream.
        let packet = [&[0x0c, 3][..], &[0xff; 8], &[1]].concat();
        assert_eq!(frames(&packet).count(), 0);
    }
}
