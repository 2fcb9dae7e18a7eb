//! Distance of the server's addresses: the hosts of a page are not equally far away.
//!
//! An address with an extra round trip is that much farther behind the same link: half of it delays packets to it behind the
//! link, the other half packets from it before the link. Neither changes the order of an address's packets.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use wire::link::Output;
use wire::{Duration, Time};

use super::PacketDirection;

/// Packets beyond the link, on their way to or from hosts that are farther away.
pub(super) struct Distance<P> {
    extra_rtts: BTreeMap<Ipv4Addr, Duration>,
    /// By the time at which they are due, in order of arrival.
    waiting: BTreeMap<(Time, u64), (PacketDirection, P)>,
    held: u64,
}

impl<P: AsRef<[u8]>> Distance<P> {
    pub(super) const fn new(extra_rtts: BTreeMap<Ipv4Addr, Duration>) -> Self {
        Self { extra_rtts, waiting: BTreeMap::new(), held: 0 }
    }

    /// Holds a packet that has farther to go from this time on; returns any other.
    pub(super) fn hold(&mut self, now: Time, direction: PacketDirection, packet: P) -> Option<P> {
        let delay = self.delay(direction, packet.as_ref());
        if delay == Duration::ZERO {
            return Some(packet);
        }
        self.held += 1;
        self.waiting.insert((now + delay, self.held), (direction, packet));
        None
    }

    /// The next packet that has come far enough, with its direction.
    pub(super) fn poll(&mut self, now: Time) -> Output<(PacketDirection, P)> {
        match self.waiting.first_entry() {
            Some(first) if first.key().0 <= now => {
                let ((due, _), packet) = first.remove_entry();
                Output::Deliver { packet, due }
            }
            Some(first) => Output::Timeout(Some(first.key().0)),
            None => Output::Timeout(None),
        }
    }

    fn delay(&self, direction: PacketDirection, packet: &[u8]) -> Duration {
        let at = match direction {
            PacketDirection::Up => DESTINATION,
            PacketDirection::Down => SOURCE,
        };
        // Nothing else is emulated with several hosts.
        let is_ipv4 = packet.first().is_some_and(|first| first >> 4 == 4);
        let address = packet.get(at..at + 4).and_then(|octets| <[u8; 4]>::try_from(octets).ok());
        let address = address.filter(|_| is_ipv4).map(Ipv4Addr::from);
        let extra = address.and_then(|address| self.extra_rtts.get(&address)).copied().unwrap_or_default();
        match direction {
            PacketDirection::Up => extra / 2,
            PacketDirection::Down => extra - extra / 2,
        }
    }
}

/// Places of the addresses in an IPv4 header (RFC 791, section 3.1).
const SOURCE: usize = 12;
const DESTINATION: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    const NEAR: [u8; 4] = [10, 0, 0, 2];
    const FAR: [u8; 4] = [10, 0, 0, 3];

    fn packet(source: [u8; 4], destination: [u8; 4]) -> Vec<u8> {
        let mut packet = vec![0; 20];
        packet[0] = 0x45;
        packet[SOURCE..SOURCE + 4].copy_from_slice(&source);
        packet[DESTINATION..DESTINATION + 4].copy_from_slice(&destination);
        packet
    }

    #[test]
    fn packets_of_a_far_host_take_half_of_its_extra_round_trip_each_way() {
        let extra = Duration::from_nanos(9);
        let mut distance = Distance::new(BTreeMap::from([(FAR.into(), extra)]));
        let client = [10, 0, 0, 1];
        let [there, back] = [packet(client, FAR), packet(FAR, client)];
        let now = Time::from_nanos(100);
        let (up, down) = (PacketDirection::Up, PacketDirection::Down);
        for (direction, near) in
            [(up, packet(client, NEAR)), (down, packet(NEAR, client)), (up, vec![0x60; 40])]
        {
            assert_eq!(distance.hold(now, direction, near.clone()), Some(near));
        }
        assert_eq!(distance.hold(now, down, back.clone()), None);
        assert_eq!(distance.hold(now, up, there.clone()), None);
        assert_eq!(distance.poll(Time::from_nanos(103)), Output::Timeout(Some(Time::from_nanos(104))));
        let due = |nanos, packet| Output::Deliver { packet, due: Time::from_nanos(nanos) };
        assert_eq!(distance.poll(Time::from_nanos(120)), due(104, (up, there)));
        assert_eq!(distance.poll(Time::from_nanos(120)), due(105, (down, back)));
        assert_eq!(distance.poll(Time::from_nanos(120)), Output::Timeout(None));
    }
}
