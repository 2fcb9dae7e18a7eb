//! UDP's header (RFC 768) as a view.

use etherparse::UdpSlice;

use super::Unreadable;
use crate::Bytes;

/// A datagram, as it is in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpDatagram<'a> {
    /// The sender's port.
    pub source_port: u16,
    /// The receiver's port.
    pub destination_port: u16,
    /// The bytes it carries, as far as they were captured.
    pub payload: &'a [u8],
    /// How many bytes it carries. (If its header says more than there is room for in the packet, or less than
    /// its own length: what there is room for.)
    pub payload_length: Bytes,
}

impl<'a> UdpDatagram<'a> {
    /// `length` is that of header and payload together, by the IP header.
    pub(super) fn read(bytes: &'a [u8], length: usize) -> Result<Self, Unreadable> {
        let udp = UdpSlice::from_slice_lax(bytes)
            .map_err(|_| Unreadable::CutShort { header: "UDP", captured: bytes.len() })?;
        let header = udp.header_slice().len();
        let said = usize::from(udp.length());
        let whole = if (header..=length).contains(&said) { said } else { length };
        Ok(Self {
            source_port: udp.source_port(),
            destination_port: udp.destination_port(),
            payload: udp.payload(),
            payload_length: Bytes::new(whole.saturating_sub(header) as u64),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Port 1 to port 2, "hi".
    const HI: [u8; 10] = [0, 1, 0, 2, 0, 10, 0, 0, b'h', b'i'];

    #[test]
    fn a_datagram_is_read_by_hand_made_bytes() {
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
    fn what_was_cut_off_still_counts_and_what_cannot_be_does_not() {
        assert_eq!(UdpDatagram::read(&HI[..9], 10).unwrap().payload_length, Bytes::new(2));
        for impossible in [7, 11] {
            let mut damaged = HI;
            damaged[5] = impossible;
            assert_eq!(UdpDatagram::read(&damaged, 10).unwrap().payload_length, Bytes::new(2));
        }
        assert_eq!(UdpDatagram::read(&HI[..7], 10), Err(Unreadable::CutShort { header: "UDP", captured: 7 }));
    }
}
