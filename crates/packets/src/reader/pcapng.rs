//! Blocks, sections and interfaces: the format of Wireshark.
//!
//! All three kinds of packet blocks are read, from interfaces the meaning of their timestamps, and key logs of TLS (Decryption Secrets
//! Blocks); all other blocks are skipped, whatever their length. Several sections, each in its own byte order, may follow one another.

use std::io::Read;

use wire::Time;

use super::input::Input;
use super::{MAX_PACKET_BYTES, PacketLocation, Unreadable};
use crate::LinkType;

/// A section: the byte order and the interfaces.
#[derive(Debug, Default)]
pub(super) struct Section {
    big_endian: bool,
    interfaces: Vec<Interface>,
    /// Key logs of TLS since they were last taken.
    pub(super) secrets: Vec<u8>,
}

/// Link-layer type of an interface's packets, and the meaning of their timestamps.
#[derive(Clone, Copy, Debug)]
struct Interface {
    link: LinkType,
    /// Length of a packet without a length of its own.
    snapshot: usize,
    /// Units of time per second.
    units: u64,
    /// Seconds to be added.
    offset: i64,
}

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
const DECRYPTION_SECRETS: u32 = 10;
/// Type of secrets that are a key log of TLS.
const TLS_KEY_LOG: u32 = 0x544c_534b;
/// Maximum length of a block of secrets that is read; a line has 200 bytes.
const MAX_SECRETS_BYTES: usize = 1 << 24;

/// Maximum length of a packet's block with its options, and of an interface's description.
const MAX_BLOCK_BYTES: usize = 4 * MAX_PACKET_BYTES;
/// Maximum number of interfaces, above that of any real capture.
const MAX_INTERFACES: usize = 1 << 16;
/// A block's type and length; the length is repeated at its end.
const BLOCK_HEADER: usize = 8;
const BLOCK_FRAME: usize = 12;

impl Section {
    pub(super) fn next<R: Read>(
        &mut self,
        input: &mut Input<R>,
        frame: u64,
    ) -> Result<Option<PacketLocation>, Unreadable> {
        while !input.at_end()? {
            if let Some(located) = self.block(input, frame)? {
                return Ok(Some(located));
            }
        }
        Ok(None)
    }

    /// Reads one block; returns the packet in it, if it holds one.
    fn block<R: Read>(
        &mut self,
        input: &mut Input<R>,
        frame: u64,
    ) -> Result<Option<PacketLocation>, Unreadable> {
        let damaged = |defect| Unreadable::Damaged { frame, what: defect };
        let truncated = || Unreadable::CutShort { frame };
        let header = input.peek(BLOCK_HEADER)?.ok_or_else(truncated)?;
        if header.starts_with(&SECTION_HEADER.to_be_bytes()) {
            let magic =
                input.peek(BLOCK_FRAME)?.ok_or_else(truncated)?.get(BLOCK_HEADER..).unwrap_or_default();
            self.big_endian = match magic {
                [0x1a, 0x2b, 0x3c, 0x4d] => true,
                [0x4d, 0x3c, 0x2b, 0x1a] => false,
                _ => return Err(damaged("a section without a byte-order magic")),
            };
            self.interfaces.clear();
        }
        let header = input.peek(BLOCK_HEADER)?.ok_or_else(truncated)?;
        let (kind, total) = (self.word(header, 0), self.word(header, 4) as usize);
        if total < BLOCK_FRAME || !total.is_multiple_of(4) {
            return Err(damaged("a block of an impossible length"));
        }
        if kind == DECRYPTION_SECRETS && total <= MAX_SECRETS_BYTES {
            let range = input.take(total)?.ok_or_else(truncated)?;
            let body = range.start + BLOCK_HEADER..range.end - 4;
            self.secrets.extend_from_slice(self.key_log(input.taken(body)));
            return Ok(None);
        }
        let is_read = matches!(kind, INTERFACE_DESCRIPTION | PACKET | SIMPLE_PACKET | ENHANCED_PACKET);
        if !is_read {
            return if input.skip(total as u64)? { Ok(None) } else { Err(truncated()) };
        }
        if total > MAX_BLOCK_BYTES {
            return Err(damaged("a block longer than the maximum"));
        }
        let range = input.take(total)?.ok_or_else(truncated)?;
        let body = range.start + BLOCK_HEADER..range.end - 4;
        let bytes = input.taken(body.clone());
        if kind == INTERFACE_DESCRIPTION {
            if self.interfaces.len() >= MAX_INTERFACES {
                return Err(damaged("too many interfaces"));
            }
            self.interfaces.push(self.interface(bytes));
            return Ok(None);
        }
        let packet = match kind {
            SIMPLE_PACKET => self.simple(bytes),
            ENHANCED_PACKET => self.enhanced(bytes, self.word(bytes, 0)),
            _ => self.enhanced(bytes, u32::from(self.value(bytes, 0))),
        };
        let PacketLocation { at, interface, link, bytes } =
            packet.ok_or_else(|| damaged("a packet that does not fit its block"))?;
        Ok(Some(PacketLocation {
            at,
            interface,
            link,
            bytes: body.start + bytes.start..body.start + bytes.end,
        }))
    }

