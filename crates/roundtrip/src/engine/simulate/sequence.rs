//! A simulated run as a time-sequence plot.

use ::simulate::page::{CLIENT, SERVER};
use ::simulate::world::{Probe, Record, Seen as SeenAt};
use ::simulate::{Experiment, Fetched};
use std::collections::BTreeMap;
use trace::Stall as Named;
use wire::packet::Flags;
use wire::{Duration, Time};

use crate::plot::time_sequence::{CongestionWindow, End, Packet, Panel, Seen, Stall};

/// The panel of one run that kept its packets.
pub fn panel(title: String, experiment: &Experiment, fetched: &Fetched) -> Panel {
    let mut scales: BTreeMap<u16, Scales> = BTreeMap::new();
    let packets = fetched.records.iter().map(|record| packet(record, fetched.began, &mut scales)).collect();
    let stalls = experiment.spent(fetched).stalls.iter().map(stall).collect();
    let windows = fetched.probes.iter().filter(|probe| probe.local.host == SERVER);
    let windows = windows.map(|probe| window_of(probe, fetched.began)).collect();
    Panel { title, seen_by: End::Server, sender: End::Server, packets, windows, stalls }
}

fn window_of(probe: &Probe, began: Time) -> CongestionWindow {
    let Probe { at, local: _, peer, vitals } = probe;
    let connection = u64::from(peer.port);
    CongestionWindow { at: Time::ZERO + at.since(began), connection, bytes: vitals.cwnd }
}

/// What the SYNs of a connection have said of shifting windows: client, server.
type Scales = [Option<Option<u8>>; 2];

fn packet(record: &Record, began: Time, scales: &mut BTreeMap<u16, Scales>) -> Packet {
    let Record { at, seen, from, to, segment } = record;
    let is_client = from.host == CLIENT;
    let client = if is_client { from } else { to };
    let scales = scales.entry(client.port).or_default();
    if segment.flags.syn {
        let scale = segment.options.syn.as_ref().and_then(|syn| syn.window_scale);
        scales[usize::from(!is_client)] = Some(scale);
    }
    Packet {
        at: Time::ZERO + at.since(began),
        connection: u64::from(client.port),
        sender: if is_client { End::Client } else { End::Server },
        seen: match seen {
            SeenAt::Sent => Seen::Sent,
            SeenAt::Received => Seen::Received,
            SeenAt::Lost => Seen::Lost,
        },
        sequence: segment.sequence,
        bytes: segment.payload.len() as u64,
        acknowledged: segment.flags.ack.then_some(segment.acknowledgement),
        window: window(segment.window, segment.flags.syn, *scales, is_client),
        flags: Flags::from(segment.flags),
    }
}

/// Windows are shifted only where both ends said that they can, and never in a SYN.
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
    Stall { name: cause.clone(), at: Time::ZERO + span(*at_ms), lost: span(*lost_ms) }
}
