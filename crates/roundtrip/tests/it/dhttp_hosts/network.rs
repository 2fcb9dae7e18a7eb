//! A faulty network between two hosts: packets are lost, duplicated, reordered, and corrupted.
//!
//! Unlike the laboratory's emulated link it has no rate and no queue: these tests are about delivery, not timing.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use linux::clock::Clock;
use nix::poll::{PollFd, PollFlags, poll};
use wire::packet::{Packet, Transport};
use wire::{Duration, Probability, Seed};

use super::host::Host;

/// Faults of the network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NetworkFaults {
    pub(crate) seed: u64,
    /// Delay of each packet.
    pub(crate) delay: Duration,
    /// Probability of loss, in percent.
    pub(crate) loss: u32,
    /// Probability of duplication, in percent.
    pub(crate) duplication: u32,
    /// Probability of reordering, in percent: four times the delay plus 10 ms.
    pub(crate) reordering: u32,
    /// Probability of a bit error, in percent.
    pub(crate) bit_errors: u32,
    /// Whether datagrams are lost, as at a firewall, and only TCP passes.
    pub(crate) drops_udp: bool,
}

impl NetworkFaults {
    pub(crate) const FAULTLESS: Self = Self {
        seed: 1,
        delay: Duration::from_millis(1),
        loss: 0,
        duplication: 0,
        reordering: 0,
        bit_errors: 0,
        drops_udp: false,
    };
}

/// The network, until it is dropped.
pub(crate) struct Network {
    stop: Arc<AtomicBool>,
    disconnected: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Network {
    pub(crate) fn between(left: &Host, right: &Host, faults: NetworkFaults) -> Self {
        let links = [left.link(), right.link()];
        let [stop, disconnected] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let (is_stopped, is_disconnected) = (Arc::clone(&stop), Arc::clone(&disconnected));
        let thread = thread::spawn(move || {
            let NetworkFaults { seed, delay, loss, duplication, reordering, bit_errors, drops_udp } = faults;
            let mut random = Seed::new(seed).stream("weather", 0);
            let clock = Clock::start();
            let mut buffer = [0; 2_048];
            let (mut in_flight, mut number) = (BTreeMap::new(), 0_u64);
            let chance = |hundredths: u32| Probability::new(f64::from(hundredths) / 100.0).unwrap();
            while !is_stopped.load(Ordering::Relaxed) {
                let mut events = links.each_ref().map(|link| PollFd::new(link.as_fd(), PollFlags::POLLIN));
                poll(&mut events, 1_u8).unwrap();
                for (from, to) in [(0, 1), (1, 0)] {
                    while let Some(length) = links[from].read(&mut buffer).unwrap() {
                        let mut packet = buffer[..length].to_vec();
                        let is_blocked = drops_udp && is_udp(&packet);
                        if random.chance(chance(loss))
                            || is_disconnected.load(Ordering::Relaxed)
                            || is_blocked
                        {
                            continue;
                        }
                        if random.chance(chance(bit_errors)) {
                            let bit = usize::try_from(random.up_to(length as u64 * 8 - 1)).unwrap();
                            packet[bit / 8] ^= 1 << (bit % 8);
                        }
                        for _ in 0..=u8::from(random.chance(chance(duplication))) {
                            let late = random.chance(chance(reordering));
                            let takes = if late { delay * 4 + Duration::from_millis(10) } else { delay };
                            number += 1;
                            in_flight.insert((clock.now() + takes, number), (to, packet.clone()));
                        }
                    }
                }
                while let Some(entry) = in_flight.first_entry().filter(|entry| entry.key().0 <= clock.now()) {
                    let (to, packet) = entry.remove();
                    // A packet without a valid IP header is refused, and so is lost.
                    let _ = links[to].write(&packet);
                }
            }
        });
        Self { stop, disconnected, thread: Some(thread) }
    }

    /// Switches the loss of all packets on or off.
    pub(crate) fn set_disconnected(&self, is_disconnected: bool) {
        self.disconnected.store(is_disconnected, Ordering::Relaxed);
    }
}

fn is_udp(packet: &[u8]) -> bool {
    Packet::read(packet).is_ok_and(|packet| matches!(packet.transport, Transport::Udp(_)))
}

impl Drop for Network {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}
