//! Capture reader: pcap and pcapng, one packet at a time, in memory that does not grow with the file.
//!
//! | module | contents |
//! | --- | --- |
//! | (here) | [`Reader`]: bytes in, [`Frame`]s out |
//! | `input` | a window over the bytes, with a limit |
//! | `pcap` | the classic format, four byte orders and resolutions |
//! | `pcapng` | blocks, sections, interfaces |
//!
//! It neither decompresses nor opens files: the caller passes a `Read`. All input is untrusted: lengths are checked
//! against limits before anything is stored. Formats: <https://www.ietf.org/archive/id/draft-ietf-opsawg-pcap-04.html>
//! and <https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-03.html>.

mod input;
mod pcap;
mod pcapng;

use std::io::{self, Read};

use wire::Time;

use crate::batch::{FrameBatch, FrameLocation};
use crate::{Frame, LinkType};
use input::Input;

/// Reader of a capture.
#[derive(Debug)]
pub struct Reader<R> {
    input: Input<R>,
    format: Format,
    frames: u64,
    last: Time,
    /// The packet that no longer fitted the last batch.
    next: Option<FrameLocation>,
}

#[derive(Debug)]
enum Format {
    Pcap(pcap::Header),
    Pcapng(pcapng::Section),
    /// The end: no more packets.
    Ended,
}

/// A packet in its format: `bytes` of the window are its data.
struct PacketLocation {
    /// `None` where the format has no timestamp for it.
    at: Option<Time>,
    interface: u32,
    link: LinkType,
    bytes: std::ops::Range<usize>,
}

/// Maximum captured length of a packet: libpcap's own limit for a snapshot.
const MAX_PACKET_BYTES: usize = 262_144;

impl<R: Read> Reader<R> {
    /// Detects the format from the first bytes.
    ///
    /// # Errors
    /// An unknown format, or a read error.
    pub fn new(read: R) -> Result<Self, Unreadable> {
        let mut input = Input::new(read);
        let magic = input.peek(4)?.ok_or(Unreadable::Empty)?;
        let format = match *magic {
            [0x0a, 0x0d, 0x0d, 0x0a] => Format::Pcapng(pcapng::Section::default()),
            [a, b, c, d] => Format::Pcap(pcap::Header::read([a, b, c, d], &mut input)?),
            _ => return Err(Unreadable::Empty),
        };
        Ok(Self { input, format, frames: 0, last: Time::ZERO, next: None })
    }

    /// Returns the next packet; `None` at the end. After an error there are no more.
    ///
    /// # Errors
    /// Damage from here on: earlier packets are valid.
    pub fn read(&mut self) -> Result<Option<Frame<'_>>, Unreadable> {
        self.read_with(&mut |_| {})
    }

    /// As [`Reader::read`]; key logs of TLS before the packet are passed to `on_secrets`.
    ///
    /// # Errors
    /// Those of [`Reader::read`].
    pub fn read_with(&mut self, on_secrets: &mut impl FnMut(&[u8])) -> Result<Option<Frame<'_>>, Unreadable> {
        let located = self.locate();
        let secrets = self.take_secrets();
        if !secrets.is_empty() {
            on_secrets(&secrets);
        }
        let Some(FrameLocation { number, at, interface, link, start, end }) = located? else {
            return Ok(None);
        };
        Ok(Some(Frame { number, at, interface, link, bytes: self.input.taken(start..end) }))
    }

    /// Replaces the packets of `batch` by the next ones, as many as its buffer holds. Returns whether there may be more.
    /// Not to be mixed with [`Reader::read`].
    ///
    /// # Errors
    /// Damage after the packets of this batch, which are valid.
    pub fn read_batch(&mut self, batch: &mut FrameBatch) -> Result<bool, Unreadable> {
        batch.frames.clear();
        batch.secrets.clear();
        self.input.exchange_when_used(std::mem::take(&mut batch.bytes));
        batch.frames.extend(self.next.take());
        loop {
            let located = self.locate();
            let secrets = self.take_secrets();
            if !secrets.is_empty() {
                batch.secrets.push((self.frames.max(1), secrets));
            }
            match (self.input.used(), located) {
                (None, Ok(Some(frame))) => batch.frames.push(frame),
                // Nothing of interest was in that buffer.
                (Some(used), Ok(Some(frame))) if batch.is_empty() => {
                    batch.frames.push(frame);
                    self.input.exchange_when_used(used);
                }
                (Some(used), Ok(Some(frame))) => {
                    (batch.bytes, self.next) = (used, Some(frame));
                    return Ok(true);
                }
                (used, end) => {
                    batch.bytes = used.unwrap_or_else(|| self.input.take_buffer());
                    return end.map(|_| false);
                }
            }
        }
    }

    /// Takes the key logs since they were last taken.
    fn take_secrets(&mut self) -> Vec<u8> {
        match &mut self.format {
            Format::Pcapng(section) => std::mem::take(&mut section.secrets),
            Format::Pcap(_) | Format::Ended => Vec::new(),
        }
    }

    /// Locates the next packet in the window.
    fn locate(&mut self) -> Result<Option<FrameLocation>, Unreadable> {
        let number = self.frames + 1;
        let located = match &mut self.format {
            Format::Pcap(header) => header.next(&mut self.input, number),
            Format::Pcapng(section) => section.next(&mut self.input, number),
            Format::Ended => Ok(None),
        };
        if let Ok(Some(PacketLocation { at, interface, link, bytes })) = located {
            self.frames = number;
            self.last = at.unwrap_or(self.last);
            let (start, end) = (bytes.start, bytes.end);
            return Ok(Some(FrameLocation { number, at: self.last, interface, link, start, end }));
        }
        self.format = Format::Ended;
        located.map(|_| None)
    }
}

