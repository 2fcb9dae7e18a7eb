//! Events of one connection at one end, in the dialects of quic-go, ngtcp2, quiche, aioquic, mvfst and others.
//!
//! Names are `quic:packet_sent` since draft 8, `transport:packet_sent` before, and category and event apart in the first drafts,
//! whose events are arrays in the order of `event_fields`.

use core::net::{Ipv4Addr, SocketAddr};

use quic::packet::PacketType;
use quic::parameters::Parameters;
use serde_json::Value;
use tls::decrypt::Sender;

use crate::frame::Frame;
use crate::json::{self, any, member};

/// Events of one connection at one end.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The end.
    pub end: Sender,
    /// Its program, as far as it names itself.
    pub program: Option<String>,
    /// Name of the connection: its first destination ID, as a rule.
    pub group: String,
    /// Its packets, in the order of the file, with times that do not decrease.
    pub events: Vec<Event>,
    /// Transport parameters of the client and of the server.
    pub parameters: [Parameters; 2],
    /// Sockets of the client and of the server.
    pub sockets: Option<[SocketAddr; 2]>,
}

/// A packet that was sent or received.
#[derive(Clone, Debug)]
pub struct Event {
    /// Nanoseconds since the trace's zero, which may be that of the clock.
    pub at: i64,
    /// The packet's sender.
    pub sender: Sender,
    /// Number of events about datagrams before it; packets with different ones share no datagram.
    pub datagrams: u64,
    /// Its datagram.
    pub datagram_id: Option<u64>,
    /// The packet.
    pub packet: Packet,
}

/// A logged packet.
#[derive(Clone, Debug)]
pub struct Packet {
    /// Its type.
    pub kind: PacketType,
    /// Its number; 0 of packets without.
    pub number: u64,
    /// Bytes of the packet, with header and tag; 0: not logged.
    pub length: usize,
    /// Its frames; `None`: not logged.
    pub frames: Option<Vec<Frame>>,
}

/// Times of a trace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// Nanoseconds of a unit.
    pub(crate) unit: f64,
    /// Whether times count from the event before.
    pub(crate) is_delta: bool,
}

/// Events and packets that were left out of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Events that could not be read.
    pub unreadable: u64,
    /// Events that are earlier than the one before them.
    pub backwards: u64,
    /// Packets without frames.
    pub without_frames: u64,
}

/// State while the events of a connection are read.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(crate) trace: Trace,
    /// Whether the file names the end.
    is_named: bool,
    at: i64,
    datagrams: u64,
}

/// Subject of an event.
enum Topic {
    Packet { is_sent: bool },
    Datagrams,
    Parameters,
    Started,
    Other,
}

/// Maximum number of frames of a packet.
const MAX_FRAMES: usize = 1_024;

impl Reading {
    pub(crate) fn new(end: Option<Sender>, program: Option<String>, group: String) -> Self {
        let trace = Trace {
            end: end.unwrap_or(Sender::Client),
            program,
            group,
            events: Vec::new(),
            parameters: [Parameters::default(); 2],
            sockets: None,
        };
        Self { trace, is_named: end.is_some(), at: i64::MIN, datagrams: 0 }
    }

    /// Handles an event: an object, or an array in the order of `fields`.
    pub(crate) fn event(&mut self, event: &Value, fields: &[String], clock: Clock, left_out: &mut LeftOut) {
        let field = |names: &[&str]| match event {
            Value::Array(values) => {
                let place = fields.iter().position(|field| names.contains(&field.as_str()));
                place.and_then(|place| values.get(place))
            }
            _ => any(event, names),
        };
        let time = field(&["time", "relative_time", "delta_time", "timestamp"]).and_then(json::float);
        let (Some(time), Some(topic)) =
            (time, topic(field(&["name", "event", "event_type", "type"]), field(&["category"])))
        else {
            left_out.unreadable += 1;
            return;
        };
        let is_backwards = self.passes(time * clock.unit, clock.is_delta);
        let null = Value::Null;
        let data = field(&["data"]).unwrap_or(&null);
        match topic {
            Topic::Packet { is_sent } => match packet(data, clock) {
                Some(packet) => {
                    left_out.backwards += u64::from(is_backwards);
                    self.packet(is_sent, data, packet, left_out);
                }
                None => left_out.unreadable += 1,
            },
            Topic::Datagrams => self.datagrams += 1,
            Topic::Parameters => self.parameters(data),
            Topic::Started => self.trace.sockets = sockets(data, self.trace.end),
            Topic::Other => {}
        }
    }

    /// Moves on to a time in nanoseconds; returns whether it is earlier than the last one, which stays then.
    fn passes(&mut self, nanos: f64, is_delta: bool) -> bool {
        // Of a float the cast saturates.
        #[expect(clippy::cast_possible_truncation, reason = "saturates")]
        let nanos = nanos.round() as i64;
        let last = if self.at == i64::MIN { 0 } else { self.at };
        let at = if is_delta { last.saturating_add(nanos) } else { nanos };
        let is_backwards = at < self.at;
        self.at = self.at.max(at);
        is_backwards
    }

