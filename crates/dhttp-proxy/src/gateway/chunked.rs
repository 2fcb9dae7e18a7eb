//! Writing a body in chunks (RFC 9112, section 7.1).
//!
//! Chunked bodies are read by [`http1::message`].

use http1::message::Fields;

/// Writes a chunk; `part` has at least one byte, because an empty chunk would be the end.
pub(super) fn part(out: &mut Vec<u8>, part: &[u8]) {
    out.extend_from_slice(format!("{:x}\r\n", part.len()).as_bytes());
    out.extend_from_slice(part);
    out.extend_from_slice(b"\r\n");
}

/// Writes the last chunk, and the trailers.
pub(super) fn end(out: &mut Vec<u8>, trailers: &Fields) {
    out.extend_from_slice(b"0\r\n");
    out.extend_from_slice(trailers.lines());
    out.extend_from_slice(b"\r\n");
}
