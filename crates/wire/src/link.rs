//! One direction of an emulated link: packets in with timestamps, packets out with the time they are due.
//!
//! A packet offered to a [`Pipe`] passes through these modules, in this order:
//!
//! | module | stage |
//! | --- | --- |
//! | [`config`] | (configuration of the link) |
//! | `loss` | loss model: whether this packet will be lost |
//! | `queue` | queue of the transmitter, with tail drop |
//! | `managed` | instead of it: a queue whose packets are decided when they leave it |
//! | `codel`, `fq_codel` | its disciplines (RFC 8289, RFC 8290) |
//! | [`schedule`] | recorded delivery opportunities in place of a rate |
//! | `transmitter` | transmission: size over rate, the remainder carried to the next packet |
//! | `flight` | propagation: delay, jitter, reordering; loss |
//! | [`counters`] | (counters of packets) |
//!
//! A link has no clock and no timer, and packets are opaque: their size is an argument. With a constant rate and tail drop,
//! everything about a packet is decided when it is offered, and the only pending event is the next delivery. With CoDel,
//! FQ-CoDel or a schedule, packets wait in the queue until the transmitter takes them.
//!
//! ```
//! use roundtrip_wire::link::{Config, OfferResult, Output, Pipe};
//! use roundtrip_wire::{Bytes, Duration, Rate, Seed, Time};
//!
//! let isdn = Config {
//!     rate: Rate::from_bits_per_second(128_000),
//!     delay: Duration::from_millis(15),
//!     ..Config::default()
//! };
//! let mut pipe = Pipe::new(&isdn, Seed::default(), 0)?;
//!
//! // 512 bytes at 128 kbit/s take 32 ms, then the propagation delay.
//! assert_eq!(pipe.handle(Time::ZERO, "a segment", Bytes::new(512)), OfferResult::Accepted);
//! let due = Time::ZERO + Duration::from_millis(32 + 15);
//! assert_eq!(pipe.poll(Time::ZERO), Output::Timeout(Some(due)));
//! assert_eq!(pipe.poll(due), Output::Deliver { packet: "a segment", due });
//! assert_eq!(pipe.poll(due), Output::Timeout(None));
//! # Ok::<(), roundtrip_wire::link::ConfigError>(())
//! ```

mod codel;
pub mod config;
pub mod counters;
mod flight;
mod fq_codel;
mod loss;
mod managed;
mod queue;
pub mod schedule;
mod transmitter;

pub use config::{CoDel, Config, ConfigError, Jitter, Loss, Order, QueueDiscipline, QueueLimit, Reordering};
pub use counters::{Counters, Tally};
pub use schedule::{DeliverySchedule, ScheduleError};

use crate::modem::Modem;
use crate::seed::Random;
use crate::{Bytes, Duration, Probability, Seed, Time};
use codel::QueuedPacket;
use flight::{Flight, PacketInFlight};
use loss::LossProcess;
use managed::ManagedQueue;
use queue::Queue;
use transmitter::Transmitter;

/// Result of offering a packet. A packet that was not accepted is returned, so that its buffer can be reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfferResult<P> {
    /// Accepted: [`Pipe::poll`] delivers it.
    Accepted,
    /// The queue was full; the link is unchanged.
    Dropped(P),
    /// Lost on the link, after it occupied the queue and the transmitter. A link with a managed queue accepts such a packet, and
    /// returns it later ([`Output::Discard`]).
    Lost(P),
}

/// Output of [`Pipe::poll`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output<P> {
    /// A packet has arrived at the other end.
    Deliver {
        /// The packet that was offered.
        packet: P,
        /// Time of arrival: never later than the `now` of the poll.
        due: Time,
    },
    /// A packet that was accepted will not arrive: a managed queue dropped it, or it was lost on the link. It is returned, so
    /// that its buffer can be reused.
    Discard(P),
    /// No further arrivals. The next packet is due at this time; `None`: no packet is in flight.
    Timeout(Option<Time>),
}

/// One direction of a link that carries packets of type `P`: bytes for a real driver, segments for a
/// simulator.
///
/// Contract: `handle(now, ..)`, then `poll(now)` until it returns a timeout; only then `handle` again. `now` never
/// decreases. Nothing is allocated per packet once the ring buffers have grown to the link's contents.
#[derive(Clone, Debug)]
pub struct Pipe<P> {
    losses: LossProcess,
    queue: Queue,
    /// Takes the place of queue and transmitter, for all but drop-tail at a constant rate.
    managed: Option<Box<ManagedQueue<P>>>,
    /// The modem, with a buffer for the bytes of a packet.
    modem: Option<(Modem, Vec<u8>)>,
    transmitter: Transmitter,
    delay: Duration,
    jitter: Option<(Jitter, Random)>,
    reordering: Option<(Reordering, Random)>,
    duplication: Option<(Probability, Random)>,
    flight: Flight<P>,
    counters: Counters,
}

