//! A private network: an anonymous network namespace, held by one thread.
//!
//! `unshare` acts on a thread, so each namespace has a thread that entered it before doing anything else, and
//! jobs are sent there. Nothing has a name under /run/netns: the namespace, its devices, addresses and routes
//! vanish when the thread ends and the last socket closes, and so after `kill -9` too.
//!
//! Files, processes and users are the caller's.

use std::sync::mpsc;
use std::thread;

use nix::sched::{CloneFlags, unshare};

use crate::Error;

/// An anonymous network namespace and the thread that holds it.
#[derive(Debug)]
pub struct Namespace {
    name: &'static str,
    // Taken on drop: the thread ends when no more jobs can come.
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<thread::JoinHandle<()>>,
}

type Job = Box<dyn FnOnce() + Send>;

impl Namespace {
    /// A new namespace with a loopback device that is down, and nothing else. `name` is for error messages.
    pub fn new(name: &'static str) -> Result<Self, Error> {
        let (jobs, work) = mpsc::channel::<Job>();
        let (entered, result) = mpsc::channel();
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                let outcome = unshare(CloneFlags::CLONE_NEWNET);
                let has_entered = outcome.is_ok();
                // Without a receiver no job will come.
                let _ = entered.send(outcome);
                if has_entered {
                    work.into_iter().for_each(|job| job());
                }
            })
            .map_err(Error::io(format!("start the {name}'s thread")))?;
        result
            .recv()
            .map_err(|_| Error::Died { thread: name })?
            .map_err(Error::kernel(format!("create a network namespace for the {name}")))?;
        Ok(Self { name, jobs: Some(jobs), thread: Some(thread) })
    }

    /// Name, for error messages.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Starts `job` in the namespace, after those started before it; threads that it starts are inside, too.
    pub fn start<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> Pending<T> {
        let (done, result) = mpsc::channel();
        let job: Job = Box::new(move || {
            // The caller may have stopped waiting: then the result is not needed.
            let _ = done.send(job());
        });
        if let Some(jobs) = &self.jobs {
            // A thread that died drops the job with its channel, and `wait` reports that.
            let _ = jobs.send(job);
        }
        Pending { name: self.name, result, early: None }
    }

    /// Runs `job` in the namespace and waits for it.
    ///
    /// # Errors
    /// Those of `job`; [`Error::Died`] if it panicked.
    pub fn run<T: Send + 'static, E: From<Error> + Send + 'static>(
        &self,
        job: impl FnOnce() -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        self.start(job).wait()?
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A job that panicked was reported to the caller that waited for it.
            let _ = thread.join();
        }
    }
}

/// A job in progress in a namespace.
#[derive(Debug)]
pub struct Pending<T> {
    name: &'static str,
    result: mpsc::Receiver<T>,
    early: Option<T>,
}

impl<T> Pending<T> {
    /// Waits until the job is done, for at most `span`.
    pub fn give(&mut self, span: wire::Duration) {
        self.early = self.result.recv_timeout(std::time::Duration::from_nanos(span.as_nanos())).ok();
    }

    /// Waits for the result of the job; an error if the thread panicked.
    pub fn wait(self) -> Result<T, Error> {
        let Self { name, result, early } = self;
        early.map_or_else(|| result.recv().map_err(|_| Error::Died { thread: name }), Ok)
    }
}
