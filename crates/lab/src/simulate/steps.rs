//! A simulated run packet by packet: when each packet left and arrived, and the reason for both.
//!
//! Waits are those of the simulator's account of stalls; windows, limits and timers are those that the endpoints report. The
//! sentences are made of both (`sentences`): there is no text for a certain packet or scenario.

mod sentences;

use std::collections::BTreeMap;

use simulate::page::{CLIENT, Flow};
use simulate::world::{ObservationPoint, Probe, Record};
use tcp::ConnectionStats;
use trace::Stall;
use wire::{Duration, Time};

use super::FirstRun;

/// One packet of a run, from its transmission until it arrives.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Time at which it was sent, since the page was requested.
    pub sent: Time,
    /// Time of its end: its arrival or its loss. `None` where the run ends before.
    pub ended: Option<Time>,
    /// Whether it was lost.
    pub is_lost: bool,
    /// Whether the client sent it.
    pub is_from_client: bool,
    /// Number of its connection, from 1, in the order of their first packets.
    pub connection: usize,
    /// Kind: `syn`, `data`, `ack`, `fin`, `rst` or `datagram`.
    pub kind: &'static str,
    /// Short name: its flags, sequence numbers or acknowledgement number.
    pub name: String,
    /// Its tooltip in the plot, without the time; `None` if the plot has no symbol for it.
    pub plotted: Option<String>,
    /// Its action, the reason why it left at that time, and its effect, as sentences.
    pub sentences: Vec<String>,
    /// Stalls that ended with it.
    pub stalls: Vec<Stall>,
}

/// The first packets of a run that recorded them, at most `limit`, and the number of all.
pub fn of(first: FirstRun<'_>, limit: usize) -> (Vec<Step>, usize) {
    let FirstRun { scenario: _, experiment, result } = first;
    let trips = trips(&result.records);
    let count = trips.len();
    let mut stalls: BTreeMap<usize, Vec<Stall>> = BTreeMap::new();
    for (record, stall) in experiment.stalls_by_record(result) {
        stalls.entry(record).or_default().push(stall);
    }
    let ends = Ends::of(&result.probes);
    let walk = Walk { began: result.began, ends, connections: connections(&trips), largest: largest(&trips) };
    let mut steps = Vec::new();
    for (index, trip) in trips.iter().enumerate().take(limit) {
        let is_last = !trips[index + 1..]
            .iter()
            .take_while(|next| next.record.at == trip.record.at)
            .any(|next| next.record.from == trip.record.from && next.record.to == trip.record.to);
        steps.push(walk.step(trip, is_last, stalls.remove(&trip.index).unwrap_or_default()));
    }
    (steps, count)
}

/// A packet, with what its sender had received before.
struct Trip<'a> {
    record: &'a Record,
    /// Index of the record.
    index: usize,
    ended: Option<Time>,
    is_lost: bool,
    /// Segments with data, SYNs or FINs that arrived at its sender since its last acknowledgement, and are acknowledged by this
    /// packet; time since the last of them arrived.
    acknowledges: usize,
    ack_delay: Duration,
    /// Whether its sender has received data beyond a gap.
    has_gap: bool,
    /// Whether it repeats the acknowledgement number of its sender's last packet.
    repeats_ack: bool,
    /// Time at which its sender last received an acknowledgement of new data.
    let_go: Option<Time>,
    /// Whether some of its data was sent before.
    is_retransmission: bool,
}

/// State of one end of a flow while the records are read.
#[derive(Default)]
struct EndState {
    /// Packets in flight from here: indices of trips.
    in_flight: Vec<usize>,
    /// Ends of segments that have arrived and are not acknowledged, with their times.
    arrived: Vec<(u64, Time)>,
    last_ack: Option<u64>,
    highest_acked: u64,
    let_go: Option<Time>,
    next: u64,
}