    fn packet(&mut self, is_sent: bool, data: &Value, packet: Packet, left_out: &mut LeftOut) {
        if !self.is_named {
            // A client sends first.
            self.trace.end = if is_sent { Sender::Client } else { Sender::Server };
            self.is_named = true;
        }
        let has_frames = matches!(packet.kind, PacketType::Retry | PacketType::VersionNegotiation);
        left_out.without_frames += u64::from(!has_frames && packet.frames.is_none());
        self.trace.events.push(Event {
            at: self.at,
            sender: if is_sent { self.trace.end } else { other(self.trace.end) },
            datagrams: self.datagrams,
            // quic-go writes a checksum of the datagram in its place.
            datagram_id: member(data, &["datagram_id", "datagram_payload_checksum"]),
            packet,
        });
    }

    /// Handles parameters, of which each event may have some.
    fn parameters(&mut self, data: &Value) {
        let owner = any(data, &["initiator", "owner"]).and_then(json::name);
        let sender = match owner.as_deref() {
            Some("remote") => other(self.trace.end),
            _ => self.trace.end,
        };
        let known = &mut self.trace.parameters[usize::from(sender == Sender::Server)];
        let set = |place: &mut u64, name: &str| {
            if let Some(value) = member(data, &[name]) {
                *place = value;
            }
        };
        set(&mut known.max_data, "initial_max_data");
        set(&mut known.max_stream_data[0], "initial_max_stream_data_bidi_local");
        set(&mut known.max_stream_data[1], "initial_max_stream_data_bidi_remote");
        set(&mut known.max_unidirectional, "initial_max_stream_data_uni");
        set(&mut known.max_ack_delay_ms, "max_ack_delay");
        let exponent = member(data, &["ack_delay_exponent"]).and_then(|value| u32::try_from(value).ok());
        // RFC 9000, section 18.2.
        known.ack_delay_exponent = exponent.filter(|value| *value <= 20).unwrap_or(known.ack_delay_exponent);
    }
}

/// The other end.
pub(crate) const fn other(end: Sender) -> Sender {
    match end {
        Sender::Client => Sender::Server,
        Sender::Server => Sender::Client,
    }
}

/// Returns what an event is about, by its name, in which the category may be.
fn topic(name: Option<&Value>, category: Option<&Value>) -> Option<Topic> {
    let name = name?.as_str()?;
    let (of_name, event) =
        name.rsplit_once(':').map_or((None, name), |(category, event)| (Some(category), event));
    let category = of_name.or(category.and_then(Value::as_str)).unwrap_or_default().to_ascii_lowercase();
    Some(match (category.as_str(), event.to_ascii_lowercase().as_str()) {
        ("quic" | "transport", "packet_sent") => Topic::Packet { is_sent: true },
        ("quic" | "transport", "packet_received") => Topic::Packet { is_sent: false },
        (
            "quic" | "transport",
            "udp_datagrams_sent" | "udp_datagrams_received" | "datagrams_sent" | "datagrams_received",
        ) => Topic::Datagrams,
        ("quic" | "transport", "parameters_set" | "parameters_restored") => Topic::Parameters,
        ("quic" | "connectivity", "connection_started") => Topic::Started,
        _ => Topic::Other,
    })
}

/// Reads a packet; `None` without a type, or without a number where there must be one.
fn packet(data: &Value, clock: Clock) -> Option<Packet> {
    let null = Value::Null;
    let (header, raw) = (data.get("header").unwrap_or(&null), data.get("raw").unwrap_or(&null));
    let kind = any(header, &["packet_type"]).or(any(data, &["packet_type"])).and_then(json::name)?;
    let kind = match kind.as_str() {
        "initial" => PacketType::Initial,
        "handshake" => PacketType::Handshake,
        "0rtt" | "zerortt" => PacketType::ZeroRtt,
        "1rtt" | "onertt" => PacketType::OneRtt,
        "retry" => PacketType::Retry,
        "versionnegotiation" => PacketType::VersionNegotiation,
        _ => return None,
    };
    let is_numbered = !matches!(kind, PacketType::Retry | PacketType::VersionNegotiation);
    let number = member(header, &["packet_number"]).or_else(|| member(data, &["packet_number"]));
    let length = member(raw, &["length"]).or_else(|| member(header, &["packet_size"]));
    let frames = data.get("frames").and_then(Value::as_array);
    Some(Packet {
        kind,
        number: if is_numbered { number? } else { 0 },
        length: usize::try_from(length.unwrap_or(0)).unwrap_or(usize::MAX),
        frames: frames.map(|frames| {
            frames.iter().take(MAX_FRAMES).filter_map(|frame| Frame::read(frame, clock.unit / 1e3)).collect()
        }),
    })
}

/// Sockets of the client and the server, as the end knows them.
fn sockets(data: &Value, end: Sender) -> Option<[SocketAddr; 2]> {
    let socket = |side: &str, ip: &str, port: &str| {
        // Since draft 14 each address has a member of its own.
        let tuple = data.get(side).unwrap_or(data);
        let tuple = tuple.get("address_v4").unwrap_or(tuple);
        let address = any(tuple, &["ip", "ip_v4", ip])?.as_str()?.parse::<Ipv4Addr>().ok()?;
        let port = u16::try_from(member(tuple, &["port", "port_v4", port])?).ok();
        let port = port.filter(|port| *port > 0 && !address.is_unspecified())?;
        Some(SocketAddr::from((address, port)))
    };
    let sockets = [socket("local", "src_ip", "src_port")?, socket("remote", "dst_ip", "dst_port")?];
    let [local, remote] = sockets;
    let is_ordered = data.get("local").is_some() || end == Sender::Client;
    (is_ordered && local != remote).then_some(match end {
        Sender::Client => [local, remote],
        Sender::Server => [remote, local],
    })
}
