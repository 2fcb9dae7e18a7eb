//! Datagrams of an end as events of draft-ietf-quic-qlog-quic-events-12, in contained JSON of draft-ietf-quic-qlog-main-schema-13.
//!
//! Packets are encrypted with known secrets ([`KnownSecrets`](quic::sealer::KnownSecrets)). The same datagrams give the same bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use quic::frame::{Ack, Frame, NewId, StreamData, frames};
use quic::opener::{OpenedPacket, Opener};
use quic::packet::{PacketType, packets};
use quic::parameters::Parameters;
use serde_json::{Map, Value, json};
use tls::KeyLog;
use tls::decrypt::Sender;
use wire::{Duration, Time};

use crate::SCHEMA;

/// State of loss detection and congestion control (RFC 9002).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metrics {
    /// Congestion window, in bytes.
    pub window: u64,
    /// Smoothed round trip.
    pub round_trip: Duration,
    /// The shortest one.
    pub min_round_trip: Duration,
    /// Number of packets that were found to be lost so far.
    pub lost: u64,
}

/// Events of one connection at one end.
#[derive(Debug)]
pub struct TraceWriter {
    end: Sender,
    program: String,
    title: String,
    group: String,
    opener: Opener,
    /// Whether the parameters of the client and of the server were written.
    has_parameters: [bool; 2],
    datagrams: u64,
    spaces: [Space; SPACES],
    metrics: Option<Metrics>,
    /// Events as JSON, one in a line.
    events: String,
}

/// Packets of this end in one space.
#[derive(Debug, Default)]
struct Space {
    /// Those without an acknowledgement: bytes in flight.
    pending: BTreeMap<u64, u64>,
    /// The largest acknowledged one.
    largest: Option<u64>,
}

/// Number spaces: Initial, Handshake, application data.
const SPACES: usize = 3;
/// Packets acknowledged after one that is not, which is lost then (RFC 9002, section 6.1.1).
const REORDERING: u64 = 3;

impl TraceWriter {
    /// Creates the trace of `end`, a `program` with its version.
    pub fn new(end: Sender, program: &str, title: &str) -> Self {
        Self {
            end,
            program: program.to_owned(),
            title: title.to_owned(),
            group: String::new(),
            opener: Opener::default(),
            has_parameters: [false; 2],
            datagrams: 0,
            spaces: <[Space; SPACES]>::default(),
            metrics: None,
            events: String::new(),
        }
    }

    /// Adds a datagram that `sender` has sent, when this end sent or received it.
    pub fn datagram(&mut self, at: Time, sender: Sender, datagram: &[u8], keys: &KeyLog) {
        if self.group.is_empty()
            && let Some(first) = packets(datagram).next()
        {
            self.group = hexadecimal(first.destination);
        }
        let mut opened = Vec::new();
        self.opener.read(sender, datagram, Some(keys), &mut |packet| opened.push(packet));
        let (is_sent, id) = (sender == self.end, self.datagrams);
        self.datagrams += 1;
        let verb = if is_sent { "sent" } else { "received" };
        let raw = json!([{ "length": datagram.len() }]);
        self.event(
            at,
            &format!("udp_datagrams_{verb}"),
            json!({ "count": 1, "raw": raw, "datagram_ids": [id] }),
        );
        for packet in &opened {
            let exponent = self.opener.parameters(sender).copied().unwrap_or_default();
            let (frames, acks, is_in_flight) = described(packet, &exponent);
            let data = json!({
                "header": header(packet.kind, packet.number),
                "raw": { "length": packet.length, "payload_length": packet.frames.len() },
                "datagram_id": id,
                "frames": frames,
            });
            self.event(at, &format!("packet_{verb}"), data);
            self.discard(is_sent, packet);
            let space = &mut self.spaces[space_of(packet.kind)];
            if is_sent {
                space.pending.insert(packet.number, if is_in_flight { packet.length as u64 } else { 0 });
            } else {
                acks.iter().for_each(|ack| space.acknowledge(ack));
            }
        }
        self.parameters(at);
    }

