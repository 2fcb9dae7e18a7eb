//! Netlink's message format: messages with a length prefix, attributes in them, everything on 4-byte
//! boundaries.
//!
//! Contents are in `netlink`. From netlink(7); numbers are in the host's byte order.

use std::net::IpAddr;

/// One message being written.
#[derive(Debug)]
pub struct Message {
    bytes: Vec<u8>,
}

/// `struct nlmsghdr`: length, kind, flags, sequence, port.
const HEADER: usize = 16;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;

impl Message {
    /// A request to be acknowledged by the kernel.
    pub fn new(kind: u16, flags: u16) -> Self {
        let mut bytes = vec![0; HEADER];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&(flags | NLM_F_REQUEST | NLM_F_ACK).to_ne_bytes());
        Self { bytes }
    }

    /// Appends the fixed part before the attributes.
    pub fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends an attribute.
    pub fn attribute(&mut self, kind: u16, value: &[u8]) {
        self.nested(kind, |message| message.put(value));
    }

    /// Appends an attribute that is a number.
    pub fn number(&mut self, kind: u16, value: u32) {
        self.attribute(kind, &value.to_ne_bytes());
    }

    /// Appends an attribute that is an IP address.
    pub fn address(&mut self, kind: u16, value: IpAddr) {
        match value {
            IpAddr::V4(address) => self.attribute(kind, &address.octets()),
            IpAddr::V6(address) => self.attribute(kind, &address.octets()),
        }
    }

    /// Appends an attribute that is a NUL-terminated name.
    pub fn text(&mut self, kind: u16, value: &str) {
        self.nested(kind, |message| {
            message.put(value.as_bytes());
            message.put(&[0]);
        });
    }

    /// Appends an attribute whose value `write` appends.
    pub fn nested(&mut self, kind: u16, write: impl FnOnce(&mut Self)) {
        let start = self.bytes.len();
        self.put(&[0, 0]);
        self.put(&kind.to_ne_bytes());
        write(self);
        let length = u16::try_from(self.bytes.len() - start).expect("requests are a few hundred bytes");
        self.bytes[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    /// Encoded message.
    pub fn finish(mut self, sequence: u32) -> Vec<u8> {
        let length = u32::try_from(self.bytes.len()).expect("requests are a few hundred bytes");
        self.bytes[..4].copy_from_slice(&length.to_ne_bytes());
        self.bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.bytes
    }
}

/// One message received.
#[derive(Debug, PartialEq)]
pub struct ReceivedMessage<'a> {
    /// Type of the message (`nlmsg_type`).
    pub kind: u16,
    /// Sequence number of the request that it responds to.
    pub sequence: u32,
    /// Payload behind the header.
    pub body: &'a [u8],
}

impl ReceivedMessage<'_> {
    /// Error of an NLMSG_ERROR: 0, or a negative error number.
    pub fn error(&self) -> i32 {
        self.body.first_chunk().map_or(0, |code| i32::from_ne_bytes(*code))
    }
}

/// Messages in the bytes of one read; stops at the first truncated one.
pub fn messages(mut bytes: &[u8]) -> impl Iterator<Item = ReceivedMessage<'_>> {
    std::iter::from_fn(move || {
        let length = usize::try_from(u32::from_ne_bytes(*bytes.first_chunk()?)).ok()?;
        let message = bytes.get(..length)?;
        let (header, body) = message.split_at_checked(HEADER)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(ReceivedMessage {
            kind: u16::from_ne_bytes([header[4], header[5]]),
            sequence: u32::from_ne_bytes([header[8], header[9], header[10], header[11]]),
            body,
        })
    })
}

/// Attributes of a message, or of an attribute that contains others; stops at the first truncated one.
#[derive(Debug)]
pub struct Attributes<'a>(&'a [u8]);

impl<'a> Attributes<'a> {
    /// Attributes after a fixed header.
    pub fn after(body: &'a [u8], header: usize) -> Self {
        Self(body.get(header..).unwrap_or_default())
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        /// The two highest bits of the kind are flags (nested, byte order).
        const KIND: u16 = 0x3fff;
        let [length_low, length_high, kind_low, kind_high] = *self.0.first_chunk()?;
        let length = usize::from(u16::from_ne_bytes([length_low, length_high]));
        let value = self.0.get(4..length)?;
        self.0 = self.0.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_ne_bytes([kind_low, kind_high]) & KIND, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_round_trip() {
        let mut message = Message::new(24, 0x400);
        message.put(&[7; 12]);
        message.text(3, "lo");
        message.nested(8, |nested| {
            nested.number(11, 2);
            nested.number(13, 1_000);
        });
        let bytes = message.finish(42);
        let read: Vec<_> = messages(&bytes).collect();
        assert_eq!(read.len(), 1);
        assert_eq!((read[0].kind, read[0].sequence), (24, 42));
        let attributes: Vec<_> = Attributes::after(read[0].body, 12).collect();
        assert_eq!(attributes[0], (3, b"lo\0".as_slice()));
        let nested: Vec<_> = Attributes::after(attributes[1].1, 0).collect();
        assert_eq!(nested, [(11, 2_u32.to_ne_bytes().as_slice()), (13, 1_000_u32.to_ne_bytes().as_slice())]);
    }

    #[test]
    fn truncated_messages_end_without_a_panic() {
        let mut message = Message::new(16, 0);
        message.text(3, "tun0");
        let bytes = message.finish(1);
        for cut in 0..bytes.len() {
            assert_eq!(messages(&bytes[..cut]).count(), 0);
            assert!(Attributes::after(&bytes[..cut], HEADER).count() <= 1);
        }
        // Invalid lengths: zero, and shorter than the header that contains them.
        assert_eq!(messages(&[0; 64]).count(), 0);
        assert_eq!(Attributes::after(&[1, 0, 3, 0], 0).count(), 0);
    }
}
