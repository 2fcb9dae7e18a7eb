//! Real-time priority for a thread, such as the emulator's, and avoidance of its throttling.
//!
//! The kernel stops a thread that spins under SCHED_FIFO for more than `sched_rt_runtime_us` (950 ms of each
//! second) for the rest of that second: 50 ms without deliveries. So a thread that
//! has been awake for most of the time should sleep, at first where that costs nothing
//! (`Need::WhenIdle`), then wherever it can (`Need::Soon`). If it never can, it continues as an ordinary
//! thread, at the best nice value, once it has been awake for 93 of 100 ms. See sched(7).

use std::fmt;

use nix::errno::Errno;
use nix::sys::prctl;
use wire::{Duration, Time};

/// Scheduling of a thread, such as the emulator's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// SCHED_FIFO: has priority over every ordinary thread.
    RealTime,
    /// Ordinary, because the kernel refused real-time priority.
    Refused(Errno),
    /// Ordinary, as requested.
    Ordinary,
}

impl fmt::Display for Scheduling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RealTime => f.write_str("real-time priority (SCHED_FIFO)"),
            Self::Refused(errno) => write!(
                f,
                "ordinary priority: SCHED_FIFO was refused ({}), so packets may be milliseconds late on a busy \
                 host; run as root or raise RLIMIT_RTPRIO to 1",
                errno.desc()
            ),
            Self::Ordinary => f.write_str("ordinary priority"),
        }
    }
}

impl Scheduling {
    /// Gives the calling thread, and every thread it starts from then on, priority over ordinary ones, where
    /// that is allowed.
    pub fn real_time() -> Self {
        Self::of(Rank::Host)
    }

    fn of(rank: Rank) -> Self {
        schedule(Class::RealTime, rank).map_or_else(Self::Refused, |()| Self::RealTime)
    }
}

/// Priority of the calling thread, for the thread's lifetime (not only this value's).
#[derive(Debug)]
pub struct Priority {
    scheduling: Scheduling,
    rank: Rank,
    budget: Budget,
    slept: Duration,
}

impl Priority {
    /// Makes the thread's timers exact and, if it has a rank, its priority real-time.
    pub fn take(rank: Option<Rank>, now: Time) -> Self {
        // Remains at 50 us if refused: the lateness will show it.
        let _ = prctl::set_timerslack(1);
        let scheduling = rank.map_or(Scheduling::Ordinary, Scheduling::of);
        if scheduling == Scheduling::RealTime {
            // For the times when it is not real-time; a refusal shows as lateness.
            let _ = set_best_nice_value();
        }
        let rank = rank.unwrap_or(Rank::Host);
        Self { scheduling, rank, budget: Budget::from(now), slept: Duration::ZERO }
    }

    /// Scheduling that was granted.
    pub const fn scheduling(&self) -> Scheduling {
        self.scheduling
    }

    /// Notes time during which the thread slept, and used no budget.
    pub fn sleep(&mut self, span: Duration) {
        self.slept += span;
        self.budget.slept += span;
    }

    /// Total time asleep.
    pub const fn sleep_time(&self) -> Duration {
        self.slept
    }

    /// The thread's need to sleep, if only briefly.
    pub fn sleep_need(&self, now: Time) -> Need {
        match self.scheduling {
            Scheduling::RealTime => self.budget.sleep_need(now),
            Scheduling::Refused(_) | Scheduling::Ordinary => Need::None,
        }
    }

    /// Lowers the priority before the kernel throttles it, and raises it again when allowed.
    pub fn stay_within_budget(&mut self, now: Time) {
        if self.scheduling == Scheduling::RealTime
            && let Some(class) = self.budget.change(now)
        {
            // It was granted to this thread before; if it is refused now, the lateness shows it.
            let _ = schedule(class, self.rank);
        }
    }
}

/// Order among the testbed's own threads. The numbers are SCHED_FIFO's: above every ordinary thread, and
/// below any other real-time process of the host's owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rank {
    /// A client or a server.
    Host = 1,
    /// The link: a late packet is indistinguishable from a slow network.
    Link = 2,
}

/// A thread's need to sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// No need.
    None,
    /// Sleep if that makes nothing late.
    WhenIdle,
    /// Sleep as soon as nothing is due.
    Soon,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    RealTime,
    Ordinary,
}

