//! What the emulator has to say about a run: how late it was, what it carried, and whether that counts.
//!
//! Not the run's result: how long a page took is for whoever loaded it. A void run is repeated or reported as void; it
//! is never noise in a mean.

use std::fmt;

use wire::link::Counters;
use wire::packet::Packet;
use wire::{Bytes, Duration, Time};

use super::priority::Scheduling;
use super::tap::{Capture, Way};
use crate::lateness::Lateness;
use crate::reactions::Reactions;

/// How a run went, as the link saw it.
#[derive(Debug)]
pub struct Report {
    /// What the client sent.
    pub up: Traffic,
    /// What the server sent.
    pub down: Traffic,
    /// Acknowledgements that a later one replaced while they waited for the heartbeat; not counted in `up`.
    pub acks_merged: u64,
    /// Handed to the receiver's kernel minus due, of every packet. Never negative: no packet is early.
    pub lateness: Lateness,
    /// What [`Report::void`] holds the lateness against.
    pub late_limit: Duration,
    /// At which priority the emulator ran.
    pub scheduling: Scheduling,
    /// How long it ran.
    pub elapsed: Duration,
    /// How much of that it was not asleep: at work, or watching the clock.
    pub awake: Duration,
    /// How long each host took to react; empty unless it was asked for.
    pub reactions: Reactions,
    /// The packets themselves, if they were asked for.
    pub capture: Option<Capture>,
}

impl Report {
    /// Why the run does not count; `None`: it does.
    pub fn void(&self) -> Option<Void> {
        let lost = [(Way::Up, self.up.lost_in_device), (Way::Down, self.down.lost_in_device)];
        if let Some((way, packets)) = lost.into_iter().find(|(_, packets)| *packets > 0) {
            return Some(Void::LostInDevice { way, packets });
        }
        let late = self.lateness.per_mille(999);
        (late > self.late_limit).then_some(Void::Late { late, limit: self.late_limit })
    }
}

/// What went one way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Packets and bytes offered to the link, dropped by its queue, lost on the way, delivered.
    pub link: Counters,
    /// Payload of TCP and UDP in what was offered to the link: sent again counts again.
    pub payload: Bytes,
    /// When the first and the last packet was delivered, by [`super::Running::clock`]; `None`: none was.
    pub delivered: Option<(Time, Time)>,
    /// Packets that the sender's kernel lost before the emulator could read them. The link knows nothing of these.
    pub lost_in_device: u64,
}

impl Traffic {
    /// Counts what the link counts not: the payload of a packet that is offered to it.
    pub(super) fn count(&mut self, packet: &[u8]) {
        self.payload += Packet::read(packet).map_or(Bytes::ZERO, |packet| packet.payload_length());
    }

    pub(super) fn deliver(&mut self, now: Time) {
        let (first, _) = self.delivered.unwrap_or((now, now));
        self.delivered = Some((first, now));
    }
}

/// Why a run does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Void {
    /// The emulator was late.
    Late {
        /// By this much, one packet in a thousand (or the worst of fewer).
        late: Duration,
        /// And this was allowed.
        limit: Duration,
    },
    /// The emulator did not read fast enough, and packets were lost that the link would have carried.
    LostInDevice {
        /// On their way to where.
        way: Way,
        /// How many.
        packets: u64,
    },
}

impl fmt::Display for Void {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Late { late, limit } => write!(
                f,
                "the emulator delivered packets {:.1} ms late and {limit} is allowed; stop other programs on this host, or \
                 run where real-time priority is granted",
                late.as_millis_f64()
            ),
            Self::LostInDevice { way, packets } => {
                let sender = match way {
                    Way::Up => "client",
                    Way::Down => "server",
                };
                write!(
                    f,
                    "{packets} packets of the {sender} were lost before the emulator could read them; leave the \
                     machine to itself, or ask for a slower link"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report_of(lateness_us: &[u64], lost_in_device: u64) -> Report {
        let mut lateness = Lateness::new();
        lateness_us.iter().for_each(|micros| lateness.record(Duration::from_micros(*micros)));
        Report {
            up: Traffic::default(),
            down: Traffic { lost_in_device, ..Traffic::default() },
            acks_merged: 0,
            lateness,
            late_limit: Duration::from_millis(2),
            scheduling: Scheduling::Ordinary,
            elapsed: Duration::ZERO,
            awake: Duration::ZERO,
            reactions: Reactions::default(),
            capture: None,
        }
    }

    #[test]
    fn a_run_counts_if_no_packet_was_late_or_lost_inside() {
        assert_eq!(report_of(&[1, 2_000], 0).void(), None);
        assert_eq!(report_of(&[], 0).void(), None);
    }

    #[test]
    fn one_late_packet_among_few_makes_a_run_void() {
        let void = report_of(&[1, 1, 1, 3_000], 0).void().unwrap();
        assert_eq!(void, Void::Late { late: Duration::from_millis(3), limit: Duration::from_millis(2) });
        assert!(void.to_string().contains("3.0 ms late and 2ms is allowed"), "{void}");
    }

    #[test]
    fn a_packet_lost_in_the_device_makes_a_run_void() {
        let void = report_of(&[1], 7).void().unwrap();
        assert!(void.to_string().contains("7 packets of the server"), "{void}");
    }
}
