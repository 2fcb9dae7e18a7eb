//! A simulated run as a time-sequence plot.

use std::collections::BTreeMap;

use render::plot::time_sequence::{CongestionWindow, End, ObservationPoint, Packet, Panel, Stall};
use simulate::page::{CLIENT, Flow, SERVER};
use simulate::world::{ObservationPoint as SeenAt, Probe, Record};
use simulate::{Experiment, PageResult};
use tcp::Payload;
use trace::Stall as Named;
use wire::packet::Flags;
use wire::{Duration, Time};

/// The panel of one run that captured its packets.
pub fn panel(title: String, experiment: &Experiment, fetched: &PageResult) -> Panel {
    let mut scales: BTreeMap<Flow, Scales> = BTreeMap::new();
    let mut datagrams = Datagrams::default();
    let packet = |record: &Record| match Flow::of(record).is_datagrams() {
        true => datagrams.packet(record, fetched.began),
        false => packet(record, fetched.began, &mut scales),
    };
    let packets = fetched.records.iter().map(packet).collect();
    let stalls = experiment.spent(fetched).stalls.iter().map(stall).collect();
    let windows = fetched.probes.iter().filter(|probe| probe.local.host == SERVER);
    let windows = windows.map(|probe| window_of(probe, fetched.began)).collect();
    Panel { title, seen_by: End::Server, sender: End::Server, packets, windows, stalls }
}

fn window_of(probe: &Probe, began: Time) -> CongestionWindow {
    let Probe { at, local: _, peer: _, stats } = probe;
    let connection = Flow::of_probe(probe).number();
    CongestionWindow { at: Time::ZERO + at.since(began), connection, bytes: stats.cwnd }
}

/// Window scales in the SYNs of a connection: client, server.
type Scales = [Option<Option<u8>>; 2];

/// Datagrams in flight. They have no sequence numbers: each end's get consecutive ones here.
#[derive(Default)]
struct Datagrams {
    /// The client's and the server's datagrams, with the sequence number of each first byte.
    sent: [Vec<(Payload, u64)>; 2],
    /// Next sequence number of each end.
    next: [u64; 2],
}

impl Datagrams {
    fn packet(&mut self, record: &Record, began: Time) -> Packet {
        let Record { at, seen, from, to: _, segment } = record;
        let is_client = from.host == CLIENT;
        let end = usize::from(!is_client);
        let bytes = segment.payload.len() as u64;
        let sequence = match seen {
            SeenAt::Sent => {
                let sequence = self.next[end];
                self.next[end] += bytes;
                self.sent[end].push((segment.payload.clone(), sequence));
                sequence
            }
            // Identical datagrams are indistinguishable.
            SeenAt::Received | SeenAt::Lost => {
                let index = self.sent[end].iter().position(|(payload, _)| *payload == segment.payload);
                index.map_or(self.next[end], |index| self.sent[end].remove(index).1)
            }
        };
        Packet {
            at: Time::ZERO + at.since(began),
            connection: Flow::of(record).number(),
            sender: if is_client { End::Client } else { End::Server },
            seen: sighting(*seen),
            sequence,
            bytes,
            acknowledged: None,
            window: None,
            flags: Flags::default(),
            number: None,
        }
    }
}

const fn sighting(seen: SeenAt) -> ObservationPoint {
    match seen {
        SeenAt::Sent => ObservationPoint::Sent,
        SeenAt::Received => ObservationPoint::Received,
        SeenAt::Lost => ObservationPoint::Lost,
    }
}

fn packet(record: &Record, began: Time, scales: &mut BTreeMap<Flow, Scales>) -> Packet {
    let Record { at, seen, from, to: _, segment } = record;
    let is_client = from.host == CLIENT;
    let scales = scales.entry(Flow::of(record)).or_default();
    if segment.flags.syn {
        let scale = segment.options.syn.as_ref().and_then(|syn| syn.window_scale);
        scales[usize::from(!is_client)] = Some(scale);
    }
    Packet {
        at: Time::ZERO + at.since(began),
        connection: Flow::of(record).number(),
        sender: if is_client { End::Client } else { End::Server },
        seen: sighting(*seen),
        sequence: segment.sequence,
        bytes: segment.payload.len() as u64,
        acknowledged: segment.flags.ack.then_some(segment.acknowledgement),
        window: window(segment.window, segment.flags.syn, *scales, is_client),
        flags: Flags::from(segment.flags),
        number: None,
    }
}

/// Windows are scaled only if both ends sent the option, and never in a SYN.
fn window(field: u16, is_syn: bool, scales: Scales, is_client: bool) -> Option<u64> {
    let [client, server] = scales;
    let shift = match (client?, server?) {
        (Some(client), Some(_)) if is_client => client,
        (Some(_), Some(server)) => server,
        (None, _) | (_, None) => 0,
    };
    Some(u64::from(field) << if is_syn { 0 } else { shift.min(14) })
}

fn stall(named: &Named) -> Stall {
    let Named { cause, at_ms, lost_ms } = named;
    let span = |millis: f64| Duration::from_secs_f64(millis / 1e3).unwrap_or_default();
    Stall {
        name: cause.name().to_owned(),
        at: Time::ZERO + span(*at_ms),
        lost: span(*lost_ms),
        is_note: false,
        evidence: String::new(),
    }
}
