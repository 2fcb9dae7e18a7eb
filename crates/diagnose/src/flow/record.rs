//! TLS records, by their types and lengths: alerts and frames that close a connection are no messages.

use crate::segment::Segment;

/// Whether a segment is no more than a FIN or a TLS alert: a record of type 21, or in TLS 1.3 one as short as an encrypted alert.
pub(super) fn closes(segment: &Segment<'_>) -> bool {
    /// A CBC cipher with SHA-384 and its padding.
    const MAX_ALERT_BYTES: u64 = 5 + 112;
    /// Two bytes, the type and a tag.
    const ENCRYPTED: u64 = 5 + 2 + 1 + 16;
    let length = segment.length();
    match segment.tcp.payload {
        [21, 3, ..] => length <= MAX_ALERT_BYTES,
        [23, 3, ..] => length == ENCRYPTED,
        payload => payload.is_empty() && length <= MAX_ALERT_BYTES,
    }
}

/// Whether a segment carries no more than a TLS record as short as an alert, or a frame that ends a connection.
pub(super) fn is_short(segment: &Segment<'_>) -> bool {
    const SHORT: u64 = 120;
    matches!(segment.tcp.payload, [20..=23, 3, ..]) && segment.length() <= SHORT
}
