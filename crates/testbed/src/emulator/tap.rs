//! Capture of every packet as sent and as delivered, recorded in memory and written as pcapng afterwards.
//!
//! Both ends without AF_PACKET. Interface 0, `client`, shows the packets that the client's kernel sent (when
//! the emulator read them) and received (when the emulator wrote them); interface 1, `server`, the server's.
//! Nothing is written during the run, so that the capture does not disturb it. There is no filter: it records
//! everything until its memory is full.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::Path;

use packets::writer::{Packet, Writer};
use wire::{Bytes, Duration, Time};

use crate::Error;
use crate::ends::PacketDirection;

/// Observation of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observation {
    /// Sent.
    Sent,
    /// Sent, and dropped because the link's queue was full.
    Dropped,
    /// Sent, and to be lost on the link.
    Lost,
    /// Delivered to its receiver.
    Delivered,
}

/// Memory for packets.
pub(super) struct Tap {
    zero_since_1970: Duration,
    sightings: Vec<Sighting>,
    packets: Vec<u8>,
    missed: u64,
}

struct Sighting {
    at: Time,
    direction: PacketDirection,
    observation: Observation,
    length: u16,
}

impl Tap {
    /// Allocates the memory and touches it, so that no page fault delays a packet.
    pub(super) fn new(memory: Bytes, zero_since_1970: Duration) -> Self {
        let bytes = usize::try_from(memory.get()).unwrap_or(usize::MAX);
        // An eighth for the index: enough for packets of 112 bytes on average, and a page's have about 500.
        let mut sightings = Vec::with_capacity(bytes / 8 / size_of::<Sighting>());
        let mut packets = Vec::with_capacity(bytes - bytes / 8);
        packets.resize(packets.capacity(), 1);
        packets.clear();
        sightings.resize_with(sightings.capacity(), || Sighting {
            at: Time::MAX,
            direction: PacketDirection::Up,
            observation: Observation::Sent,
            length: 0,
        });
        sightings.clear();
        Self { zero_since_1970, sightings, packets, missed: 0 }
    }

    pub(super) fn record(
        &mut self,
        at: Time,
        direction: PacketDirection,
        observation: Observation,
        packet: &[u8],
    ) {
        let has_capacity = self.sightings.len() < self.sightings.capacity()
            && packet.len() <= self.packets.capacity() - self.packets.len();
        match u16::try_from(packet.len()) {
            Ok(length) if has_capacity => {
                self.sightings.push(Sighting { at, direction, observation, length });
                self.packets.extend_from_slice(packet);
            }
            Ok(_) | Err(_) => self.missed += 1,
        }
    }

    /// Changes the observation of the packet recorded last, once its outcome is known.
    pub(super) fn replace_last(&mut self, observation: Observation) {
        if self.missed == 0
            && let Some(last) = self.sightings.last_mut()
        {
            last.observation = observation;
        }
    }

    pub(super) fn finish(self) -> Capture {
        let Self { zero_since_1970, sightings, packets, missed } = self;
        Capture { zero_since_1970, sightings, packets, missed }
    }
}

/// Packets of a run, at both ends.
pub struct Capture {
    zero_since_1970: Duration,
    sightings: Vec<Sighting>,
    packets: Vec<u8>,
    missed: u64,
}

impl Capture {
    /// Number of observations: two for a packet that arrived.
    pub fn len(&self) -> usize {
        self.sightings.len()
    }

    /// Whether there are no observations.
    pub fn is_empty(&self) -> bool {
        self.sightings.is_empty()
    }

    /// Number of observations beyond the memory's capacity.
    pub const fn missed(&self) -> u64 {
        self.missed
    }

    /// Every observation in order: time by the emulator's clock, direction, kind, and the packet's bytes from
    /// the IP header on.
    pub fn iter(&self) -> impl Iterator<Item = (Time, PacketDirection, Observation, &[u8])> {
        let mut remaining = self.packets.as_slice();
        self.sightings.iter().map(move |Sighting { at, direction, observation, length }| {
            let (bytes, tail) = remaining.split_at(usize::from(*length));
            remaining = tail;
            (*at, *direction, *observation, bytes)
        })
    }

