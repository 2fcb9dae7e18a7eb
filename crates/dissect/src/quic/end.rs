//! One end of a QUIC connection as a sender: what it had sent, and what it knew when it sent (RFC 9002).
//!
//! A packet counts for its receiver when it arrives: after the round trip between the point of capture and that end.

use std::collections::{BTreeMap, VecDeque};

use quic::frame::Ack;
use quic::parameters::Parameters;
use wire::{Duration, Time};

use crate::Mark;

/// Number spaces: Initial, Handshake, application data.
pub(super) const SPACES: usize = 3;
/// The space of application data.
pub(super) const DATA: usize = 2;
/// Packets acknowledged after one that is not, which is lost then (RFC 9002, section 6.1.1).
const REORDERING: u64 = 3;
/// Maximum number of packets, and of arrivals, that are remembered.
const MAX_PACKETS: usize = 1 << 13;

/// A packet in flight.
#[derive(Clone, Debug)]
pub(super) struct SentPacket {
    pub(super) mark: Mark,
    pub(super) bytes: u64,
    /// Its parts of streams: the stream, and the range.
    pub(super) ranges: Vec<(u64, u64, u64)>,
}

/// A packet that was found to be lost.
#[derive(Clone, Debug)]
struct LostPacket {
    packet: SentPacket,
    /// When the first packet behind it that was acknowledged had been sent.
    revealed_by: Time,
}

/// The previous transmission of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Previous {
    pub(super) mark: Mark,
    /// Whether acknowledgements of packets that followed it soon reported its loss; `None`: nothing that has arrived reports it.
    pub(super) is_reported: Option<bool>,
}

/// Content of a peer's packet.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrival {
    pub(super) mark: Option<Mark>,
    pub(super) at: Time,
    pub(super) acks: Vec<(usize, Ack)>,
    pub(super) limits: Vec<Limit>,
    /// Whether it has data of requests or responses.
    pub(super) has_data: bool,
}

/// A limit on what may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    /// Of the connection.
    Connection(u64),
    /// Of a stream.
    Stream(u64, u64),
}

/// An acknowledgement of something new, or a raised limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Release {
    /// Its packet, and when it arrived.
    pub(super) mark: Mark,
    pub(super) at: Time,
    /// Bytes in flight before.
    pub(super) in_flight: u64,
}

/// One end.
#[derive(Clone, Debug, Default)]
pub(super) struct End {
    sent: [BTreeMap<u64, SentPacket>; SPACES],
    lost: VecDeque<LostPacket>,
    pub(super) in_flight: u64,
    /// The largest packet that its peer has acknowledged, as captured.
    largest: [Option<u64>; SPACES],
    /// The round trip between the point of capture and this end.
    distance: Option<Duration>,
    /// Its last sample, with the queues of that time.
    latest: Duration,
    arrivals: VecDeque<Arrival>,
    /// When its peer's last packet arrived, and the last one with data.
    pub(super) arrived: Option<Time>,
    pub(super) data_arrived: Option<Mark>,
    pub(super) acked: Option<Release>,
    pub(super) raised: Option<Release>,
    pub(super) has_lost: bool,
    /// Its last packet that has to be acknowledged.
    pub(super) sent_at: Option<Time>,
    /// The last one that followed the expiry of a timer.
    pub(super) probed: Option<Time>,
    /// The end of each stream so far, and their sum.
    offsets: BTreeMap<u64, u64>,
    total: u64,
    /// Limits of its peer: of the connection, of streams, and of streams that have had no update.
    limit: Option<u64>,
    limits: BTreeMap<u64, u64>,
    initial: Option<u64>,
    /// Whether a limit held it after its last packet.
    pub(super) is_blocked: bool,
}

impl End {
    /// Returns the round trip between the point of capture and this end.
    pub(super) fn distance(&self) -> Duration {
        self.distance.unwrap_or_default()
    }

    /// Returns the last sample of that round trip.
    pub(super) const fn latest(&self) -> Duration {
        self.latest
    }

    /// Sets its peer's limits, as its transport parameters have them.
    pub(super) fn is_limited(&mut self, peer: &Parameters, is_client: bool) {
        self.limit.get_or_insert(peer.max_data);
        // Streams of requests: the client opens them.
        self.initial.get_or_insert(peer.stream_window(true, !is_client));
    }

    /// Handles a packet of this end that has to be acknowledged.
    pub(super) fn sends(&mut self, space: usize, number: u64, packet: SentPacket) {
        self.in_flight += packet.bytes;
        self.sent_at = Some(packet.mark.at);
        let sent = &mut self.sent[space];
        if let Some(replaced) = sent.insert(number, packet) {
            self.in_flight -= replaced.bytes;
        }
        if sent.len() > MAX_PACKETS
            && let Some((_, oldest)) = sent.pop_first()
        {
            self.in_flight -= oldest.bytes;
        }
    }

