//! One direction of an emulated link: packets in with timestamps, packets out with the time they are due.
//!
//! A packet offered to a [`Pipe`] meets, in this order:
//!
//! | module | what happens there |
//! | --- | --- |
//! | [`config`] | (what the link is told to be) |
//! | `loss` | it is decided whether this packet will be lost on the way |
//! | `queue` | it waits for the transmitter, or finds the queue full and is dropped |
//! | `transmitter` | it takes its size over the rate to send, remainders carried from packet to packet |
//! | `flight` | it travels: propagation delay, jitter, reordering; a lost packet ends here |
//! | [`counters`] | (what happened, added up) |
//!
//! What it is not: it has no clock and no timer, the rate never changes, and packets are opaque: their size is
//! told with them. Everything about a packet is decided when it is offered, so there is never more than one
//! pending event: the next delivery.
//!
//! ```
//! use wire::link::{Config, Fate, Output, Pipe};
//! use wire::{Bytes, Duration, Rate, Seed, Time};
//!
//! let isdn = Config {
//!     rate: Rate::from_bits_per_second(128_000),
//!     delay: Duration::from_millis(15),
//!     ..Config::default()
//! };
//! let mut pipe = Pipe::new(&isdn, Seed::default(), 0)?;
//!
//! // 512 bytes at 128 kbit/s take 32 ms, then the propagation delay.
//! assert_eq!(pipe.handle(Time::ZERO, "a segment", Bytes::new(512)), Fate::Accepted);
//! let due = Time::ZERO + Duration::from_millis(32 + 15);
//! assert_eq!(pipe.poll(Time::ZERO), Output::Timeout(Some(due)));
//! assert_eq!(pipe.poll(due), Output::Deliver { packet: "a segment", due });
//! assert_eq!(pipe.poll(due), Output::Timeout(None));
//! # Ok::<(), wire::link::ConfigError>(())
//! ```

pub mod config;
pub mod counters;
mod flight;
mod loss;
mod queue;
mod transmitter;

pub use config::{Config, ConfigError, Jitter, Loss, Order, QueueLimit, Reordering};
pub use counters::{Counters, Tally};

use crate::modem::Modem;
use crate::seed::Random;
use crate::{Bytes, Duration, Probability, Seed, Time};
use flight::{Flight, Travelling};
use loss::Losses;
use queue::Queue;
use transmitter::Transmitter;

/// What became of a packet when it was offered. What was not accepted is handed back, so that its buffer can
/// be used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate<P> {
    /// It will come out of [`Pipe::poll`].
    Accepted,
    /// The queue was full; the link was not touched.
    Dropped(P),
    /// It took its place in the queue and its time to send, and will never arrive.
    Lost(P),
}

/// What [`Pipe::poll`] has to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output<P> {
    /// This packet has arrived at the other end.
    Deliver {
        /// The packet that was offered.
        packet: P,
        /// When it arrived: never later than the `now` of the poll.
        due: Time,
    },
    /// Nothing more has arrived. The next packet is due at this time; `None`: nothing is on its way.
    Timeout(Option<Time>),
}

