//! TLS records, by their types and lengths: alerts and frames that close a connection are not messages.

use crate::Segment;

/// Returns whether a segment is only a FIN or a TLS alert. An alert is a record of type 21, or in TLS 1.3 one as
/// short as an encrypted alert.
pub fn closes(segment: &Segment<'_>) -> bool {
    /// An alert with a CBC cipher, SHA-384 and padding.
    const MAX_ALERT_BYTES: u64 = 5 + 112;
    /// An encrypted alert: its two bytes, the type and a tag.
    const ENCRYPTED: u64 = 5 + 2 + 1 + 16;
    let length = segment.length();
    match segment.tcp.payload {
        [21, 3, ..] => length <= MAX_ALERT_BYTES,
        [23, 3, ..] => length == ENCRYPTED,
        payload => payload.is_empty() && length <= MAX_ALERT_BYTES,
    }
}

/// Returns whether a segment carries only a TLS record as short as an alert, or a frame that closes a connection.
pub fn is_short(segment: &Segment<'_>) -> bool {
    const SHORT: u64 = 120;
    matches!(segment.tcp.payload, [20..=23, 3, ..]) && segment.length() <= SHORT
}
