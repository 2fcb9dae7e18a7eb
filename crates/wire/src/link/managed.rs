//! A queue whose outcome is decided when packets leave it: one that CoDel manages, or one that waits for delivery opportunities.
//!
//! Packets stay here until their transmission begins. The queue has one pending event at a time: the end of a transmission or
//! the next opportunity.

use std::collections::VecDeque;
use std::sync::Arc;

use super::codel::{CoDelState, Fifo, QueuedPacket};
use super::fq_codel::{self, FlowQueues};
use super::schedule::{DeliverySchedule, OPPORTUNITY_BYTES, Opportunity};
use super::transmitter::Transmitter;
use crate::link::{QueueDiscipline, QueueLimit, Tally};
use crate::seed::Random;
use crate::{Bytes, Time};

/// The queue and the transmitter that it feeds.
#[derive(Clone, Debug)]
pub(super) struct ManagedQueue<P> {
    limit: QueueLimit,
    queues: Queues<P>,
    service: Service<P>,
    /// Waiting packets, without the one in transmission.
    backlog: Tally,
    peak: Tally,
    /// Packets to return to the caller: dropped, or lost on the link.
    discarded: VecDeque<(Time, P)>,
    perturbation: u64,
    /// Buffer for a packet's bytes.
    bytes: Vec<u8>,
}

#[derive(Clone, Debug)]
enum Queues<P> {
    DropTail(Fifo<P>),
    CoDel(CoDelState, Fifo<P>),
    FqCoDel(FlowQueues<P>),
}

#[derive(Clone, Debug)]
enum Service<P> {
    Rate(Transmitter),
    Opportunities(OpportunityTransmitter<P>),
}

/// A transmitter that sends at the opportunities of a schedule.
#[derive(Clone, Debug)]
struct OpportunityTransmitter<P> {
    schedule: Arc<DeliverySchedule>,
    framing: i64,
    /// The current opportunity while bytes of it remain, otherwise the next one.
    at: Opportunity,
    /// Bytes that remain of the current opportunity.
    remaining: u64,
    /// A packet of which earlier opportunities carried a part, and its bytes that are left.
    begun: Option<(QueuedPacket<P>, u64)>,
}

impl<P> ManagedQueue<P> {
    pub(super) fn new(
        discipline: QueueDiscipline,
        limit: QueueLimit,
        transmitter: Transmitter,
        schedule: Option<(Arc<DeliverySchedule>, i64)>,
        mut random: Random,
    ) -> Self {
        let queues = match discipline {
            QueueDiscipline::DropTail => Queues::DropTail(Fifo::default()),
            QueueDiscipline::CoDel(config) => Queues::CoDel(CoDelState::new(config), Fifo::default()),
            QueueDiscipline::FqCoDel(config) => Queues::FqCoDel(FlowQueues::new(config)),
        };
        let service = match schedule {
            None => Service::Rate(transmitter),
            Some((schedule, framing)) => Service::Opportunities(OpportunityTransmitter {
                schedule,
                framing,
                at: Opportunity::FIRST,
                remaining: 0,
                begun: None,
            }),
        };
        let (backlog, peak, discarded) = (Tally::default(), Tally::default(), VecDeque::new());
        let perturbation = random.next_u64();
        Self { limit, queues, service, backlog, peak, discarded, perturbation, bytes: Vec::new() }
    }

    /// Number of packets here: waiting or partly sent. Those to be returned to the caller have left.
    pub(super) fn len(&self) -> usize {
        let begun = match &self.service {
            Service::Rate(_) => false,
            Service::Opportunities(transmitter) => transmitter.begun.is_some(),
        };
        usize::try_from(self.backlog.packets).unwrap_or(usize::MAX).saturating_add(usize::from(begun))
    }

    pub(super) const fn peak(&self) -> Tally {
        self.peak
    }

    /// Takes a packet to return to the caller.
    pub(super) fn pop_discarded(&mut self) -> Option<P> {
        self.discarded.pop_front().map(|(_, packet)| packet)
    }

    /// Adds a packet to return to the caller.
    pub(super) fn discard(&mut self, at: Time, packet: P) {
        self.discarded.push_back((at, packet));
    }

