//! Faults of a peer, each with its sentence and the status a server responds with.
//!
//! Not the caller's own mistakes: those are `fetch::PlanError`, [`crate::server::Misuse`] and
//! [`super::field::FieldError`].

use std::error::Error;
use std::fmt;

/// A peer's violation of HTTP/1.x (RFC 9112), or of one of the [`super::Limits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PeerFault {
    /// A carriage return without a line feed after it.
    BareCarriageReturn,
    /// A line feed without a carriage return before it.
    BareLineFeed,
    /// A control character in a head.
    ControlCharacter,
    /// A head that begins with white space, or a field continued on the next line.
    FoldedLine,
    /// More empty lines before a message than [`super::Limits::blank_lines`].
    BlankLines,
    /// A request line that is not `METHOD target HTTP/1.x`.
    RequestLine,
    /// A status line that is not `HTTP/1.x 200 ...`.
    StatusLine,
    /// A version other than 1.0 and 1.1.
    Version,
    /// A field line that is not `Name: value`.
    FieldLine,
    /// More than [`super::Limits::fields`].
    TooManyFields,
    /// More than [`super::Limits::head_bytes`].
    HeadTooLarge,
    /// More than [`super::Limits::target_bytes`].
    TargetTooLong,
    /// An HTTP/1.1 request with no `Host`, or any request with more than one or one that is not a host.
    Host,
    /// A `Content-Length` that is not one decimal number, or several that differ.
    ContentLength,
    /// Both `Content-Length` and `Transfer-Encoding`: contradictory framing.
    TwoLengths,
    /// A `Transfer-Encoding` other than `chunked` alone, or one in an HTTP/1.0 message.
    TransferEncoding,
    /// More than [`super::Limits::body_bytes`].
    BodyTooLarge,
    /// A chunk that does not begin with its size in hexadecimal, or whose data does not end at that size.
    Chunk,
    /// More than [`super::Limits::extension_bytes`].
    ExtensionsTooLarge,
    /// More than [`super::Limits::trailer_bytes`].
    TrailersTooLarge,
    /// More than [`super::Limits::interim_responses`].
    TooManyInterim,
    /// Unsolicited `101 Switching Protocols`.
    Switched,
    /// The stream ended inside a message.
    Truncated,
    /// A message took longer than the reader's timeout.
    TooSlow,
    /// Bytes after the last requested response.
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

impl fmt::Display for PeerFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BareCarriageReturn => "the peer sent a carriage return without a line feed",
            Self::BareLineFeed => "the peer sent a line feed without a carriage return",
            Self::ControlCharacter => {
                "the peer sent a control character in a header section; is it speaking HTTP?"
            }
            Self::FoldedLine => "the peer began a header line with white space, which is obsolete and unsafe",
            Self::BlankLines => "the peer sent too many empty lines before its message",
            Self::RequestLine => "the peer's request line is not `METHOD target HTTP/1.x`",
            Self::StatusLine => "the peer's status line is not `HTTP/1.x 200 reason`; is it speaking HTTP?",
            Self::Version => "the peer speaks a version of HTTP other than 1.0 and 1.1",
            Self::FieldLine => "the peer sent a field that is not `Name: value`",
            Self::TooManyFields => "the peer sent more header fields than the limit allows",
            Self::HeadTooLarge => "the peer sent a longer header section than the limit allows",
            Self::TargetTooLong => "the peer sent a longer request target than the limit allows",
            Self::Host => "the peer's request does not have exactly one Host",
            Self::ContentLength => "the peer's Content-Length is not one decimal number",
            Self::TwoLengths => "the peer sent both Content-Length and Transfer-Encoding",
            Self::TransferEncoding => "the peer used a Transfer-Encoding other than chunked",
            Self::BodyTooLarge => "the peer sent a longer body than the limit allows",
            Self::Chunk => "the peer sent a chunk whose size and data do not agree",
            Self::ExtensionsTooLarge => "the peer sent more chunk extensions than the limit allows",
            Self::TrailersTooLarge => "the peer sent more trailers than the limit allows",
            Self::TooManyInterim => "the peer sent more interim responses than the limit allows",
            Self::Switched => "unsolicited 101 (Switching Protocols)",
            Self::Truncated => "the peer's stream ended inside a message",
            Self::TooSlow => "the peer took longer to send its message than the timeout allows",
            Self::Unsolicited => "the peer sent bytes while no request was pending",
        })
    }
}

impl Error for PeerFault {}
