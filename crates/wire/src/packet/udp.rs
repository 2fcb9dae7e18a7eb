//! UDP datagrams (RFC 768).

use etherparse::UdpSlice;

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
        let udp = UdpSlice::from_slice_lax(bytes)
            .map_err(|_| ParseError::Truncated { header: "UDP", captured: bytes.len() })?;
        let header = udp.header_slice().len();
        let reported = usize::from(udp.length());
        let total = if (header..=length).contains(&reported) { reported } else { length };
        Ok(Self {
            source_port: udp.source_port(),
            destination_port: udp.destination_port(),
            payload: udp.payload(),
            payload_length: Bytes::new(total.saturating_sub(header) as u64),
        })
    }
}

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