/// All packets in the order of their transmission.
fn trips(records: &[Record]) -> Vec<Trip<'_>> {
    let mut ends: BTreeMap<(Flow, bool), EndState> = BTreeMap::new();
    let mut trips: Vec<Trip<'_>> = Vec::new();
    for (index, record) in records.iter().enumerate() {
        let key = (Flow::of(record), record.from.host == CLIENT);
        let end = ends.entry(key).or_default();
        if record.seen == ObservationPoint::Sent {
            end.in_flight.push(trips.len());
            trips.push(end.send(record, index));
            continue;
        }
        // Identical packets arrive in the order of their transmission.
        let position = end.in_flight.iter().position(|at| trips[*at].record.segment == record.segment);
        let Some(position) = position else { continue };
        let trip = &mut trips[end.in_flight.remove(position)];
        (trip.ended, trip.is_lost) = (Some(record.at), record.seen == ObservationPoint::Lost);
        if !trip.is_lost {
            ends.entry((key.0, !key.1)).or_default().receive(record);
        }
    }
    trips
}

impl EndState {
    fn send<'a>(&mut self, record: &'a Record, index: usize) -> Trip<'a> {
        let segment = &record.segment;
        let number = segment.flags.ack.then_some(segment.acknowledgement);
        let acknowledged = |(end, _): &(u64, Time)| number.is_some_and(|number| *end <= number);
        let last = self.arrived.iter().filter(|arrived| acknowledged(arrived)).map(|(_, at)| *at).max();
        let acknowledges = self.arrived.iter().filter(|arrived| acknowledged(arrived)).count();
        self.arrived.retain(|arrived| !acknowledged(arrived));
        let trip = Trip {
            record,
            index,
            ended: None,
            is_lost: false,
            acknowledges,
            ack_delay: last.map_or(Duration::ZERO, |last| record.at.since(last)),
            has_gap: !self.arrived.is_empty(),
            repeats_ack: number.is_some() && number == self.last_ack,
            let_go: self.let_go,
            is_retransmission: !segment.payload.is_empty() && segment.sequence < self.next,
        };
        self.last_ack = number.or(self.last_ack);
        self.next = self.next.max(segment.end());
        trip
    }

    fn receive(&mut self, record: &Record) {
        let segment = &record.segment;
        if segment.end() > segment.sequence {
            self.arrived.push((segment.end(), record.at));
        }
        if segment.flags.ack && segment.acknowledgement > self.highest_acked {
            self.highest_acked = segment.acknowledgement;
            self.let_go = Some(record.at);
        }
    }
}

/// Numbers of connections, in the order of their first packets.
fn connections(trips: &[Trip<'_>]) -> BTreeMap<Flow, usize> {
    let mut numbers = BTreeMap::new();
    for trip in trips {
        let next = numbers.len() + 1;
        numbers.entry(Flow::of(trip.record)).or_insert(next);
    }
    numbers
}

/// Longest payload of the server and of the client.
fn largest(trips: &[Trip<'_>]) -> [usize; 2] {
    [false, true].map(|is_client| {
        let own = trips.iter().filter(|trip| (trip.record.from.host == CLIENT) == is_client);
        own.map(|trip| trip.record.segment.payload.len()).max().unwrap_or_default()
    })
}

/// Reported states of both ends of every connection, in order of time.
struct Ends<'a>(BTreeMap<(Flow, bool), Vec<&'a Probe>>);

impl<'a> Ends<'a> {
    fn of(probes: &'a [Probe]) -> Self {
        let mut ends: BTreeMap<(Flow, bool), Vec<&Probe>> = BTreeMap::new();
        for probe in probes {
            ends.entry((Flow::of_probe(probe), probe.local.host == CLIENT)).or_default().push(probe);
        }
        Self(ends)
    }

    /// State of an end before a time.
    fn before(&self, end: (Flow, bool), at: Time) -> Option<&ConnectionStats> {
        self.earlier(end, |probe| probe < at).last().map(|probe| &probe.stats)
    }

    /// State of an end after everything that happened at a time.
    fn after(&self, end: (Flow, bool), at: Time) -> Option<&ConnectionStats> {
        self.earlier(end, |probe| probe <= at).last().map(|probe| &probe.stats)
    }

    /// The largest congestion window just before and at a time.
    fn largest_window(&self, end: (Flow, bool), at: Time) -> Option<u64> {
        let (before, until) =
            (self.earlier(end, |probe| probe < at).len(), self.earlier(end, |probe| probe <= at));
        until[before.saturating_sub(1)..].iter().map(|probe| probe.stats.cwnd).max()
    }

    fn earlier(&self, end: (Flow, bool), is_earlier: impl Fn(Time) -> bool) -> &[&'a Probe] {
        let probes = self.0.get(&end).map_or(&[][..], Vec::as_slice);
        &probes[..probes.partition_point(|probe| is_earlier(probe.at))]
    }
}

/// Facts of a run that the sentences are made of.
struct Walk<'a> {
    began: Time,
    ends: Ends<'a>,
    connections: BTreeMap<Flow, usize>,
    /// Longest payload of the server and of the client.
    largest: [usize; 2],
}