impl<P: Clone> Pipe<P> {
    /// Creates an idle link. Pipes that share a seed use different `index`es: 0 for upstream, 1 for downstream.
    ///
    /// Each kind of randomness is sampled from its own stream, so that adding jitter does not change which packets are
    /// lost.
    ///
    /// # Errors
    /// The first invalid value of `config`.
    pub fn new(config: &Config, seed: Seed, index: u64) -> Result<Self, ConfigError> {
        config.check()?;
        let Config { rate, schedule, framing, modem, queue, discipline, .. } = config;
        let Config { delay, jitter, loss, reordering, duplication, .. } = config;
        let managed = (schedule.is_some() || *discipline != QueueDiscipline::DropTail).then(|| {
            let transmitter = Transmitter::new(*rate, *framing);
            let schedule = schedule.clone().map(|schedule| (schedule, i64::from(*framing)));
            let random = seed.stream("link-flows", index);
            Box::new(ManagedQueue::new(*discipline, *queue, transmitter, schedule, random))
        });
        Ok(Self {
            losses: LossProcess::new(loss, || seed.stream("link-loss", index)),
            queue: Queue::new(*queue),
            managed,
            modem: modem.map(|modem| (Modem::new(modem, *rate), Vec::new())),
            transmitter: Transmitter::new(*rate, *framing),
            delay: *delay,
            jitter: jitter.map(|jitter| (jitter, seed.stream("link-jitter", index))),
            reordering: reordering.map(|reordering| (reordering, seed.stream("link-reordering", index))),
            duplication: (*duplication != Probability::NEVER)
                .then(|| (*duplication, seed.stream("link-duplication", index))),
            flight: Flight::new(),
            counters: Counters::default(),
        })
    }

    /// Offers a packet of `size` bytes (IP length; framing is added here) to the link. A modem considers it
    /// incompressible.
    pub fn handle(&mut self, now: Time, packet: P, size: Bytes) -> OfferResult<P> {
        if self.managed.is_some() {
            return self.offer_managed(now, packet, size, |_, _| {});
        }
        self.offer(now, packet, size, |_, _| size)
    }

    /// Offers a packet with its bytes, which are read only if there is a modem or FQ-CoDel.
    pub fn handle_with(
        &mut self,
        now: Time,
        packet: P,
        size: Bytes,
        read: impl FnOnce(&P, &mut Vec<u8>),
    ) -> OfferResult<P> {
        if self.managed.is_some() {
            return self.offer_managed(now, packet, size, read);
        }
        self.offer(now, packet, size, |packet, modem| match modem {
            Some((modem, bytes)) => {
                bytes.clear();
                read(packet, bytes);
                modem.send(bytes)
            }
            None => size,
        })
    }

    /// Offers a packet; `line_size` is its size on the phone line.
    fn offer(
        &mut self,
        now: Time,
        packet: P,
        size: Bytes,
        line_size: impl FnOnce(&P, &mut Option<(Modem, Vec<u8>)>) -> Bytes,
    ) -> OfferResult<P> {
        self.counters.offered.add(size);
        // Sampled first and always, so that losses do not depend on the queue.
        let is_lost = self.losses.is_next_lost();

        let start = self.transmitter.start_of_transmission(now);
        if !self.queue.admit(now, start, size) {
            self.counters.dropped.add(size);
            return OfferResult::Dropped(packet);
        }
        self.counters.queue_peak = self.queue.peak();

        let line_size = line_size(&packet, &mut self.modem);
        let sent = self.transmitter.send(now, line_size);
        match self.launch(sent, packet, size, is_lost) {
            None => OfferResult::Accepted,
            Some(packet) => OfferResult::Lost(packet),
        }
    }

    /// Sends a packet whose transmission ends at `sent` on its way; returns it if it is lost.
    fn launch(&mut self, sent: Time, packet: P, size: Bytes, is_lost: bool) -> Option<P> {
        // Sampled for lost packets, too: enabling loss does not change the delays of the others.
        let (due, preserves_order) = self.propagate(sent);
        let is_duplicated =
            self.duplication.as_mut().is_some_and(|(probability, random)| random.chance(*probability));
        if is_lost {
            self.counters.lost.add(size);
            return Some(packet);
        }
        if is_duplicated {
            self.counters.duplicated.add(size);
            self.flight.push(due, preserves_order, size, packet.clone());
        }
        self.flight.push(due, preserves_order, size, packet);
        None
    }