    /// Handles data up to the position `to` of a stream, of which everything before was sent.
    pub(super) fn extends(&mut self, stream: u64, to: u64) {
        let end = self.offsets.entry(stream).or_default();
        self.total += to.saturating_sub(*end);
        *end = to.max(*end);
        let limit = self.limits.get(&stream).copied().or(self.initial.filter(|_| stream & 3 == 0));
        let is_of_stream = limit.is_some_and(|limit| limit > 0 && *end >= limit);
        self.is_blocked = is_of_stream || self.limit.is_some_and(|limit| limit > 0 && self.total >= limit);
    }

    /// Handles an acknowledgement by this end of its peer's packets, as captured: a sample of the round trip.
    pub(super) fn acknowledges(
        &mut self,
        peer: &mut Self,
        space: usize,
        ack: &Ack,
        delay: Duration,
        at: Time,
    ) {
        let largest = ack.largest();
        if peer.largest[space].is_some_and(|known| known >= largest) {
            return;
        }
        peer.largest[space] = Some(largest);
        if let Some(packet) = peer.sent[space].get(&largest) {
            // Delays of the handshake's acknowledgements do not count (RFC 9002, section 5.3).
            let delay = if space == DATA { delay } else { Duration::ZERO };
            let sample = at.since(packet.mark.at).saturating_sub(delay);
            self.latest = sample;
            self.distance = Some(self.distance.map_or(sample, |known| known.min(sample)));
        }
    }

    /// Adds a packet of its peer, which arrives later.
    pub(super) fn expects(&mut self, mark: Mark, arrival: Arrival) {
        let at = mark.at + self.distance();
        let at = self.arrivals.back().map_or(at, |last| last.at.max(at));
        self.arrivals.push_back(Arrival { mark: Some(mark), at, ..arrival });
        if self.arrivals.len() > MAX_PACKETS {
            self.receives_until(at);
        }
    }

    /// Handles what has arrived by `now`, a time at which this end sends.
    pub(super) fn receives_until(&mut self, now: Time) {
        while self.arrivals.front().is_some_and(|arrival| arrival.at <= now)
            && let Some(arrival) = self.arrivals.pop_front()
        {
            self.receives(&arrival);
        }
    }

    fn receives(&mut self, arrival: &Arrival) {
        let Arrival { mark, at, acks, limits, has_data } = arrival;
        let Some(mark) = *mark else { return };
        let release = Release { mark, at: *at, in_flight: self.in_flight };
        self.arrived = Some(*at);
        if *has_data {
            self.data_arrived = Some(mark);
        }
        for (space, ack) in acks {
            if self.is_acknowledged(*space, ack) {
                self.acked = Some(release);
            }
        }
        for limit in limits {
            let (place, value) = match *limit {
                Limit::Connection(value) => (self.limit.get_or_insert(value), value),
                Limit::Stream(stream, value) => (self.limits.entry(stream).or_insert(value), value),
            };
            *place = value.max(*place);
            self.raised = Some(release);
        }
    }

    /// Handles an acknowledgement that has arrived; returns whether it is of something new.
    fn is_acknowledged(&mut self, space: usize, ack: &Ack) -> bool {
        // Keys of the handshake are discarded with what is in flight under them (RFC 9002, section 6.4).
        for packet in self.sent[..space].iter_mut().flat_map(|sent| std::mem::take(sent).into_values()) {
            self.in_flight -= packet.bytes;
        }
        let sent = &mut self.sent[space];
        let mut first: Option<(u64, Time)> = None;
        for range in &ack.ranges {
            while let Some((number, _)) = sent.range(range.clone()).next_back()
                && let number = *number
                && let Some(packet) = sent.remove(&number)
            {
                self.in_flight -= packet.bytes;
                first = Some((number, packet.mark.at));
            }
        }
        let Some((_, revealed_by)) = first else { return false };
        let end = ack.largest().saturating_sub(REORDERING - 1);
        while let Some(entry) = sent.first_entry()
            && *entry.key() < end
        {
            let packet = entry.remove();
            self.in_flight -= packet.bytes;
            self.has_lost = true;
            self.lost.push_back(LostPacket { packet, revealed_by });
            if self.lost.len() > MAX_PACKETS / 8 {
                self.lost.pop_front();
            }
        }
        true
    }

    /// Returns the last packet with data of a stream that covers a position.
    pub(super) fn previous(&self, stream: u64, position: u64, round_trip: Duration) -> Option<Previous> {
        let covers = |packet: &SentPacket| {
            packet.ranges.iter().any(|(id, from, to)| *id == stream && (*from..*to).contains(&position))
        };
        let lost = self.lost.iter().rev().find(|lost| covers(&lost.packet)).map(|lost| Previous {
            mark: lost.packet.mark,
            // A probe after a timeout is later.
            is_reported: Some(lost.revealed_by.since(lost.packet.mark.at) < round_trip),
        });
        let pending = self.sent[DATA].values().rev().find(|packet| covers(packet));
        let pending = pending.map(|packet| Previous { mark: packet.mark, is_reported: None });
        [lost, pending].into_iter().flatten().max_by_key(|previous| previous.mark.at)
    }
}
