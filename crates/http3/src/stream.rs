//! Contents of the peer's streams: requests or responses, control, and types that are ignored.

use http2::hpack::FieldList;

use crate::frame::{self, FrameError, FrameReader, Part};
use crate::varint;

/// A connection of an end; numbered from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionId(pub u32);

/// An event of a connection.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// Requests may leave; with early data, before the handshake has ended.
    Connected(ConnectionId),
    /// The fields of a message.
    Fields {
        /// Its connection.
        connection: ConnectionId,
        /// Its stream.
        stream: u64,
        /// The fields, pseudo-fields first.
        fields: FieldList,
    },
    /// Bytes of a body.
    Data {
        /// Its connection.
        connection: ConnectionId,
        /// Its stream.
        stream: u64,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// A message is complete.
    End {
        /// Its connection.
        connection: ConnectionId,
        /// Its stream.
        stream: u64,
    },
    /// The peer has reset a stream.
    Reset {
        /// Its connection.
        connection: ConnectionId,
        /// The stream.
        stream: u64,
        /// The code (RFC 9114, section 8.1).
        code: u64,
    },
    /// The peer takes no more requests on this connection.
    Leaving(ConnectionId),
    /// A connection has ended.
    Closed(ConnectionId, CloseReason),
}

/// Why a connection has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// The peer closed it.
    Peer,
    /// Nothing has arrived for too long.
    TimedOut,
    /// One of the ends broke the protocol.
    Fault,
}

/// Code of a request that was not processed (RFC 9114, section 8.1).
pub const REQUEST_REJECTED: u64 = 0x10b;
/// Code of a request that is no longer wanted.
pub const REQUEST_CANCELLED: u64 = 0x10c;

/// Type of the control stream (RFC 9114, section 6.2).
pub(crate) const CONTROL: u64 = 0;
/// Types of QPACK's streams (RFC 9204, section 4.2).
pub(crate) const QPACK_ENCODER: u64 = 2;
pub(crate) const QPACK_DECODER: u64 = 3;

/// Reader of a stream.
#[derive(Debug)]
pub enum StreamReader {
    /// A request or a response.
    Message(FrameReader),
    /// A unidirectional stream whose type has not arrived completely.
    Untyped(Vec<u8>),
    /// SETTINGS and GOAWAY.
    Control(FrameReader),
    /// Instructions of the peer's QPACK encoder.
    Instructions,
    /// Acknowledgements of its decoder, which an encoder that never evicts does not need, or an unknown type.
    Ignored,
}

/// Data that a stream has delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery<'a> {
    /// A field section, encoded.
    Section(&'a [u8]),
    /// Bytes of a body.
    Data(&'a [u8]),
    /// The payload of SETTINGS.
    Settings(&'a [u8]),
    /// Instructions of QPACK's encoder.
    Instructions(&'a [u8]),
    /// GOAWAY.
    Leaving,
}

/// A peer that breaks the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamError;

impl From<FrameError> for StreamError {
    fn from(_: FrameError) -> Self {
        Self
    }
}

impl StreamReader {
    /// Reader of a request or a response.
    pub fn message() -> Self {
        Self::Message(FrameReader::default())
    }

    /// Reader of a unidirectional stream.
    pub const fn unidirectional() -> Self {
        Self::Untyped(Vec::new())
    }

    /// Reads bytes; passes on what they deliver.
    ///
    /// # Errors
    /// [`StreamError`]: the connection has failed.
    pub fn read(&mut self, bytes: &[u8], on: &mut impl FnMut(Delivery<'_>)) -> Result<(), StreamError> {
        let mut result = Ok(());
        match self {
            Self::Message(reader) => reader.read(bytes, &mut |part| match part {
                Part::Data(data) => on(Delivery::Data(data)),
                Part::Frame(frame::HEADERS, section) => on(Delivery::Section(section)),
                // SETTINGS and GOAWAY belong to the control stream (RFC 9114, section 7.2).
                Part::Frame(..) => result = Err(StreamError),
            })?,
            Self::Control(reader) => reader.read(bytes, &mut |part| match part {
                Part::Frame(frame::GOAWAY, _) => on(Delivery::Leaving),
                Part::Frame(frame::SETTINGS, payload) => on(Delivery::Settings(payload)),
                Part::Frame(..) | Part::Data(_) => result = Err(StreamError),
            })?,
            Self::Untyped(begun) => {
                begun.extend_from_slice(bytes);
                let mut rest = &begun[..];
                let Some(kind) = varint::take(&mut rest) else { return Ok(()) };
                let rest = rest.to_vec();
                *self = match kind {
                    CONTROL => Self::Control(FrameReader::default()),
                    QPACK_ENCODER => Self::Instructions,
                    _ => Self::Ignored,
                };
                return self.read(&rest, on);
            }
            Self::Instructions => on(Delivery::Instructions(bytes)),
            Self::Ignored => {}
        }
        result
    }

    /// Whether its end here is the end of a message.
    pub(crate) fn ends_message(&self) -> bool {
        matches!(self, Self::Message(reader) if reader.is_between_frames())
    }
}

/// Reads a stream for the fuzz target: whatever the bytes, it returns.
#[doc(hidden)]
pub fn check(bytes: &[u8]) {
    for mut reader in [StreamReader::message(), StreamReader::unidirectional()] {
        let _ = reader.read(bytes, &mut |_| {});
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_streams_have_settings_and_messages_have_not() {
        let mut control = vec![0];
        frame::settings(&[(1, 0)], &mut control);
        frame::frame(frame::GOAWAY, &[0], &mut control);
        let (mut reader, mut is_leaving) = (StreamReader::unidirectional(), false);
        for byte in &control {
            reader
                .read(&[*byte], &mut |delivery| is_leaving |= matches!(delivery, Delivery::Leaving))
                .unwrap();
        }
        assert!(is_leaving && !reader.ends_message());
        assert_eq!(StreamReader::message().read(&control[1..], &mut |_| {}), Err(StreamError));
        let mut grease = StreamReader::unidirectional();
        grease.read(&[0x21, 1, 2, 3], &mut |_| panic!("it is ignored")).unwrap();
    }

    #[test]
    fn a_message_is_complete_between_frames_only() {
        let (mut message, mut section) = (Vec::new(), Vec::new());
        crate::qpack::encode([(&b":status"[..], &b"200"[..])], &mut section);
        frame::frame(frame::HEADERS, &section, &mut message);
        frame::frame(frame::DATA, b"body", &mut message);
        let mut reader = StreamReader::message();
        let (first, last) = message.split_at(message.len() - 1);
        reader.read(first, &mut |_| {}).unwrap();
        assert!(!reader.ends_message());
        reader.read(last, &mut |_| {}).unwrap();
        assert!(reader.ends_message());
    }
}