    /// Offers a packet to the managed queue.
    #[cold]
    #[inline(never)]
    fn offer_managed(
        &mut self,
        now: Time,
        packet: P,
        size: Bytes,
        read: impl FnOnce(&P, &mut Vec<u8>),
    ) -> OfferResult<P> {
        self.serve_until(now);
        self.counters.offered.add(size);
        let is_lost = self.losses.is_next_lost();
        let Some(managed) = &mut self.managed else { return OfferResult::Dropped(packet) };
        let queued = QueuedPacket { packet, size, arrival: now, is_lost };
        if let Err(packet) = managed.push(queued, read, &mut self.counters.dropped) {
            self.counters.dropped.add(size);
            return OfferResult::Dropped(packet);
        }
        self.counters.queue_peak = managed.peak();
        self.serve_until(now);
        OfferResult::Accepted
    }

    /// Lets the managed queue send until `now`.
    fn serve_until(&mut self, now: Time) {
        while let Some(managed) = &mut self.managed
            && let Some(at) = managed.next_service()
            && at <= now
        {
            let Some((next, sent)) = managed.serve(at, &mut self.counters.dropped) else { continue };
            let QueuedPacket { packet, size, arrival: _, is_lost } = next;
            if let Some(lost) = self.launch(sent, packet, size, is_lost)
                && let Some(managed) = &mut self.managed
            {
                managed.discard(at, lost);
            }
        }
    }

    /// Returns the next packet that has arrived by `now`, or the time of the next arrival.
    pub fn poll(&mut self, now: Time) -> Output<P> {
        if self.managed.is_some() {
            self.serve_until(now);
            if let Some(discarded) = self.managed.as_mut().and_then(|managed| managed.pop_discarded()) {
                return Output::Discard(discarded);
            }
        }
        match self.flight.pop_due(now) {
            Ok(PacketInFlight { due, sequence: _, size, packet }) => {
                self.counters.delivered.add(size);
                Output::Deliver { packet, due }
            }
            Err(next) => {
                let next_service = self.managed.as_ref().and_then(|managed| managed.next_service());
                Output::Timeout([next, next_service].into_iter().flatten().min())
            }
        }
    }

    /// Returns the time of the next arrival, or of an event of the managed queue, without delivering packets that have arrived, for drivers that offer and
    /// deliver packets at different places.
    pub fn next_due(&self) -> Option<Time> {
        let next_event = self.managed.as_ref().and_then(|managed| managed.next_event());
        [self.flight.next_due(), next_event].into_iter().flatten().min()
    }

    /// Returns the counters of packets and bytes.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns the number of packets still to be delivered, including those in the queue.
    pub fn in_transit(&self) -> usize {
        self.flight.len() + self.managed.as_ref().map_or(0, |managed| managed.len())
    }

