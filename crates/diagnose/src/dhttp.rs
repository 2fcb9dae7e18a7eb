//! DHTTP: requests in datagrams, responses in datagrams or on TCP connections that the server opens (docs/dhttp.md),
//! paired by their ids.
//!
//! | module | contents |
//! | --- | --- |
//! | (here) | [`Dialogues`]: all clients and servers |
//! | `dialogue` | one client and one server: requests, responses, and where their time went |
//!
//! Messages are read by [`dissect::dhttp`]. Not UDP in general: a server is recognized by a request to it, and
//! datagrams that belong to no request are skipped.

mod dialogue;

use core::net::{IpAddr, SocketAddr};
use std::collections::{BTreeMap, VecDeque};

use dissect::Mark;
use dissect::dhttp::{Request, split_id};
use wire::packet::{Packet, TcpSegment, UdpDatagram};
use wire::{Duration, Time};

use crate::options::Options;
use crate::report::FlowReport;

use dialogue::Dialogue;

/// Every client with every server.
#[derive(Debug, Default)]
pub(crate) struct Dialogues {
    /// By the client's and the server's UDP sockets.
    all: BTreeMap<(SocketAddr, SocketAddr), Dialogue>,
    /// Addresses to which servers may open connections: the client's address and TCP port, the server's address.
    response_ports: BTreeMap<(IpAddr, u16, IpAddr), (SocketAddr, SocketAddr)>,
    finished: VecDeque<FlowReport>,
}

/// Maximum number of concurrent dialogues; beyond it the longest idle ones are dropped.
const MAX_DIALOGUES: usize = 1 << 12;
/// Maximum number of remembered client ports.
const MAX_RESPONSE_PORTS: usize = 1 << 13;
/// Idle time after which a new request begins another dialogue.
const OVER: Duration = Duration::from_secs(60);

impl Dialogues {
    /// Handles a datagram; returns whether it belongs to a dialogue.
    pub(crate) fn datagram(
        &mut self,
        mark: Mark,
        packet: &Packet<'_>,
        udp: UdpDatagram<'_>,
        options: Options,
    ) -> bool {
        let Some((source, destination)) = packet.sockets() else { return false };
        if let Some(request) = Request::read(udp.payload) {
            let key = (source, destination);
            self.evict_idle(key, mark.at);
            let dialogue =
                self.all.entry(key).or_insert_with(|| Dialogue::new(source, destination, mark, options));
            let mark = dialogue.count_packet(mark, udp.payload_length);
            dialogue.request(mark, &request);
            if request.port > 0 && self.response_ports.len() < MAX_RESPONSE_PORTS {
                self.response_ports.insert((source.ip(), request.port, destination.ip()), key);
            }
            true
        } else if let Some(dialogue) = self.all.get_mut(&(destination, source))
            && let Some((id, rest)) = split_id(udp.payload)
        {
            let mark = dialogue.count_packet(mark, udp.payload_length);
            dialogue.respond(mark, id, rest);
            true
        } else {
            false
        }
    }

    /// Handles a TCP segment: it is relevant if a server opened its connection to send responses.
    pub(crate) fn segment(&mut self, mark: Mark, packet: &Packet<'_>, tcp: TcpSegment<'_>) {
        if self.response_ports.is_empty() {
            return;
        }
        let Some((server, client)) = packet.sockets() else { return };
        let Some(key) = self.response_ports.get(&(client.ip(), client.port(), server.ip())) else { return };
        let Some(dialogue) = self.all.get_mut(key) else { return };
        dialogue.opened(mark, server, tcp);
    }

    /// Returns whether a connection from `client` to `server` is one that a DHTTP server opened to send responses.
    pub(crate) fn is_for_responses(&self, client: SocketAddr, server: SocketAddr) -> bool {
        self.response_ports.contains_key(&(server.ip(), server.port(), client.ip()))
    }

    /// Returns the report of a finished dialogue, if there is one.
    pub(crate) fn poll(&mut self) -> Option<FlowReport> {
        self.finished.pop_front()
    }

    /// Finishes all dialogues at the end of the capture.
    pub(crate) fn end(&mut self) {
        let all = std::mem::take(&mut self.all);
        self.finished.extend(all.into_values().map(Dialogue::finish));
    }

    /// Finishes idle dialogues before another begins.
    fn evict_idle(&mut self, key: (SocketAddr, SocketAddr), now: Time) {
        if self.all.get(&key).is_some_and(|dialogue| now.since(dialogue.last_at) > OVER) {
            self.finished.extend(self.all.remove(&key).map(Dialogue::finish));
        }
        if self.all.len() < MAX_DIALOGUES {
            return;
        }
        let mut silent: Vec<_> = self.all.iter().map(|(key, dialogue)| (dialogue.last_at, *key)).collect();
        silent.sort_unstable();
        for (_, key) in silent.into_iter().take(MAX_DIALOGUES / 8) {
            self.finished.extend(self.all.remove(&key).map(Dialogue::finish));
        }
        self.response_ports.retain(|_, key| self.all.contains_key(key));
    }
}
