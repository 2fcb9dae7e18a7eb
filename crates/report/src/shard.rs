//! One part of a capture's connections: packets in, reports of finished connections out.
//!
//! A small capture has one shard. A large one has several, for threads (`capture`); each handles the packets between some
//! pairs of hosts.

use std::sync::Arc;

use diagnose::{Diagnosis, FlowReport, Options, PacketPosition};
use packets::{Frame, tunnel};
use wire::packet::Packet;

use crate::skipped::SkippedPackets;

/// A diagnosis, and counts of the packets that are not part of it.
#[derive(Debug, Default)]
pub struct Shard {
    /// The diagnosis.
    pub diagnosis: Diagnosis,
    /// Packets that belong to no connection.
    pub skipped: SkippedPackets,
    /// Number of IP packets that cannot be read.
    pub unreadable: u64,
}

impl Shard {
    /// Creates a shard without packets.
    pub fn new(options: Options) -> Self {
        Self { diagnosis: Diagnosis::new(options), ..Self::default() }
    }

    /// Adds the lines of a key log that the capture has before the next packet.
    pub fn read_secrets(&mut self, text: &[u8]) {
        Arc::make_mut(self.diagnosis.keys.get_or_insert_default()).read(text);
    }

    /// Handles a packet of this shard.
    pub fn handle(&mut self, frame: &Frame<'_>) {
        match frame.ip().map(Packet::read) {
            Some(Ok(packet)) => self.packet(frame, packet),
            Some(Err(_)) => self.unreadable += 1,
            None => self.skipped.frame(frame.link.content(frame.bytes)),
        }
    }

    fn packet(&mut self, frame: &Frame<'_>, packet: Packet<'_>) {
        let (packet, outermost) = tunnel::innermost(packet);
        let before = self.diagnosis.totals().followed();
        self.diagnosis.handle(frame.at, position(frame), &packet);
        if self.diagnosis.totals().followed() == before {
            self.skipped.packet(&packet);
        } else if let Some(tunnel) = outermost {
            self.skipped.unwrapped(tunnel);
        }
    }

    /// Handles a packet of another shard that is evidence for this one's connections.
    pub fn notice(&mut self, frame: &Frame<'_>) {
        if let Some(Ok(packet)) = frame.ip().map(Packet::read) {
            let (packet, _) = tunnel::innermost(packet);
            self.diagnosis.notice(frame.at, position(frame), &packet);
        }
    }

    /// Returns the report of a finished connection, if there is one.
    pub fn poll(&mut self) -> Option<FlowReport> {
        self.diagnosis.poll()
    }
}

fn position(frame: &Frame<'_>) -> PacketPosition {
    PacketPosition { frame: frame.number, interface: frame.interface }
}
