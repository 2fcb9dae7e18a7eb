//! One-way latency between two programs, in excess of the link's configured delay.
//!
//! Datagrams carry the time they were sent; the receiver subtracts it, and the link's delay, from the time of
//! arrival. The excess contains both kernels' stacks, the emulator's lateness, and the wake-ups between.
//! Over a link without delay it is the testbed's own share, its *bias*: subtract its median, and the rest
//! is the emulator's end-to-end error. There is one stream, at one pace.

use std::io;
use std::net::UdpSocket;
use std::thread;

use wire::{Duration, Time};

use crate::Error;
use crate::lateness::Lateness;
use linux::clock::Clock;
use linux::priority::{Priority, Rank};

/// A stream of timestamped datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Number of datagrams.
    pub datagrams: u32,
    /// Interval between them. A delayed sender catches up: the pace is maintained, the intervals are not.
    pub interval: Duration,
    /// Size of each, without headers; at least the 8 bytes of the timestamp.
    pub payload: u16,
}

/// Result of a stream.
#[derive(Clone, Debug)]
pub struct StreamResult {
    /// Time received minus time sent minus `delay`, of each datagram that arrived.
    pub excess: Lateness,
    /// Number of datagrams that did not arrive.
    pub missing: u64,
    /// Number that arrived in less than `delay`; zero, or the emulator is broken.
    pub early: u64,
}

/// Head start of the receiver before the first datagram.
const HEAD_START: Duration = Duration::from_millis(5);

/// Time that the receiver waits after the last was sent, beyond the delay.
const EXTRA_WAIT: Duration = Duration::from_millis(200);

impl Stream {
    /// Sends the stream over two connected sockets, in any namespaces, and times it against a link of this
    /// `delay`.
    ///
    /// # Errors
    /// If a socket fails, or a thread cannot be started.
    pub fn run(self, sockets: [&UdpSocket; 2], clock: Clock, delay: Duration) -> Result<StreamResult, Error> {
        let [sender, receiver] = sockets;
        let begin = clock.now() + HEAD_START;
        let end = begin + self.interval * u64::from(self.datagrams) + delay + EXTRA_WAIT;
        let died = |_| Error::Died { thread: "probe" };
        thread::scope(|scope| {
            let receiving = scope.spawn(|| self.receive(receiver, clock, delay, end));
            let sending = scope.spawn(|| self.send(sender, clock));
            sending.join().map_err(died)??;
            receiving.join().map_err(died)?.map_err(Error::io("receive a probe"))
        })
    }

    /// Sends the stream regardless of the receiver.
    ///
    /// # Errors
    /// If the socket fails.
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

    fn receive(
        self,
        socket: &UdpSocket,
        clock: Clock,
        delay: Duration,
        end: Time,
    ) -> io::Result<StreamResult> {
        let mut result =
            StreamResult { excess: Lateness::new(), missing: u64::from(self.datagrams), early: 0 };
        // Sleeps between datagrams, so that it takes no CPU from the measured host.
        let _priority = Priority::take(Some(Rank::Host), clock.now());
        let mut buffer = [0; 65_536];
        while result.missing > 0 {
            let timeout = end.since(clock.now()).as_nanos().max(1);
            socket.set_read_timeout(Some(std::time::Duration::from_nanos(timeout)))?;
            match socket.recv(&mut buffer) {
                Ok(length) => result.count(&buffer[..length], clock.now(), delay),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(result)
    }
}

/// Lateness of a real-time thread that only polls the clock, `times` times every `interval`: the share of the
/// host (its interrupts, its hypervisor) in any lateness. It polls for 80 ms and pauses for 20, so that it
/// stays real-time throughout.
///
/// # Errors
/// If a thread cannot be started.
pub fn floor(clock: Clock, times: u32, interval: Duration) -> Result<Lateness, Error> {
    const WATCH: Duration = Duration::from_millis(80);
    const PAUSE: std::time::Duration = std::time::Duration::from_millis(20);
    let watch = move || {
        let _priority = Priority::take(Some(Rank::Link), clock.now());
        let mut lateness = Lateness::new();
        let mut start = clock.now();
        let mut due = start;
        for _ in 0..times {
            if due.since(start) > WATCH {
                thread::park_timeout(PAUSE);
                start = clock.now();
                due = start;
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

impl StreamResult {
    fn count(&mut self, payload: &[u8], now: Time, delay: Duration) {
        let Some(stamp) = payload.first_chunk() else { return };
        let latency = now.since(Time::from_nanos(u64::from_ne_bytes(*stamp)));
        self.missing = self.missing.saturating_sub(1);
        self.early += u64::from(latency < delay);
        self.excess.record(latency.saturating_sub(delay));
    }
}
