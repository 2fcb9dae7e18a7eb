//! Writer of captures as pcapng, for Wireshark, tshark and tcptrace.
//!
//! Little-endian, nanosecond timestamps, IPv4 packets or Linux cooked packets, one section; comments on
//! packets. Blocks are written in the caller's order; nothing is sorted. The format is
//! <https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-03.html>, sections 4.1 to 4.3 and 4.7.

use std::io::{self, Write};

use wire::Duration;

/// Writer of one capture. Every write may fail (a full disk): the file is then invalid, and the caller who
/// opened it removes it.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    block: Vec<u8>,
    interfaces: u32,
}

/// An interface of a capture, valid only in the capture in which it was declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface(u32);

/// One captured packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Interface on which it was captured.
    pub interface: Interface,
    /// Timestamp, since 1 January 1970, UTC.
    pub at: Duration,
    /// The packet, beginning as its interface's type requires: all of it, or its beginning.
    pub bytes: &'a [u8],
    /// Original length on the wire.
    pub original_length: usize,
    /// Comment that Wireshark shows for it (`frame.comment`).
    pub comment: Option<&'a str>,
}

impl<W: Write> Writer<W> {
    /// Starts a capture made by `application` (name and version), with a comment on the whole.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new(out: W, application: &str, comment: Option<&str>) -> io::Result<Self> {
        const SECTION_LENGTH_UNKNOWN: [u8; 8] = [0xff; 8];
        let mut writer = Self { out, block: Vec::new(), interfaces: 0 };
        writer.begin(SECTION_HEADER);
        writer.word(BYTE_ORDER_MAGIC);
        writer.halves(1, 0);
        writer.block.extend(SECTION_LENGTH_UNKNOWN);
        if let Some(comment) = comment {
            writer.option(OPTION_COMMENT, comment.as_bytes());
        }
        writer.option(OPTION_SECTION_APPLICATION, application.as_bytes());
        writer.halves(OPTION_END, 0);
        writer.end()?;
        Ok(writer)
    }

    /// Adds a key log of TLS or QUIC (Decryption Secrets Block, section 4.7), before the packets that it decrypts.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn key_log(&mut self, key_log: &str) -> io::Result<()> {
        self.begin(DECRYPTION_SECRETS);
        self.word(TLS_KEY_LOG);
        self.word(length(key_log.len()));
        self.block.extend(key_log.bytes());
        self.pad();
        self.end()
    }

    /// Declares an interface of IPv4 packets without a link layer. Interfaces are numbered from 0 in order of
    /// declaration.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn interface(&mut self, name: &str) -> io::Result<Interface> {
        self.declare(name, LINK_TYPE_IPV4)
    }

    /// Declares an interface of packets of any protocol, each behind a header of LINKTYPE_LINUX_SLL2. All interfaces of
    /// a capture must be of one kind, or tcpdump refuses it.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn cooked_interface(&mut self, name: &str) -> io::Result<Interface> {
        self.declare(name, LINK_TYPE_LINUX_COOKED_2)
    }

    fn declare(&mut self, name: &str, link_type: u16) -> io::Result<Interface> {
        const WHOLE_PACKETS: u32 = 0;
        const NANOSECONDS: [u8; 1] = [9];
        self.begin(INTERFACE_DESCRIPTION);
        self.halves(link_type, 0);
        self.word(WHOLE_PACKETS);
        self.option(OPTION_INTERFACE_NAME, name.as_bytes());
        self.option(OPTION_INTERFACE_RESOLUTION, &NANOSECONDS);
        self.halves(OPTION_END, 0);
        self.end()?;
        self.interfaces += 1;
        Ok(Interface(self.interfaces - 1))
    }

    /// Adds a packet.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn packet(&mut self, packet: &Packet<'_>) -> io::Result<()> {
        let Packet { interface, at, bytes, original_length, comment } = *packet;
        let [high, low] = halves_of(at.as_nanos());
        self.begin(ENHANCED_PACKET);
        self.word(interface.0);
        self.word(high);
        self.word(low);
        self.word(length(bytes.len()));
        self.word(length(original_length));
        self.block.extend_from_slice(bytes);
        self.pad();
        if let Some(comment) = comment {
            self.option(OPTION_COMMENT, comment.as_bytes());
            self.halves(OPTION_END, 0);
        }
        self.end()
    }

    /// Returns where blocks are written to.
    pub const fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }

    /// Flushes the writer and returns it.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    /// Begins a block: its type, its length, its body, and its length again.
    fn begin(&mut self, block_type: u32) {
        const LENGTH_NOT_YET_KNOWN: u32 = 0;
        self.block.clear();
        self.word(block_type);
        self.word(LENGTH_NOT_YET_KNOWN);
    }

    fn end(&mut self) -> io::Result<()> {
        let total = length(self.block.len() + size_of::<u32>());
        self.word(total);
        self.block[4..8].copy_from_slice(&total.to_le_bytes());
        self.out.write_all(&self.block)
    }

    fn word(&mut self, word: u32) {
        self.block.extend(word.to_le_bytes());
    }

    fn halves(&mut self, first: u16, second: u16) {
        self.block.extend(first.to_le_bytes());
        self.block.extend(second.to_le_bytes());
    }

    /// Appends an option: a code, a length of 16 bits, and a value that is padded to whole words; a longer
    /// text is truncated.
    fn option(&mut self, code: u16, value: &[u8]) {
        let retained = u16::try_from(value.len()).unwrap_or(u16::MAX);
        self.halves(code, retained);
        self.block.extend_from_slice(&value[..usize::from(retained)]);
        self.pad();
    }

    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(size_of::<u32>()), 0);
    }
}

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const DECRYPTION_SECRETS: u32 = 10;
/// Type of secrets that are a key log of TLS.
const TLS_KEY_LOG: u32 = 0x544c_534b;
/// LINKTYPE_IPV4: the packet begins with an IPv4 header. With LINKTYPE_RAW libpcap, and so tcpdump, refuses a second
/// interface, because it compares the number in the file (101) with its own (12).
const LINK_TYPE_IPV4: u16 = 228;
/// LINKTYPE_LINUX_SLL2.
const LINK_TYPE_LINUX_COOKED_2: u16 = 276;
const OPTION_END: u16 = 0;
const OPTION_COMMENT: u16 = 1;
const OPTION_SECTION_APPLICATION: u16 = 4;
const OPTION_INTERFACE_NAME: u16 = 2;
const OPTION_INTERFACE_RESOLUTION: u16 = 9;

