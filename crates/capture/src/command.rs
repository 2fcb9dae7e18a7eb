//! A command that runs as if nothing were around it: with this process's terminal, its signals and its exit status.
//!
//! Signals of the terminal reach the command by themselves, since both are in one process group. Those that another process
//! sent to this one alone are forwarded. Processes that the command leaves behind are ended with it.
//! From signalfd(2), sigaction(2), PR_SET_CHILD_SUBREAPER(2const) and credentials(7).

use std::ffi::OsString;
use std::fs;
use std::os::fd::AsFd;
use std::process::{Child, Command};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl::set_child_subreaper;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use report::command::CommandExit;

use crate::Error;
use crate::process::exit_of;

/// Signals that are forwarded.
const FORWARDED: [Signal; 6] =
    [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGUSR1, Signal::SIGUSR2];

/// The signals of this process, blocked until this is dropped. Threads that are started after it do not receive them either.
#[derive(Debug)]
pub struct Signals {
    descriptor: SignalFd,
    before: SigSet,
}

impl Signals {
    /// Blocks the signals that are forwarded, and those of processes that end.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn block() -> Result<Self, Error> {
        let wanted: SigSet = FORWARDED.into_iter().chain([Signal::SIGCHLD]).collect();
        let before = wanted.thread_swap_mask(SigmaskHow::SIG_BLOCK).map_err(Error::Signals)?;
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        Ok(Self { descriptor: SignalFd::with_flags(&wanted, flags).map_err(Error::Signals)?, before })
    }

    /// Starts a command, which inherits the signals as they were.
    fn start(&self, words: &[OsString]) -> Result<Child, Error> {
        let (program, arguments) = words.split_first().ok_or(Error::Signals(Errno::EINVAL))?;
        let failed = |error| Error::Command {
            program: program.to_string_lossy().replace(char::is_control, "?"),
            error,
        };
        let blocked = self.before.thread_swap_mask(SigmaskHow::SIG_SETMASK).map_err(Error::Signals)?;
        let child = Command::new(program).args(arguments).spawn();
        blocked.thread_set_mask().map_err(Error::Signals)?;
        child.map_err(failed)
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // Restoring a mask that the kernel reported cannot fail.
        let _ = self.before.thread_set_mask();
    }
}

/// Runs a command until it exits, and ends the processes that it leaves behind: all children but `own`.
///
/// # Errors
/// A command that cannot be run; or the kernel's refusal.
pub fn run(words: &[OsString], signals: &Signals, own: &[u32]) -> Result<CommandExit, Error> {
    // Orphans of the command become children of this process, which ends them.
    set_child_subreaper(true).map_err(Error::Signals)?;
    let mut child = signals.start(words)?;
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap_or(i32::MAX));
    let status = loop {
        if let Ok(Some(status)) = child.try_wait() {
            break status;
        }
        let mut waiting = [PollFd::new(signals.descriptor.as_fd(), PollFlags::POLLIN)];
        match poll(&mut waiting, PollTimeout::NONE) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(Error::Signals(error)),
        }
        while let Ok(Some(signal)) = signals.descriptor.read_signal() {
            // A code above zero is the kernel's: the terminal's signals reach the command, too.
            let is_of_a_process = signal.ssi_code <= 0;
            let number =
                i32::try_from(signal.ssi_signo).ok().and_then(|number| Signal::try_from(number).ok());
            if let Some(signal) = number.filter(|signal| is_of_a_process && FORWARDED.contains(signal)) {
                // It may have exited in the meantime.
                let _ = kill(pid, signal);
            }
        }
    };
    end_orphans(own);
    Ok(exit_of(Some(status)))
}

/// Ends the processes that became children of this one when their parents exited.
fn end_orphans(own: &[u32]) {
    loop {
        let is_own = |child: &Pid| u32::try_from(child.as_raw()).is_ok_and(|id| own.contains(&id));
        let children: Vec<Pid> = children().into_iter().filter(|child| !is_own(child)).collect();
        if children.is_empty() {
            return;
        }
        for orphan in children {
            if kill(orphan, Signal::SIGKILL).is_ok() {
                // The kernel may have reaped it.
                let _ = waitpid(orphan, None);
            }
        }
    }
}

/// Children of this process. Where the kernel does not list them, none.
fn children() -> Vec<Pid> {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let numbers = lists.flat_map(|list| {
        list.split_whitespace().filter_map(|number| number.parse().ok()).collect::<Vec<i32>>()
    });
    numbers.map(Pid::from_raw).collect()
}
