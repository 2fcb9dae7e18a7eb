//! Traces as a capture (pcapng) at their ends: the datagrams that each sent and received, encrypted with known secrets.
//!
//! Packets have the logged types, numbers, frames and sizes; headers and messages of the handshake are made up, with the logged
//! transport parameters. The capture is made while it is read, in memory that does not grow with it.

use core::net::SocketAddr;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};

use packets::writer::{self, Interface, Writer};
use quic::packet::PacketType;
use quic::parameters::Parameters;
use quic::sealer::{KnownSecrets, RANDOM, Sealer};
use quic::{MIN_INITIAL_BYTES, VERSION_1};
use tls::decrypt::Sender;
use wire::packet::UdpBuilder;
use wire::{Duration, varint};

use crate::frame::{Frame, crypto};
use crate::read::Log;
use crate::trace::{Event, Packet, Trace};

/// A capture, to be read.
#[derive(Debug)]
pub struct Replay {
    connections: Vec<Connection>,
    /// Datagrams in the order of their times: connection, and events.
    datagrams: std::vec::IntoIter<Datagram>,
    /// Time of the first.
    zero: i64,
    writer: Writer<Vec<u8>>,
    interface: Interface,
    /// Bytes written so far that were read, and of all.
    read: usize,
    total: u64,
}

/// A connection at one end.
#[derive(Debug)]
struct Connection {
    trace: Trace,
    sockets: [SocketAddr; 2],
    sealer: Sealer,
    /// Destination of the client's Initial packets.
    first_id: [u8; ID_BYTES],
    has_token: bool,
    has_server_sent: bool,
    /// The largest number of each sender in each space.
    largest: BTreeMap<(bool, u8), Option<u64>>,
}

/// Packets of one datagram.
#[derive(Clone, Debug)]
struct Datagram {
    at: i64,
    connection: usize,
    events: std::ops::Range<usize>,
}

const ID_LENGTH: u8 = 8;
const ID_BYTES: usize = ID_LENGTH as usize;
/// Connection IDs of the client and of the server. They are as short as any, so that no header exceeds the logged one's length.
const IDS: [u8; 2] = [1, 2];
const TAG: [u8; 16] = [0; 16];
/// Maximum bytes of a packet, and of a datagram of several.
const MAX_PACKET_BYTES: usize = 65_000;
const MAX_COALESCED_BYTES: usize = 1_500;
/// Maximum time between events of one datagram, in nanoseconds.
const MAX_COALESCED_NANOS: i64 = 1_000_000;
/// Maximum bytes of a capture.
const MAX_TOTAL: u64 = 1 << 33;
/// Minimum length of the frames of a packet, so that its header can be protected (RFC 9001, section 5.4.2).
const MIN_FRAME_BYTES: usize = 4;

impl Replay {
    /// Creates the capture of the connections of a file.
    pub fn new(log: Log) -> io::Result<Self> {
        let known = KnownSecrets::default();
        let mut writer = Writer::new(Vec::new(), "qlog", None)?;
        writer.key_log(&known.key_log)?;
        let interface = writer.interface("qlog")?;
        let (mut connections, mut datagrams, mut used) = (Vec::new(), Vec::new(), BTreeSet::new());
        for (index, trace) in log.traces.into_iter().enumerate() {
            datagrams.extend(split(index, &trace.events));
            let sockets = sockets(&trace, index, &mut used);
            connections.push(Connection {
                trace,
                sockets,
                sealer: Sealer::new(known.secrets),
                first_id: (index as u64).to_be_bytes(),
                has_token: false,
                has_server_sent: false,
                largest: BTreeMap::new(),
            });
        }
        datagrams.sort_by_key(|datagram| datagram.at);
        let zero = datagrams.first().map_or(0, |first| first.at);
        let datagrams = datagrams.into_iter();
        Ok(Self { connections, datagrams, zero, writer, interface, read: 0, total: 0 })
    }

