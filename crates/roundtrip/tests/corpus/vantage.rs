//! Captures of one run: at either end or half-way, whole or 68 bytes of each packet, segments as they are or merged as a
//! network card is given them.

use diagnose::{Diagnosis, Options, Seen};
use simulate::page::CLIENT;
use simulate::world::{Record, Seen as SeenAt};
use trace::Stall;
use trace::capture::Reader;
use wire::packet::Packet;
use wire::{Duration, Time};

/// Where a capture is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Vantage {
    /// At the client.
    Client,
    /// At the server.
    Server,
    /// Half-way.
    Middle,
}

impl Vantage {
    /// Every one.
    pub(crate) const ALL: [Self; 3] = [Self::Client, Self::Server, Self::Middle];

    /// As a table has it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
            Self::Middle => "middle",
        }
    }
}

/// How a capture is taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How {
    /// Where.
    pub(crate) vantage: Vantage,
    /// From one end to the other.
    pub(crate) way: Duration,
    /// Only the first 68 bytes of each packet, its Ethernet header among them.
    pub(crate) is_cut: bool,
    /// Segments that leave together are one.
    pub(crate) is_offloaded: bool,
}

/// What is found in such a capture, in milliseconds since `began`.
pub(crate) fn found(records: &[Record], how: How, began: Time) -> Vec<Stall> {
    let mut capture = Vec::new();
    simulate::capture::write(&captured(records, how), &mut capture, "").expect("a run can be written");
    diagnosed(&capture, how.is_cut, began)
}

/// The packets of such a capture.
pub(crate) fn captured(records: &[Record], how: How) -> Vec<Record> {
    let How { vantage, way, is_cut: _, is_offloaded } = how;
    let mut seen = match vantage {
        Vantage::Client => at_end(records, true),
        Vantage::Server => at_end(records, false),
        Vantage::Middle => half_way(records, way),
    };
    if is_offloaded && vantage != Vantage::Middle {
        seen = merged(seen, vantage == Vantage::Client);
    }
    seen
}

fn at_end(records: &[Record], is_client: bool) -> Vec<Record> {
    let is_here = |record: &&Record| match record.seen {
        SeenAt::Sent => (record.from.host == CLIENT) == is_client,
        SeenAt::Received => (record.to.host == CLIENT) == is_client,
        SeenAt::Lost => false,
    };
    records.iter().filter(is_here).cloned().collect()
}

/// Each packet in the middle of its way, behind the queues; of those that are lost every second one before.
fn half_way(records: &[Record], way: Duration) -> Vec<Record> {
    let mut lost = 0_u32;
    let mut passed = Vec::new();
    // When what was sent before would have arrived: up, down.
    let mut arrived = [Time::ZERO; 2];
    for (place, sent) in records.iter().enumerate().filter(|(_, record)| record.seen == SeenAt::Sent) {
        let mut after = records.iter().skip(place + 1);
        let end = after.find(|record| {
            record.seen != SeenAt::Sent && record.from == sent.from && record.segment == sent.segment
        });
        let Some(end) = end else { continue };
        let is_clients = sent.from.host == CLIENT;
        let before = &mut arrived[usize::from(is_clients)];
        if end.seen == SeenAt::Lost {
            lost += 1;
            if lost.is_multiple_of(2) {
                continue;
            }
            *before = (*before).max(sent.at + way);
        } else {
            *before = end.at;
        }
        let at = Time::ZERO + before.since(Time::ZERO).saturating_sub(way / 2);
        // All on one interface.
        let seen = if is_clients { SeenAt::Sent } else { SeenAt::Received };
        passed.push(Record { at, seen, ..sent.clone() });
    }
    passed.sort_by_key(|record| record.at);
    passed
}

/// What a card cuts into segments is seen before that at its own end.
fn merged(records: Vec<Record>, is_client: bool) -> Vec<Record> {
    /// As the kernel gives it at most.
    const MOST: usize = 45_000;
    let mut merged: Vec<Record> = Vec::new();
    for record in records {
        let is_own = (record.from.host == CLIENT) == is_client;
        if let Some(last) = merged.last_mut()
            && is_own
            && (last.at, last.from, last.to) == (record.at, record.from, record.to)
            && !last.segment.payload.is_empty()
            && !record.segment.payload.is_empty()
            && last.segment.end() == record.segment.sequence
            && last.segment.payload.len() + record.segment.payload.len() < MOST
        {
            let bytes = [&*last.segment.payload, &*record.segment.payload].concat();
            last.segment.payload = bytes.into();
            last.segment.flags.psh |= record.segment.flags.psh;
            last.segment.flags.fin |= record.segment.flags.fin;
            continue;
        }
        merged.push(record);
    }
    merged
}

fn diagnosed(capture: &[u8], is_cut: bool, began: Time) -> Vec<Stall> {
    /// Of 68 bytes Ethernet takes 14.
    const CUT: usize = 54;
    let mut reader = Reader::new(capture).expect("it was just written");
    let mut diagnosis = Diagnosis::new(Options::default());
    while let Some(frame) = reader.read().expect("it is whole") {
        let bytes = frame.ip().expect("it is IP");
        let bytes = if is_cut { bytes.get(..CUT).unwrap_or(bytes) } else { bytes };
        let packet = Packet::read(bytes).expect("its headers are there");
        diagnosis.handle(frame.at, Seen { frame: frame.number, interface: frame.interface }, &packet);
    }
    diagnosis.end();
    let flows = std::iter::from_fn(|| diagnosis.poll());
    let stall = |finding: diagnose::Finding| Stall {
        cause: finding.cause.name().to_owned(),
        at_ms: finding.at.since(Time::ZERO).as_millis_f64() - began.since(Time::ZERO).as_millis_f64(),
        lost_ms: finding.lost.as_millis_f64(),
    };
    flows.flat_map(|flow| flow.findings).map(stall).collect()
}