impl Walk<'_> {
    fn step(&self, trip: &Trip<'_>, is_last: bool, stalls: Vec<Stall>) -> Step {
        let Trip { record, ended, is_lost, .. } = trip;
        let flow = Flow::of(record);
        let since = |at: Time| Time::ZERO + at.since(self.began);
        let (kind, name) = sentences::kind_and_name(&record.segment, flow);
        let is_from_client = record.from.host == CLIENT;
        let (segment, bytes) = (&record.segment, record.segment.payload.len());
        let plotted = (bytes > 0 && !flow.is_datagrams()).then(|| match is_from_client {
            true => format!("{bytes} bytes of the client"),
            false => format!("{}:{} ({bytes} bytes)", segment.sequence, segment.sequence + bytes as u64),
        });
        Step {
            sent: since(record.at),
            ended: ended.map(since),
            is_lost: *is_lost,
            is_from_client,
            connection: self.connections[&flow],
            kind,
            name,
            plotted,
            sentences: self.sentences(trip, is_last, &stalls),
            stalls,
        }
    }
}

#[cfg(test)]
mod tests {
    use scenario::spec::{Defaults, Key};
    use scenario::{Scenario, Spec};
    use trace::Cause;

    use super::*;
    use crate::simulate;

    fn scenario(settings: &[(&str, &str)]) -> Scenario {
        let mut spec = Spec::default();
        for (key, text) in settings.iter().chain(&[("runs", "1")]) {
            spec.add(Key::named(key).unwrap(), text).unwrap();
        }
        spec.plan(&Defaults::compare()).unwrap().scenarios.swap_remove(0)
    }

    fn steps(settings: &[(&str, &str)]) -> Vec<Step> {
        let mut found = Vec::new();
        simulate::outcome(&scenario(settings), |first| found = of(first, usize::MAX).0);
        found
    }

    /// The traces of `papers/p-http`, with the sizes of its responses.
    const SUNOS: [(&str, &str); 5] = [
        ("network", "ethernet"),
        ("protocol", "http10-keepalive"),
        ("stack", "sunos-4.1.3"),
        ("server-buffer", "4096"),
        ("seed", "9"),
    ];

    fn with(more: &[(&'static str, &'static str)]) -> Vec<Step> {
        steps(&[SUNOS.as_slice(), more].concat())
    }

    fn stalled(steps: &[Step], cause: Cause) -> Vec<&Step> {
        steps.iter().filter(|step| step.stalls.iter().any(|stall| stall.cause == cause)).collect()
    }

    #[test]
    fn a_short_first_segment_is_followed_by_a_full_window_a_delayed_acknowledgement_and_the_stall() {
        let steps = with(&[("page", "6651"), ("server-head", "apart")]);
        let stalled = stalled(&steps, Cause::ShortInitialSegment)[0];
        assert_eq!((stalled.name.as_str(), stalled.is_from_client), ("1551:3011", false));
        assert!(
            stalled.sentences[0].contains("lost to short-initial-segment before"),
            "{:?}",
            stalled.sentences
        );
        let at = steps.iter().position(|step| step == stalled).unwrap();
        let [short, full, ack] = &steps[at - 3..at] else { panic!() };
        assert!(
            short.sentences[0].contains("90 bytes, 1 to 90, less than a full segment"),
            "{:?}",
            short.sentences
        );
        let text = full.sentences.join(" ");
        assert!(
            text.contains("congestion window of 2,920 bytes has no space for it: 1,550 are in flight"),
            "{text}"
        );
        assert!(text.contains("The client delays its acknowledgement, until"), "{text}");
        assert!(
            ack.sentences[0].contains("2 segments of the server, 182 ms after the last"),
            "{:?}",
            ack.sentences
        );
        assert_eq!(ack.ended, Some(stalled.sent));
    }

