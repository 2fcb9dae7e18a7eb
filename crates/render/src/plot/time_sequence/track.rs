//! Values derived from packets: segments, retransmissions, acknowledged bytes, windows.
//!
//! Heights are bytes. Connections are stacked in the order of their first packets.

use std::collections::BTreeMap;

use wire::Time;
use wire::packet::Flags;

use super::{End, ObservationPoint, Packet, Panel};

/// Everything to draw of a panel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Track {
    /// Segments of the sender.
    pub segments: Vec<Segment>,
    /// Lines of each connection.
    pub connections: Vec<Connection>,
    /// Requests and signs of opening and closing.
    pub marks: Vec<Mark>,
    /// Bytes sent by all connections, stacked.
    pub height: u64,
    /// The end of the exchange: its last data and stall, and packets without data that follow soon.
    pub end: Time,
    /// The last packet, where that is long after `end`: connections that are closed after an idle time.
    pub closed: Option<Time>,
}

/// A segment of the sender, as a range of heights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Time at which it was seen.
    pub at: Time,
    /// Height of its first byte.
    pub from: u64,
    /// Height of the byte after its last.
    pub to: u64,
    /// First transmission, retransmission or loss.
    pub kind: SegmentKind,
    /// Sequence number in its connection.
    pub sequence: u64,
    /// Its packet's number in a capture.
    pub number: Option<u64>,
}

/// Kind of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentKind {
    /// First transmission.
    First,
    /// Retransmission of at least a part of it.
    Retransmission,
    /// Lost.
    Lost,
}

/// Lines of one connection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Connection {
    /// Height of its first byte.
    pub base: u64,
    /// Time of its first packet.
    pub began: Time,
    /// Bytes acknowledged by the receiver, from each time on.
    pub acknowledged: Vec<(Time, u64)>,
    /// Right edge of the receive window, from each time on.
    pub allowed: Vec<(Time, u64)>,
    /// Right edge of the congestion window, from each time on, where that is known.
    pub congestion: Vec<(Time, u64)>,
}

/// A symbol at a height.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Time.
    pub at: Time,
    /// Height.
    pub height: u64,
    /// Symbol.
    pub sign: Sign,
    /// Bytes of its packet.
    pub bytes: u64,
    /// Its packet's number in a capture.
    pub number: Option<u64>,
}

/// Symbol of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sign {
    /// SYN: a connection is requested.
    Syn,
    /// Data of the receiver: usually a request.
    Request,
    /// FIN: the sender will send no more.
    Fin,
    /// RST: an end aborts the connection.
    Reset,
}

impl Track {
    /// Derives the values of a panel.
    pub fn of(panel: &Panel) -> Self {
        let seen = || panel.packets.iter().filter(|packet| packet.is_seen_by(panel.seen_by));
        let mut states: BTreeMap<u64, ConnectionState> = BTreeMap::new();
        for packet in seen() {
            let position = states.len();
            states
                .entry(packet.connection)
                .or_insert_with(|| ConnectionState::new(position))
                .measure(packet, panel.sender);
        }
        let mut in_order: Vec<&ConnectionState> = states.values().collect();
        in_order.sort_by_key(|state| state.position);
        let mut track = Self::default();
        for state in in_order {
            track.connections.push(Connection { base: track.height, ..Connection::default() });
            track.height += state.highest.saturating_sub(state.lowest);
        }
        for packet in seen() {
            if let Some(state) = states.get_mut(&packet.connection) {
                track.add(packet, panel.sender, state);
            }
        }
        track.close(panel);
        for window in &panel.windows {
            if let Some(state) = states.get_mut(&window.connection) {
                state.windows.push((window.at, window.bytes));
            }
        }
        for state in states.values() {
            if let Some(connection) = track.connections.get_mut(state.position) {
                connection.congestion = edge(&connection.acknowledged, &state.windows);
            }
        }
        track
    }

    /// Finds the end of the exchange, so that a close after an idle time-out does not stretch the picture.
    fn close(&mut self, panel: &Panel) {
        let seen = || panel.packets.iter().filter(|packet| packet.is_seen_by(panel.seen_by));
        let last = seen().map(|packet| packet.at).max().unwrap_or_default();
        let data = seen().filter(|packet| packet.bytes > 0).map(|packet| packet.at).max();
        let stalls = panel.stalls.iter().map(|stall| stall.at + stall.lost).max();
        let Some(exchange) = data.max(stalls.filter(|_| data.is_some())) else {
            self.end = last;
            return;
        };
        self.end = exchange;
        for packet in seen().filter(|packet| packet.at > exchange) {
            if packet.at.since(self.end).as_millis_f64() > exchange.as_millis_f64() * IDLE {
                self.closed = Some(last);
                return;
            }
            self.end = self.end.max(packet.at);
        }
    }

