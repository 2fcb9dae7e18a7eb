//! QUIC's ends of a run as traces of qlog: their datagrams, what they knew of losses, and their windows.
//!
//! Times are virtual. Nothing depends on the computer: the same run gives the same bytes.

use std::collections::{BTreeMap, VecDeque};

use ::qlog::write::{Metrics, TraceWriter};
use fetch::Recovery;
use quic::initial::begins_connection;
use quic::packet::packets;
use tls::KeyLog;
use tls::decrypt::Sender;

pub use ::qlog::write::file;

use crate::capture::{CapturePoint, Sealers};
use crate::page::PageResult;
use crate::page::flow::Flow;
use crate::world::{CLIENT, ObservationPoint, Record};

/// A connection at one end: its flow, its number between the same ports, and its end.
type EndId = (Flow, usize, Side);

/// An end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    Client,
    Server,
}

impl Side {
    const fn sender(self) -> Sender {
        match self {
            Self::Client => Sender::Client,
            Self::Server => Sender::Server,
        }
    }

    fn at(is_client: bool) -> Self {
        if is_client { Self::Client } else { Self::Server }
    }
}

/// Traces in progress.
struct Traces {
    title: String,
    keys: KeyLog,
    /// Number of connections of a flow so far, and the destination of the last one's first packet.
    connections: BTreeMap<Flow, (usize, Vec<u8>)>,
    writers: BTreeMap<EndId, TraceWriter>,
    /// Changes that were not written yet.
    changes: BTreeMap<(Flow, Side), VecDeque<Recovery>>,
}

/// Returns the traces of a run at one end or at both, for [`file()`]; none if it has no QUIC.
pub fn traces(title: &str, run: &PageResult, at: CapturePoint) -> Vec<String> {
    let mut sealers = Sealers::default();
    let mut keys = KeyLog::default();
    keys.read(sealers.known.key_log.as_bytes());
    let (connections, writers) = (BTreeMap::new(), BTreeMap::new());
    let mut traces = Traces { title: title.to_owned(), keys, connections, writers, changes: BTreeMap::new() };
    for probe in &run.quic_probes {
        let side = Side::at(probe.local.host == CLIENT);
        traces.changes.entry((Flow::of_quic_probe(probe), side)).or_default().push_back(probe.recovery);
    }
    for record in run.records.iter().filter(|record| Flow::of(record).has_quic()) {
        let end = match record.seen {
            ObservationPoint::Sent => record.from,
            ObservationPoint::Received => record.to,
            ObservationPoint::Lost => continue,
        };
        if let Some(sealed) = sealers.seal(record) {
            traces.record(record, Side::at(end.host == CLIENT), &sealed.payload, at);
        }
    }
    traces.finish()
}

impl Traces {
    /// Handles a datagram that an end has sent or received.
    fn record(&mut self, record: &Record, side: Side, datagram: &[u8], at: CapturePoint) {
        let (flow, is_sent) = (Flow::of(record), record.seen == ObservationPoint::Sent);
        let from = Side::at(record.from.host == CLIENT);
        if is_sent && from == Side::Client {
            self.note_connection(flow, datagram);
        }
        let number = self.connections.get(&flow).map_or(0, |(count, _)| *count);
        if !at.has(side == Side::Client) {
            return;
        }
        let program = concat!("roundtrip ", env!("CARGO_PKG_VERSION"));
        let writer = self.writers.entry((flow, number, side));
        let writer = writer.or_insert_with(|| TraceWriter::new(side.sender(), program, &self.title));
        let changes = self.changes.entry((flow, side)).or_default();
        // What an end sends follows from what it has learnt at that time.
        let is_due = |change: &Recovery| change.at < record.at || change.at == record.at && is_sent;
        while let Some(change) = changes.pop_front_if(|change| is_due(change)) {
            writer.metrics(change.at, metrics(&change));
        }
        writer.datagram(record.at, from.sender(), datagram, &self.keys);
    }

    /// Counts the connections between the same ports.
    fn note_connection(&mut self, flow: Flow, datagram: &[u8]) {
        let Some(first) = packets(datagram).next() else { return };
        let known = self.connections.entry(flow).or_insert_with(|| (0, first.destination.to_vec()));
        if first.destination != known.1 && begins_connection(datagram) {
            *known = (known.0 + 1, first.destination.to_vec());
        }
    }

    fn finish(mut self) -> Vec<String> {
        for ((flow, number, side), writer) in &mut self.writers {
            let is_last = self.connections.get(flow).is_none_or(|(count, _)| count == number);
            let changes = self.changes.get_mut(&(*flow, *side)).filter(|_| is_last);
            for change in changes.map(std::mem::take).unwrap_or_default() {
                writer.metrics(change.at, metrics(&change));
            }
        }
        self.writers.into_values().map(TraceWriter::finish).collect()
    }
}

const fn metrics(recovery: &Recovery) -> Metrics {
    let Recovery { at: _, peer: _, window, round_trip, min_round_trip, lost } = *recovery;
    Metrics { window, round_trip, min_round_trip, lost }
}
