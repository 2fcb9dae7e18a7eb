//! Writers of frames (RFC 9113, section 6).

use crate::frame::{FrameHeader, FrameType, HEADER_BYTES};
use crate::settings::Setting;

impl FrameType {
    /// Returns its number on the wire.
    pub const fn number(self) -> u8 {
        match self {
            Self::Data => 0,
            Self::Headers => 1,
            Self::Priority => 2,
            Self::Reset => 3,
            Self::Settings => 4,
            Self::PushPromise => 5,
            Self::Ping => 6,
            Self::GoAway => 7,
            Self::WindowUpdate => 8,
            Self::Continuation => 9,
            Self::Other(number) => number,
        }
    }
}

impl FrameHeader {
    /// END_HEADERS of HEADERS and CONTINUATION.
    pub const END_HEADERS: u8 = 0x4;

    /// Appends the header.
    pub fn write(self, into: &mut Vec<u8>) {
        let [_, a, b, c] = self.length.to_be_bytes();
        into.extend([a, b, c, self.kind.number(), self.flags]);
        into.extend(self.stream.to_be_bytes());
    }
}

/// Appends a frame.
pub fn frame(kind: FrameType, flags: u8, stream: u32, payload: &[u8], into: &mut Vec<u8>) {
    into.reserve(HEADER_BYTES + payload.len());
    FrameHeader { length: length(payload), kind, flags, stream }.write(into);
    into.extend_from_slice(payload);
}

/// Appends SETTINGS.
pub fn settings(settings: &[Setting], into: &mut Vec<u8>) {
    let payload = settings.len() * SETTING_BYTES;
    let length = u32::try_from(payload).unwrap_or(u32::MAX);
    into.reserve(HEADER_BYTES + payload);
    FrameHeader { length, kind: FrameType::Settings, flags: 0, stream: 0 }.write(into);
    for Setting { id, value } in settings {
        into.extend(id.to_be_bytes());
        into.extend(value.to_be_bytes());
    }
}

/// Appends WINDOW_UPDATE; stream 0 is the connection.
pub fn window_update(stream: u32, increment: u32, into: &mut Vec<u8>) {
    frame(FrameType::WindowUpdate, 0, stream, &increment.to_be_bytes(), into);
}

/// Appends HEADERS, and CONTINUATION where the block exceeds a frame.
pub fn headers(stream: u32, ends_stream: bool, priority: Option<[u8; 5]>, block: &[u8], into: &mut Vec<u8>) {
    let priority: &[u8] = priority.as_ref().map_or(&[], |priority| priority);
    let (first, mut rest) = block.split_at(block.len().min(MAX_FRAME_BYTES - priority.len()));
    let mut flags = if ends_stream { FrameHeader::END_STREAM } else { 0 };
    flags |= if priority.is_empty() { 0 } else { FrameHeader::PRIORITY };
    flags |= if rest.is_empty() { FrameHeader::END_HEADERS } else { 0 };
    let payload = priority.len() + first.len();
    into.reserve(HEADER_BYTES + payload);
    let length = u32::try_from(payload).unwrap_or(u32::MAX);
    FrameHeader { length, kind: FrameType::Headers, flags, stream }.write(into);
    into.extend_from_slice(priority);
    into.extend_from_slice(first);
    while !rest.is_empty() {
        let (next, after) = rest.split_at(rest.len().min(MAX_FRAME_BYTES));
        let flags = if after.is_empty() { FrameHeader::END_HEADERS } else { 0 };
        frame(FrameType::Continuation, flags, stream, next, into);
        rest = after;
    }
}

/// Bytes of a setting.
const SETTING_BYTES: usize = 6;
/// Default of SETTINGS_MAX_FRAME_SIZE (RFC 9113, section 6.5.2).
pub const MAX_FRAME_BYTES: usize = 16_384;

fn length(payload: &[u8]) -> u32 {
    u32::try_from(payload.len()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{FrameReader, Part};

    fn read(bytes: &[u8]) -> Vec<(FrameType, u8, u32)> {
        let mut frames = Vec::new();
        FrameReader::default().read(bytes, &mut |part| {
            if let Part::Frame(frame) = part {
                assert!(frame.header.is_plausible());
                frames.push((frame.header.kind, frame.header.flags, frame.header.length));
            }
        });
        frames
    }

    #[test]
    fn frames_are_read_back() {
        let mut bytes = Vec::new();
        settings(&[Setting { id: Setting::MAX_FRAME_SIZE, value: 16_384 }], &mut bytes);
        window_update(3, 7, &mut bytes);
        headers(1, true, Some([0x80, 0, 0, 0, 255]), &[0x82], &mut bytes);
        let expected =
            [(FrameType::Settings, 0, 6), (FrameType::WindowUpdate, 0, 4), (FrameType::Headers, 0x25, 6)];
        assert_eq!(read(&bytes), expected);
    }

    #[test]
    fn block_of_more_than_a_frame_continues() {
        let mut bytes = Vec::new();
        headers(1, false, None, &[0; 20_000], &mut bytes);
        let expected = [(FrameType::Headers, 0, 16_384), (FrameType::Continuation, 4, 3_616)];
        assert_eq!(read(&bytes), expected);
    }
}
