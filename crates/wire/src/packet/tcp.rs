//! TCP segments (RFC 9293, section 3.1), with their numbers as on the wire. The window is not scaled.

use std::fmt;
use std::ops::BitOr;

use super::{ParseError, TcpOptions};
use crate::Bytes;

/// TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpSegment<'a> {
    /// The sender's port.
    pub source_port: u16,
    /// The receiver's port.
    pub destination_port: u16,
    /// The sequence number of the first byte, or of the SYN.
    pub seq: u32,
    /// The next sequence number expected; valid only with [`Flags::ACK`].
    pub ack: u32,
    /// Control bits.
    pub flags: Flags,
    /// The window, before scaling.
    pub window: u16,
    /// The options.
    pub options: TcpOptions<'a>,
    /// The payload, as far as it was captured.
    pub payload: &'a [u8],
    /// Payload length in bytes.
    pub payload_length: Bytes,
}

impl<'a> TcpSegment<'a> {
    /// Parses a segment; `length` is the length of header and payload according to the IP header.
    pub(super) fn read(bytes: &'a [u8], length: usize) -> Result<Self, ParseError> {
        let truncated = ParseError::Truncated { header: "TCP", captured: bytes.len() };
        let fixed: &[u8; FIXED_LENGTH] = bytes.first_chunk().ok_or(truncated)?;
        let [s0, s1, d0, d1, q0, q1, q2, q3, a0, a1, a2, a3, offset, flags, w0, w1, _, _, _, _] = *fixed;
        let header = usize::from(offset >> 4) * 4;
        if header < FIXED_LENGTH {
            return Err(ParseError::InvalidLength { header: "TCP" });
        }
        if header > length {
            return Err(truncated);
        }
        // The capture may end within the options: the fixed fields are present nevertheless.
        let options = match bytes.get(FIXED_LENGTH..header) {
            Some(options) => TcpOptions::new(options),
            None => TcpOptions::truncated(bytes.get(FIXED_LENGTH..).unwrap_or_default()),
        };
        Ok(Self {
            source_port: u16::from_be_bytes([s0, s1]),
            destination_port: u16::from_be_bytes([d0, d1]),
            seq: u32::from_be_bytes([q0, q1, q2, q3]),
            ack: u32::from_be_bytes([a0, a1, a2, a3]),
            flags: Flags(flags),
            window: u16::from_be_bytes([w0, w1]),
            options,
            payload: bytes.get(header..).unwrap_or_default(),
            payload_length: Bytes::new((length - header) as u64),
        })
    }

    /// Returns whether it is a bare acknowledgement: no payload, no SYN, FIN or RST.
    pub fn is_pure_ack(&self) -> bool {
        let control = Flags::SYN | Flags::FIN | Flags::RST;
        self.flags.contains(Flags::ACK)
            && !self.flags.intersects(control)
            && self.payload_length == Bytes::ZERO
    }

    /// Returns the length in sequence numbers: its bytes, one for a SYN, one for a FIN.
    pub fn sequence_length(&self) -> u64 {
        let count = |flag| u64::from(self.flags.contains(flag));
        self.payload_length.get() + count(Flags::SYN) + count(Flags::FIN)
    }
}

/// Length of the header without options, in bytes.
pub(super) const FIXED_LENGTH: usize = 20;

/// The eight flags of the header's 14th byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u8);

impl Flags {
    /// The flags as on the wire.
    pub(super) const fn bits(self) -> u8 {
        self.0
    }

    /// No more data from the sender.
    pub const FIN: Self = Self(1);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(1 << 1);
    /// Reset the connection.
    pub const RST: Self = Self(1 << 2);
    /// Push.
    pub const PSH: Self = Self(1 << 3);
    /// The acknowledgement number is valid.
    pub const ACK: Self = Self(1 << 4);
    /// The urgent pointer is valid.
    pub const URG: Self = Self(1 << 5);
    /// Congestion experienced, echoed (RFC 3168).
    pub const ECE: Self = Self(1 << 6);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: Self = Self(1 << 7);

    const ALL: [(Self, &'static str); 8] = [
        (Self::FIN, "FIN"),
        (Self::SYN, "SYN"),
        (Self::RST, "RST"),
        (Self::PSH, "PSH"),
        (Self::ACK, "ACK"),
        (Self::URG, "URG"),
        (Self::ECE, "ECE"),
        (Self::CWR, "CWR"),
    ];

    /// Returns whether all of `flags` are set.
    pub const fn contains(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// Returns whether any of `flags` is set.
    pub const fn intersects(self, flags: Self) -> bool {
        self.0 & flags.0 != 0
    }
}

impl BitOr for Flags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Display for Flags {
    /// Formats the names of the flags: `SYN ACK`; an empty text for none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = Self::ALL.iter().filter(|(flag, _)| self.contains(*flag));
        for (index, (_, name)) in set.enumerate() {
            f.write_str(if index == 0 { "" } else { " " })?;
            f.write_str(name)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(flags: Flags, payload: &[u8]) -> TcpSegment<'_> {
        let payload_length = Bytes::new(payload.len() as u64);
        let options = TcpOptions::default();
        TcpSegment {
            source_port: 1,
            destination_port: 2,
            seq: 0,
            ack: 0,
            flags,
            window: 0,
            options,
            payload,
            payload_length,
        }
    }

    #[test]
    fn pure_ack_has_no_payload_and_no_syn_fin_or_rst() {
        assert!(segment(Flags::ACK, b"").is_pure_ack());
        assert!(segment(Flags::ACK | Flags::ECE, b"").is_pure_ack());
        assert!(!segment(Flags::ACK, b"a").is_pure_ack());
        for flag in [Flags::SYN, Flags::FIN, Flags::RST] {
            assert!(!segment(Flags::ACK | flag, b"").is_pure_ack(), "{flag}");
        }
        assert!(!segment(Flags::RST, b"").is_pure_ack());
    }

    #[test]
    fn syn_and_fin_take_a_sequence_number_each() {
        assert_eq!(segment(Flags::SYN | Flags::FIN, b"abc").sequence_length(), 5);
        assert_eq!(segment(Flags::ACK | Flags::PSH, b"abc").sequence_length(), 3);
    }

    #[test]
    fn fixed_fields_are_parsed_if_options_are_truncated() {
        let mut syn = [0; 32];
        (syn[3], syn[12], syn[13]) = (80, 0x80, 2);
        syn[20..28].copy_from_slice(&[2, 4, 5, 0xb4, 1, 3, 3, 7]);
        for captured in 20..32 {
            let segment = TcpSegment::read(&syn[..captured], 32).unwrap();
            assert_eq!((segment.destination_port, segment.flags), (80, Flags::SYN));
            assert!(segment.options.is_truncated());
        }
        let segment = TcpSegment::read(&syn, 32).unwrap();
        assert_eq!((segment.options.is_truncated(), segment.options.window_scale()), (false, Some(7)));
        assert!(TcpSegment::read(&syn, 31).is_err());
    }

    #[test]
    fn flags_are_printed_by_name() {
        assert_eq!((Flags::SYN | Flags::ACK).to_string(), "SYN ACK");
        assert_eq!(Flags::default().to_string(), "");
    }
}
