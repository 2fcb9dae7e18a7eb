//! A thread's runtime for the libraries that carry streams, and the wait for what they tell.
//!
//! Not a clock: the timer is the kernel's, because a runtime's own wakes a millisecond late.

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

use super::desk::{Report, Reporter};

/// A runtime, and where its tasks report to.
#[derive(Debug)]
pub(crate) struct Reactor {
    // Its tasks end with it; what they hold they give back before the rest is gone.
    runtime: Runtime,
    // A timer is read as a pipe is, and for pipes the runtime takes over what it watches.
    timer: Receiver,
    reports: UnboundedReceiver<(u32, Report)>,
    reporter: UnboundedSender<(u32, Report)>,
}

/// So many tasks in a row, and then a look at the sockets and at what is due.
const TASKS_IN_A_ROW: u32 = 16;
/// Reports that are taken at once.
const REPORTS_AT_ONCE: usize = 64;
/// For connections that are closed at the end of a run to say so.
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

    /// The runtime, for what is to go on there.
    pub(crate) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Where a user's connections report to.
    pub(crate) fn reporter(&self, user: u32) -> Reporter {
        Reporter::new(user, self.reporter.clone())
    }

    /// Lets tasks go on until something is reported or so much time has passed; with none, each once.
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
            // A descriptor and a time that are valid: it cannot fail.
            let _ = timerfd_settime(&*timer, TimerfdTimerFlags::empty(), &once);
            runtime.block_on(poll_fn(|context| {
                if reported.poll_recv_many(context, reports, REPORTS_AT_ONCE).is_ready() {
                    return Poll::Ready(());
                }
                loop {
                    let Poll::Ready(ready) = timer.poll_read_ready(context) else { return Poll::Pending };
                    // What was ready may have been an earlier time.
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

    /// All connections are closed: lets them say so.
    pub(crate) fn finish(self) {
        let Self { runtime, timer: _, mut reports, reporter } = self;
        drop(reporter);
        // It ends when nobody is left who could report.
        let over = async { while reports.recv().await.is_some() {} };
        let _ = runtime.block_on(async { timeout(PARTING, over).await });
    }
}