    #[test]
    fn a_short_last_segment_is_held_by_nagle_until_the_delayed_acknowledgement() {
        let steps = with(&[("page", "6585+4019")]);
        let stalled = stalled(&steps, Cause::NagleDelayedAck)[0];
        assert_eq!(stalled.plotted.as_deref(), Some("10772:10785 (13 bytes)"));
        let before = steps.iter().rfind(|step| step.plotted.is_some() && step.sent < stalled.sent).unwrap();
        assert!(
            before.sentences.join(" ").contains("Nagle's algorithm holds it until"),
            "{:?}",
            before.sentences
        );
    }

    #[test]
    fn a_window_that_restarts_after_idle_is_said_to_have_fallen() {
        let idle = [
            ("protocol", "http11"),
            ("client-pages", "2"),
            ("client-pause", "10s"),
            ("page", "25000"),
            ("stack", "period"),
        ];
        let run =
            |policy| steps(&[idle.as_slice(), &[("network", "fast-internet"), ("idle", policy)]].concat());
        let [restarted, kept] = ["restarted", "kept"].map(run);
        let fallen = |steps: &[Step]| {
            steps.iter().any(|step| step.sentences.join(" ").contains("congestion window has fallen"))
        };
        assert!(fallen(&restarted) && !fallen(&kept));
        assert!(!stalled(&restarted, Cause::SlowStartRestart).is_empty());
    }

    #[test]
    fn every_packet_is_a_step_with_its_end_and_every_stall_belongs_to_one() {
        let settings = [
            ("page", "60000+30000"),
            ("protocol", "http11-parallel"),
            ("requests", "independent"),
            ("rtt", "50ms"),
            ("rate", "10Mbit"),
            ("loss", "8%"),
            ("stack", "linux"),
            ("seed", "2"),
        ];
        let (mut steps, mut count, mut sent, mut stalls) = (Vec::new(), 0, 0, Vec::new());
        simulate::outcome(&scenario(&settings), |first| {
            (steps, count) = of(first, usize::MAX);
            sent = first.result.records.iter().filter(|record| record.seen == ObservationPoint::Sent).count();
            stalls = first.experiment.spent(first.result).stalls;
        });
        assert_eq!((steps.len(), count), (sent, sent));
        assert!(steps.iter().any(|step| step.is_lost) && steps.iter().any(|step| step.connection == 2));
        assert!(steps.iter().any(|step| step.sentences.iter().any(|text| text.contains("retransmits"))));
        let of_steps: Vec<Stall> = steps.iter().flat_map(|step| step.stalls.clone()).collect();
        assert_eq!(of_steps, stalls);
        assert!(steps.iter().all(|step| step.ended.is_none_or(|ended| ended >= step.sent)));
        // Each stall ends when its packet goes on the link, which may be busy until a little later.
        for step in &steps {
            for stall in &step.stalls {
                assert!(stall.at_ms + stall.lost_ms <= step.sent.as_millis_f64() + 5.0, "{step:?}");
            }
        }
    }

    #[test]
    fn datagrams_have_steps_too() {
        let steps = steps(&[
            ("page", "500"),
            ("protocol", "dhttp"),
            ("stack", "linux"),
            ("rtt", "100ms"),
            ("rate", "1Mbit"),
        ]);
        assert_eq!(steps.len(), 2);
        assert!(steps[0].sentences[0].starts_with("The client sends a datagram of "), "{:?}", steps[0]);
    }
}