/// One direction of a link that carries packets of type `P`: bytes for a real driver, segments for a
/// simulator.
///
/// The contract: `handle(now, ..)`, then `poll(now)` until it returns a timeout; only then `handle` again.
/// `now` never goes back. Nothing is allocated for a packet once the rings have grown to what the link holds.
#[derive(Clone, Debug)]
pub struct Pipe<P> {
    losses: Losses,
    queue: Queue,
    /// With room for the bytes of a packet.
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
    /// An idle link. Pipes that share a seed take different `index`es: 0 for the way up, 1 for the way down.
    ///
    /// Every kind of randomness draws from its own stream, so that adding jitter does not change which packets
    /// are lost.
    ///
    /// # Errors
    /// What is wrong with `config`, and how to mend it.
    pub fn new(config: &Config, seed: Seed, index: u64) -> Result<Self, ConfigError> {
        config.check()?;
        let Config { rate, framing, modem, queue, delay, jitter, loss, reordering, duplication } = config;
        Ok(Self {
            losses: Losses::new(loss, || seed.stream("link-loss", index)),
            queue: Queue::new(*queue),
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

    /// Offers a packet of `size` bytes (as IP counts them; framing is added here) to the link. A modem takes it for one
    /// that does not compress.
    pub fn handle(&mut self, now: Time, packet: P, size: Bytes) -> Fate<P> {
        self.offer(now, packet, size, |_, _| size)
    }

    /// The same, with a way to the packet's bytes, which are asked for where there is a modem.
    pub fn handle_with(
        &mut self,
        now: Time,
        packet: P,
        size: Bytes,
        read: impl FnOnce(&P, &mut Vec<u8>),
    ) -> Fate<P> {
        self.offer(now, packet, size, |packet, modem| match modem {
            Some((modem, bytes)) => {
                bytes.clear();
                read(packet, bytes);
                modem.send(bytes)
            }
            None => size,
        })
    }

    /// `on_line`: what the packet takes of the line.
    fn offer(
        &mut self,
        now: Time,
        packet: P,
        size: Bytes,
        on_line: impl FnOnce(&P, &mut Option<(Modem, Vec<u8>)>) -> Bytes,
    ) -> Fate<P> {
        self.counters.offered.add(size);
        // Drawn first and always, so that which packets are lost does not depend on the queue.
        let is_lost = self.losses.takes_next();

        let starts = self.transmitter.free_at(now);
        if !self.queue.admit(now, starts, size) {
            self.counters.dropped.add(size);
            return Fate::Dropped(packet);
        }
        self.counters.queue_peak = self.queue.peak();

        let on_line = on_line(&packet, &mut self.modem);
        let sent = self.transmitter.send(now, on_line);
        // Drawn for lost packets too: turning on loss does not change how the others travel.
        let (due, keeps_order) = self.travel(sent);
        let is_doubled =
            self.duplication.as_mut().is_some_and(|(probability, random)| random.chance(*probability));
        if is_lost {
            self.counters.lost.add(size);
            return Fate::Lost(packet);
        }
        if is_doubled {
            self.counters.duplicated.add(size);
            self.flight.launch(due, keeps_order, size, packet.clone());
        }
        self.flight.launch(due, keeps_order, size, packet);
        Fate::Accepted
    }

    /// The next packet that has arrived by `now`, or when there will be one.
    pub fn poll(&mut self, now: Time) -> Output<P> {
        match self.flight.land(now) {
            Ok(Travelling { due, sequence: _, size, packet }) => {
                self.counters.delivered.add(size);
                Output::Deliver { packet, due }
            }
            Err(next) => Output::Timeout(next),
        }
    }

    /// When the next packet will arrive, without asking for those that have: for a driver that cannot take a
    /// packet where it offers one.
    pub fn next_due(&self) -> Option<Time> {
        self.flight.next_due()
    }

    /// What has happened so far.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// How many packets will still be delivered, those waiting in the queue included.
    pub fn in_transit(&self) -> usize {
        self.flight.len()
    }

    /// When a packet sent at `sent` arrives, and whether it stays behind those sent before it and ahead of
    /// those sent after it.
    fn travel(&mut self, sent: Time) -> (Time, bool) {
        let mut due = sent + self.delay;
        let mut keeps_order = true;
        if let Some((Jitter { up_to, order }, random)) = &mut self.jitter {
            due += Duration::from_nanos(random.up_to(up_to.as_nanos()));
            keeps_order = *order == Order::Kept;
        }
        if let Some((Reordering { probability, by }, random)) = &mut self.reordering
            && random.chance(*probability)
        {
            due += *by;
            keeps_order = false;
        }
        (due, keeps_order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Rate, modem};

    /// Offers packets numbered from 1, all at time 0, and lists what arrives and when, in microseconds.
    fn arrivals(config: &Config, sizes: &[u64]) -> (Vec<(usize, u64)>, Counters) {
        let mut pipe = Pipe::new(config, Seed::default(), 0).unwrap();
        for (place, size) in sizes.iter().enumerate() {
            pipe.handle(Time::ZERO, place + 1, Bytes::new(*size));
        }
        let arrived = std::iter::from_fn(|| match pipe.poll(Time::MAX) {
            Output::Deliver { packet, due } => Some((packet, due.as_nanos() / 1_000)),
            Output::Timeout(_) => None,
        });
        (arrived.collect(), *pipe.counters())
    }

    fn megabyte_per_second() -> Config {
        Config {
            rate: Rate::from_bits_per_second(8_000_000),
            delay: Duration::from_millis(15),
            ..Config::default()
        }
    }

    #[test]
    fn a_packet_waits_is_sent_and_travels() {
        let (arrived, counters) = arrivals(&megabyte_per_second(), &[1000, 500]);
        assert_eq!(arrived, [(1, 16_000), (2, 16_500)]);
        assert_eq!(counters.delivered, Tally { packets: 2, bytes: Bytes::new(1500) });
        assert_eq!(counters.queue_peak, Tally { packets: 1, bytes: Bytes::new(500) });
    }

    #[test]
    fn poll_says_when_to_come_back() {
        let mut pipe = Pipe::new(&megabyte_per_second(), Seed::default(), 0).unwrap();
        assert_eq!(pipe.poll(Time::ZERO), Output::Timeout(None));
        assert_eq!(pipe.handle(Time::ZERO, 'a', Bytes::new(1000)), Fate::Accepted);
        let due = Time::ZERO + Duration::from_millis(16);
        assert_eq!(pipe.poll(Time::ZERO), Output::Timeout(Some(due)));
        assert_eq!(pipe.poll(due), Output::Deliver { packet: 'a', due });
        assert_eq!(pipe.poll(due), Output::Timeout(None));
    }

    #[test]
    fn a_full_queue_drops_from_the_tail_and_hands_the_packet_back() {
        let queue = QueueLimit { bytes: None, packets: Some(1) };
        let mut pipe = Pipe::new(&Config { queue, ..megabyte_per_second() }, Seed::default(), 0).unwrap();
        let fates = ['a', 'b', 'c'].map(|packet| pipe.handle(Time::ZERO, packet, Bytes::new(1000)));
        assert_eq!(fates, [Fate::Accepted, Fate::Accepted, Fate::Dropped('c')]);
        assert_eq!(pipe.counters().dropped, Tally { packets: 1, bytes: Bytes::new(1000) });
    }

    #[test]
    fn a_lost_packet_takes_its_time_to_send() {
        let loss = Loss::Exactly([2].into());
        let (arrived, counters) = arrivals(&Config { loss, ..megabyte_per_second() }, &[1000; 3]);
        assert_eq!(arrived, [(1, 16_000), (3, 18_000)]);
        assert_eq!(counters.lost.packets, 1);
    }

    #[test]
    fn a_packet_held_back_is_overtaken() {
        let half = Probability::new(0.5).unwrap();
        let reordering = Some(Reordering { probability: half, by: Duration::from_micros(2_500) });
        let (arrived, _) = arrivals(&Config { reordering, ..megabyte_per_second() }, &[1000; 8]);
        for (packet, due) in &arrived {
            let undisturbed = 15_000 + 1_000 * u64::try_from(*packet).unwrap();
            assert!([0, 2_500].contains(&(due - undisturbed)), "{packet} at {due}");
        }
        assert!(!arrived.is_sorted(), "{arrived:?}");
    }

    #[test]
    fn a_packet_doubled_arrives_twice_at_once() {
        let duplication = Probability::ALWAYS;
        let (arrived, counters) = arrivals(&Config { duplication, ..megabyte_per_second() }, &[1000, 1000]);
        assert_eq!(arrived, [(1, 16_000), (1, 16_000), (2, 17_000), (2, 17_000)]);
        assert_eq!(counters.duplicated.packets, 2);
    }

    #[test]
    fn a_modem_sends_what_the_bytes_compress_to() {
        let modem = Some(modem::Config::default());
        let mut pipe = Pipe::new(&Config { modem, ..megabyte_per_second() }, Seed::default(), 0).unwrap();
        let text = "what was said is said again ".repeat(40);
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
    fn one_kind_of_randomness_does_not_shift_another() {
        let loss = Loss::Independent(Probability::new(0.3).unwrap());
        let plain = Config { loss, ..megabyte_per_second() };
        let jitter = Some(Jitter { up_to: Duration::from_millis(5), order: Order::Kept });
        let queue = QueueLimit { bytes: None, packets: Some(40) };
        let packets = |config| arrivals(&config, &[1000; 40]).0.into_iter().map(|(packet, _)| packet);
        let survivors: Vec<usize> = packets(plain.clone()).collect();
        assert!(survivors.len() < 40);
        assert!(packets(Config { jitter, queue, ..plain }).eq(survivors));
    }
}
