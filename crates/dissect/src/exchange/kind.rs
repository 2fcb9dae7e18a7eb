//! Kind of protocol, by the first bytes of a connection.

use crate::tls::Tls;
use crate::{Side, http2};

/// Kind of protocol, by the first bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// No data was seen yet.
    #[default]
    Undetermined,
    /// HTTP/1.x.
    Http1,
    /// HTTP/2 in the clear.
    Http2,
    /// TLS.
    Tls,
    /// Anything else.
    Other,
}

/// The beginning of HTTP/2's preface.
pub(super) const PREFACE_START: &[u8] = b"PRI * HTTP/2.0";

impl Kind {
    /// Returns the kind of a connection whose first bytes `side` sends, and whether they are the client's preface of HTTP/2.
    pub(super) fn of(side: Side, payload: &[u8]) -> (Self, bool) {
        let is_preface = side == Side::Client && payload.starts_with(PREFACE_START);
        let kind = if payload.is_empty() {
            Self::Other
        } else if Tls::begins(payload) || matches!(payload, [20..=23, 3, 0..=4, ..]) {
            Self::Tls
        } else if is_preface || http2::begins(payload) {
            Self::Http2
        } else {
            Self::Http1
        };
        (kind, is_preface)
    }
}
