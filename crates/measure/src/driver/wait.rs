//! Waiting until a socket is ready or a moment has come.
//!
//! `ppoll` takes nanoseconds, and a real-time thread or a timer slack of 1 ns makes it keep them but for the time
//! it takes to wake up. Where a moment must be met exactly the last of it is spent watching the clock.

use nix::errno::Errno;
use nix::poll::{PollFd, ppoll};
use nix::sys::time::TimeSpec;
use wire::{Duration, Time};

use crate::Error;
use crate::clock::Clock;

/// Longer than a thread takes to wake up, 99 times of 100 (notes on timing: `emulator::Options::spin`).
const WAKE_UP: Duration = Duration::from_micros(60);

/// How exactly a moment is to be met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// No moment: only sockets count.
    Ready,
    /// By waking up some time after it.
    About(Time),
    /// By watching the clock for it.
    Exactly(Time),
}

/// Waits until one of `sockets` is ready, or the moment has come.
pub(super) fn wait(sockets: &mut [PollFd<'_>], clock: Clock, until: Until) -> Result<(), Error> {
    let nap = match until {
        Until::Ready => None,
        Until::About(moment) => Some(moment.since(clock.now())),
        Until::Exactly(moment) => Some(moment.since(clock.now()).saturating_sub(WAKE_UP)),
    };
    let ready = match ppoll(sockets, nap.map(time_spec), None) {
        Ok(ready) => ready,
        Err(Errno::EINTR) => 0,
        Err(errno) => return Err(Error::Kernel { doing: "wait for a socket".to_owned(), errno }),
    };
    if ready == 0
        && let Until::Exactly(moment) = until
    {
        // At most `WAKE_UP` long, so never long enough to be throttled.
        while clock.now() < moment {
            std::hint::spin_loop();
        }
    }
    Ok(())
}

fn time_spec(span: Duration) -> TimeSpec {
    TimeSpec::from_duration(std::time::Duration::from_nanos(span.as_nanos()))
}