    fn add(&mut self, packet: &Packet, sender: End, state: &mut ConnectionState) {
        let Some(connection) = self.connections.get_mut(state.position) else { return };
        if connection.acknowledged.is_empty() {
            connection.began = packet.at;
            connection.acknowledged.push((packet.at, connection.base));
        }
        let base = connection.base;
        let lowest = state.lowest;
        let height = |number: u64| base + number.saturating_sub(lowest);
        let Packet { at, bytes, number, .. } = *packet;
        let mut mark = |height, sign| self.marks.push(Mark { at, height, sign, bytes, number });
        let is = |flag| packet.flags.contains(flag);
        match packet.sender == sender {
            true => {
                if packet.bytes > 0 {
                    let kind = state.kind(packet);
                    let (from, to) = (height(packet.sequence), height(packet.end()));
                    self.segments.push(Segment { at, from, to, kind, sequence: packet.sequence, number });
                }
                if is(Flags::FIN) {
                    mark(height(packet.end()), Sign::Fin);
                }
            }
            false => {
                let acknowledged = packet.acknowledged.map_or(base, height);
                if packet.seen != ObservationPoint::Lost && packet.acknowledged.is_some() {
                    connection.acknowledged.push((packet.at, acknowledged));
                    let allowed = packet.window.map(|window| acknowledged + window);
                    connection.allowed.extend(allowed.map(|allowed| (packet.at, allowed)));
                }
                if packet.bytes > 0 {
                    mark(acknowledged, Sign::Request);
                }
            }
        }
        if is(Flags::SYN) && packet.sender == End::Client {
            mark(base, Sign::Syn);
        }
        if is(Flags::RST) {
            mark(packet.acknowledged.map_or(base, height), Sign::Reset);
        }
    }
}

/// Minimum idle time before a late packet without data, as a share of the exchange's time. Acknowledgements come within
/// a round trip, and a handshake and a request take at least two.
const IDLE: f64 = 0.7;

/// State of a connection while its packets are processed.
struct ConnectionState {
    /// Index, in the order in which connections appear.
    position: usize,
    /// Lowest known sequence number, then the one after the highest.
    lowest: u64,
    highest: u64,
    /// Sequence number after the highest that the sender has sent so far.
    next: u64,
    /// Its congestion window, where that is known.
    windows: Vec<(Time, u64)>,
}

impl ConnectionState {
    const fn new(position: usize) -> Self {
        Self { position, lowest: u64::MAX, highest: 0, next: 0, windows: Vec::new() }
    }

    /// Extends the range by the sender's bytes in a packet. The SYN's number is not that of a byte.
    fn measure(&mut self, packet: &Packet, sender: End) {
        let is_syn = packet.flags.contains(Flags::SYN);
        let is_own = packet.sender == sender;
        let (low, high) = match is_own {
            true => (packet.sequence.saturating_add(u64::from(is_syn)), packet.end()),
            false => match packet.acknowledged {
                Some(number) => (number, number),
                None => return,
            },
        };
        self.lowest = self.lowest.min(low);
        // A FIN is acknowledged, too, and is not a byte.
        self.highest = if is_own { self.highest.max(high) } else { self.highest };
    }

    fn kind(&mut self, packet: &Packet) -> SegmentKind {
        let is_retransmission = packet.sequence < self.next;
        self.next = self.next.max(packet.end());
        match packet.seen {
            ObservationPoint::Lost => SegmentKind::Lost,
            ObservationPoint::Sent | ObservationPoint::Received if is_retransmission => {
                SegmentKind::Retransmission
            }
            ObservationPoint::Sent | ObservationPoint::Received => SegmentKind::First,
        }
    }
}

/// Right edge of a window: acknowledged bytes plus the window, at each change of either.
fn edge(acknowledged: &[(Time, u64)], windows: &[(Time, u64)]) -> Vec<(Time, u64)> {
    let mut changes: Vec<Time> = acknowledged.iter().chain(windows).map(|(at, _)| *at).collect();
    changes.sort();
    changes.dedup();
    let last = |values: &[(Time, u64)], at: Time| {
        let known = values.partition_point(|(since, _)| *since <= at);
        known.checked_sub(1).and_then(|last| values.get(last)).map(|(_, value)| *value)
    };
    let reach = |at| Some((at, last(acknowledged, at)? + last(windows, at)?));
    changes.into_iter().filter_map(reach).collect()
}