    /// Writes the next datagram; returns whether there was one.
    fn write_next(&mut self) -> io::Result<bool> {
        let Some(Datagram { at, connection, events }) = self.datagrams.next() else { return Ok(false) };
        if self.total > MAX_TOTAL {
            return Err(io::Error::other(
                "qlog with packets of more than 8 GiB; give the traces of some connections",
            ));
        }
        let Some(connection) = self.connections.get_mut(connection) else { return Ok(true) };
        let Some((sender, payload)) = connection.datagram(events) else { return Ok(true) };
        let [client, server] = connection.sockets;
        let (source, destination) = match sender {
            Sender::Client => (client, server),
            Sender::Server => (server, client),
        };
        let mut bytes = Vec::new();
        UdpBuilder { source, destination }.write(&payload, &mut bytes).map_err(io::Error::other)?;
        let at = Duration::from_nanos(at.saturating_sub(self.zero).unsigned_abs());
        let (interface, original_length) = (self.interface, bytes.len());
        self.total += original_length as u64;
        self.writer.packet(&writer::Packet {
            interface,
            at,
            bytes: &bytes,
            original_length,
            comment: None,
        })?;
        Ok(true)
    }
}

impl Read for Replay {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.read == self.writer.get_mut().len() {
            self.writer.get_mut().clear();
            self.read = 0;
            if !self.write_next()? {
                return Ok(0);
            }
        }
        let count = self.writer.get_mut().get(self.read..).unwrap_or_default().read(into)?;
        self.read += count;
        Ok(count)
    }
}

/// Divides a connection's packets into datagrams: by their ids, or where they may share one (RFC 9000, section 12.2).
fn split(connection: usize, events: &[Event]) -> Vec<Datagram> {
    let mut datagrams: Vec<Datagram> = Vec::new();
    let mut bytes = 0;
    for (index, [before, event]) in (1..).zip(events.array_windows()) {
        bytes += before.packet.length;
        let is_shared = match (before.datagram_id, event.datagram_id) {
            (Some(one), Some(other)) => one == other && before.sender == event.sender,
            _ => shares_datagram(before, event) && bytes + event.packet.length <= MAX_COALESCED_BYTES,
        };
        match datagrams.last_mut() {
            Some(last) if is_shared => last.events.end = index + 1,
            _ if is_shared => {
                datagrams.push(Datagram { at: before.at, connection, events: index - 1..index + 1 })
            }
            _ => {
                bytes = 0;
                if datagrams.is_empty() {
                    datagrams.push(Datagram { at: before.at, connection, events: 0..index });
                }
                datagrams.push(Datagram { at: event.at, connection, events: index..index + 1 });
            }
        }
    }
    if datagrams.is_empty()
        && let Some(only) = events.first()
    {
        datagrams.push(Datagram { at: only.at, connection, events: 0..1 });
    }
    datagrams
}

/// Returns whether packets in a row may be of one datagram: their levels ascend, and no datagram's event is between them.
fn shares_datagram(before: &Event, event: &Event) -> bool {
    let level = |packet: &Packet| match packet.kind {
        PacketType::Initial => 1,
        PacketType::ZeroRtt => 2,
        PacketType::Handshake => 3,
        PacketType::OneRtt => 4,
        // Each is alone.
        PacketType::Retry | PacketType::VersionNegotiation => 5,
    };
    let (one, other) = (level(&before.packet), level(&event.packet));
    before.sender == event.sender
        && before.datagrams == event.datagrams
        && one < other
        && other < 5
        && before.packet.length > 0
        && event.at.saturating_sub(before.at) <= MAX_COALESCED_NANOS
}

/// Sockets of a connection: those that its end knows, if no other connection has them, or addresses of documentation (RFC 5737).
fn sockets(trace: &Trace, index: usize, used: &mut BTreeSet<[SocketAddr; 2]>) -> [SocketAddr; 2] {
    if let Some(sockets) = trace.sockets.filter(|sockets| used.insert(*sockets)) {
        return sockets;
    }
    let [high, low] = u16::try_from(index / 10_000).unwrap_or(u16::MAX).to_be_bytes();
    let port = u16::try_from(50_000 + index % 10_000).unwrap_or(u16::MAX);
    let sockets =
        [SocketAddr::from(([192, 0, high.wrapping_add(2), low.wrapping_add(1)], port)), SERVER.into()];
    used.insert(sockets);
    sockets
}

