//! Thread pool for blocking exchanges: it grows as needed, and idle threads end after a timeout.
//!
//! The work itself is passed to them.

use std::io;
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::incoming::ReadBuffer;

/// A job, which gets a read buffer.
pub(super) type Job = Box<dyn FnOnce(&mut ReadBuffer) + Send>;

/// The thread pool.
#[derive(Debug)]
pub(super) struct ThreadPool {
    /// Idle threads, the most recent last: the others may end. `None`: threads end when they are done.
    idle_threads: Mutex<Option<Vec<IdleThread>>>,
}

/// An idle thread, identified by its name.
#[derive(Debug)]
struct IdleThread {
    name: thread::ThreadId,
    take: SyncSender<Job>,
}

/// Idle time after which a thread ends.
const IDLE_TIMEOUT: Duration = Duration::from_secs(5);

impl Default for ThreadPool {
    fn default() -> Self {
        Self { idle_threads: Mutex::new(Some(Vec::new())) }
    }
}

impl ThreadPool {
    /// Runs a job in an idle thread, or a new one.
    ///
    /// # Errors
    /// No thread could be started; the job has been dropped.
    pub(super) fn run(self: &Arc<Self>, mut job: Job) -> io::Result<()> {
        while let Some(idle_threads) = self.wake_one() {
            match idle_threads.take.send(job) {
                Ok(()) => return Ok(()),
                // The thread has just ended.
                Err(mpsc::SendError(back)) => job = back,
            }
        }
        let threads = Arc::clone(self);
        let thread = thread::Builder::new().name("gateway-exchange".to_owned());
        thread.spawn(move || threads.work(job)).map(drop)
    }

    /// Ends idle threads now, and the others when they are done.
    pub(super) fn end(&self) {
        if let Ok(mut idle_threads) = self.idle_threads.lock() {
            *idle_threads = None;
        }
    }

    fn wake_one(&self) -> Option<IdleThread> {
        self.idle_threads.lock().ok()?.as_mut()?.pop()
    }

    fn work(&self, mut job: Job) {
        let (name, mut buffer) = (thread::current().id(), ReadBuffer::default());
        loop {
            job(&mut buffer);
            let (take, work) = mpsc::sync_channel(1);
            match self.idle_threads.lock().as_deref_mut() {
                Ok(Some(idle_threads)) => idle_threads.push(IdleThread { name, take }),
                Ok(None) | Err(_) => return,
            }
            job = match work.recv_timeout(IDLE_TIMEOUT) {
                Ok(job) => job,
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {
                    if let Ok(mut idle_threads) = self.idle_threads.lock()
                        && let Some(idle_threads) = idle_threads.as_mut()
                    {
                        idle_threads.retain(|thread| thread.name != name);
                    }
                    // If it was already taken off the list, a job is coming.
                    let Ok(job) = work.recv() else { return };
                    job
                }
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_threads_are_reused() {
        let threads = Arc::new(ThreadPool::default());
        let (sender, receiver) = mpsc::channel();
        let mut names = Vec::new();
        for _ in 0..3 {
            let sender = sender.clone();
            threads.run(Box::new(move |_| sender.send(thread::current().id()).unwrap())).unwrap();
            names.push(receiver.recv().unwrap());
            while threads.idle_threads.lock().unwrap().as_ref().is_some_and(Vec::is_empty) {
                thread::yield_now();
            }
        }
        assert_eq!((names[0], names[0]), (names[1], names[2]));
        threads.end();
        threads.run(Box::new(move |_| sender.send(thread::current().id()).unwrap())).unwrap();
        assert_ne!(receiver.recv().unwrap(), names[0]);
    }
}