    /// Writes the capture as pcapng, with a comment on the whole (the scenario, and whether the run was
    /// void). An incomplete file is removed.
    ///
    /// # Errors
    /// The file that could not be written, and the reason.
    pub fn save(&self, path: &Path, comment: &str) -> Result<(), Error> {
        let failed = |error| Error::Unwritten { path: path.to_owned(), error };
        let file = File::create(path).map_err(failed)?;
        // Only a regular file is removed: not a terminal, a pipe or a device that the user named.
        let is_regular_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
        self.write(BufWriter::new(file), comment).map_err(|error| {
            if is_regular_file {
                // The first error is the one to report.
                let _ = fs::remove_file(path);
            }
            failed(error)
        })
    }

    /// Writes the capture as pcapng to any writer.
    ///
    /// # Errors
    /// Errors of `out`.
    pub fn write(&self, out: impl io::Write, comment: &str) -> io::Result<()> {
        let application = concat!("roundtrip ", env!("CARGO_PKG_VERSION"));
        let mut writer = Writer::new(out, application, Some(comment))?;
        let (client, server) = (writer.interface("client")?, writer.interface("server")?);
        for (at, direction, observation, bytes) in self.iter() {
            let (interface, comment) = match (direction, observation) {
                (PacketDirection::Up, Observation::Sent)
                | (PacketDirection::Down, Observation::Delivered) => (client, None),
                (PacketDirection::Down, Observation::Sent)
                | (PacketDirection::Up, Observation::Delivered) => (server, None),
                (PacketDirection::Up, Observation::Dropped) => (client, Some(DROPPED)),
                (PacketDirection::Down, Observation::Dropped) => (server, Some(DROPPED)),
                (PacketDirection::Up, Observation::Lost) => (client, Some(LOST)),
                (PacketDirection::Down, Observation::Lost) => (server, Some(LOST)),
            };
            let at = self.zero_since_1970 + at.since(Time::ZERO);
            writer.packet(&Packet { interface, at, bytes, original_length: bytes.len(), comment })?;
        }
        writer.finish().map(drop)
    }
}

const DROPPED: &str = "dropped: the link's queue was full";
const LOST: &str = "lost on the link";

impl std::fmt::Debug for Capture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Capture({} sightings, {} missed)", self.sightings.len(), self.missed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tap_of(memory: u64, packets: &[(PacketDirection, Observation)]) -> Capture {
        let mut tap = Tap::new(Bytes::new(memory), Duration::from_secs(1));
        for (direction, observation) in packets {
            tap.record(Time::from_nanos(5), *direction, *observation, &[0x45; 40]);
        }
        tap.finish()
    }

    #[test]
    fn a_packet_that_arrives_is_in_the_capture_at_both_ends() {
        let capture = tap_of(
            10_000,
            &[(PacketDirection::Up, Observation::Sent), (PacketDirection::Up, Observation::Delivered)],
        );
        let mut written = Vec::new();
        capture.write(&mut written, "a test").unwrap();
        let packet_blocks = written.windows(8).filter(|bytes| bytes == &[6, 0, 0, 0, 72, 0, 0, 0]).count();
        assert_eq!((capture.len(), packet_blocks), (2, 2));
    }

    #[test]
    fn outcome_of_a_packet_is_a_comment_on_it() {
        let mut tap = Tap::new(Bytes::new(10_000), Duration::ZERO);
        tap.record(Time::ZERO, PacketDirection::Down, Observation::Sent, &[0x45; 40]);
        tap.replace_last(Observation::Dropped);
        let mut written = Vec::new();
        tap.finish().write(&mut written, "a test").unwrap();
        let text = String::from_utf8_lossy(&written);
        assert!(text.contains(DROPPED) && !text.contains(LOST));
    }

    #[test]
    fn a_full_tap_counts_what_it_misses() {
        let capture = tap_of(400, &[(PacketDirection::Up, Observation::Sent); 10]);
        assert!(capture.len() < 10 && capture.len() as u64 + capture.missed() == 10);
    }

    #[test]
    fn a_capture_that_cannot_be_written_is_an_error_that_names_its_file() {
        let capture = tap_of(200_000, &[(PacketDirection::Up, Observation::Sent); 1_000]);
        let message =
            capture.save(Path::new("/dev/full"), "").expect_err("the device is always full").to_string();
        assert!(Path::new("/dev/full").exists(), "a device was removed");
        assert!(message.contains("/dev/full") && message.contains("No space left"), "{message}");
        let message =
            capture.save(Path::new("/nonexistent/x.pcapng"), "").expect_err("no such directory").to_string();
        assert!(message.contains("/nonexistent/x.pcapng"), "{message}");
    }
}
