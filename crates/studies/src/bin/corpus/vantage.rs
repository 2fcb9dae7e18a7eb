//! Captures of one run: at either end or halfway, whole or 68 bytes of each packet, segments as sent or merged as
//! before a network card's segmentation.

use std::collections::BTreeMap;

use diagnose::{Account, Cause, Diagnosis, Finding, FlowReport, Options, PacketPosition};
use packets::Reader;
use simulate::page::CLIENT;
use simulate::world::{Address, ObservationPoint as SeenAt, Record};
use trace::Stall;
use wire::packet::Packet;
use wire::{Duration, Time};

/// Vantage point of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Vantage {
    /// At the client.
    Client,
    /// At the server.
    Server,
    /// Halfway.
    Middle,
}

impl Vantage {
    /// Every vantage point.
    pub(crate) const ALL: [Self; 3] = [Self::Client, Self::Server, Self::Middle];

    /// Name in a table.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
            Self::Middle => "middle",
        }
    }
}

/// Properties of a capture.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CaptureProperties {
    /// Its vantage point.
    pub(crate) vantage: Vantage,
    /// One-way delay of the path.
    pub(crate) one_way_delay: Duration,
    /// Whether it has only the first 68 bytes of each packet, including the Ethernet header.
    pub(crate) is_cut: bool,
    /// Whether segments that leave together are one.
    pub(crate) is_offloaded: bool,
    /// Whether each connection's packets have an IP ID, as Linux counts them.
    pub(crate) is_numbered: bool,
}

/// A packet with its IP ID; 0 where packets have none.
#[derive(Clone, Debug)]
pub(crate) struct NumberedPacket {
    pub(crate) record: Record,
    pub(crate) number: u16,
}

/// Stalls in such a capture, in milliseconds since `began`, and its account of time.
pub(crate) fn found(records: &[Record], properties: CaptureProperties, began: Time) -> (Vec<Stall>, Account) {
    reported(reports(records, properties), began)
}

/// Stalls in reports, in milliseconds since `began`, and their account of time.
pub(crate) fn reported(reports: Vec<FlowReport>, began: Time) -> (Vec<Stall>, Account) {
    let stall = |finding: Finding| Stall {
        cause: finding.cause,
        at_ms: finding.at.since(Time::ZERO).as_millis_f64() - began.since(Time::ZERO).as_millis_f64(),
        lost_ms: finding.lost.as_millis_f64(),
    };
    let (mut stalls, mut account) = (Vec::new(), Account::default());
    for flow in reports {
        account.merge(&flow.account);
        // Notes on the path are as long as the connection, and the endpoints know of no path.
        stalls.extend(flow.findings.into_iter().filter(|finding| !is_of_the_path(finding.cause)).map(stall));
    }
    (stalls, account)
}

const fn is_of_the_path(cause: Cause) -> bool {
    matches!(cause, Cause::PathLatency | Cause::BandwidthLimited | Cause::BottleneckQueue)
}

/// Reports on each connection in such a capture.
pub(crate) fn reports(records: &[Record], properties: CaptureProperties) -> Vec<FlowReport> {
    let packets = captured(records, properties);
    let numbers: Vec<u16> = packets.iter().map(|packet| packet.number).collect();
    let records: Vec<Record> = packets.into_iter().map(|packet| packet.record).collect();
    let mut capture = Vec::new();
    simulate::capture::write(&records, simulate::capture::CapturePoint::Both, &mut capture, "")
        .expect("a run can be written");
    diagnose(&capture, &numbers, properties.is_cut)
}

/// The packets of such a capture.
pub(crate) fn captured(records: &[Record], properties: CaptureProperties) -> Vec<NumberedPacket> {
    let CaptureProperties { vantage, one_way_delay, is_cut: _, is_offloaded, is_numbered } = properties;
    let mut packets = number_packets(records);
    if !is_numbered {
        packets.iter_mut().for_each(|packet| packet.number = 0);
    }
    let mut seen = match vantage {
        Vantage::Client => at_end(&packets, true),
        Vantage::Server => at_end(&packets, false),
        Vantage::Middle => mid_path(&packets, one_way_delay),
    };
    if is_offloaded && vantage != Vantage::Middle {
        seen = merged(seen, vantage == Vantage::Client);
    }
    seen
}

