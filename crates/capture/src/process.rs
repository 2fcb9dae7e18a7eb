//! The command of a session, signals, and when both end it.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::Pid;
use report::command::CommandExit;
use wire::{Duration, Time};

use crate::Error;

/// End of a capture. It ends some time after the command has exited. It also ends when the time is up or a signal
/// arrived, and the command, after an interrupt, has exited or its timeout has expired.
pub(crate) struct CaptureEnd {
    until: Option<Time>,
    was_interrupted: bool,
    has_ended: bool,
}

/// Time for the command's connections to close after its exit, and for the kernel's ring to deliver its last packets.
const AFTERWARDS: Duration = Duration::from_millis(200);

/// Time to wait for the exit of a command that was interrupted.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

impl CaptureEnd {
    /// Creates an end at this time, or earlier.
    pub(crate) const fn new(until: Option<Time>) -> Self {
        Self { until, was_interrupted: false, has_ended: false }
    }

    /// Returns whether the end was requested: the time was up, or a signal arrived.
    pub(crate) const fn was_interrupted(&self) -> bool {
        self.was_interrupted
    }

    pub(crate) fn is_over(&mut self, now: Time, process: &mut Process, has_signal: bool) -> bool {
        if process.has_ended() && !self.has_ended {
            self.has_ended = true;
            self.until = Some(now + AFTERWARDS);
        }
        let is_up = self.until.is_some_and(|until| now >= until);
        if is_up && (self.was_interrupted || self.has_ended) {
            return true;
        }
        if is_up || has_signal {
            // A second signal means that the user does not want to wait.
            let is_impatient = self.was_interrupted;
            self.was_interrupted = true;
            let timeout = if process.interrupt() { EXIT_TIMEOUT } else { AFTERWARDS };
            self.until = Some(now + timeout);
            return is_impatient;
        }
        false
    }
}

/// Ctrl-C and similar signals, readable until this is dropped.
pub(crate) struct Interrupts {
    pub(crate) signals: SignalFd,
    /// The mask to restore: a command of a later capture would otherwise inherit this one.
    before: SigSet,
}

impl Interrupts {
    pub(crate) fn begin() -> Result<Self, Error> {
        let wanted = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP]);
        let before = wanted.thread_swap_mask(SigmaskHow::SIG_BLOCK).map_err(Error::Signals)?;
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        Ok(Self { signals: SignalFd::with_flags(&wanted, flags).map_err(Error::Signals)?, before })
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        // Restoring a mask that the kernel reported cannot fail.
        let _ = self.before.thread_set_mask();
    }
}

/// The command's process, if there is one.
pub(crate) struct Process {
    child: Option<Child>,
}

impl Process {
    /// Starts the command, and tells it where to log the secrets of TLS. Must be called before signals are blocked, because the
    /// command would inherit the mask.
    pub(crate) fn start(words: &[OsString], keys: Option<&Path>) -> Result<Self, Error> {
        let Some((program, arguments)) = words.split_first() else { return Ok(Self { child: None }) };
        let shown = program.to_string_lossy().replace(char::is_control, "?");
        let failed = |error: io::Error| Error::Command { program: shown.clone(), error };
        // Standard output is reserved for the diagnosis.
        let output = io::stderr().as_fd().try_clone_to_owned().map_err(failed)?;
        let mut command = Command::new(program);
        command.args(arguments).stdout(Stdio::from(output));
        if let Some(keys) = keys {
            // Commands may change their directory.
            command.env("SSLKEYLOGFILE", std::path::absolute(keys).map_err(failed)?);
        }
        Ok(Self { child: Some(command.spawn().map_err(failed)?) })
    }

    /// Returns its process ID.
    pub(crate) fn id(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Returns whether there was one, and it has exited.
    fn has_ended(&mut self) -> bool {
        self.child.as_mut().is_some_and(|child| !matches!(child.try_wait(), Ok(None)))
    }

    /// Interrupts it, and returns whether it is still running.
    fn interrupt(&mut self) -> bool {
        let Some(child) = self.child.as_mut() else { return false };
        let (Ok(None), Ok(id)) = (child.try_wait(), i32::try_from(child.id())) else { return false };
        kill(Pid::from_raw(id), Signal::SIGTERM).is_ok()
    }

    pub(crate) fn ended(&mut self) -> Option<CommandExit> {
        let child = self.child.as_mut()?;
        Some(exit_of(child.try_wait().ok().flatten()))
    }
}

pub(crate) fn exit_of(status: Option<ExitStatus>) -> CommandExit {
    let Some(status) = status else { return CommandExit::Running };
    match (status.code(), status.signal()) {
        (Some(code), _) => CommandExit::Exited(code),
        (None, signal) => CommandExit::Killed(signal.unwrap_or_default()),
    }
}