    /// Adds a state of this end, if it differs from the last one.
    pub fn metrics(&mut self, at: Time, metrics: Metrics) {
        let before = self.metrics.replace(metrics);
        let lost = metrics.lost.saturating_sub(before.map_or(0, |before| before.lost));
        self.lose(at, usize::try_from(lost).unwrap_or(usize::MAX));
        let mut data = Map::new();
        let round_trips = [
            ("smoothed_rtt", metrics.round_trip, before.map(|before| before.round_trip)),
            ("min_rtt", metrics.min_round_trip, before.map(|before| before.min_round_trip)),
        ];
        for (name, now, _) in round_trips.into_iter().filter(|(_, now, before)| *before != Some(*now)) {
            data.insert(name.to_owned(), json!(millis(now)));
        }
        if before.map(|before| before.window) != Some(metrics.window) {
            data.insert("congestion_window".to_owned(), json!(metrics.window));
        }
        if !data.is_empty() {
            let in_flight: u64 = self.spaces.iter().flat_map(|space| space.pending.values()).sum();
            data.insert("bytes_in_flight".to_owned(), json!(in_flight));
            self.event(at, "recovery_metrics_updated", Value::Object(data));
        }
    }

    /// Returns the trace as JSON.
    pub fn finish(self) -> String {
        let Self { end, program, title, group, events, .. } = self;
        let end = if end == Sender::Client { "client" } else { "server" };
        let mut head = json!({
            "title": title,
            "vantage_point": { "name": program, "type": end },
            "event_schemas": [SCHEMA],
            "common_fields": {
                "group_id": group,
                "time_format": "relative_to_epoch",
                "reference_time": { "clock_type": "monotonic", "epoch": "unknown" },
            },
        })
        .to_string();
        head.pop();
        format!("{head},\"events\":[\n{}\n]}}", events.trim_end_matches(",\n"))
    }

    /// Discards packets in flight with the keys of their space, which a packet shows to be discarded (RFC 9001, section 4.9): a
    /// client's first Handshake packet those of Initial packets, and those of the handshake when it is confirmed.
    fn discard(&mut self, is_sent: bool, packet: &OpenedPacket) {
        let is_of_client = is_sent == (self.end == Sender::Client);
        let is_confirmed = match self.end {
            Sender::Client => frames(&packet.frames).any(|frame| frame == Frame::HandshakeDone),
            Sender::Server => is_of_client && packet.kind == PacketType::OneRtt,
        };
        if is_of_client && packet.kind == PacketType::Handshake || is_confirmed {
            self.spaces[0] = Space::default();
        }
        if is_confirmed {
            self.spaces[1] = Space::default();
        }
    }

    /// Writes the lost packets: the first of those before the largest acknowledged one.
    fn lose(&mut self, at: Time, count: usize) {
        let mut lost = Vec::new();
        for (index, space) in self.spaces.iter().enumerate() {
            let Some(largest) = space.largest else { continue };
            lost.extend(space.pending.range(..largest).map(|(number, _)| (index, *number, largest)));
        }
        lost.truncate(count);
        for (index, number, largest) in lost {
            self.spaces[index].pending.remove(&number);
            let kind = [PacketType::Initial, PacketType::Handshake, PacketType::OneRtt][index];
            let is_reordered = number + REORDERING <= largest;
            let trigger = if is_reordered { "reordering_threshold" } else { "time_threshold" };
            self.event(at, "packet_lost", json!({ "header": header(kind, number), "trigger": trigger }));
        }
    }

    fn parameters(&mut self, at: Time) {
        for (index, sender) in [Sender::Client, Sender::Server].into_iter().enumerate() {
            let Some(parameters) = self.opener.parameters(sender).copied() else { continue };
            if std::mem::replace(&mut self.has_parameters[index], true) {
                continue;
            }
            let Parameters {
                max_data,
                max_stream_data,
                max_unidirectional,
                ack_delay_exponent,
                max_ack_delay_ms,
            } = parameters;
            let data = json!({
                "initiator": if sender == self.end { "local" } else { "remote" },
                "initial_max_data": max_data,
                "initial_max_stream_data_bidi_local": max_stream_data[0],
                "initial_max_stream_data_bidi_remote": max_stream_data[1],
                "initial_max_stream_data_uni": max_unidirectional,
                "ack_delay_exponent": ack_delay_exponent,
                "max_ack_delay": max_ack_delay_ms,
            });
            self.event(at, "parameters_set", data);
        }
    }

    fn event(&mut self, at: Time, name: &str, data: Value) {
        let time = millis(at.since(Time::ZERO));
        // Writing to a string does not fail.
        let _ =
            writeln!(self.events, "{{\"time\":{},\"name\":\"quic:{name}\",\"data\":{data}}},", json!(time));
    }
}

