//! A watch for some time, while a command runs, or until Ctrl-C: samples at an interval, and a report each second.

use std::ffi::OsString;
use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::{TimeSpec, TimeValLike};
use nix::time::{ClockId, clock_gettime};

use linux::clock::Clock;
use report::watched::WatchReport;
use wire::Duration;

use super::{Scope, Watch};
use crate::Error;
use crate::process::{CaptureEnd, Interrupts, Process};

/// Options of a watch.
#[derive(Clone, Debug)]
pub struct Session {
    /// The sockets to watch.
    pub scope: Scope,
    /// Command to run during the watch; its sockets are watched if the scope is `All`. None if empty.
    pub command: Vec<OsString>,
    /// Sampling interval.
    pub interval: Duration,
    /// Duration; `None`: until a signal, or until the command ends.
    pub span: Option<Duration>,
}

/// Time between reports.
const BETWEEN_REPORTS: Duration = Duration::from_secs(1);

impl Session {
    /// Watches, and passes a report to `each` at the beginning, every second, and at the end.
    ///
    /// # Errors
    /// The kernel's error, or the first error of `each`.
    pub fn run<E: From<Error>>(
        &self,
        mut each: impl FnMut(&WatchReport) -> Result<(), E>,
    ) -> Result<WatchReport, E> {
        let mut process = Process::start(&self.command, None)?;
        let signals = Interrupts::begin()?;
        let clock = Clock::start();
        let cpu_before = cpu_time();
        let scope = match (self.scope, process.id()) {
            (Scope::All, Some(pid)) => Scope::Process(pid),
            (scope, _) => scope,
        };
        let begin = if process.id().is_some() { Watch::of_command } else { Watch::begin };
        let mut watch = begin(scope).map_err(Error::from)?;
        let mut ending = CaptureEnd::new(self.span.map(|span| clock.now() + span));
        let (mut due, mut report_due) = (clock.now(), clock.now());
        let mut is_first = true;
        loop {
            // A late sample is skipped: the next one is as good.
            let idle = watch.idle().max(self.interval).min(report_due.since(clock.now()));
            due = (due + idle).max(clock.now());
            let is_interrupted = signals.wait(due.since(clock.now()))?;
            let now = clock.now();
            let is_last = ending.is_over(now, &mut process, is_interrupted);
            watch.sample().map_err(Error::from)?;
            if is_last || now >= report_due {
                report_due = now + BETWEEN_REPORTS;
                let report = WatchReport {
                    elapsed: now.since(wire::Time::ZERO),
                    rows: watch.rows(),
                    is_first,
                    open: watch.open(),
                    samples: watch.samples(),
                    left_out: watch.left_out(),
                    connections: watch.connections(),
                    observed: watch.coverage().observed,
                    unseen: watch.coverage().unseen,
                    is_command_stopped: ending.was_interrupted(),
                    cpu: cpu_time().saturating_sub(cpu_before),
                    command: process.ended(),
                    is_last,
                };
                each(&report)?;
                is_first = false;
                if is_last {
                    return Ok(report);
                }
            }
        }
    }
}

impl Interrupts {
    /// Waits for `span`; returns whether a signal arrived.
    fn wait(&self, span: Duration) -> Result<bool, Error> {
        let span = TimeSpec::nanoseconds(i64::try_from(span.as_nanos()).unwrap_or(i64::MAX));
        let mut waiting = [PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)];
        match ppoll(&mut waiting, Some(span), None) {
            // Consumed, to distinguish the next signal from it.
            Ok(_) => Ok(self.signals.read_signal().is_ok_and(|one| one.is_some())),
            Err(Errno::EINTR) => Ok(false),
            Err(errno) => Err(Error::Signals(errno)),
        }
    }
}

/// Returns the CPU time of this process.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID);
    let nanos = time.map_or(0, |time| u64::try_from(time.num_nanoseconds()).unwrap_or_default());
    Duration::from_nanos(nanos)
}
