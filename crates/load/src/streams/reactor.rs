//! A thread's runtime for the libraries that carry streams, and the wait for their reports.
//!
//! The timer is the kernel's, because a runtime's own wakes a millisecond late.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use rustix::event::Timespec;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use tokio::net::unix::pipe::Receiver;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::yield_now;
use tokio::time::timeout;
use wire::Duration;

use super::connection_task::{Report, Reporter};

/// A runtime, with the receiver of its tasks' reports.
#[derive(Debug)]
pub(crate) struct Reactor {
    // Dropped first: its tasks end, and release their resources before the rest is dropped.
    runtime: Runtime,
    // A timer is read like a pipe, and for pipes the runtime takes ownership of the descriptor.
    timer: Receiver,
    reports: UnboundedReceiver<(u32, Report)>,
    reporter: UnboundedSender<(u32, Report)>,
}

/// Number of tasks in a row, before the runtime polls sockets and timers.
const TASKS_IN_A_ROW: u32 = 16;
/// Maximum number of reports taken together.
const MAX_REPORTS_PER_WAKE: usize = 64;
/// Time for connections to send a graceful close at the end of a run.
const PARTING: std::time::Duration = std::time::Duration::from_millis(200);

impl Reactor {
    pub(crate) fn new() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().event_interval(TASKS_IN_A_ROW).build()?;
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK.union(TimerfdFlags::CLOEXEC))?;
        let timer = {
            let _inside = runtime.enter();
            Receiver::from_owned_fd_unchecked(timer)?
        };
        let (reporter, reports) = unbounded_channel();
        Ok(Self { runtime, timer, reports, reporter })
    }

    /// The runtime, for tasks.
    pub(crate) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Sender of reports for a user's connections.
    pub(crate) fn reporter(&self, user: u32) -> Reporter {
        Reporter::new(user, self.reporter.clone())
    }

    /// Runs tasks until something is reported or this time has passed; with zero, each once.
    pub(crate) fn wait(&mut self, left: Duration, reports: &mut Vec<(u32, Report)>) {
        let Self { runtime, timer, reports: reported, reporter: _ } = self;
        if left == Duration::ZERO {
            runtime.block_on(yield_now());
        } else {
            let nanos = left.as_nanos();
            let value = Timespec {
                tv_sec: i64::try_from(nanos / 1_000_000_000).unwrap_or(i64::MAX),
                tv_nsec: i64::try_from(nanos % 1_000_000_000).unwrap_or(0),
            };
            let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
            // It cannot fail: the descriptor and the time are valid.
            let _ = timerfd_settime(&*timer, TimerfdTimerFlags::empty(), &once);
            runtime.block_on(poll_fn(|context| {
                if reported.poll_recv_many(context, reports, MAX_REPORTS_PER_WAKE).is_ready() {
                    return Poll::Ready(());
                }
                loop {
                    let Poll::Ready(ready) = timer.poll_read_ready(context) else { return Poll::Pending };
                    // The readiness may be that of an earlier time.
                    let is_earlier = ready.is_ok() && timer.try_read(&mut [0; 8]).is_err();
                    if !is_earlier {
                        return Poll::Ready(());
                    }
                }
            }));
        }
        while let Ok(report) = reported.try_recv() {
            reports.push(report);
        }
    }

    /// Lets closed connections send their close.
    pub(crate) fn finish(self) {
        let Self { runtime, timer: _, mut reports, reporter } = self;
        drop(reporter);
        // It ends when every sender is dropped.
        let over = async { while reports.recv().await.is_some() {} };
        let _ = runtime.block_on(async { timeout(PARTING, over).await });
    }
}
