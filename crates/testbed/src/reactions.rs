//! Reaction times of each host, seen from the network.
//!
//! The server's *response time* runs from the arrival of the last packet of a request to the departure of the
//! first of its response. The papers' authors read it off the traces on their server's network ("an average
//! 3.7 ms server processing time", `papers/heidemann-model#section-v`). It includes a component that no
//! program can measure of itself: late wake-ups. The client's *think time* runs from the arrival of a
//! SYN-ACK, or of the last data, to the departure of the next SYN or request.
//!
//! A DHTTP server may open a connection for its response (`docs/dhttp.md`). Its response time then has two parts: from the
//! request's datagram to the SYN, and from the client's SYN-ACK to the first data.
//!
//! Packets are paired by direction and connection.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use wire::packet::{Flags, Packet};
use wire::{Duration, Time};

use crate::ends::PacketDirection;

/// Reaction times, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reactions {
    /// Response times of the server, one for each response.
    pub response_times: Vec<Duration>,
    /// Think times of the client, one for each request or SYN except the first, and one for the end of the page.
    pub think_times: Vec<Duration>,
    /// Time at which the last packet of a request arrived, by client's and server's end.
    requested: BTreeMap<(SocketAddr, SocketAddr), Time>,
    /// Connections that the server opens, by client's and server's end: the time until the SYN, and the arrival of the SYN-ACK.
    opening: BTreeMap<(SocketAddr, SocketAddr), (Duration, Option<Time>)>,
    /// Time at which the last SYN-ACK or packet of a response arrived, if nothing from the client followed.
    last_response: Option<Time>,
}

/// Maximum number of times; a download without end must not fill the memory.
const MAX_REACTIONS: usize = 1 << 20;

impl Reactions {
    /// Notes a packet that has just been delivered to its receiver.
    pub(crate) fn delivered(&mut self, now: Time, direction: PacketDirection, packet: &[u8]) {
        let Some(fields) = PacketFields::of(packet) else { return };
        match direction {
            PacketDirection::Up if fields.has_data => {
                self.requested.insert(fields.ends, now);
            }
            PacketDirection::Up if fields.is_syn => {
                if let Some((_, accepted)) = self.opening.get_mut(&fields.ends) {
                    *accepted = Some(now);
                }
            }
            PacketDirection::Down if fields.has_data || fields.is_syn_ack => self.last_response = Some(now),
            PacketDirection::Up | PacketDirection::Down => {}
        }
    }

    /// Notes that the client has read the end of the page: its last reaction, which no packet shows.
    pub fn conclude(&mut self, read: Time) {
        note(&mut self.think_times, self.last_response.take(), read);
    }

    /// Drops all but the first of each. Where requests do not wait for responses the others are ambiguous
    /// from outside: a late packet may have waited for its window, or to share a segment with others.
    pub fn retain_first(&mut self) {
        self.response_times.truncate(1);
        self.think_times.truncate(1);
    }

    /// Notes a packet that has just left its sender.
    pub(crate) fn sent(&mut self, now: Time, direction: PacketDirection, packet: &[u8]) {
        let Some(fields) = PacketFields::of(packet) else { return };
        match direction {
            PacketDirection::Up if fields.has_data || (fields.is_syn && !fields.is_syn_ack) => {
                note(&mut self.think_times, self.last_response.take(), now);
            }
            PacketDirection::Down if fields.has_data => {
                let (server, client) = fields.ends;
                if let Some(requested) = self.requested.remove(&(client, server)).or_else(|| {
                    // On a connection that is open already.
                    if fields.is_datagram || self.opening.contains_key(&(client, server)) {
                        return None;
                    }
                    self.take_request_of(client)
                }) {
                    note(&mut self.response_times, Some(requested), now);
                } else if let Some((until_syn, Some(accepted))) = self.opening.remove(&(client, server)) {
                    // Two parts, as one span that ends now.
                    note(&mut self.response_times, Some(accepted), now + until_syn);
                }
            }
            PacketDirection::Down if fields.is_syn && !fields.is_syn_ack => {
                let (server, client) = fields.ends;
                if self.opening.len() < MAX_REACTIONS
                    && let Some(requested) = self.take_request_of(client)
                {
                    self.opening.insert((client, server), (now.since(requested), None));
                }
            }
            PacketDirection::Up | PacketDirection::Down => {}
        }
    }

    /// Takes the oldest pending request of a client's host.
    fn take_request_of(&mut self, client: SocketAddr) -> Option<Time> {
        let of_host = self.requested.iter().filter(|((requester, _), _)| requester.ip() == client.ip());
        let (ends, _) = of_host.min_by_key(|(_, requested)| **requested)?;
        let ends = *ends;
        self.requested.remove(&ends)
    }
}

fn note(times: &mut Vec<Duration>, since: Option<Time>, now: Time) {
    if times.len() < MAX_REACTIONS {
        times.extend(since.map(|since| now.since(since)));
    }
}

/// Fields of a packet that are used here.
struct PacketFields {
    /// Sender's and receiver's address.
    ends: (SocketAddr, SocketAddr),
    has_data: bool,
    is_datagram: bool,
    is_syn: bool,
    is_syn_ack: bool,
}

