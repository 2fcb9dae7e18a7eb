//! Event loop of a thread: the readiness of its sockets by token, one timer, and wake-ups from other threads.
//!
//! Sockets are registered with a [`Poller`] under tokens of the caller's choice. [`Poller::wait`] returns the tokens of those
//! that are ready. The timer is set only when a deadline becomes earlier (`alarm`). Timers are exact to milliseconds; load
//! generators and measurements, which need nanoseconds, have loops of their own.

mod alarm;

use std::fs::File;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::epoll::{self, CreateFlags, Event, EventData};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use wire::{Duration, Time};

use alarm::Alarm;

/// Events of a source: readable, writable, edge-triggered and so on, as for epoll(7).
pub use rustix::event::epoll::EventFlags as Interest;

/// Sources of events, and a timer.
#[derive(Debug)]
pub struct Poller {
    epoll: OwnedFd,
    alarm: Alarm,
}

/// Buffer for the events of one wait, reused.
pub struct Events(Vec<Event>);

/// Wakes the thread of a [`Poller`] with which it is registered.
#[derive(Debug)]
pub struct Waker(OwnedFd);

/// A descriptor in reserve. When no other is left, it is released to accept the next connection and refuse it. Otherwise that
/// client would wait forever, and its connection would wake the thread repeatedly.
#[derive(Debug)]
pub struct SpareDescriptor(Option<File>);

/// Token of the timer, which no source may have.
const ALARM: u64 = u64::MAX;
/// Maximum number of events of one wait.
const MAX_EVENTS: usize = 256;

impl Poller {
    /// Creates one without sources.
    ///
    /// # Errors
    /// If the system has no descriptor left.
    pub fn new() -> io::Result<Self> {
        let poller = Self { epoll: epoll::create(CreateFlags::CLOEXEC)?, alarm: Alarm::new()? };
        poller.add(poller.alarm.timer(), ALARM, Interest::IN)?;
        Ok(poller)
    }

    /// Registers a source; closing it removes it.
    ///
    /// # Errors
    /// If the kernel has no memory for it, or its limit of registrations is reached.
    pub fn add(&self, source: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, source, EventData::new_u64(token), interest)?)
    }

    /// Changes the events of a registered source; an edge-triggered one is reported again.
    pub fn modify(&self, source: impl AsFd, token: u64, interest: Interest) {
        // It is registered already, so that this cannot fail for lack of resources.
        let _ = epoll::modify(&self.epoll, source, EventData::new_u64(token), interest);
    }

    /// Removes a source that stays open.
    pub fn remove(&self, source: impl AsFd) {
        // A source that is not registered needs no removal.
        let _ = epoll::delete(&self.epoll, source);
    }

    /// Ensures that a wait ends by `deadline`.
    pub fn wake_by(&mut self, now: Time, deadline: Time) {
        self.alarm.ring_by(now, deadline);
    }

    /// Waits until a source is ready; returns whether the timer has fired, sometimes before a deadline.
    pub fn wait(&mut self, events: &mut Events) -> bool {
        events.0.clear();
        // An interrupted wait has no events; any other failure would be a bug in this file.
        let _ = epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events.0), None);
        let count = events.0.len();
        events.0.retain(|event| event.data.u64() != ALARM);
        let has_fired = events.0.len() < count;
        if has_fired {
            self.alarm.rung();
        }
        has_fired
    }
}

impl Default for Events {
    fn default() -> Self {
        Self(Vec::with_capacity(MAX_EVENTS))
    }
}

impl Events {
    /// Takes the tokens of the sources that are ready, with their events.
    pub fn drain(&mut self) -> impl Iterator<Item = (u64, Interest)> {
        self.0.drain(..).map(|event| (event.data.u64(), event.flags))
    }
}

impl Waker {
    /// # Errors
    /// If the system has no descriptor left.
    pub fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// Wakes the thread.
    pub fn wake(&self) {
        // If the counter is full, the thread has been woken already.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Acknowledges all wake-ups so far; to be called before what they announce is read.
    pub fn clear(&self) {
        // The value has no meaning.
        let _ = rustix::io::read(&self.0, &mut [0_u8; 8]);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Default for SpareDescriptor {
    fn default() -> Self {
        Self(File::open("/dev/null").ok())
    }
}

impl SpareDescriptor {
    /// Handles an error of accept(2): if no descriptor is left, `refuse` gets the next connection, which is then closed. The
    /// result is `true` if there was one: the kernel reports the lack before it looks for one.
    pub fn refuse_next(
        &mut self,
        error: &io::Error,
        listener: &TcpListener,
        refuse: impl FnOnce(&TcpStream),
    ) -> bool {
        let is_lack = matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE));
        if !is_lack {
            return false;
        }
        self.0 = None;
        let next = listener.accept();
        if let Ok((stream, _)) = &next {
            refuse(stream);
        }
        let is_refused = next.is_ok();
        drop(next);
        *self = Self::default();
        is_refused
    }
}

/// Converts a duration for the kernel.
pub fn timespec(span: Duration) -> Timespec {
    let nanos = span.as_nanos();
    Timespec {
        tv_sec: i64::try_from(nanos / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(nanos % 1_000_000_000).unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpStream;

    use super::*;
    use wire::Duration;

    #[test]
    fn sources_are_reported_by_token_until_they_are_removed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        let (mut poller, mut events) = (Poller::new().unwrap(), Events::default());
        poller.add(&server, 7, Interest::IN).unwrap();
        client.write_all(b"x").unwrap();
        assert!(!poller.wait(&mut events));
        assert_eq!(events.drain().map(|(token, _)| token).collect::<Vec<_>>(), [7]);
        poller.modify(&server, 8, Interest::OUT);
        poller.wait(&mut events);
        assert_eq!(events.drain().map(|(token, _)| token).collect::<Vec<_>>(), [8]);
        poller.remove(&server);
        poller.wake_by(Time::ZERO, Time::ZERO + Duration::from_millis(1));
        assert!(poller.wait(&mut events), "only the timer is left");
        assert_eq!(events.drain().count(), 0);
    }

    #[test]
    fn wake_ups_before_and_during_a_wait_end_it() {
        let (mut poller, mut events) = (Poller::new().unwrap(), Events::default());
        let waker = Waker::new().unwrap();
        poller.add(&waker, 1, Interest::IN).unwrap();
        waker.wake();
        waker.wake();
        poller.wait(&mut events);
        waker.clear();
        assert_eq!(events.drain().count(), 1);
        std::thread::scope(|scope| {
            scope.spawn(|| waker.wake());
            poller.wait(&mut events);
        });
        assert_eq!(events.drain().map(|(token, _)| token).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn only_a_lack_of_descriptors_refuses_the_next_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut spare, mut refused) = (SpareDescriptor::default(), 0);
        let other = io::Error::from_raw_os_error(libc::ECONNABORTED);
        assert!(!spare.refuse_next(&other, &listener, |_| refused += 1));
        let lack = io::Error::from_raw_os_error(libc::EMFILE);
        assert!(spare.refuse_next(&lack, &listener, |_| refused += 1));
        listener.set_nonblocking(true).unwrap();
        assert!(!spare.refuse_next(&lack, &listener, |_| refused += 1), "no other connection");
        assert!(refused == 1 && spare.0.is_some());
    }
}