/// Assigns IP IDs to packets, which reveal earlier packets even if they are lost.
fn number_packets(records: &[Record]) -> Vec<NumberedPacket> {
    let mut next: BTreeMap<Address, u16> = BTreeMap::new();
    let mut in_flight: Vec<(&Record, u16)> = Vec::new();
    let mut numbered = Vec::new();
    for record in records {
        let number = if record.seen == SeenAt::Sent {
            let next = next.entry(record.from).or_insert(record.from.port);
            *next = next.wrapping_add(1);
            in_flight.push((record, *next));
            *next
        } else {
            let is_same =
                |(sent, _): &(&Record, u16)| sent.from == record.from && sent.segment == record.segment;
            let index = in_flight.iter().position(is_same).expect("what arrives or is lost was sent");
            in_flight.remove(index).1
        };
        numbered.push(NumberedPacket { record: record.clone(), number });
    }
    numbered
}

fn at_end(packets: &[NumberedPacket], is_client: bool) -> Vec<NumberedPacket> {
    let is_at_this_end = |packet: &&NumberedPacket| match packet.record.seen {
        SeenAt::Sent => (packet.record.from.host == CLIENT) == is_client,
        SeenAt::Received => (packet.record.to.host == CLIENT) == is_client,
        SeenAt::Lost => false,
    };
    packets.iter().filter(is_at_this_end).cloned().collect()
}

/// Returns each packet halfway along the path, after the queues; every second lost packet is lost after that point.
fn mid_path(packets: &[NumberedPacket], one_way_delay: Duration) -> Vec<NumberedPacket> {
    let mut lost = 0_u32;
    let mut passed = Vec::new();
    // Time at which the previous packet would have arrived: up, down.
    let mut arrived = [Time::ZERO; 2];
    for (index, sent) in packets.iter().enumerate() {
        if sent.record.seen != SeenAt::Sent {
            continue;
        }
        let after = packets.iter().skip(index + 1).map(|packet| &packet.record);
        let mut ends = after.filter(|record| {
            record.seen != SeenAt::Sent
                && record.from == sent.record.from
                && record.segment == sent.record.segment
        });
        let Some(end) = ends.next() else { continue };
        let is_clients = sent.record.from.host == CLIENT;
        let before = &mut arrived[usize::from(is_clients)];
        if end.seen == SeenAt::Lost {
            lost += 1;
            if lost.is_multiple_of(2) {
                continue;
            }
            *before = (*before).max(sent.record.at + one_way_delay);
        } else {
            *before = end.at;
        }
        let at = Time::ZERO + before.since(Time::ZERO).saturating_sub(one_way_delay / 2);
        // All packets are on one interface.
        let seen = if is_clients { SeenAt::Sent } else { SeenAt::Received };
        passed
            .push(NumberedPacket { record: Record { at, seen, ..sent.record.clone() }, number: sent.number });
    }
    passed.sort_by_key(|packet| packet.record.at);
    passed
}

/// Merges segments at the sender's end as before the card's segmentation, with the IP ID of the first.
fn merged(packets: Vec<NumberedPacket>, is_client: bool) -> Vec<NumberedPacket> {
    /// Maximum size that the kernel passes to the card, in bytes.
    const MAX_SEGMENT_BYTES: usize = 45_000;
    let mut merged: Vec<NumberedPacket> = Vec::new();
    for packet in packets {
        let record = &packet.record;
        let is_own = (record.from.host == CLIENT) == is_client;
        if let Some(NumberedPacket { record: last, number: _ }) = merged.last_mut()
            && is_own
            && (last.at, last.from, last.to) == (record.at, record.from, record.to)
            && !last.segment.payload.is_empty()
            && !record.segment.payload.is_empty()
            && last.segment.end() == record.segment.sequence
            && last.segment.payload.len() + record.segment.payload.len() < MAX_SEGMENT_BYTES
        {
            let bytes = [&*last.segment.payload, &*record.segment.payload].concat();
            last.segment.payload = bytes.into();
            last.segment.flags.psh |= record.segment.flags.psh;
            last.segment.flags.fin |= record.segment.flags.fin;
            continue;
        }
        merged.push(packet);
    }
    merged
}

fn diagnose(capture: &[u8], numbers: &[u16], is_cut: bool) -> Vec<FlowReport> {
    /// 68 bytes without the 14 of Ethernet.
    const CUT: usize = 54;
    let mut reader = Reader::new(capture).expect("it was just written");
    let mut diagnosis = Diagnosis::new(Options::default());
    let mut numbers = numbers.iter();
    while let Some(frame) = reader.read().expect("it is whole") {
        let bytes = frame.ip().expect("it is IP");
        let bytes = if is_cut { bytes.get(..CUT).unwrap_or(bytes) } else { bytes };
        let mut packet = Packet::read(bytes).expect("its headers are there");
        packet.identification = *numbers.next().expect("each packet has one");
        diagnosis.handle(
            frame.at,
            PacketPosition { frame: frame.number, interface: frame.interface },
            &packet,
        );
    }
    diagnosis.end();
    std::iter::from_fn(|| diagnosis.poll()).collect()
}
