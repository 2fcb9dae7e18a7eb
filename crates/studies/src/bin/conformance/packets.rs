//! Packets of either engine in one form: as sent, numbered from their SYNs, without payloads.

use std::collections::BTreeMap;
use std::fmt;

use simulate::world::{HostId, ObservationPoint, Record};
use testbed::emulator::tap::Observation as Sighting;
use testbed::emulator::{Capture, PacketDirection};
use wire::Time;
use wire::packet::{Flags, Packet};

/// A packet at its sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SentPacket {
    pub(crate) at: Time,
    pub(crate) segment: Segment,
    /// Acknowledgement number.
    pub(crate) acknowledgement: u64,
    pub(crate) flags: String,
}

/// Properties that must be equal in both engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Index of the connection, in the order of opening.
    pub(crate) connection: usize,
    pub(crate) is_up: bool,
    /// First sequence number, then the number after the last.
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// The segments with data, in the order of sending.
pub(crate) fn data(packets: &[SentPacket]) -> Vec<Segment> {
    packets.iter().map(|packet| packet.segment).filter(|segment| segment.end > segment.start).collect()
}

/// Packets that the kernels sent.
pub(crate) fn of_kernel(capture: &Capture) -> Vec<SentPacket> {
    let mut connections: BTreeMap<u16, Connection> = BTreeMap::new();
    let mut packets = Vec::new();
    for (at, direction, seen, bytes) in capture.iter() {
        let (Sighting::Sent, Ok(packet)) = (seen, Packet::read(bytes)) else { continue };
        let Some(tcp) = packet.tcp() else { continue };
        let is_up = matches!(direction, PacketDirection::Up);
        let port = if is_up { tcp.source_port } else { tcp.destination_port };
        let opened = connections.len();
        let connection = connections.entry(port).or_insert(Connection { number: opened, first: [None; 2] });
        let [own_isn, peer_isn] = connection.first(is_up);
        let own_isn = *own_isn.get_or_insert(tcp.seq);
        let acknowledgement = peer_isn.map_or(0, |first| tcp.ack.wrapping_sub(first));
        let start = u64::from(tcp.seq.wrapping_sub(own_isn));
        let end = start + tcp.payload_length.get();
        packets.push(SentPacket {
            at,
            segment: Segment { connection: connection.number, is_up, start, end },
            acknowledgement: u64::from(acknowledgement),
            flags: letters(|flag| tcp.flags.contains(flag)),
        });
    }
    packets
}

/// A connection of a capture: its index, and the initial sequence numbers of client and server.
struct Connection {
    number: usize,
    first: [Option<u32>; 2],
}

impl Connection {
    /// The sender's initial sequence number, and the receiver's.
    fn first(&mut self, is_up: bool) -> [&mut Option<u32>; 2] {
        let [client, server] = &mut self.first;
        if is_up { [client, server] } else { [server, client] }
    }
}

/// Packets that the simulator's hosts sent; the client is its first host.
pub(crate) fn of_simulator(records: &[Record]) -> Vec<SentPacket> {
    let mut connections: BTreeMap<u16, usize> = BTreeMap::new();
    let mut packets = Vec::new();
    for Record { at, seen, from, to, segment } in records {
        if *seen != ObservationPoint::Sent {
            continue;
        }
        let is_up = from.host == HostId(0);
        let opened = connections.len();
        let connection = *connections.entry(if is_up { from.port } else { to.port }).or_insert(opened);
        let end = segment.sequence + segment.payload.len() as u64;
        let flags = [
            (Flags::SYN, segment.flags.syn),
            (Flags::FIN, segment.flags.fin),
            (Flags::RST, segment.flags.rst),
            (Flags::PSH, segment.flags.psh),
        ];
        packets.push(SentPacket {
            at: *at,
            segment: Segment { connection, is_up, start: segment.sequence, end },
            acknowledgement: segment.acknowledgement,
            flags: letters(|flag| flags.contains(&(flag, true))),
        });
    }
    packets
}

fn letters(is_set: impl Fn(Flags) -> bool) -> String {
    let all = [(Flags::SYN, 'S'), (Flags::FIN, 'F'), (Flags::RST, 'R'), (Flags::PSH, 'P')];
    all.into_iter().filter(|(flag, _)| is_set(*flag)).map(|(_, letter)| letter).collect()
}

impl fmt::Display for SentPacket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, segment, acknowledgement, flags } = self;
        let Segment { connection, is_up, start, end } = segment;
        let (at, arrow) = (at.since(Time::ZERO).as_millis_f64(), if *is_up { "->" } else { "<-" });
        write!(f, "{at:10.3} {connection} {arrow} {flags:3} {start:7}..{end:<7} ack {acknowledgement}")
    }
}
