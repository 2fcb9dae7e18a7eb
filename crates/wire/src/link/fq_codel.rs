//! FQ-CoDel (RFC 8290): a queue with CoDel for each flow, served in turns by deficit round robin, new flows first.

use core::net::IpAddr;
use std::collections::{BTreeMap, VecDeque};

use super::codel::{CoDelState, Fifo, QueuedPacket};
use crate::Time;
use crate::link::config::CoDel;
use crate::packet::{Packet, Transport};

/// Number of queues (RFC 8290, section 5.2.2).
const FLOWS: u64 = 1_024;
/// Bytes that a flow may send in a turn: one packet of Ethernet (RFC 8290, section 5.2.4).
const QUANTUM: i64 = 1_514;

/// The queues of all flows.
#[derive(Clone, Debug)]
pub(super) struct FlowQueues<P> {
    config: CoDel,
    flows: BTreeMap<u16, Flow<P>>,
    /// Active flows that have not used up their first quantum, in order of their turns.
    new_flows: VecDeque<u16>,
    /// The other active flows, in order of their turns.
    old_flows: VecDeque<u16>,
}

#[derive(Clone, Debug)]
struct Flow<P> {
    queue: Fifo<P>,
    codel: CoDelState,
    credits: i64,
    is_active: bool,
}

impl<P> FlowQueues<P> {
    pub(super) const fn new(config: CoDel) -> Self {
        Self { config, flows: BTreeMap::new(), new_flows: VecDeque::new(), old_flows: VecDeque::new() }
    }

    /// Adds a packet to a flow's queue (RFC 8290, section 4.1).
    pub(super) fn push(&mut self, flow: u16, queued: QueuedPacket<P>) {
        let entry = self.flows.entry(flow).or_insert_with(|| Flow {
            queue: Fifo::default(),
            codel: CoDelState::new(self.config),
            credits: 0,
            is_active: false,
        });
        entry.queue.push(queued);
        if !entry.is_active {
            (entry.is_active, entry.credits) = (true, QUANTUM);
            self.new_flows.push_back(flow);
        }
    }

    /// Takes the next packet to send; those that CoDel drops go to `dropped` (RFC 8290, section 4.2).
    pub(super) fn dequeue(
        &mut self,
        now: Time,
        dropped: &mut impl FnMut(QueuedPacket<P>),
    ) -> Option<QueuedPacket<P>> {
        loop {
            let is_new = !self.new_flows.is_empty();
            let list = if is_new { &mut self.new_flows } else { &mut self.old_flows };
            let number = *list.front()?;
            let flow = self.flows.get_mut(&number)?;
            if flow.credits <= 0 {
                flow.credits += QUANTUM;
                list.pop_front();
                self.old_flows.push_back(number);
                continue;
            }
            if let Some(next) = flow.codel.dequeue(now, &mut flow.queue, dropped) {
                flow.credits -= i64::try_from(next.size.get()).unwrap_or(i64::MAX);
                return Some(next);
            }
            list.pop_front();
            if is_new {
                // An empty new flow waits for its turn among the old ones, so that it cannot return as a new one before them.
                self.old_flows.push_back(number);
            } else {
                flow.is_active = false;
            }
        }
    }

    /// Takes the first packet of the flow with the most bytes, for a queue that is above its limit (RFC 8290, section 4.1).
    pub(super) fn pop_from_fattest(&mut self) -> Option<QueuedPacket<P>> {
        let active = self.new_flows.iter().chain(&self.old_flows);
        let bytes = |flow: &u16| self.flows.get(flow).map(|flow| flow.queue.bytes());
        // Of equal flows, the first in order of turns.
        let fattest = active.copied().rev().max_by_key(bytes)?;
        self.flows.get_mut(&fattest)?.queue.pop()
    }
}

/// Number of the flow of a packet, by addresses, protocol and ports; those of fragments are 0. `perturbation` is random, so that
/// flows that share a queue differ between seeds.
pub(super) fn flow_of(bytes: &[u8], perturbation: u64) -> u16 {
    let Ok(packet) = Packet::read(bytes) else { return 0 };
    let (protocol, ports) = match packet.transport {
        Transport::Tcp(segment) => (6, [segment.source_port, segment.destination_port]),
        Transport::Udp(datagram) => (17, [datagram.source_port, datagram.destination_port]),
        Transport::Fragment => (0, [0, 0]),
        Transport::Other { protocol, payload: _ } => (protocol, [0, 0]),
    };
    let ports = u64::from(ports[0]) << 24 | u64::from(ports[1]) << 8 | u64::from(protocol);
    let octets = [packet.source, packet.destination].map(|address| match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    });
    let words = octets.iter().flat_map(|octets| octets.as_chunks().0).map(|word| u64::from_be_bytes(*word));
    let hash = words.chain([ports]).fold(perturbation, |hash, word| mix(hash ^ word));
    u16::try_from(hash % FLOWS).expect("a remainder below 1,024")
}