/// Reason why a capture, or the rest of it, could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// Fewer bytes than the smallest capture.
    #[error("it is empty, or too short to be a capture: give a pcap or pcapng file")]
    Empty,
    /// An unknown format.
    #[error(
        "it is not a capture (it begins with {:02x} {:02x} {:02x} {:02x}): give a pcap or pcapng file, as \
         tcpdump -w and Wireshark write them",
        .magic[0],
        .magic[1],
        .magic[2],
        .magic[3]
    )]
    NotACapture {
        /// First four bytes of the file.
        magic: [u8; 4],
    },
    /// A file that ends within a packet.
    #[error("it ends within {}", cut_at(*.frame))]
    CutShort {
        /// The packet.
        frame: u64,
    },
    /// An invalid length.
    #[error("{what} at packet {frame}: the capture is damaged {}", damaged_from(*.frame))]
    Damaged {
        /// The packet with this length.
        frame: u64,
        /// The fault.
        what: &'static str,
    },
    /// A read error.
    #[error("it cannot be read to its end ({0}); the packets before are used")]
    Io(#[from] io::Error),
}

/// Place at which a capture that ends within a packet is cut, and the part that can be used.
fn cut_at(frame: u64) -> String {
    match frame {
        1 => "its first packet: copy or capture it again".to_owned(),
        _ => format!("packet {frame}: the capture was cut off there; the packets before are used"),
    }
}

/// Part of a capture that can be used if it is damaged at a packet.
const fn damaged_from(frame: u64) -> &'static str {
    match frame {
        1 => "from there on, nothing of it can be used, copy or capture it again",
        _ => "there; the packets before are used",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::writer;
    use wire::Duration;

    #[test]
    fn reads_captures_of_our_own_writer() {
        let mut out = writer::Writer::new(Vec::new(), "roundtrip", Some("a remark")).unwrap();
        let interface = out.interface("client").unwrap();
        for nanos in [1_700_000_000_123_456_789, 1_700_000_000_123_456_790] {
            let at = Duration::from_nanos(nanos);
            let packet = writer::Packet {
                interface,
                at,
                bytes: &[0x45; 21],
                original_length: 40,
                comment: Some("here"),
            };
            out.packet(&packet).unwrap();
        }
        let capture = out.finish().unwrap();
        let mut reader = Reader::new(capture.as_slice()).unwrap();
        let first = reader.read().unwrap().unwrap();
        assert_eq!((first.number, first.at.as_nanos()), (1, 1_700_000_000_123_456_789));
        assert_eq!((first.link, first.ip()), (LinkType::Raw, Some(&[0x45; 21][..])));
        assert_eq!(reader.read().unwrap().unwrap().at.as_nanos(), 1_700_000_000_123_456_790);
        assert!(reader.read().unwrap().is_none());
        assert!(reader.read().unwrap().is_none());
    }

    /// Returns one to seven bytes at a time.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let length = (1 + self.0.len() % 7).min(into.len()).min(self.0.len());
            into[..length].copy_from_slice(&self.0[..length]);
            self.0 = &self.0[length..];
            Ok(length)
        }
    }

    /// Number, time and bytes of a packet.
    type PacketCopy = (u64, u64, Vec<u8>);

    /// Returns all packets, the sizes of the batches, and whether the capture is whole.
    fn in_batches(read: impl Read) -> (Vec<PacketCopy>, Vec<usize>, bool) {
        let mut reader = Reader::new(read).unwrap();
        let (mut batch, mut frames, mut sizes) = (FrameBatch::default(), Vec::new(), Vec::new());
        loop {
            let end = reader.read_batch(&mut batch);
            sizes.push(batch.len());
            frames
                .extend(batch.iter().map(|frame| (frame.number, frame.at.as_nanos(), frame.bytes.to_vec())));
            match end {
                Ok(true) => {}
                Ok(false) => return (frames, sizes, true),
                Err(_) => return (frames, sizes, false),
            }
        }
    }

    #[test]
    fn batches_hold_the_same_packets_whatever_the_read_sizes() {
        let mut out = writer::Writer::new(Vec::new(), "roundtrip", None).unwrap();
        let interface = out.interface("client").unwrap();
        let bytes: Vec<u8> = (0..=255).cycle().take(60_000).collect();
        for number in 0..100 {
            let bytes = &bytes[usize::try_from(number).unwrap()..][..(number * 7_919 % 59_000) as usize];
            let at = Duration::from_nanos(number + 5);
            out.packet(&writer::Packet { interface, at, bytes, original_length: 60_000, comment: None })
                .unwrap();
        }
        let capture = out.finish().unwrap();
        let mut reader = Reader::new(capture.as_slice()).unwrap();
        let mut single = Vec::new();
        while let Some(frame) = reader.read().unwrap() {
            single.push((frame.number, frame.at.as_nanos(), frame.bytes.to_vec()));
        }
        assert_eq!(single.len(), 100);
        let (frames, sizes, is_whole) = in_batches(capture.as_slice());
        assert!(frames == single && is_whole && sizes.len() > 2, "{sizes:?}");
        assert!(in_batches(Slow(&capture)) == (frames, sizes, true));
        let (cut, _, is_whole) = in_batches(&capture[..capture.len() - 9]);
        assert!(cut == single[..99] && !is_whole);
    }

    #[test]
    fn rejects_other_files_with_a_sentence() {
        let error_of = |bytes: &[u8]| Reader::new(bytes).err().map(|error| error.to_string()).unwrap();
        assert!(error_of(b"").contains("empty"));
        assert!(error_of(b"<!doctype html>").contains("3c 21 64 6f"));
        assert!(error_of(&[0xd4, 0xc3, 0xb2, 0xa1, 0]).contains("first packet"));
    }
}
