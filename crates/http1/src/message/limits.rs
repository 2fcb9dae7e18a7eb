//! All limits on a peer's messages, each with its default.
//!
//! Not timeouts: those belong to the state machine that waits.

/// Maximum sizes of a peer's messages. The defaults are generous to honest peers and small enough
/// that a hostile one costs less than 64 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A head: start line, fields and the empty line, in bytes. Default 16,384.
    pub head_bytes: usize,
    /// Fields in a head or in a trailer section. Default 100; never more than [`Limits::MAX_FIELDS`].
    pub fields: usize,
    /// A request's target, in bytes. Default 8,000, the minimum that RFC 9112, section 3, recommends.
    pub target_bytes: usize,
    /// Empty lines before a request line. Default 1, as RFC 9112, section 2.2, requires.
    pub blank_lines: usize,
    /// A body, in bytes. Default 2^40.
    pub body_bytes: u64,
    /// All chunk extensions of one body together, in bytes. Default 4,096.
    pub extension_bytes: usize,
    /// The trailer section after a chunked body, in bytes. Default 4,096.
    pub trailer_bytes: usize,
    /// Interim (1xx) responses before the final one. Default 8.
    pub interim_responses: usize,
    /// Maximum size of a decoded body, in bytes. Default 2^30.
    pub decoded_bytes: u64,
    /// Maximum ratio of a decoded body to its coded size, once it exceeds 1 MiB. Default 200: pages of markup reach 50.
    pub decoded_ratio: u64,
}

impl Limits {
    /// Maximum number of fields, whatever [`Limits::fields`] is.
    pub const MAX_FIELDS: usize = 256;
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head_bytes: 16_384,
            fields: 100,
            target_bytes: 8_000,
            blank_lines: 1,
            body_bytes: 1 << 40,
            extension_bytes: 4_096,
            trailer_bytes: 4_096,
            interim_responses: 8,
            decoded_bytes: 1 << 30,
            decoded_ratio: 200,
        }
    }
}