    /// Returns the key log in a block of secrets; nothing if it has secrets of another kind.
    fn key_log<'a>(&self, body: &'a [u8]) -> &'a [u8] {
        const DATA: usize = 8;
        let (kind, length) = (self.word(body, 0), self.word(body, 4) as usize);
        let data = body.get(DATA..).unwrap_or_default();
        let data = data.get(..length).unwrap_or(data);
        if kind == TLS_KEY_LOG { data } else { &[] }
    }

    fn interface(&self, body: &[u8]) -> Interface {
        const RESOLUTION: u16 = 9;
        const OFFSET: u16 = 14;
        let snapshot = match self.word(body, 4) as usize {
            0 => MAX_PACKET_BYTES,
            length => length,
        };
        let link = LinkType::of(u32::from(self.value(body, 0)));
        let mut interface = Interface { link, snapshot, units: 1_000_000, offset: 0 };
        let mut options = body.get(8..).unwrap_or_default();
        while options.len() >= 4 {
            let (code, length) = (self.value(options, 0), usize::from(self.value(options, 2)));
            let value = options.get(4..4 + length).unwrap_or_default();
            match (code, value) {
                (RESOLUTION, [power]) => interface.units = units(*power),
                (OFFSET, value) if length == 8 => interface.offset = self.long(value),
                _ => {}
            }
            options = options.get(4 + length.next_multiple_of(4)..).unwrap_or_default();
        }
        interface
    }

    /// Also handles the obsolete packet block, whose interface is a half word.
    fn enhanced(&self, body: &[u8], number: u32) -> Option<PacketLocation> {
        const DATA: usize = 20;
        let interface = self.interfaces.get(number as usize)?;
        let captured = self.word(body, 12) as usize;
        if captured > MAX_PACKET_BYTES || body.len() < DATA + captured {
            return None;
        }
        let ticks = u64::from(self.word(body, 4)) << 32 | u64::from(self.word(body, 8));
        Some(PacketLocation {
            at: Some(interface.time(ticks)),
            interface: number,
            link: interface.link,
            bytes: DATA..DATA + captured,
        })
    }

    /// A packet without an interface and a timestamp.
    fn simple(&self, body: &[u8]) -> Option<PacketLocation> {
        const DATA: usize = 4;
        let interface = self.interfaces.first()?;
        let captured =
            (self.word(body, 0) as usize).min(interface.snapshot).min(body.len().checked_sub(DATA)?);
        Some(PacketLocation { at: None, interface: 0, link: interface.link, bytes: DATA..DATA + captured })
    }

    /// A word in the section's byte order; zero for missing bytes.
    fn word(&self, bytes: &[u8], at: usize) -> u32 {
        let word = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>()).copied().unwrap_or_default();
        if self.big_endian { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
    }

    fn value(&self, bytes: &[u8], at: usize) -> u16 {
        let value = bytes.get(at..).and_then(|rest| rest.first_chunk::<2>()).copied().unwrap_or_default();
        if self.big_endian { u16::from_be_bytes(value) } else { u16::from_le_bytes(value) }
    }

    fn long(&self, bytes: &[u8]) -> i64 {
        let long = bytes.first_chunk::<8>().copied().unwrap_or_default();
        if self.big_endian { i64::from_be_bytes(long) } else { i64::from_le_bytes(long) }
    }
}

impl Interface {
    fn time(&self, ticks: u64) -> Time {
        let nanos = match self.units {
            1_000_000_000 => ticks,
            1_000_000 => ticks.saturating_mul(1_000),
            units => {
                let nanos = u128::from(ticks) * 1_000_000_000 / u128::from(units);
                u64::try_from(nanos).unwrap_or(u64::MAX)
            }
        };
        let offset = self.offset.unsigned_abs().saturating_mul(1_000_000_000);
        Time::from_nanos(match self.offset >= 0 {
            true => nanos.saturating_add(offset),
            false => nanos.saturating_sub(offset),
        })
    }
}

