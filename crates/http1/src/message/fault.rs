//! Faults of a peer, each with its sentence and the status a server responds with.
//!
//! Not the caller's own mistakes: those are `fetch::PlanError`, [`crate::server::Misuse`] and
//! [`super::field::FieldError`].

/// A peer's violation of HTTP/1.x (RFC 9112), or of one of the [`super::Limits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum PeerFault {
    /// A carriage return without a line feed after it.
    #[error("the peer sent a carriage return without a line feed")]
    BareCarriageReturn,
    /// A line feed without a carriage return before it.
    #[error("the peer sent a line feed without a carriage return")]
    BareLineFeed,
    /// A control character in a head.
    #[error("the peer sent a control character in a header section; is it speaking HTTP?")]
    ControlCharacter,
    /// A head that begins with white space, or a field continued on the next line.
    #[error("the peer began a header line with white space, which is obsolete and unsafe")]
    FoldedLine,
    /// More empty lines before a message than [`super::Limits::blank_lines`].
    #[error("the peer sent too many empty lines before its message")]
    BlankLines,
    /// A request line that is not `METHOD target HTTP/1.x`.
    #[error("the peer's request line is not `METHOD target HTTP/1.x`")]
    RequestLine,
    /// A status line that is not `HTTP/1.x 200 ...`.
    #[error("the peer's status line is not `HTTP/1.x 200 reason`; is it speaking HTTP?")]
    StatusLine,
    /// A version other than 1.0 and 1.1.
    #[error("the peer speaks a version of HTTP other than 1.0 and 1.1")]
    Version,
    /// A field line that is not `Name: value`.
    #[error("the peer sent a field that is not `Name: value`")]
    FieldLine,
    /// More than [`super::Limits::fields`].
    #[error("the peer sent more header fields than the limit allows")]
    TooManyFields,
    /// More than [`super::Limits::head_bytes`].
    #[error("the peer sent a longer header section than the limit allows")]
    HeadTooLarge,
    /// More than [`super::Limits::target_bytes`].
    #[error("the peer sent a longer request target than the limit allows")]
    TargetTooLong,
    /// An HTTP/1.1 request with no `Host`, or any request with more than one or one that is not a host.
    #[error("the peer's request does not have exactly one Host")]
    Host,
    /// A `Content-Length` that is not one decimal number, or several that differ.
    #[error("the peer's Content-Length is not one decimal number")]
    ContentLength,
    /// Both `Content-Length` and `Transfer-Encoding`: contradictory framing.
    #[error("the peer sent both Content-Length and Transfer-Encoding")]
    TwoLengths,
    /// A `Transfer-Encoding` other than `chunked` alone, or one in an HTTP/1.0 message.
    #[error("the peer used a Transfer-Encoding other than chunked")]
    TransferEncoding,
    /// More than [`super::Limits::body_bytes`].
    #[error("the peer sent a longer body than the limit allows")]
    BodyTooLarge,
    /// A chunk that does not begin with its size in hexadecimal, or whose data does not end at that size.
    #[error("the peer sent a chunk whose size and data do not agree")]
    Chunk,
    /// More than [`super::Limits::extension_bytes`].
    #[error("the peer sent more chunk extensions than the limit allows")]
    ExtensionsTooLarge,
    /// More than [`super::Limits::trailer_bytes`].
    #[error("the peer sent more trailers than the limit allows")]
    TrailersTooLarge,
    /// More than [`super::Limits::interim_responses`].
    #[error("the peer sent more interim responses than the limit allows")]
    TooManyInterim,
    /// Unsolicited `101 Switching Protocols`.
    #[error("unsolicited 101 (Switching Protocols)")]
    Switched,
    /// The stream ended inside a message.
    #[error("the peer's stream ended inside a message")]
    Truncated,
    /// A message took longer than the reader's timeout.
    #[error("the peer took longer to send its message than the timeout allows")]
    TooSlow,
    /// Bytes after the last requested response.
    #[error("the peer sent bytes while no request was pending")]
    Unsolicited,
}

impl PeerFault {
    /// Returns the status of the response to a request with this fault.
    pub const fn status(self) -> u16 {
        match self {
            Self::TooSlow => 408,
            Self::TargetTooLong => 414,
            Self::HeadTooLarge | Self::TooManyFields => 431,
            Self::BodyTooLarge => 413,
            Self::TransferEncoding => 501,
            Self::Version => 505,
            Self::BareCarriageReturn
            | Self::BareLineFeed
            | Self::ControlCharacter
            | Self::FoldedLine
            | Self::BlankLines
            | Self::RequestLine
            | Self::StatusLine
            | Self::FieldLine
            | Self::Host
            | Self::ContentLength
            | Self::TwoLengths
            | Self::Chunk
            | Self::ExtensionsTooLarge
            | Self::TrailersTooLarge
            | Self::TooManyInterim
            | Self::Switched
            | Self::Truncated
            | Self::Unsolicited => 400,
        }
    }
}
