//! UDP datagrams (RFC 768).

use super::ParseError;
use crate::Bytes;

/// UDP datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpDatagram<'a> {
    /// The sender's port.
    pub source_port: u16,
    /// The receiver's port.
    pub destination_port: u16,
    /// The payload, as far as it was captured.
    pub payload: &'a [u8],
    /// Payload length in bytes. If the header's length is invalid, it is that of the packet.
    pub payload_length: Bytes,
}

impl<'a> UdpDatagram<'a> {
    /// Parses a datagram; `length` is the length of header and payload according to the IP header.
    pub(super) fn read(bytes: &'a [u8], length: usize) -> Result<Self, ParseError> {
        let truncated = ParseError::Truncated { header: "UDP", captured: bytes.len() };
        let fixed: &[u8; HEADER_LENGTH] = bytes.first_chunk().ok_or(truncated)?;
        let [s0, s1, d0, d1, l0, l1, _, _] = *fixed;
        let reported = usize::from(u16::from_be_bytes([l0, l1]));
        let is_valid = |length| (HEADER_LENGTH..=length).contains(&reported);
        let total = if is_valid(length) { reported } else { length };
        let end = if is_valid(bytes.len()) { reported } else { bytes.len() };
        Ok(Self {
            source_port: u16::from_be_bytes([s0, s1]),
            destination_port: u16::from_be_bytes([d0, d1]),
            payload: &bytes[HEADER_LENGTH..end],
            payload_length: Bytes::new(total.saturating_sub(HEADER_LENGTH) as u64),
        })
    }
}

/// Length of the header, in bytes.
pub(super) const HEADER_LENGTH: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    /// Port 1 to port 2, "hi".
    const HI: [u8; 10] = [0, 1, 0, 2, 0, 10, 0, 0, b'h', b'i'];

    #[test]
    fn datagram_is_parsed() {
        let hi = UdpDatagram::read(&HI, 10).unwrap();
        let expected = UdpDatagram {
            source_port: 1,
            destination_port: 2,
            payload: b"hi",
            payload_length: Bytes::new(2),
        };
        assert_eq!(hi, expected);
    }

    #[test]
    fn truncated_payload_counts_and_invalid_lengths_do_not() {
        assert_eq!(UdpDatagram::read(&HI[..9], 10).unwrap().payload_length, Bytes::new(2));
        for impossible in [7, 11] {
            let mut damaged = HI;
            damaged[5] = impossible;
            assert_eq!(UdpDatagram::read(&damaged, 10).unwrap().payload_length, Bytes::new(2));
        }
        assert_eq!(
            UdpDatagram::read(&HI[..7], 10),
            Err(ParseError::Truncated { header: "UDP", captured: 7 })
        );
    }
}