/// Units per second, for 10^-n or, with the highest bit set, 2^-n seconds. A resolution that 64 bits cannot
/// hold is invalid, and is read as microseconds.
fn units(power: u8) -> u64 {
    let base: u64 = if power & 0x80 == 0 { 10 } else { 2 };
    base.checked_pow(u32::from(power & 0x7f)).unwrap_or(1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reader;

    /// A block in big-endian order.
    fn block(kind: u32, body: &[u8]) -> Vec<u8> {
        let padded = body.len().next_multiple_of(4);
        let total = u32::try_from(padded + BLOCK_FRAME).unwrap().to_be_bytes();
        let mut block = [&kind.to_be_bytes(), &total, body].concat();
        block.resize(BLOCK_HEADER + padded, 0);
        block.extend(total);
        block
    }

    fn section() -> Vec<u8> {
        block(SECTION_HEADER, &[0x1a, 0x2b, 0x3c, 0x4d, 0, 1, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255])
    }

    #[test]
    fn interfaces_have_their_own_link_type_resolution_and_offset() {
        // Ethernet in units of 2^-10 s, 5 s later; raw IP in microseconds.
        let ethernet =
            [0, 1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 0x8a, 0, 0, 0, 0, 14, 0, 8, 0, 0, 0, 0, 0, 0, 0, 5];
        let raw = [0, 101, 0, 0, 0, 0, 0, 0];
        let packet = |interface: u8, ticks: u8| {
            block(
                ENHANCED_PACKET,
                &[0, 0, 0, interface, 0, 0, 0, 0, 0, 0, 0, ticks, 0, 0, 0, 1, 0, 0, 0, 9, 0x45],
            )
        };
        let capture = [
            section(),
            block(0x0bad_cafe, &[0; 7]),
            block(INTERFACE_DESCRIPTION, &ethernet),
            block(INTERFACE_DESCRIPTION, &raw),
            packet(1, 7),
            packet(0, 1),
            block(SIMPLE_PACKET, &[0, 0, 0, 9, 1, 2]),
        ]
        .concat();
        let mut reader = Reader::new(capture.as_slice()).unwrap();
        let mut next = || {
            let frame = reader.read().unwrap().unwrap();
            (frame.number, frame.interface, frame.at.as_nanos(), frame.link, frame.bytes.to_vec())
        };
        assert_eq!(next(), (1, 1, 7_000, LinkType::Raw, vec![0x45]));
        assert_eq!(next(), (2, 0, 5_000_976_562, LinkType::Ethernet, vec![0x45]));
        assert_eq!(next(), (3, 0, 5_000_976_562, LinkType::Ethernet, vec![1, 2, 0, 0]));
    }

    #[test]
    fn key_logs_come_before_the_packets_that_follow_them() {
        let raw = [0, 101, 0, 0, 0, 0, 0, 0];
        let secrets = |kind: u32, text: &[u8]| {
            let length = u32::try_from(text.len()).unwrap();
            block(DECRYPTION_SECRETS, &[&kind.to_be_bytes(), &length.to_be_bytes(), text].concat())
        };
        let packet = block(SIMPLE_PACKET, &[0, 0, 0, 2, 1, 2]);
        let capture = [
            section(),
            block(INTERFACE_DESCRIPTION, &raw),
            secrets(TLS_KEY_LOG, b"one\n"),
            packet.clone(),
            packet.clone(),
            secrets(0x5747_4b4c, b"WireGuard"),
            secrets(TLS_KEY_LOG, b"two"),
            packet,
        ]
        .concat();
        let mut reader = Reader::new(capture.as_slice()).unwrap();
        let mut seen = Vec::new();
        while let Some(frame) = reader.read_with(&mut |text| seen.push((0, text.to_vec()))).unwrap() {
            let number = frame.number;
            seen.push((number, Vec::new()));
        }
        let expected = [(0, b"one\n".to_vec()), (1, vec![]), (2, vec![]), (0, b"two".to_vec()), (3, vec![])];
        assert_eq!(seen, expected);
        let mut batch = crate::batch::FrameBatch::default();
        Reader::new(capture.as_slice()).unwrap().read_batch(&mut batch).unwrap();
        let secrets: Vec<_> = batch.secrets().map(|(before, text)| (before, text.to_vec())).collect();
        assert_eq!((secrets, batch.len()), (vec![(1, b"one\n".to_vec()), (3, b"two".to_vec())], 3));
    }

    #[test]
    fn damage_is_reported() {
        let without_interface = block(ENHANCED_PACKET, &[0; 24]);
        let odd_length = [0, 0, 0, 6, 0, 0, 0, 13];
        for damage in [&without_interface[..], &odd_length, &[0, 0, 0, 6, 0, 0xff, 0, 0]] {
            let capture = [&section(), damage].concat();
            let mut reader = Reader::new(capture.as_slice()).unwrap();
            assert!(matches!(reader.read(), Err(Unreadable::Damaged { frame: 1, what: _ })));
        }
        let mut capture = [section(), block(ENHANCED_PACKET, &[0; 24])].concat();
        capture.truncate(capture.len() - 1);
        let mut reader = Reader::new(capture.as_slice()).unwrap();
        assert!(matches!(reader.read(), Err(Unreadable::CutShort { frame: 1 })));
    }

    #[test]
    fn resolution_beyond_64_bits_is_read_as_microseconds() {
        assert_eq!(
            [6, 9, 0x80 | 20, 30, 0xff].map(units),
            [1_000_000, 1_000_000_000, 1 << 20, 1_000_000, 1_000_000]
        );
    }
}