const SERVER: ([u8; 4], u16) = ([198, 51, 100, 1], 443);

impl Connection {
    /// Returns the payload of a datagram, and its sender.
    fn datagram(&mut self, events: std::ops::Range<usize>) -> Option<(Sender, Vec<u8>)> {
        let events = self.trace.events.get(events)?.to_vec();
        let (sender, last) = (events.first()?.sender, events.len() - 1);
        let mut payload = Vec::new();
        for (index, event) in events.iter().enumerate() {
            // A client's datagram with an Initial packet is as long (RFC 9000, section 14.1), whatever was logged.
            let is_initial = events.iter().any(|event| event.packet.kind == PacketType::Initial);
            let is_padded = sender == Sender::Client && is_initial && index == last;
            let min = if is_padded { MIN_INITIAL_BYTES.saturating_sub(payload.len()) } else { 0 };
            let packet = self.packet(sender, &event.packet, event.packet.length.max(min))?;
            payload.extend(packet);
        }
        self.has_server_sent |= sender == Sender::Server;
        (payload.len() <= MAX_PACKET_BYTES).then_some(())?;
        self.sealer.seal(sender, &mut payload);
        Some((sender, payload))
    }

    /// Returns a packet of at least this length.
    fn packet(&mut self, sender: Sender, packet: &Packet, length: usize) -> Option<Vec<u8>> {
        let length = length.min(MAX_PACKET_BYTES);
        match packet.kind {
            PacketType::Retry => return Some(self.retry()),
            PacketType::VersionNegotiation => return Some(self.version_negotiation()),
            PacketType::Initial | PacketType::ZeroRtt | PacketType::Handshake | PacketType::OneRtt => {}
        }
        let number = self.number(sender, packet);
        let (first, mut bytes) = self.header(sender, packet.kind);
        let (before, after) = self.frames(sender, packet);
        let header = bytes.len() + if packet.kind == PacketType::OneRtt { 0 } else { LENGTH_BYTES };
        let natural = before.len() + after.len();
        let room = length.saturating_sub(header + number.len() + TAG.len());
        let padding = room.max(MIN_FRAME_BYTES).saturating_sub(natural);
        if packet.kind != PacketType::OneRtt {
            let rest = number.len() + natural + padding + TAG.len();
            bytes.extend((0x8000_0000 | u32::try_from(rest).ok()?).to_be_bytes());
        }
        *bytes.first_mut()? = first | u8::try_from(number.len() - 1).ok()?;
        bytes.extend(number);
        bytes.extend(before);
        bytes.resize(bytes.len() + padding, 0);
        bytes.extend(after);
        bytes.extend(TAG);
        (bytes.len() <= MAX_PACKET_BYTES).then_some(bytes)
    }

    /// Returns the bytes of a packet's number: as few as its reader needs (RFC 9000, appendix A.2).
    fn number(&mut self, sender: Sender, packet: &Packet) -> Vec<u8> {
        let space = match packet.kind {
            PacketType::Initial => 0,
            PacketType::Handshake => 1,
            _ => 2,
        };
        let known = self.largest.entry((sender == Sender::Client, space)).or_default();
        let distance = known.map_or(packet.number, |largest| (largest + 1).abs_diff(packet.number)) + 1;
        *known = Some(packet.number.max(known.unwrap_or(0)));
        let bytes = (1..4).find(|bytes| distance < 1 << (8 * bytes - 1)).unwrap_or(4);
        packet.number.to_be_bytes()[8 - bytes..].to_vec()
    }