    /// Adds a packet, or returns it if the queue is full. Counts the packets that it displaces in `dropped`.
    pub(super) fn push(
        &mut self,
        queued: QueuedPacket<P>,
        read: impl FnOnce(&P, &mut Vec<u8>),
        dropped: &mut Tally,
    ) -> Result<(), P> {
        let (now, size) = (queued.arrival, queued.size);
        let is_idle = self.is_idle(now);
        let total = Tally { packets: self.backlog.packets + 1, bytes: self.backlog.bytes + size };
        let is_full = !is_idle && self.exceeds_limit(total);
        match &mut self.queues {
            Queues::DropTail(_) | Queues::CoDel(_, _) if is_full => return Err(queued.packet),
            Queues::DropTail(queue) | Queues::CoDel(_, queue) => queue.push(queued),
            Queues::FqCoDel(flows) => {
                self.bytes.clear();
                read(&queued.packet, &mut self.bytes);
                flows.push(fq_codel::flow_of(&self.bytes, self.perturbation), queued);
            }
        }
        self.backlog = total;
        if let Service::Opportunities(transmitter) = &mut self.service
            && is_idle
        {
            transmitter.resume(now);
        }
        while is_full && self.exceeds_limit(self.backlog) {
            let Queues::FqCoDel(flows) = &mut self.queues else { break };
            let Some(fat) = flows.pop_from_fattest() else { break };
            self.backlog.remove(fat.size);
            dropped.add(fat.size);
            self.discarded.push_back((now, fat.packet));
        }
        // A packet that an idle link sends immediately has not been queued.
        if !(is_idle && matches!(self.service, Service::Rate(_))) {
            self.peak.packets = self.peak.packets.max(self.backlog.packets);
            self.peak.bytes = self.peak.bytes.max(self.backlog.bytes);
        }
        Ok(())
    }

    fn exceeds_limit(&self, Tally { packets, bytes }: Tally) -> bool {
        let QueueLimit { bytes: max_bytes, packets: max_packets } = self.limit;
        max_bytes.is_some_and(|max| bytes > max) || max_packets.is_some_and(|max| packets > max)
    }

    /// Whether nothing waits and nothing is being sent.
    fn is_idle(&self, now: Time) -> bool {
        self.backlog.packets == 0
            && match &self.service {
                Service::Rate(transmitter) => transmitter.start_of_transmission(now) <= now,
                Service::Opportunities(transmitter) => transmitter.begun.is_none(),
            }
    }

    /// Time at which the next packet leaves the queue, or at which one was discarded.
    pub(super) fn next_event(&self) -> Option<Time> {
        self.discarded.front().map(|(at, _)| *at).or_else(|| self.next_service())
    }

    /// Time at which the next packet leaves the queue.
    pub(super) fn next_service(&self) -> Option<Time> {
        match &self.service {
            Service::Rate(transmitter) => {
                (self.backlog.packets > 0).then(|| transmitter.start_of_transmission(Time::ZERO))
            }
            Service::Opportunities(transmitter) => {
                let is_busy = self.backlog.packets > 0 || transmitter.begun.is_some();
                is_busy.then(|| transmitter.schedule.time(transmitter.at))
            }
        }
    }

    /// Takes the next packet at `now`, the time of [`ManagedQueue::next_service`] or of an arrival at an idle link. Returns it
    /// with the end of its transmission. Counts drops in `dropped`.
    pub(super) fn serve(&mut self, now: Time, dropped: &mut Tally) -> Option<(QueuedPacket<P>, Time)> {
        let Self { queues, service, backlog, discarded, .. } = self;
        let mut dequeue = || {
            let mut drop = |packet: QueuedPacket<P>| {
                backlog.remove(packet.size);
                dropped.add(packet.size);
                discarded.push_back((now, packet.packet));
            };
            let next = match queues {
                Queues::DropTail(queue) => queue.pop(),
                Queues::CoDel(state, queue) => state.dequeue(now, queue, &mut drop),
                Queues::FqCoDel(flows) => flows.dequeue(now, &mut drop),
            };
            if let Some(next) = &next {
                backlog.remove(next.size);
            }
            next
        };
        match service {
            Service::Rate(transmitter) => {
                let next = dequeue()?;
                // While the link is busy, transmissions follow one another without rounding: `now` is rounded up.
                let end = transmitter.send(next.arrival, next.size);
                Some((next, end))
            }
            Service::Opportunities(transmitter) => transmitter.send(dequeue).map(|next| (next, now)),
        }
    }
}

impl<P> OpportunityTransmitter<P> {
    /// Waits for the first opportunity after `now`: those during an idle time are lost.
    fn resume(&mut self, now: Time) {
        (self.at, self.remaining) = (self.schedule.first_after(now), 0);
    }

    /// Uses the current opportunity, until a packet is complete or the opportunity is used up.
    fn send(&mut self, mut dequeue: impl FnMut() -> Option<QueuedPacket<P>>) -> Option<QueuedPacket<P>> {
        if self.remaining == 0 {
            self.remaining = OPPORTUNITY_BYTES;
        }
        let framing = self.framing;
        let begin = |next: QueuedPacket<P>| {
            let size = next.size.get().saturating_add_signed(framing);
            (next, size)
        };
        let Some((packet, left)) = self.begun.take().or_else(|| dequeue().map(begin)) else {
            self.end_opportunity();
            return None;
        };
        let sent = left.min(self.remaining);
        self.remaining -= sent;
        if self.remaining == 0 {
            self.end_opportunity();
        }
        if sent < left {
            self.begun = Some((packet, left - sent));
            return None;
        }
        Some(packet)
    }

    fn end_opportunity(&mut self) {
        (self.at, self.remaining) = (self.schedule.next(self.at), 0);
    }
}

impl Tally {
    fn remove(&mut self, size: Bytes) {
        self.packets -= 1;
        self.bytes = self.bytes - size;
    }
}