/// The finaliser of SplitMix64: every bit of the input affects every bit of the result.
const fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bytes, Duration};

    fn packet(name: u32, size: u64) -> QueuedPacket<u32> {
        QueuedPacket { packet: name, size: Bytes::new(size), arrival: Time::ZERO, is_lost: false }
    }

    /// Names of all packets in the order in which they are sent, all at time zero.
    fn order(queues: &mut FlowQueues<u32>) -> Vec<u32> {
        let next = || queues.dequeue(Time::ZERO, &mut |_| panic!("a drop")).map(|next| next.packet);
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn paper_flows_take_turns_by_bytes() {
        let mut queues = FlowQueues::new(CoDel::default());
        for name in 0..4 {
            queues.push(1, packet(100 + name, 1_514));
            queues.push(2, packet(200 + name, 1_514));
        }
        // Packets of half the size: two in a turn.
        (0..8).for_each(|name| queues.push(3, packet(300 + name, 757)));
        let round = |index: u32| [100 + index, 200 + index, 300 + 2 * index, 301 + 2 * index];
        assert_eq!(order(&mut queues), (0..4).flat_map(round).collect::<Vec<_>>());
    }

    #[test]
    fn paper_new_flow_is_served_before_old_ones_for_one_quantum() {
        let mut queues = FlowQueues::new(CoDel::default());
        (0..6).for_each(|name| queues.push(1, packet(100 + name, 1_514)));
        let mut sent = Vec::new();
        let mut send = |queues: &mut FlowQueues<u32>, count: usize| {
            let next = |_| queues.dequeue(Time::ZERO, &mut |_| {}).map(|next| next.packet);
            sent.extend((0..count).filter_map(next));
        };
        send(&mut queues, 2);
        (0..4).for_each(|name| queues.push(2, packet(200 + name, 757)));
        send(&mut queues, 8);
        // Flow 1 has used up its credits when flow 2 joins the old flows, so flow 2 is first there.
        assert_eq!(sent, [100, 101, 200, 201, 202, 203, 102, 103, 104, 105]);
    }

    #[test]
    fn paper_empty_new_flow_does_not_return_as_a_new_one() {
        // RFC 8290, section 4.2: it moves to the old flows first.
        let mut queues = FlowQueues::new(CoDel::default());
        queues.push(1, packet(100, 100));
        (0..3).for_each(|name| queues.push(2, packet(200 + name, 1_514)));
        let mut sent = Vec::new();
        for name in 0..4 {
            sent.extend(queues.dequeue(Time::ZERO, &mut |_| {}).map(|next| next.packet));
            queues.push(1, packet(101 + name, 100));
        }
        assert_eq!(sent[..4], [100, 101, 102, 103], "while its first quantum lasts");
        let mut queues = FlowQueues::new(CoDel::default());
        queues.push(1, packet(100, 100));
        (0..3).for_each(|name| queues.push(2, packet(200 + name, 1_514)));
        assert_eq!([0; 2].map(|_| queues.dequeue(Time::ZERO, &mut |_| {}).unwrap().packet), [100, 200]);
        queues.push(1, packet(101, 100));
        queues.push(1, packet(102, 1_514));
        let rest = order(&mut queues);
        assert_eq!(rest, [101, 102, 201, 202], "{rest:?}");
    }

    #[test]
    fn paper_full_queue_drops_from_the_head_of_the_fattest_flow() {
        let mut queues = FlowQueues::new(CoDel::default());
        (0..3).for_each(|name| queues.push(1, packet(100 + name, 500)));
        queues.push(2, packet(200, 1_400));
        assert_eq!(queues.pop_from_fattest().unwrap().packet, 100);
        assert_eq!(queues.pop_from_fattest().unwrap().packet, 200);
        assert_eq!(order(&mut queues), [101, 102]);
        assert!(queues.pop_from_fattest().is_none());
    }

    #[test]
    fn paper_each_flow_has_its_own_codel() {
        let mut queues = FlowQueues::new(CoDel::default());
        // Flow 1's packets are old, flow 2's just arrived.
        let mut dropped = Vec::new();
        for millis in 0..400_u32 {
            let now = Time::ZERO + Duration::from_millis(u64::from(millis));
            (0..2).for_each(|_| queues.push(1, packet(1, 1_514)));
            queues.push(2, QueuedPacket { arrival: now, ..packet(2, 1_514) });
            for _ in 0..2 {
                queues.dequeue(now, &mut |packet| dropped.push(packet.packet));
            }
        }
        assert!(dropped.len() > 4 && dropped.iter().all(|flow| *flow == 1), "{dropped:?}");
    }
}