    /// Returns the first byte without the length of the number, and the header up to the packet's length or number.
    fn header(&self, sender: Sender, kind: PacketType) -> (u8, Vec<u8>) {
        let [client, server] = IDS;
        if kind == PacketType::OneRtt {
            return (0x40, vec![0, if sender == Sender::Client { server } else { client }]);
        }
        let (first, mut header) = match kind {
            PacketType::Initial => (0xc0, vec![0]),
            PacketType::ZeroRtt => (0xd0, vec![0]),
            _ => (0xe0, vec![0]),
        };
        header.extend(VERSION_1.to_be_bytes());
        match sender {
            Sender::Server => header.extend([1, client, 1, server]),
            Sender::Client if kind == PacketType::Handshake && self.has_server_sent => {
                header.extend([1, server, 1, client]);
            }
            Sender::Client => {
                header.push(ID_LENGTH);
                header.extend(self.first_id);
                header.extend([1, client]);
            }
        }
        match (kind, self.has_token && sender == Sender::Client) {
            (PacketType::Initial, true) => header.extend([1, 1]),
            (PacketType::Initial, false) => header.push(0),
            _ => {}
        }
        (first, header)
    }

    /// Returns the frames of a packet: those before padding, and the last, which reaches to the end.
    fn frames(&self, sender: Sender, packet: &Packet) -> (Vec<u8>, Vec<u8>) {
        let exponent = self.parameters(sender).ack_delay_exponent;
        let unknown = [Frame::Unreadable];
        let frames = packet.frames.as_deref().unwrap_or(&unknown);
        let (mut before, mut after) = (Vec::new(), Vec::new());
        let (cut, whole): (Vec<&Frame>, Vec<&Frame>) =
            frames.iter().partition(|frame| **frame == Frame::Unreadable);
        let mut has_message = false;
        let last = whole.len().saturating_sub(1);
        for (index, frame) in whole.into_iter().enumerate() {
            match frame {
                Frame::Crypto(offset, length) => {
                    let message = self.message(sender, packet.kind, *offset, &mut has_message);
                    match message {
                        Some(message) => {
                            crypto(0, &message, if *offset == 0 { *length } else { 0 }, &mut before)
                        }
                        None if has_message => {}
                        None => crypto(*offset, &[], *length, &mut before),
                    }
                }
                frame if index == last && cut.is_empty() && frame.is_open() => {
                    frame.write(exponent, true, &mut after);
                }
                frame => frame.write(exponent, false, &mut before),
            }
        }
        if cut.is_empty() {
            return (before, after);
        }
        Frame::Unreadable.write(exponent, true, &mut after);
        (before, after)
    }

    /// Returns the message of the handshake that takes the place of logged bytes: a hello in each Initial packet, and the server's
    /// parameters where its handshake begins.
    fn message(
        &self,
        sender: Sender,
        kind: PacketType,
        offset: u64,
        has_message: &mut bool,
    ) -> Option<Vec<u8>> {
        let message = match (sender, kind) {
            (_, PacketType::Initial) if *has_message => return None,
            (Sender::Client, PacketType::Initial) => client_hello(self.parameters(sender)),
            (Sender::Server, PacketType::Initial) => server_hello(),
            (Sender::Server, PacketType::Handshake) if offset == 0 => {
                return Some(encrypted_extensions(self.parameters(sender)));
            }
            _ => return None,
        };
        *has_message = true;
        Some(message)
    }

    const fn parameters(&self, sender: Sender) -> &Parameters {
        let [client, server] = &self.trace.parameters;
        match sender {
            Sender::Client => client,
            Sender::Server => server,
        }
    }

    /// A Retry, from which on the client addresses the server by another ID (RFC 9000, section 17.2.5).
    fn retry(&mut self) -> Vec<u8> {
        let [client, _] = IDS;
        self.first_id = (u64::from_be_bytes(self.first_id) | 1 << 63).to_be_bytes();
        self.has_token = true;
        let mut bytes = vec![0xf0];
        bytes.extend(VERSION_1.to_be_bytes());
        bytes.extend([1, client, ID_LENGTH]);
        bytes.extend(self.first_id);
        bytes.push(1);
        bytes.extend(TAG);
        bytes
    }