/// Most significant half first.
fn halves_of(nanos: u64) -> [u32; 2] {
    let [a, b, c, d, e, f, g, h] = nanos.to_be_bytes();
    [u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])]
}

/// A length as 32 bits: a packet is at most 64 KiB and a block little more; larger ones do not occur.
fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture_of_one(comment: Option<&str>) -> Vec<u8> {
        let mut writer = Writer::new(Vec::new(), "roundtrip 0.1.0", None).unwrap();
        let client = writer.interface("client").unwrap();
        let at = Duration::from_nanos(0x0102_0304_0506_0708);
        writer
            .packet(&Packet { interface: client, at, bytes: &[0x45; 5], original_length: 40, comment })
            .unwrap();
        writer.finish().unwrap()
    }

    /// The blocks of a capture, each with its type; asserts that lengths agree and are whole words.
    fn blocks(mut capture: &[u8]) -> Vec<(u32, &[u8])> {
        let word = |bytes: &[u8]| u32::from_le_bytes(bytes[..4].try_into().unwrap());
        let mut blocks = Vec::new();
        while !capture.is_empty() {
            let total = word(&capture[4..]) as usize;
            assert!(total.is_multiple_of(4) && word(&capture[total - 4..]) as usize == total);
            blocks.push((word(capture), &capture[8..total - 4]));
            capture = &capture[total..];
        }
        blocks
    }

    #[test]
    fn a_capture_is_a_section_its_interfaces_and_its_packets() {
        let capture = capture_of_one(None);
        let types: Vec<u32> = blocks(&capture).iter().map(|(block_type, _)| *block_type).collect();
        assert_eq!(types, [SECTION_HEADER, INTERFACE_DESCRIPTION, ENHANCED_PACKET]);
    }

    #[test]
    fn key_log_is_a_block_with_its_type_and_length_in_whole_words() {
        let mut writer = Writer::new(Vec::new(), "roundtrip 0.1.0", None).unwrap();
        writer.key_log("A 1 2\n").unwrap();
        let capture = writer.finish().unwrap();
        let (kind, body) = blocks(&capture)[1];
        assert_eq!((kind, body), (DECRYPTION_SECRETS, &b"KSLT\x06\0\0\0A 1 2\n\0\0"[..]));
    }

    #[test]
    fn paper_an_enhanced_packet_block_is_laid_out_as_in_section_4_3_of_the_draft() {
        let capture = capture_of_one(Some("lost"));
        let (_, body) = blocks(&capture)[2];
        #[rustfmt::skip]
        let expected = [
            0, 0, 0, 0, 4, 3, 2, 1, 8, 7, 6, 5, 5, 0, 0, 0, 40, 0, 0, 0,
            0x45, 0x45, 0x45, 0x45, 0x45, 0, 0, 0,
            1, 0, 4, 0, b'l', b'o', b's', b't', 0, 0, 0, 0,
        ];
        assert_eq!(body, expected);
    }

    #[test]
    fn a_comment_too_long_for_its_length_field_is_cut() {
        let capture = capture_of_one(Some(&"x".repeat(70_000)));
        let (_, body) = blocks(&capture)[2];
        assert_eq!(body.len(), 20 + 8 + 4 + 65_536 + 4);
    }

    #[test]
    fn a_full_disk_is_an_error() {
        let mut disk = [0; 90];
        let mut writer = Writer::new(&mut disk[..], "roundtrip", None).unwrap();
        let result = writer.interface("client").and_then(|interface| {
            writer.packet(&Packet {
                interface,
                at: Duration::ZERO,
                bytes: &[0x45; 40],
                original_length: 40,
                comment: None,
            })
        });
        assert_eq!(result.unwrap_err().kind(), io::ErrorKind::WriteZero);
    }
}
