//! The emulated link in real time: one thread between two TUN devices, driving one [`Pipe`] each way.
//!
//! Packets of the client's kernel are read from its TUN immediately and pass the clockless pipe of `wire`. They
//! are written to the server's TUN when they are due, never before; likewise in the other direction. The thread sleeps
//! until shortly before a packet is due and then polls the clock, at real-time priority where the system
//! allows it. It measures its own lateness: a late run is void.
//!
//! | module | contents |
//! | --- | --- |
//! | `relay` | the loop: read, offer to the pipe, wait, write |
//! | `distance` | packets of hosts that are farther away than the link |
//! | [`tap`] | every packet as sent and as delivered, recorded in memory and written as pcapng afterwards |
//! | [`report`] | lateness, counters, and whether the run is void |
//!
//! It knows no address but those that are farther away. Between the two devices there are these two pipes and the shims that a
//! stack profile needs: one delays packets, one reduces a field.

mod distance;
mod relay;
pub mod report;
pub mod tap;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

use nix::sys::eventfd::{EfdFlags, EventFd};
use wire::link::{Config, Pipe};
use wire::{Bytes, Duration, Seed};

pub use crate::ends::PacketDirection;
pub use linux::priority::Scheduling;
pub use report::{Report, Traffic, VoidReason};
pub use tap::{Capture, Observation};

use crate::Error;
use crate::ack_heartbeat::AckHeartbeat;
use crate::advertised_window::AdvertisedWindow;
use crate::ends::PerEnd;
use crate::reactions::Reactions;
use distance::Distance;
use linux::clock::Clock;
use linux::priority::{Priority, Rank};
use linux::tun::Tun;
use relay::{Relay, Shims};
use tap::Tap;

/// Options of the emulator, apart from the link itself.
#[derive(Clone, Debug)]
pub struct Options {
    /// Seed of the link's randomness, and of the heartbeat's phase.
    pub seed: Seed,
    /// Whether both hosts acknowledge as BSD did, on the ticks of a 200 ms clock ([`AckHeartbeat`]).
    pub ack_heartbeat: bool,
    /// Window limits of each sender, where the other end's kernel would advertise another window.
    pub windows: PerEnd<Option<AdvertisedWindow>>,
    /// Extra round trip of each address of the server that is farther away than the link.
    pub extra_rtts: BTreeMap<Ipv4Addr, Duration>,
    /// Whether to record the reaction time of each host ([`Reactions`]).
    pub reactions: bool,
    /// Time before a packet is due at which the thread stops sleeping and polls the clock. Must exceed the
    /// host's wake-up time, or packets are late; costs that much CPU time for every packet.
    pub spin: Duration,
    /// Whether to request real-time priority (SCHED_FIFO). Where it is refused the emulator runs without it,
    /// and reports so.
    pub real_time: bool,
    /// A run is void if more than one packet in a thousand (or the worst, of fewer than a thousand) is later
    /// than this.
    pub late_limit: Duration,
    /// Memory for a capture of both ends; `None`: no capture. It is allocated and touched before the run
    /// begins. When it is full, further packets are not captured, and the capture reports their number.
    pub capture: Option<Bytes>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: Seed::default(),
            ack_heartbeat: false,
            windows: PerEnd::default(),
            extra_rtts: BTreeMap::new(),
            reactions: false,
            // Waking up takes 15 to 30 us at the median, 50 to 110 at the 99th percentile, on a virtual
            // machine.
            spin: Duration::from_micros(100),
            real_time: true,
            // Half the resolution of TCP's own timers (a jiffy of 4 ms): less is indistinguishable from the
            // kernel's own noise.
            late_limit: Duration::from_millis(2),
            capture: None,
        }
    }
}

/// The emulator, before it is started.
#[derive(Debug)]
pub struct Emulator;

impl Emulator {
    /// Joins the two devices by a link: `up` is what the client sends, `down` what the server sends. The devices
    /// vanish when the emulator stops.
    ///
    /// # Errors
    /// An invalid configuration of a link; or the kernel's refusal of a thread.
    pub fn start(
        client: Tun,
        server: Tun,
        up: &Config,
        down: &Config,
        options: &Options,
    ) -> Result<Running, Error> {
        let Options {
            seed,
            ack_heartbeat,
            windows,
            extra_rtts,
            reactions,
            spin,
            real_time,
            late_limit,
            capture,
        } = options.clone();
        let [up, down] = [Pipe::new(up, seed, 0)?, Pipe::new(down, seed, 1)?];
        let clock = Clock::start();
        let stop = Arc::new(Stop::new()?);
        let stop_flag = Arc::clone(&stop);
        let (started, start_signal) = mpsc::channel();
        let thread = thread::Builder::new().name("emulator".to_owned()).spawn(move || {
            let heartbeats = ack_heartbeat.then(|| [0, 1].map(|host| AckHeartbeat::new(seed, host)));
            let shims = Shims { heartbeats, windows, distance: Distance::new(extra_rtts) };
            let reactions = reactions.then(Reactions::default);
            let tap = capture.map(|memory| Tap::new(memory, clock.zero_since_1970()));
            let mut priority = Priority::take(real_time.then_some(Rank::Link), clock.now());
            let mut relay = Relay::new([client, server], [up, down], shims, clock, reactions, tap);
            // Does not fail: `start` waits for this message.
            let _ = started.send(());
            relay.run(&stop_flag, spin, &mut priority)?;
            relay.report(&priority, late_limit)
        });
        let thread = thread.map_err(Error::io("start the emulator's thread"))?;
        // A packet sent before the thread has its priority and its memory would wait for both.
        start_signal.recv().map_err(|_| Error::Died { thread: "emulator" })?;
        Ok(Running { clock, stop, thread: Some(thread) })
    }
}

/// A running emulator. Dropping it stops it, too, and loses the report.
#[derive(Debug)]
pub struct Running {
    clock: Clock,
    stop: Arc<Stop>,
    thread: Option<thread::JoinHandle<Result<Report, Error>>>,
}

impl Running {
    /// The emulator's own clock: the times in its report and its capture are relative to its zero.
    pub const fn clock(&self) -> Clock {
        self.clock
    }

    /// Whether the thread has ended by itself, which it does only on an error: [`Running::stop`] returns it.
    pub fn has_failed(&self) -> bool {
        self.thread.as_ref().is_none_or(thread::JoinHandle::is_finished)
    }

    /// Stops the emulator and returns its report. Packets in flight are lost.
    ///
    /// # Errors
    /// If a device could not be read or written, or the thread panicked: the run is worthless.
    pub fn stop(mut self) -> Result<Report, Error> {
        self.end().unwrap_or(Err(Error::Died { thread: "emulator" }))
    }

    fn end(&mut self) -> Option<Result<Report, Error>> {
        self.stop.signal();
        self.thread.take().map(|thread| thread.join().unwrap_or(Err(Error::Died { thread: "emulator" })))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A caller that wants the result calls `stop`.
        let _ = self.end();
    }
}

/// Stop signal for the thread, awake or asleep.
#[derive(Debug)]
struct Stop {
    is_set: AtomicBool,
    wake: EventFd,
}

impl Stop {
    fn new() -> Result<Self, Error> {
        let flags = EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
        let wake =
            EventFd::from_value_and_flags(0, flags).map_err(Error::kernel("create an event descriptor"))?;
        Ok(Self { is_set: AtomicBool::new(false), wake })
    }

    fn signal(&self) {
        self.is_set.store(true, Ordering::Release);
        // Fails only if the counter is full, and then the thread is awake.
        let _ = self.wake.write(1);
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }
}