impl Space {
    fn acknowledge(&mut self, ack: &Ack) {
        self.largest = self.largest.max(Some(ack.largest()));
        for range in &ack.ranges {
            let acked: BTreeSet<u64> = self.pending.range(range.clone()).map(|(number, _)| *number).collect();
            self.pending.retain(|number, _| !acked.contains(number));
        }
    }
}

/// A file with these traces ([`TraceWriter::finish`]).
pub fn file(title: &str, traces: &[String]) -> String {
    let mut head = json!({
        "file_schema": "urn:ietf:params:qlog:file:contained",
        "serialization_format": "application/qlog+json",
        "title": title,
    })
    .to_string();
    head.pop();
    format!("{head},\"traces\":[\n{}\n]}}\n", traces.join(",\n"))
}

/// Milliseconds, as all times of qlog.
fn millis(duration: Duration) -> f64 {
    duration.as_millis_f64()
}

fn space_of(kind: PacketType) -> usize {
    match kind {
        PacketType::Initial => 0,
        PacketType::Handshake => 1,
        _ => 2,
    }
}

fn header(kind: PacketType, number: u64) -> Value {
    let kind = match kind {
        PacketType::Initial => "initial",
        PacketType::ZeroRtt => "0RTT",
        PacketType::Handshake => "handshake",
        PacketType::OneRtt => "1RTT",
        PacketType::Retry => "retry",
        PacketType::VersionNegotiation => "version_negotiation",
    };
    json!({ "packet_type": kind, "packet_number": number })
}

/// Frames of a packet, its acknowledgements, and whether it is in flight (RFC 9002, section 2).
fn described(packet: &OpenedPacket, parameters: &Parameters) -> (Vec<Value>, Vec<Ack>, bool) {
    let (mut all, mut acks, mut padding, mut is_in_flight) = (Vec::new(), Vec::new(), 0_u64, false);
    for frame in frames(&packet.frames) {
        is_in_flight |= frame.is_ack_eliciting() || frame == Frame::Padding;
        match frame {
            Frame::Padding => padding += 1,
            frame => {
                all.push(described_frame(&frame, parameters));
                if let Frame::Ack(ack) = frame {
                    acks.push(ack);
                }
            }
        }
    }
    if padding > 0 {
        all.push(json!({ "frame_type": "padding", "raw": { "payload_length": padding } }));
    }
    (all, acks, is_in_flight)
}

