//! Wakes a thread at its next deadline, without a system call for each wait.
//!
//! A wait with a timeout sets a timer and cancels it, which costs more than a datagram on a virtual CPU. Most deadlines move
//! later with every request. This timer is therefore set only when a deadline becomes earlier, and sometimes fires too early.
//! Not the deadlines: those are the state machine's.

use std::io;
use std::os::fd::OwnedFd;

use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use rustix::time::{timerfd_create, timerfd_settime};
use wire::{Duration, Time};

use super::timespec;

/// A timer that is polled like a socket.
#[derive(Debug)]
pub(super) struct Alarm {
    timer: OwnedFd,
    /// Time at which it fires.
    set: Time,
}

impl Alarm {
    /// # Errors
    /// If the system has no descriptor left.
    pub(super) fn new() -> io::Result<Self> {
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        Ok(Self { timer, set: Time::MAX })
    }

    /// Returns the descriptor, readable when the timer fires.
    pub(super) const fn timer(&self) -> &OwnedFd {
        &self.timer
    }

    /// Ensures that the timer fires by `next`.
    pub(super) fn ring_by(&mut self, now: Time, next: Time) {
        if next >= self.set {
            return;
        }
        // A zero value would disarm the timer.
        let once = timespec(next.since(now).max(Duration::from_nanos(1)));
        let never = Timespec { tv_sec: 0, tv_nsec: 0 };
        let setting = Itimerspec { it_interval: never, it_value: once };
        // The time is valid, so the system has no reason to refuse it.
        if timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &setting).is_ok() {
            self.set = next;
        }
    }

    /// Acknowledges that the timer has fired.
    pub(super) fn rung(&mut self) {
        // The value read is only the number of expirations.
        let _ = rustix::io::read(&self.timer, &mut [0_u8; 8]);
        self.set = Time::MAX;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, poll};

    fn rings(alarm: &Alarm, within_ms: i64) -> bool {
        let within = Timespec { tv_sec: 0, tv_nsec: within_ms * 1_000_000 };
        poll(&mut [PollFd::new(alarm.timer(), PollFlags::IN)], Some(&within)).unwrap() == 1
    }

    #[test]
    fn alarm_expires_when_the_first_is_due_and_not_again_before_it_is_set() {
        let (mut alarm, now) = (Alarm::new().unwrap(), Time::ZERO + Duration::from_secs(1));
        assert!(!rings(&alarm, 0));
        alarm.ring_by(now, now + Duration::from_secs(60));
        alarm.ring_by(now, now);
        alarm.ring_by(now, now + Duration::from_secs(50));
        assert!(rings(&alarm, 900), "due already");
        alarm.rung();
        assert!(!rings(&alarm, 0));
        alarm.ring_by(now, now + Duration::from_millis(1));
        assert!(rings(&alarm, 900));
    }
}