/// Time awake in the current window.
#[derive(Debug)]
struct Budget {
    class: Class,
    start: Time,
    slept: Duration,
}

const WINDOW: Duration = Duration::from_millis(100);
const MAX_AWAKE: Duration = Duration::from_millis(93);

impl Budget {
    const fn from(start: Time) -> Self {
        Self { class: Class::RealTime, start, slept: Duration::ZERO }
    }

    fn sleep_need(&self, now: Time) -> Need {
        let elapsed = now.since(self.start);
        let awake = elapsed.saturating_sub(self.slept);
        match (awake * 100).as_nanos().checked_div(elapsed.as_nanos()).unwrap_or(0) {
            0..88 => Need::None,
            88..91 => Need::WhenIdle,
            91.. => Need::Soon,
        }
    }

    /// The class to change to, if it is time for it.
    fn change(&mut self, now: Time) -> Option<Class> {
        let elapsed = now.since(self.start);
        let next_class = if elapsed >= WINDOW {
            (self.start, self.slept) = (now, Duration::ZERO);
            Class::RealTime
        } else if elapsed.saturating_sub(self.slept) >= MAX_AWAKE {
            Class::Ordinary
        } else {
            self.class
        };
        let has_changed = next_class != self.class;
        self.class = next_class;
        has_changed.then_some(next_class)
    }
}

/// Puts the calling thread into a scheduling class.
fn schedule(class: Class, rank: Rank) -> Result<(), Errno> {
    const CALLING_THREAD: libc::pid_t = 0;
    let (policy, sched_priority) = match class {
        Class::RealTime => (libc::SCHED_FIFO, rank as libc::c_int),
        Class::Ordinary => (libc::SCHED_OTHER, 0),
    };
    // musl's function refuses, since it should act on the process: the system call acts on the thread. Its `struct
    // sched_param` has this one number.
    let parameters = &raw const sched_priority;
    // SAFETY: the pointer is to a number that outlives the call, and the kernel only reads it.
    let result = unsafe { libc::syscall(libc::SYS_sched_setscheduler, CALLING_THREAD, policy, parameters) };
    Errno::result(result).map(drop)
}

/// Sets the best nice value for the calling thread while it is an ordinary one.
fn set_best_nice_value() -> Result<(), Errno> {
    const CALLING_THREAD: libc::id_t = 0;
    // SAFETY: it takes plain numbers. On Linux, "process" 0 is the calling thread.
    let result = unsafe { libc::setpriority(libc::PRIO_PROCESS, CALLING_THREAD, -20) };
    Errno::result(result).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn thread_that_never_sleeps_loses_its_priority_for_the_rest_of_each_window() {
        let mut budget = Budget::from(Time::ZERO);
        let changes: Vec<_> = (0..=200).filter_map(|at| Some((at, budget.change(millis(at))?))).collect();
        let expected =
            [(93, Class::Ordinary), (100, Class::RealTime), (193, Class::Ordinary), (200, Class::RealTime)];
        assert_eq!(changes, expected);
    }

    #[test]
    fn a_thread_that_sleeps_enough_is_real_time_throughout() {
        let mut budget = Budget::from(Time::ZERO);
        for at in 0..1_000 {
            budget.slept += Duration::from_micros(200);
            assert_eq!(budget.change(millis(at)), None);
        }
    }

    #[test]
    fn need_to_sleep_grows_with_the_share_of_time_awake() {
        let mut budget = Budget::from(Time::ZERO);
        assert_eq!(budget.sleep_need(Time::ZERO), Need::None);
        assert_eq!(budget.sleep_need(millis(10)), Need::Soon);
        budget.slept = Duration::from_micros(1_000);
        assert_eq!(budget.sleep_need(millis(10)), Need::WhenIdle);
        budget.slept = Duration::from_micros(1_300);
        assert_eq!(budget.sleep_need(millis(10)), Need::None);
    }

    #[test]
    fn refusal_is_reported_with_its_remedy() {
        let message = Scheduling::Refused(Errno::EPERM).to_string();
        assert!(
            message.contains("Operation not permitted") && message.contains("RLIMIT_RTPRIO"),
            "{message}"
        );
    }
}