impl Packet {
    /// Sequence number after its last byte.
    fn end(&self) -> u64 {
        self.sequence.saturating_add(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::super::CongestionWindow;
    use super::*;

    fn packet(at: u64, sender: End, seen: ObservationPoint, sequence: u64, bytes: u64) -> Packet {
        let flags = if sequence == 0 { Flags::SYN } else { Flags::ACK };
        let acknowledged = (sequence > 0).then_some(1);
        let window = Some(100);
        Packet {
            at: Time::from_nanos(at),
            connection: 7,
            sender,
            seen,
            sequence,
            bytes,
            acknowledged,
            window,
            flags,
            number: None,
        }
    }

    fn track(packets: &[Packet], seen_by: End) -> Track {
        let packets = packets.to_vec();
        let windows = vec![CongestionWindow { at: Time::from_nanos(2), connection: 7, bytes: 30 }];
        let (sender, stalls) = (End::Server, Vec::new());
        Track::of(&Panel { title: String::new(), seen_by, sender, packets, windows, stalls })
    }

    #[test]
    fn retransmissions_are_recognised_and_connections_are_stacked() {
        use End::{Client, Server};
        let first = [
            packet(0, Client, ObservationPoint::Sent, 0, 0),
            packet(1, Client, ObservationPoint::Received, 0, 0),
            packet(2, Server, ObservationPoint::Sent, 1, 50),
            packet(2, Server, ObservationPoint::Lost, 1, 50),
            packet(9, Server, ObservationPoint::Sent, 1, 50),
            packet(10, Server, ObservationPoint::Received, 1, 50),
            packet(12, Client, ObservationPoint::Received, 1, 0),
        ];
        let second = first.map(|packet| Packet { connection: 3, ..packet });
        let track = track(&[first, second].concat(), Server);
        let kinds: Vec<SegmentKind> = track.segments.iter().map(|segment| segment.kind).collect();
        assert_eq!(kinds[..3], [SegmentKind::First, SegmentKind::Lost, SegmentKind::Retransmission]);
        assert_eq!((track.connections[1].base, track.height, track.end), (50, 100, Time::from_nanos(12)));
        assert_eq!((track.segments[3].from, track.segments[3].to), (50, 100));
        assert_eq!(track.connections[0].allowed, [(Time::from_nanos(12), 100)]);
        let window = track.connections[0].congestion.first();
        assert_eq!(window, Some(&(Time::from_nanos(2), 30)));
    }

    #[test]
    fn a_close_after_an_idle_time_does_not_stretch_the_plot() {
        use End::{Client, Server};
        let fin = Packet { flags: Flags::FIN, ..packet(15_000, Server, ObservationPoint::Sent, 51, 0) };
        let packets = [
            packet(2, Server, ObservationPoint::Sent, 1, 50),
            packet(100, Server, ObservationPoint::Sent, 1, 50),
            packet(120, Client, ObservationPoint::Received, 1, 0),
            fin,
        ];
        let at = Time::from_nanos;
        let idle = track(&packets, Server);
        assert_eq!((idle.end, idle.closed), (at(120), Some(at(15_000))));
        let busy = track(&packets[..3], Server);
        assert_eq!((busy.end, busy.closed), (at(120), None));
        let nothing = track(&[fin], Server);
        assert_eq!((nothing.end, nothing.closed), (at(15_000), None));
    }

    #[test]
    fn the_congestion_window_starts_at_the_acknowledged_bytes() {
        let at = Time::from_nanos;
        let edge = edge(&[(at(1), 10), (at(4), 20)], &[(at(0), 5), (at(2), 6), (at(4), 7)]);
        assert_eq!(edge, [(at(1), 15), (at(2), 16), (at(4), 27)]);
    }

    #[test]
    fn the_client_sees_what_arrives_at_the_client() {
        use End::{Client, Server};
        let packets = [
            packet(2, Server, ObservationPoint::Sent, 1, 50),
            packet(5, Server, ObservationPoint::Received, 1, 50),
            packet(6, Client, ObservationPoint::Sent, 1, 9),
        ];
        let track = track(&packets, Client);
        assert_eq!((track.segments.len(), track.segments[0].at), (1, Time::from_nanos(5)));
        assert_eq!(
            track.marks,
            [Mark { at: Time::from_nanos(6), height: 0, sign: Sign::Request, bytes: 9, number: None }]
        );
    }
}