    /// RFC 9000, section 17.2.1.
    fn version_negotiation(&self) -> Vec<u8> {
        let [client, server] = IDS;
        let mut bytes = vec![0x80, 0, 0, 0, 0, 1, client, 1, server];
        bytes.extend(VERSION_1.to_be_bytes());
        bytes
    }
}

/// Bytes of a long header's length.
const LENGTH_BYTES: usize = 4;
/// Suite of the known secrets: TLS_AES_128_GCM_SHA256.
const SUITE: [u8; 2] = [0x13, 0x01];
/// Extensions: the version, and transport parameters (RFC 9001, section 8.2).
const VERSIONS: u16 = 43;
const PARAMETERS: u16 = 57;

/// A Client Hello as short as it can be, with these parameters.
fn client_hello(parameters: &Parameters) -> Vec<u8> {
    let mut body = vec![3, 3];
    body.extend(RANDOM);
    body.extend([0, 0, 2]);
    body.extend(SUITE);
    body.extend([1, 0]);
    body.extend(extensions(&[(VERSIONS, vec![2, 3, 4]), (PARAMETERS, encoded(parameters))]));
    message(1, &body)
}

fn server_hello() -> Vec<u8> {
    let mut body = vec![3, 3];
    body.extend([2; 32]);
    body.push(0);
    body.extend(SUITE);
    body.push(0);
    body.extend(extensions(&[(VERSIONS, vec![3, 4])]));
    message(2, &body)
}

fn encrypted_extensions(parameters: &Parameters) -> Vec<u8> {
    message(8, &extensions(&[(PARAMETERS, encoded(parameters))]))
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let [_, a, b, c] = u32::try_from(body.len()).unwrap_or_default().to_be_bytes();
    [&[kind, a, b, c], body].concat()
}

fn extensions(all: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let vector =
        |bytes: Vec<u8>| [&u16::try_from(bytes.len()).unwrap_or(0).to_be_bytes()[..], &bytes].concat();
    vector(
        all.iter()
            .flat_map(|(kind, content)| [&kind.to_be_bytes()[..], &vector(content.clone())].concat())
            .collect(),
    )
}

