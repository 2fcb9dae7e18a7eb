//! Report of the emulator on a run: its lateness, its traffic, and whether the run counts.
//!
//! The page's duration is measured by its client. A void run is repeated or reported as void; it is never
//! noise in a mean.

use std::fmt;

use wire::link::Counters;
use wire::packet::Packet;
use wire::{Bytes, Duration, Time};

use super::tap::Capture;
use crate::ends::PacketDirection;
use crate::lateness::Lateness;
use crate::reactions::Reactions;
use linux::priority::Scheduling;

/// A run from the link's point of view.
#[derive(Debug)]
pub struct Report {
    /// Traffic of the client.
    pub up: Traffic,
    /// Traffic of the server.
    pub down: Traffic,
    /// Acknowledgements superseded by a later one while they waited for the heartbeat; not counted in `up`.
    pub acks_merged: u64,
    /// Time of delivery to the receiver's kernel minus due time, of every packet. Never negative: no packet
    /// is early.
    pub lateness: Lateness,
    /// Limit of the lateness for [`Report::void`].
    pub late_limit: Duration,
    /// Scheduling of the emulator's thread.
    pub scheduling: Scheduling,
    /// Duration of the run.
    pub elapsed: Duration,
    /// Time awake in the run: working, or polling the clock.
    pub awake: Duration,
    /// Reaction time of each host; empty unless recorded.
    pub reactions: Reactions,
    /// The packets, if captured.
    pub capture: Option<Capture>,
}

impl Report {
    /// Reason why the run does not count; `None`: it counts.
    pub fn void(&self) -> Option<VoidReason> {
        let lost = [
            (PacketDirection::Up, self.up.lost_in_device),
            (PacketDirection::Down, self.down.lost_in_device),
        ];
        if let Some((direction, packets)) = lost.into_iter().find(|(_, packets)| *packets > 0) {
            return Some(VoidReason::LostInDevice { direction, packets });
        }
        let late = self.lateness.per_mille(999);
        (late > self.late_limit).then_some(VoidReason::Late { late, limit: self.late_limit })
    }
}

/// Traffic in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Packets and bytes offered to the link, dropped by its queue, lost in transit, delivered.
    pub link: Counters,
    /// Payload of TCP and UDP offered to the link, including retransmissions.
    pub payload: Bytes,
    /// Times at which the first and the last packet were delivered, by [`super::Running::clock`]; `None`:
    /// none was.
    pub delivered: Option<(Time, Time)>,
    /// Packets that the sender's kernel dropped before the emulator could read them. They are not in the
    /// link's counters.
    pub lost_in_device: u64,
}

impl Traffic {
    /// Counts the payload of a packet offered to the link, which the link does not count.
    pub(super) fn count(&mut self, packet: &[u8]) {
        self.payload += Packet::read(packet).map_or(Bytes::ZERO, |packet| packet.payload_length());
    }

    pub(super) fn deliver(&mut self, now: Time) {
        let (first, _) = self.delivered.unwrap_or((now, now));
        self.delivered = Some((first, now));
    }
}

/// Reason why a run does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VoidReason {
    /// The emulator was late.
    Late {
        /// Lateness that one packet in a thousand exceeded (or the worst of fewer).
        late: Duration,
        /// Limit.
        limit: Duration,
    },
    /// The emulator did not read fast enough, and packets were dropped that the link would have carried.
    LostInDevice {
        /// Direction of the packets.
        direction: PacketDirection,
        /// Number of packets.
        packets: u64,
    },
}

impl fmt::Display for VoidReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Late { late, limit } => write!(
                f,
                "the emulator delivered packets {:.1} ms late and {limit} is allowed; stop other programs on this host, or \
                 run where real-time priority is granted",
                late.as_millis_f64()
            ),
            Self::LostInDevice { direction, packets } => {
                let sender = match direction {
                    PacketDirection::Up => "client",
                    PacketDirection::Down => "server",
                };
                write!(
                    f,
                    "{packets} packets of the {sender} were lost before the emulator could read them; stop other \
                     programs on this host, or choose a slower link"
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
        assert_eq!(
            void,
            VoidReason::Late { late: Duration::from_millis(3), limit: Duration::from_millis(2) }
        );
        assert!(void.to_string().contains("3.0 ms late and 2ms is allowed"), "{void}");
    }

    #[test]
    fn a_packet_lost_in_the_device_makes_a_run_void() {
        let void = report_of(&[1], 7).void().unwrap();
        assert!(void.to_string().contains("7 packets of the server"), "{void}");
    }
}
