//! Exit of the command that ran while packets or sockets were observed.

use std::fmt;

/// Exit of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandExit {
    /// Exited with this status.
    Exited(i32),
    /// Killed by this signal.
    Killed(i32),
    /// Still running.
    Running,
}

impl CommandExit {
    /// Returns whether it ended, and not with status 0.
    pub const fn has_failed(self) -> bool {
        !matches!(self, Self::Exited(0) | Self::Running)
    }

    /// Returns its exit status, if it has one.
    pub const fn status(self) -> Option<i32> {
        match self {
            Self::Exited(status) => Some(status),
            Self::Killed(_) | Self::Running => None,
        }
    }
}

impl fmt::Display for CommandExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(status) => write!(f, "ended with status {status}"),
            Self::Killed(signal) => write!(f, "was ended by signal {signal}"),
            Self::Running => f.write_str("was still running when the capture ended"),
        }
    }
}