/// Parameters as they are sent (RFC 9000, section 18).
fn encoded(parameters: &Parameters) -> Vec<u8> {
    let Parameters {
        max_data,
        max_stream_data: [own, peers],
        max_unidirectional,
        ack_delay_exponent,
        max_ack_delay_ms,
    } = *parameters;
    let all = [
        (0x04, max_data),
        (0x05, own),
        (0x06, peers),
        (0x07, max_unidirectional),
        (0x0a, ack_delay_exponent.into()),
        (0x0b, max_ack_delay_ms),
    ];
    let mut encoded = Vec::new();
    all.into_iter().for_each(|(id, value)| varint::put_parameter(id, value, &mut encoded));
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;
    use packets::Reader;
    use quic::opener::{OpenedPacket, Opener};
    use serde_json::{Value, json};
    use tls::KeyLog;
    use wire::packet::Transport;

    fn event(ms: f64, is_sent: bool, kind: &str, number: u64, length: u64, frames: &Value) -> Value {
        let name = if is_sent { "quic:packet_sent" } else { "quic:packet_received" };
        let header = json!({ "packet_type": kind, "packet_number": number });
        json!({ "time": ms, "name": name, "data": { "header": header, "raw": { "length": length }, "frames": frames } })
    }

    fn crypto(length: u64) -> Value {
        json!([{ "frame_type": "crypto", "offset": 0, "length": length }])
    }

    fn stream(length: u64) -> Value {
        json!([{ "frame_type": "stream", "stream_id": 0, "offset": 0, "length": length, "fin": true }])
    }

    /// The datagrams of a client's trace: time in milliseconds, sender's port and payload's length, and the packets in them.
    fn replayed(events: &[Value]) -> (Vec<(u64, u16, usize)>, Vec<OpenedPacket>, Opener) {
        let file = json!({ "traces": [{ "vantage_point": { "type": "client" }, "events": events }] });
        let log = crate::read(file.to_string().as_bytes()).unwrap();
        let mut reader = Reader::new(Replay::new(log).unwrap()).unwrap();
        let (mut keys, mut opener) = (KeyLog::default(), Opener::default());
        let (mut datagrams, mut opened) = (Vec::new(), Vec::new());
        while let Some(frame) = reader.read_with(&mut |secrets| keys.read(secrets)).unwrap() {
            let packet = wire::packet::Packet::read(frame.ip().unwrap()).unwrap();
            let Transport::Udp(udp) = packet.transport else { panic!("{packet:?}") };
            let at = frame.at.since(wire::Time::ZERO).as_nanos() / 1_000_000;
            datagrams.push((at, udp.source_port, udp.payload.len()));
            let sender = if udp.source_port == 443 { Sender::Server } else { Sender::Client };
            opener.read(sender, udp.payload, Some(&keys), &mut |packet| opened.push(packet));
        }
        (datagrams, opened, opener)
    }

    #[test]
    fn packets_have_the_logged_types_numbers_and_sizes_and_share_datagrams() {
        let parameters = json!({ "owner": "local", "initial_max_data": 7_000, "ack_delay_exponent": 5 });
        let events = [
            json!({ "time": 100, "name": "transport:parameters_set", "data": parameters }),
            event(100.0, true, "initial", 0, 510, &crypto(462)),
            event(140.0, false, "initial", 0, 177, &crypto(123)),
            event(140.5, false, "handshake", 1, 693, &crypto(646)),
            event(140.9, false, "1RTT", 2, 330, &json!([{ "frame_type": "handshake_done" }])),
            event(141.0, true, "handshake", 2, 105, &crypto(52)),
            event(142.5, true, "1RTT", 40_000, 44, &stream(13)),
            event(182.5, false, "1RTT", 3, 1_200, &stream(1_171)),
        ];
        let (datagrams, packets, opener) = replayed(&events);
        assert_eq!(
            datagrams,
            [(0, 50_000, 1_200), (40, 443, 1_200), (41, 50_000, 105), (42, 50_000, 44), (82, 443, 1_200),]
        );
        let sizes: Vec<_> =
            packets.iter().map(|packet| (packet.kind, packet.number, packet.length)).collect();
        let (initial, handshake, data) = (PacketType::Initial, PacketType::Handshake, PacketType::OneRtt);
        let expected = [
            (initial, 0, 1_200),
            (initial, 0, 177),
            (handshake, 1, 693),
            (data, 2, 330),
            (handshake, 2, 105),
            (data, 40_000, 44),
            (data, 3, 1_200),
        ];
        assert_eq!(sizes, expected);
        let known = opener.parameters(Sender::Client).unwrap();
        assert_eq!((known.max_data, known.ack_delay_exponent), (7_000, 5));
        assert!(opener.has_read() && opener.unread().is_none());
    }

    #[test]
    fn a_retry_changes_the_keys_of_initial_packets() {
        let retry = json!({ "time": 20, "name": "quic:packet_received", "data": { "header": { "packet_type": "retry" } } });
        let events = [
            event(0.0, true, "initial", 0, 1_200, &crypto(280)),
            retry,
            event(21.0, true, "initial", 1, 1_200, &crypto(280)),
            event(40.0, false, "initial", 0, 1_200, &crypto(90)),
        ];
        let (datagrams, packets, opener) = replayed(&events);
        assert_eq!((datagrams.len(), packets.len()), (4, 3));
        assert!(opener.client_hello().is_some());
    }

    #[test]
    fn hostile_sizes_make_no_larger_packets_than_there_can_be() {
        let events = [
            event(0.0, true, "initial", 0, u64::MAX >> 2, &crypto(65_000)),
            event(1e300, true, "1RTT", u64::MAX >> 2, 0, &stream(64_990)),
            event(-1e300, true, "1RTT", 1, 30, &stream(1)),
        ];
        let (datagrams, _, _) = replayed(&events);
        assert!(datagrams.iter().all(|(_, _, length)| *length <= MAX_PACKET_BYTES), "{datagrams:?}");
    }
}
