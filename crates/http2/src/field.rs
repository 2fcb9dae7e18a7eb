//! The first field of a field block (HPACK, RFC 7541): a pseudo-header, which shows whether a request or a response begins.
//!
//! Not a decoder: only a field by an index of the static table, or with a name by such an index, is recognised. That
//! is enough: pseudo-headers come first (RFC 9113, section 8.3), and their names are in the static table.

use crate::frame::{FrameHeader, FrameType};

/// Kind of message that a field block begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// A request: `:method`, `:scheme`, `:path` or `:authority`.
    Request,
    /// A response: `:status`.
    Response,
}

/// Indices of the static table (RFC 7541, appendix A).
const AUTHORITY: u8 = 1;
const SCHEME: u8 = 7;
const FIRST_STATUS: u8 = 8;
const LAST_STATUS: u8 = 14;

/// Returns the kind of message that a HEADERS frame begins; `None` for trailers, and where the first field is not static.
pub fn message_kind(header: FrameHeader, payload: &[u8]) -> Option<MessageKind> {
    let block = block(header, payload)?;
    // Changes of the table's size come first.
    let is_update = |byte: &&u8| **byte & 0xe0 == 0x20;
    let first = *block.iter().find(|byte| !is_update(byte))?;
    let index = match first {
        0x80.. => first & 0x7f,
        0x40..=0x7f => first & 0x3f,
        _ => first & 0x0f,
    };
    match index {
        AUTHORITY..=SCHEME => Some(MessageKind::Request),
        FIRST_STATUS..=LAST_STATUS => Some(MessageKind::Response),
        _ => None,
    }
}

/// Returns the status code of a response, if it is one of the static table.
pub fn status(header: FrameHeader, payload: &[u8]) -> Option<u16> {
    const CODES: [u16; 7] = [200, 204, 206, 304, 400, 404, 500];
    let first = *block(header, payload)?.iter().find(|byte| **byte & 0xe0 != 0x20)?;
    let index = first.checked_sub(0x80 + FIRST_STATUS)?;
    CODES.get(usize::from(index)).copied()
}

/// Returns the field block of a HEADERS frame.
fn block(header: FrameHeader, payload: &[u8]) -> Option<&[u8]> {
    const PRIORITY_BYTES: usize = 5;
    if header.kind != FrameType::Headers {
        return None;
    }
    let padding = usize::from(header.has(FrameHeader::PADDED));
    let priority = if header.has(FrameHeader::PRIORITY) { PRIORITY_BYTES } else { 0 };
    payload.get(padding + priority..)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(flags: u8, payload: &[u8]) -> Option<MessageKind> {
        message_kind(FrameHeader { length: 9, kind: FrameType::Headers, flags, stream: 1 }, payload)
    }

    /// RFC 7541, appendix C.4.1 and C.6.1: a request and a response with Huffman codes.
    #[test]
    fn examples_of_rfc_7541_are_recognized() {
        assert_eq!(kind(0x4, &[0x82, 0x86, 0x84, 0x41, 0x8c]), Some(MessageKind::Request));
        assert_eq!(kind(0x4, &[0x48, 0x82, 0x64, 0x02]), Some(MessageKind::Response));
        assert_eq!(
            kind(0x4, &[0x3f, 0x88]),
            Some(MessageKind::Response),
            "after a change of the table's size"
        );
        assert_eq!(kind(0x24, &[0, 0, 0, 3, 0xff, 0x82]), Some(MessageKind::Request), "with a priority");
        assert_eq!(kind(0x4, &[0xbe]), None, "a field of the dynamic table");
    }
}
