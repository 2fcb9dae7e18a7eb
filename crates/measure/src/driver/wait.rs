//! Waiting until a socket is ready or a deadline has come.
//!
//! A thread that sleeps takes 20 to 100 us to wake up, which on a fast network is more than the page does. So
//! where real-time priority is granted and CPUs are available it polls its sockets for a while before it
//! sleeps. A deadline that must be met exactly is met by polling the clock for the last part.

use std::thread::available_parallelism;

use linux::clock::Clock;
use linux::priority::{Priority, Rank};
use nix::errno::Errno;
use nix::poll::{PollFd, ppoll};
use nix::sys::time::TimeSpec;
use testbed::emulator::Scheduling;
use wire::{Duration, Time};

use crate::Error;

/// Accuracy of a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitUntil {
    /// No deadline: only sockets count.
    Ready,
    /// By waking up some time after it.
    About(Time),
    /// By polling the clock until it.
    Exactly(Time),
}

impl WaitUntil {
    /// The earlier of a deadline that must be met exactly and one that need not be.
    pub(super) fn first(exact: Option<Time>, about: Option<Time>) -> Self {
        match (exact, about) {
            (Some(exact), about) if about.is_none_or(|about| exact <= about) => Self::Exactly(exact),
            (_, Some(about)) => Self::About(about),
            (_, None) => Self::Ready,
        }
    }
}

/// Waiting strategy of a host.
#[derive(Debug)]
pub(super) struct WaitStrategy {
    clock: Clock,
    priority: Priority,
    /// Time for which it polls its sockets before it sleeps.
    poll_time: Duration,
}

/// Two round trips of a local network, and the packets of a flight on a slow one.
const POLL_TIME: Duration = Duration::from_millis(2);

/// Client, server and link poll at the same time: with fewer CPUs, one would delay another.
const MIN_CPUS: usize = 3;

/// Longer than a thread takes to wake up, 99 times out of 100 (as in `emulator::Options::spin`).
const MAX_WAKE_UP: Duration = Duration::from_micros(60);

impl WaitStrategy {
    /// Strategy for the calling thread, which is a host of its own from now on.
    pub(super) fn new(clock: Clock) -> Self {
        // Where it is refused the host is late, and `reactions` reports it.
        let priority = Priority::take(Some(Rank::Host), clock.now());
        // An ordinary thread that never sleeps has used up its time slice when an event comes. On a busy host
        // a page over Ethernet took 22 ms instead of 18.
        let is_first = priority.scheduling() == Scheduling::RealTime;
        let has_spare_cpus = available_parallelism().is_ok_and(|cpus| cpus.get() >= MIN_CPUS);
        let poll_time = if is_first && has_spare_cpus { POLL_TIME } else { Duration::ZERO };
        Self { clock, priority, poll_time }
    }

    /// Waits until one of `sockets` is ready, or the deadline has come.
    pub(super) fn wait(&mut self, sockets: &mut [PollFd<'_>], until: WaitUntil) -> Result<(), Error> {
        let began = self.clock.now();
        self.priority.stay_within_budget(began);
        let deadline = match until {
            WaitUntil::Ready => None,
            WaitUntil::About(deadline) | WaitUntil::Exactly(deadline) => Some(deadline),
        };
        let poll_until = began + self.poll_time;
        let sleeps_from = deadline.map_or(poll_until, |deadline| deadline.min(poll_until));
        if self.poll_once(sockets, sleeps_from)? {
            return Ok(());
        }
        let now = self.clock.now();
        let timeout = match until {
            WaitUntil::Ready => None,
            WaitUntil::About(deadline) => Some(deadline.since(now)),
            WaitUntil::Exactly(deadline) => Some(deadline.since(now).saturating_sub(MAX_WAKE_UP)),
        };
        let is_ready = poll(sockets, timeout)?;
        self.priority.sleep(self.clock.now().since(now));
        match until {
            WaitUntil::Exactly(deadline) if !is_ready => self.poll_once(sockets, deadline).map(drop),
            WaitUntil::Exactly(_) | WaitUntil::About(_) | WaitUntil::Ready => Ok(()),
        }
    }

    /// Polls without sleeping until a socket is ready or the deadline has come.
    fn poll_once(&self, sockets: &mut [PollFd<'_>], until: Time) -> Result<bool, Error> {
        while self.clock.now() < until {
            if poll(sockets, Some(Duration::ZERO))? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Whether one of them is ready within `nap`; `None` waits without limit.
fn poll(sockets: &mut [PollFd<'_>], timeout: Option<Duration>) -> Result<bool, Error> {
    let timeout =
        timeout.map(|span| TimeSpec::from_duration(std::time::Duration::from_nanos(span.as_nanos())));
    match ppoll(sockets, timeout, None) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::EINTR) => Ok(false),
        Err(errno) => Err(Error::kernel("wait for a socket")(errno)),
    }
}
