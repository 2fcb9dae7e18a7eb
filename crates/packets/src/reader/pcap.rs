//! The classic format: a header of 24 bytes, then packets with headers of 16 bytes and their data. Either byte order,
//! micro- or nanoseconds. Packet headers of Kuznetzov's dialect are 8 bytes longer; Navtel's is rejected by its magic.

use std::io::Read;

use wire::Time;

use super::input::Input;
use super::{MAX_PACKET_BYTES, PacketLocation, Unreadable};
use crate::LinkType;

#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    big_endian: bool,
    /// Nanoseconds per unit of the second field.
    nanoseconds: u64,
    link: LinkType,
    /// Length of a packet's header, in bytes.
    packet_header: usize,
}

impl Header {
    pub(super) fn read<R: Read>(magic: [u8; 4], input: &mut Input<R>) -> Result<Self, Unreadable> {
        let (big_endian, nanoseconds, packet_header) = match u32::from_be_bytes(magic) {
            0xa1b2_c3d4 => (true, 1_000, PACKET),
            0xd4c3_b2a1 => (false, 1_000, PACKET),
            0xa1b2_3c4d => (true, 1, PACKET),
            0x4d3c_b2a1 => (false, 1, PACKET),
            0xa1b2_cd34 => (true, 1_000, LONG_PACKET),
            0x34cd_b2a1 => (false, 1_000, LONG_PACKET),
            _ => return Err(Unreadable::NotACapture { magic }),
        };
        let range = input.take(HEADER)?.ok_or(Unreadable::CutShort { frame: 1 })?;
        let mut header = Self { big_endian, nanoseconds, link: LinkType::Raw, packet_header };
        // The upper half of the word shows whether frames end in a check sequence.
        let [network] = header.words(input.taken(range.start + 20..range.end));
        header.link = LinkType::of(network & 0xffff);
        Ok(header)
    }

    pub(super) fn next<R: Read>(
        &mut self,
        input: &mut Input<R>,
        frame: u64,
    ) -> Result<Option<PacketLocation>, Unreadable> {
        if input.at_end()? {
            return Ok(None);
        }
        let range = input.take(self.packet_header)?.ok_or(Unreadable::CutShort { frame })?;
        let [seconds, fraction, captured, _original] = self.words(input.taken(range));
        let captured = captured as usize;
        if captured > MAX_PACKET_BYTES {
            return Err(Unreadable::Damaged { frame, what: "a packet longer than the maximum" });
        }
        let bytes = input.take(captured)?.ok_or(Unreadable::CutShort { frame })?;
        let nanos = u64::from(seconds) * 1_000_000_000 + u64::from(fraction) * self.nanoseconds;
        Ok(Some(PacketLocation { at: Some(Time::from_nanos(nanos)), interface: 0, link: self.link, bytes }))
    }

    /// Words of 32 bits in the capture's byte order; zeros for missing bytes.
    fn words<const N: usize>(&self, bytes: &[u8]) -> [u32; N] {
        let (whole, _) = bytes.as_chunks::<4>();
        let mut words = [0; N];
        for (word, bytes) in words.iter_mut().zip(whole) {
            *word = if self.big_endian { u32::from_be_bytes(*bytes) } else { u32::from_le_bytes(*bytes) };
        }
        words
    }
}

const HEADER: usize = 24;
const PACKET: usize = 16;
/// The same in the dialect of Linux 2.2: interface, protocol and kind of packet follow.
const LONG_PACKET: usize = 24;

#[cfg(test)]
mod tests {
    use crate::{LinkType, Reader, Unreadable};

    /// A capture of one packet of 5 bytes at 1.000002 s (or 1.000000002 s), in either byte order.
    fn capture(magic: u32, big_endian: bool) -> Vec<u8> {
        let word = |word: u32| if big_endian { word.to_be_bytes() } else { word.to_le_bytes() };
        let words = [magic, 0, 0, 0, 0xffff, 0xf000_0065, 1, 2, 5, 1_500];
        let mut capture: Vec<u8> = words.into_iter().flat_map(word).collect();
        if magic == 0xa1b2_cd34 {
            capture.extend([0, 0, 0, 2, 0x08, 0, 4, 0]);
        }
        capture.extend([0x45, 0, 0, 0, 0]);
        capture
    }

    #[test]
    fn every_byte_order_resolution_and_dialect_is_read() {
        for big_endian in [false, true] {
            let of_magic =
                [(0xa1b2_c3d4, 1_000_002_000), (0xa1b2_3c4d, 1_000_000_002), (0xa1b2_cd34, 1_000_002_000)];
            for (magic, nanos) in of_magic {
                let capture = capture(magic, big_endian);
                let mut reader = Reader::new(capture.as_slice()).unwrap();
                let frame = reader.read().unwrap().unwrap();
                assert_eq!((frame.at.as_nanos(), frame.link), (nanos, LinkType::Raw));
                assert_eq!(frame.bytes, [0x45, 0, 0, 0, 0]);
            }
        }
    }

    #[test]
    fn truncated_last_packet_is_an_error_and_the_end() {
        let capture = capture(0xa1b2_c3d4, false);
        for end in 25..capture.len() {
            let mut reader = Reader::new(&capture[..end]).unwrap();
            assert!(matches!(reader.read(), Err(Unreadable::CutShort { frame: 1 })), "{end}");
            assert!(reader.read().unwrap().is_none());
        }
    }

    #[test]
    fn invalid_length_is_damage() {
        let mut capture = capture(0xa1b2_c3d4, false);
        capture[35] = 0xff;
        let mut reader = Reader::new(capture.as_slice()).unwrap();
        assert!(matches!(reader.read(), Err(Unreadable::Damaged { frame: 1, what: _ })));
    }
}