impl PacketFields {
    fn of(packet: &[u8]) -> Option<Self> {
        let packet = Packet::read(packet).ok()?;
        let has = |flags| packet.tcp().is_some_and(|segment| segment.flags.contains(flags));
        let (is_syn, is_syn_ack) = (has(Flags::SYN), has(Flags::SYN | Flags::ACK));
        let has_data = packet.payload_length() > wire::Bytes::ZERO;
        let is_datagram = packet.tcp().is_none();
        Some(Self { ends: packet.sockets()?, has_data, is_datagram, is_syn, is_syn_ack })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::packet::TcpBuilder;

    const CLIENT: ([u8; 4], u16) = ([10, 0, 0, 1], 40_000);
    const SERVER: ([u8; 4], u16) = ([10, 0, 0, 2], 80);

    fn packet(direction: PacketDirection, flags: Flags, payload: &[u8]) -> Vec<u8> {
        let (source, destination) = match direction {
            PacketDirection::Up => (CLIENT, SERVER),
            PacketDirection::Down => (SERVER, CLIENT),
        };
        let (source, destination) = (source.into(), destination.into());
        let builder = TcpBuilder { source, destination, seq: 1, ack: 1, flags, window: 1_000, options: &[] };
        let mut bytes = Vec::new();
        builder.write(payload, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn response_time_starts_at_the_last_packet_of_the_request() {
        let mut reactions = Reactions::default();
        let at = |micros| Time::ZERO + Duration::from_micros(micros);
        let (request, response) = (
            packet(PacketDirection::Up, Flags::ACK, b"GET"),
            packet(PacketDirection::Down, Flags::ACK, b"200"),
        );
        let ack = packet(PacketDirection::Down, Flags::ACK, b"");
        reactions.sent(at(0), PacketDirection::Up, &packet(PacketDirection::Up, Flags::SYN, b""));
        reactions.delivered(at(10), PacketDirection::Up, &request);
        reactions.delivered(at(20), PacketDirection::Up, &request);
        reactions.sent(at(21), PacketDirection::Down, &ack);
        reactions.sent(at(3_720), PacketDirection::Down, &response);
        reactions.sent(at(3_730), PacketDirection::Down, &response);
        assert_eq!(reactions.response_times, [Duration::from_micros(3_700)]);
        assert_eq!(reactions.think_times, []);
    }

    #[test]
    fn think_time_runs_from_the_last_data_to_the_next_request_or_syn() {
        let mut reactions = Reactions::default();
        let at = |micros| Time::ZERO + Duration::from_micros(micros);
        let response = packet(PacketDirection::Down, Flags::ACK, b"200");
        reactions.delivered(
            at(70),
            PacketDirection::Down,
            &packet(PacketDirection::Down, Flags::SYN | Flags::ACK, b""),
        );
        reactions.sent(at(75), PacketDirection::Up, &packet(PacketDirection::Up, Flags::ACK, b""));
        reactions.sent(at(80), PacketDirection::Up, &packet(PacketDirection::Up, Flags::ACK, b"GET"));
        reactions.delivered(at(100), PacketDirection::Down, &response);
        reactions.delivered(at(200), PacketDirection::Down, &response);
        reactions.sent(at(210), PacketDirection::Up, &packet(PacketDirection::Up, Flags::ACK, b""));
        reactions.sent(at(250), PacketDirection::Up, &packet(PacketDirection::Up, Flags::SYN, b""));
        reactions.sent(at(950), PacketDirection::Up, &packet(PacketDirection::Up, Flags::ACK, b"GET"));
        assert_eq!(reactions.think_times, [10, 50].map(Duration::from_micros));
    }
    #[test]
    fn response_on_a_connection_opened_by_the_server_is_timed_in_two_parts() {
        const LISTENER: ([u8; 4], u16) = ([10, 0, 0, 1], 50_000);
        const OPENED: ([u8; 4], u16) = ([10, 0, 0, 2], 60_000);
        let at = |micros| Time::ZERO + Duration::from_micros(micros);
        let opened = |direction, flags, payload: &[u8]| {
            let (source, destination) = match direction {
                PacketDirection::Up => (LISTENER, OPENED),
                PacketDirection::Down => (OPENED, LISTENER),
            };
            let (source, destination) = (source.into(), destination.into());
            let builder =
                TcpBuilder { source, destination, seq: 1, ack: 1, flags, window: 1_000, options: &[] };
            let mut bytes = Vec::new();
            builder.write(payload, &mut bytes).unwrap();
            bytes
        };
        let mut reactions = Reactions::default();
        for (request, extra) in [(0, 0), (10_000, 7)] {
            reactions.delivered(
                at(request),
                PacketDirection::Up,
                &packet(PacketDirection::Up, Flags::ACK, b"GET"),
            );
            if request == 0 {
                let syn = opened(PacketDirection::Down, Flags::SYN, b"");
                reactions.sent(at(30), PacketDirection::Down, &syn);
                reactions.delivered(at(100), PacketDirection::Down, &syn);
                let syn_ack = opened(PacketDirection::Up, Flags::SYN | Flags::ACK, b"");
                reactions.sent(at(110), PacketDirection::Up, &syn_ack);
                reactions.delivered(at(180), PacketDirection::Up, &syn_ack);
            }
            let data = opened(PacketDirection::Down, Flags::ACK, b"200");
            reactions.sent(at(request + 200 + extra), PacketDirection::Down, &data);
            reactions.sent(at(request + 300), PacketDirection::Down, &data);
        }
        assert_eq!(reactions.response_times, [50, 207].map(Duration::from_micros));
        assert_eq!(reactions.think_times, []);
    }
}
