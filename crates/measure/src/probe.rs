//! What a packet's journey takes from one program to the other, beyond what the link is configured to take.
//!
//! Datagrams carry the time they were sent; the receiver subtracts it, and the link's delay, from the time it got
//! them. What is left holds both kernels' stacks, the emulator's lateness, and the wake-ups on the way. Over a link
//! without delay it is the laboratory's own share, its *bias*: subtract its median, and what remains is the
//! emulator's error end to end. Not a load generator: one stream, at one pace, sender and receiver watching the clock.

use std::io;
use std::net::UdpSocket;
use std::thread;

use wire::{Duration, Time};

use crate::Error;
use crate::clock::Clock;
use crate::emulator::priority::{Priority, Rank};
use crate::lateness::Lateness;

/// A stream of stamped datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// How many.
    pub datagrams: u32,
    /// From one to the next. If the sender is held up it catches up: the pace is kept, the gaps are not.
    pub interval: Duration,
    /// The size of each, without headers; at least the 8 bytes of the stamp.
    pub payload: u16,
}

/// What became of a stream.
#[derive(Clone, Debug)]
pub struct Journeys {
    /// Received minus sent minus `delay`, of each datagram that arrived.
    pub excess: Lateness,
    /// How many did not arrive.
    pub missing: u64,
    /// How many arrived in less than `delay`; none, or the emulator is broken.
    pub early: u64,
}

/// For the receiver to be there before the first datagram.
const HEAD_START: Duration = Duration::from_millis(5);

/// How long after the last was sent the receiver still waits, beyond the delay.
const PATIENCE: Duration = Duration::from_millis(200);

impl Stream {
    /// Sends the stream over two sockets that are connected to each other, in whatever namespaces they are, and
    /// times it against a link of this `delay`.
    ///
    /// # Errors
    /// When a socket fails, or a thread cannot be started.
    pub fn run(self, sockets: [&UdpSocket; 2], clock: Clock, delay: Duration) -> Result<Journeys, Error> {
        let [sender, receiver] = sockets;
        let begin = clock.now() + HEAD_START;
        let end = begin + self.interval * u64::from(self.datagrams) + delay + PATIENCE;
        let died = |_| Error::Died { thread: "probe" };
        thread::scope(|scope| {
            let receiving = scope.spawn(|| self.receive(receiver, clock, delay, end));
            let sending = scope.spawn(|| self.send(sender, clock));
            sending.join().map_err(died)??;
            receiving.join().map_err(died)?.map_err(Error::io("receive a probe"))
        })
    }

    /// Sends the stream without looking who receives it.
    ///
    /// # Errors
    /// When the socket fails.
    pub fn send(self, socket: &UdpSocket, clock: Clock) -> Result<(), Error> {
        let begin = clock.now() + HEAD_START;
        let mut payload = vec![0; usize::from(self.payload).max(size_of::<u64>())];
        for number in 0..u64::from(self.datagrams) {
            let due = begin + self.interval * number;
            while clock.now() < due {
                std::hint::spin_loop();
            }
            payload[..size_of::<u64>()].copy_from_slice(&clock.now().as_nanos().to_ne_bytes());
            socket.send(&payload).map_err(Error::io("send a probe"))?;
        }
        Ok(())
    }

    fn receive(self, socket: &UdpSocket, clock: Clock, delay: Duration, end: Time) -> io::Result<Journeys> {
        let mut journeys = Journeys { excess: Lateness::new(), missing: u64::from(self.datagrams), early: 0 };
        // Asleep between datagrams, so that it takes no processor from whom it measures.
        let _priority = Priority::take(Some(Rank::Host), clock.now());
        let mut buffer = [0; 65_536];
        while journeys.missing > 0 {
            let patience = end.since(clock.now()).as_nanos().max(1);
            socket.set_read_timeout(Some(std::time::Duration::from_nanos(patience)))?;
            match socket.recv(&mut buffer) {
                Ok(length) => journeys.count(&buffer[..length], clock.now(), delay),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(journeys)
    }
}

/// How late a real-time thread is that does nothing but watch the clock, `times` times every `interval`: what the
/// machine (its interrupts, its hypervisor) does to everyone. It watches for 80 ms and pauses for 20, so that it is
/// real-time throughout.
///
/// # Errors
/// When a thread cannot be started.
pub fn floor(clock: Clock, times: u32, interval: Duration) -> Result<Lateness, Error> {
    const WATCH: Duration = Duration::from_millis(80);
    const PAUSE: std::time::Duration = std::time::Duration::from_millis(20);
    let watch = move || {
        let _priority = Priority::take(Some(Rank::Link), clock.now());
        let mut lateness = Lateness::new();
        let mut began = clock.now();
        let mut due = began;
        for _ in 0..times {
            if due.since(began) > WATCH {
                thread::park_timeout(PAUSE);
                began = clock.now();
                due = began;
            }
            due += interval;
            let mut now = clock.now();
            while now < due {
                now = clock.now();
            }
            lateness.record(now.since(due));
        }
        lateness
    };
    thread::spawn(watch).join().map_err(|_| Error::Died { thread: "watching" })
}

impl Journeys {
    fn count(&mut self, payload: &[u8], now: Time, delay: Duration) {
        let Some(stamp) = payload.first_chunk() else { return };
        let took = now.since(Time::from_nanos(u64::from_ne_bytes(*stamp)));
        self.missing = self.missing.saturating_sub(1);
        self.early += u64::from(took < delay);
        self.excess.record(took.saturating_sub(delay));
    }
}