    /// Returns the arrival time of a packet sent at `sent`, and whether it preserves the order of packets.
    fn propagate(&mut self, sent: Time) -> (Time, bool) {
        let mut due = sent + self.delay;
        let mut preserves_order = true;
        if let Some((Jitter { up_to, order }, random)) = &mut self.jitter {
            due += Duration::from_nanos(random.up_to(up_to.as_nanos()));
            preserves_order = *order == Order::Preserved;
        }
        if let Some((Reordering { probability, by }, random)) = &mut self.reordering
            && random.chance(*probability)
        {
            due += *by;
            preserves_order = false;
        }
        (due, preserves_order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Rate, modem};

    /// Offers packets numbered from 1, all at time 0, and returns the arrivals with their times in microseconds.
    fn arrivals(config: &Config, sizes: &[u64]) -> (Vec<(usize, u64)>, Counters) {
        let mut pipe = Pipe::new(config, Seed::default(), 0).unwrap();
        for (index, size) in sizes.iter().enumerate() {
            pipe.handle(Time::ZERO, index + 1, Bytes::new(*size));
        }
        let arrivals = std::iter::from_fn(|| match pipe.poll(Time::MAX) {
            Output::Deliver { packet, due } => Some((packet, due.as_nanos() / 1_000)),
            Output::Discard(_) | Output::Timeout(_) => None,
        });
        (arrivals.collect(), *pipe.counters())
    }

    fn megabyte_per_second() -> Config {
        Config {
            rate: Rate::from_bits_per_second(8_000_000),
            delay: Duration::from_millis(15),
            ..Config::default()
        }
    }

    #[test]
    fn packet_is_queued_transmitted_and_propagated() {
        let (arrivals, counters) = arrivals(&megabyte_per_second(), &[1000, 500]);
        assert_eq!(arrivals, [(1, 16_000), (2, 16_500)]);
        assert_eq!(counters.delivered, Tally { packets: 2, bytes: Bytes::new(1500) });
        assert_eq!(counters.queue_peak, Tally { packets: 1, bytes: Bytes::new(500) });
    }

    #[test]
    fn poll_returns_the_next_deadline() {
        let mut pipe = Pipe::new(&megabyte_per_second(), Seed::default(), 0).unwrap();
        assert_eq!(pipe.poll(Time::ZERO), Output::Timeout(None));
        assert_eq!(pipe.handle(Time::ZERO, 'a', Bytes::new(1000)), OfferResult::Accepted);
        let due = Time::ZERO + Duration::from_millis(16);
        assert_eq!(pipe.poll(Time::ZERO), Output::Timeout(Some(due)));
        assert_eq!(pipe.poll(due), Output::Deliver { packet: 'a', due });
        assert_eq!(pipe.poll(due), Output::Timeout(None));
    }

    #[test]
    fn full_queue_drops_from_the_tail_and_returns_the_packet() {
        let queue = QueueLimit { bytes: None, packets: Some(1) };
        let mut pipe = Pipe::new(&Config { queue, ..megabyte_per_second() }, Seed::default(), 0).unwrap();
        let results = ['a', 'b', 'c'].map(|packet| pipe.handle(Time::ZERO, packet, Bytes::new(1000)));
        assert_eq!(results, [OfferResult::Accepted, OfferResult::Accepted, OfferResult::Dropped('c')]);
        assert_eq!(pipe.counters().dropped, Tally { packets: 1, bytes: Bytes::new(1000) });
    }

    #[test]
    fn lost_packet_takes_its_transmission_time() {
        let loss = Loss::Exactly([2].into());
        let (arrivals, counters) = arrivals(&Config { loss, ..megabyte_per_second() }, &[1000; 3]);
        assert_eq!(arrivals, [(1, 16_000), (3, 18_000)]);
        assert_eq!(counters.lost.packets, 1);
    }

    #[test]
    fn delayed_packet_is_reordered() {
        let half = Probability::new(0.5).unwrap();
        let reordering = Some(Reordering { probability: half, by: Duration::from_micros(2_500) });
        let (arrivals, _) = arrivals(&Config { reordering, ..megabyte_per_second() }, &[1000; 8]);
        for (packet, due) in &arrivals {
            let undisturbed = 15_000 + 1_000 * u64::try_from(*packet).unwrap();
            assert!([0, 2_500].contains(&(due - undisturbed)), "{packet} at {due}");
        }
        assert!(!arrivals.is_sorted(), "{arrivals:?}");
    }

    #[test]
    fn duplicated_packet_arrives_twice_at_the_same_time() {
        let duplication = Probability::ALWAYS;
        let (arrivals, counters) = arrivals(&Config { duplication, ..megabyte_per_second() }, &[1000, 1000]);
        assert_eq!(arrivals, [(1, 16_000), (1, 16_000), (2, 17_000), (2, 17_000)]);
        assert_eq!(counters.duplicated.packets, 2);
    }

    #[test]
    fn modem_sends_the_compressed_size() {
        let modem = Some(modem::Config::default());
        let mut pipe = Pipe::new(&Config { modem, ..megabyte_per_second() }, Seed::default(), 0).unwrap();
        let text = "repeated text is compressed ".repeat(40);
        let mut now = Time::ZERO;
        let mut took = || {
            pipe.handle_with(now, 'a', Bytes::new(1_120), |_, bytes| bytes.extend(text.as_bytes()));
            let due = pipe.next_due().unwrap();
            pipe.poll(due);
            let took = due.since(now) - Duration::from_millis(15);
            now = due;
            took
        };
        let [first, second] = [took(), took()];
        assert!(second * 3 < first * 2 && first < Duration::from_micros(1_120), "{first} {second}");
    }

    #[test]
    fn random_streams_are_independent() {
        let loss = Loss::Independent(Probability::new(0.3).unwrap());
        let plain = Config { loss, ..megabyte_per_second() };
        let jitter = Some(Jitter { up_to: Duration::from_millis(5), order: Order::Preserved });
        let queue = QueueLimit { bytes: None, packets: Some(40) };
        let packets = |config| arrivals(&config, &[1000; 40]).0.into_iter().map(|(packet, _)| packet);
        let survivors: Vec<usize> = packets(plain.clone()).collect();
        assert!(survivors.len() < 40);
        assert!(packets(Config { jitter, queue, ..plain }).eq(survivors));
    }
}