fn described_frame(frame: &Frame<'_>, parameters: &Parameters) -> Value {
    let of = |name: &str| json!({ "frame_type": name });
    let raw = |bytes: &[u8]| json!({ "length": bytes.len() });
    let kind = |is_bidirectional: bool| if is_bidirectional { "bidirectional" } else { "unidirectional" };
    match *frame {
        Frame::Padding => of("padding"),
        Frame::Ping => of("ping"),
        Frame::HandshakeDone => of("handshake_done"),
        Frame::Ack(ref ack) => {
            let delay = Duration::from_micros(parameters.ack_delay_us(ack.delay));
            let ranges = ack.ranges.iter().rev();
            let ranges = ranges.map(|range| match (*range.start(), *range.end()) {
                (first, last) if first == last => json!([first]),
                (first, last) => json!([first, last]),
            });
            let ranges: Vec<Value> = ranges.collect();
            json!({ "frame_type": "ack", "ack_delay": millis(delay), "acked_ranges": ranges })
        }
        Frame::ResetStream(stream, error, length) => json!({
            "frame_type": "reset_stream", "stream_id": stream, "error": "unknown", "error_code": error, "final_size": length,
        }),
        Frame::StopSending(stream, error) => json!({
            "frame_type": "stop_sending", "stream_id": stream, "error": "unknown", "error_code": error,
        }),
        Frame::Crypto(offset, bytes) => {
            json!({ "frame_type": "crypto", "offset": offset, "raw": raw(bytes) })
        }
        Frame::Stream(StreamData { id, offset, data, is_end }) => json!({
            "frame_type": "stream", "stream_id": id, "offset": offset, "fin": is_end, "raw": raw(data),
        }),
        Frame::MaxData(maximum) => json!({ "frame_type": "max_data", "maximum": maximum }),
        Frame::MaxStreamData(stream, maximum) => {
            json!({ "frame_type": "max_stream_data", "stream_id": stream, "maximum": maximum })
        }
        Frame::MaxStreams(is_bidirectional, maximum) => json!({
            "frame_type": "max_streams", "stream_type": kind(is_bidirectional), "maximum": maximum,
        }),
        Frame::Blocked(None, limit) => json!({ "frame_type": "data_blocked", "limit": limit }),
        Frame::Blocked(Some(stream), limit) => {
            json!({ "frame_type": "stream_data_blocked", "stream_id": stream, "limit": limit })
        }
        Frame::StreamsBlocked(is_bidirectional, limit) => json!({
            "frame_type": "streams_blocked", "stream_type": kind(is_bidirectional), "limit": limit,
        }),
        Frame::NewConnectionId(NewId { sequence, retired, id }) => json!({
            "frame_type": "new_connection_id", "sequence_number": sequence, "retire_prior_to": retired,
            "connection_id": hexadecimal(id),
        }),
        Frame::ConnectionClose(is_of_application, error) => json!({
            "frame_type": "connection_close", "error_space": if is_of_application { "application" } else { "transport" },
            "error": "unknown", "error_code": error,
        }),
        Frame::Datagram(bytes) => json!({ "frame_type": "datagram", "raw": raw(bytes) }),
        Frame::Other(bytes) => json!({ "frame_type": "unknown", "frame_type_bytes": bytes }),
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use quic::sealer::{KnownSecrets, Sealer, readable_packet};
    use tls::session::{Handshake, SessionConfig, quic as messages};

    const fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn events_of_a_server_have_frames_parameters_and_losses() {
        let config = SessionConfig { protocol: "h3", ..SessionConfig::new(Handshake::Full) };
        let hello = messages::client_hello(&config, &[4, 2, 0x4b, 0xb8]);
        let crypto =
            [&[6, 0][..], &(0x4000 | u16::try_from(hello.len()).unwrap()).to_be_bytes(), &hello].concat();
        let known = KnownSecrets::default();
        let (mut keys, mut sealer) = (KeyLog::default(), Sealer::new(known.secrets));
        keys.read(known.key_log.as_bytes());
        let mut writer = TraceWriter::new(Sender::Server, "test 1", "a title");
        let (client, server) = (Sender::Client, Sender::Server);
        let stream = |offset: u8| vec![0x0e, 0, offset, 2, 1, 2];
        let mut datagrams = vec![
            (20, client, readable_packet(0xc0, 0, &crypto)),
            (20, server, readable_packet(0xc0, 0, &[2, 0, 0, 0, 0])),
        ];
        datagrams
            .extend((0..5).map(|number| (21, server, readable_packet(0x40, number, &stream(2 * number)))));
        // All but the first.
        datagrams.push((60, client, readable_packet(0x40, 0, &[2, 4, 8, 0, 3])));
        for (ms, sender, mut datagram) in datagrams {
            sealer.seal(sender, &mut datagram);
            writer.datagram(at(ms), sender, &datagram, &keys);
        }
        let metrics = |lost| Metrics {
            window: 14_720,
            round_trip: Duration::from_millis(39),
            min_round_trip: Duration::from_millis(39),
            lost,
        };
        writer.metrics(at(20), metrics(0));
        writer.metrics(at(60), metrics(1));
        let file = file("all", &[writer.finish()]);
        let value: Value = serde_json::from_str(&file).unwrap();
        let trace = &value["traces"][0];
        assert_eq!(trace["vantage_point"], json!({ "name": "test 1", "type": "server" }));
        assert_eq!(trace["common_fields"]["group_id"], "09");
        let events = trace["events"].as_array().unwrap();
        let of = |name: &str| events.iter().filter(|event| event["name"] == name).collect::<Vec<_>>();
        assert_eq!(of("quic:parameters_set")[0]["data"]["initial_max_data"], 3_000);
        assert_eq!((of("quic:packet_sent").len(), of("quic:packet_received").len()), (6, 2));
        let frames = &of("quic:packet_sent")[2]["data"]["frames"];
        assert_eq!(
            *frames,
            json!([{ "frame_type": "stream", "stream_id": 0, "offset": 2, "fin": false, "raw": { "length": 2 } }])
        );
        let ack = &of("quic:packet_received")[1]["data"]["frames"][0];
        assert_eq!(*ack, json!({ "frame_type": "ack", "ack_delay": 0.064, "acked_ranges": [[1, 4]] }));
        let lost = of("quic:packet_lost");
        assert_eq!((lost.len(), &lost[0]["data"]["header"]["packet_number"]), (1, &json!(0)));
        assert_eq!(lost[0]["data"]["trigger"], "reordering_threshold");
        let metrics = of("quic:recovery_metrics_updated");
        assert_eq!((metrics.len(), &metrics[0]["data"]["congestion_window"]), (1, &json!(14_720)));
    }
}
