//! Reasons why nothing could be judged: a build must not pass because nothing was seen.

use std::fmt;

use diagnose::FlowReport;
use wire::Duration;

use crate::Capture;
use crate::command::CommandExit;

/// Reason why a capture or a watch allows no verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unjudged {
    /// No packet was captured.
    NoPacket,
    /// No connection was seen, or none that is selected.
    NoConnection,
    /// Sockets were sampled too rarely while they were busy.
    FewSamples {
        /// Number of samples.
        samples: u64,
    },
    /// One direction was captured, with long waits that it does not explain.
    OneDirection,
    /// The command failed, so what it was to do may not have happened.
    CommandFailed(CommandExit),
}

impl Unjudged {
    /// Returns the reason for a capture. With `is_failure_accepted`, a command that failed is judged.
    pub fn of(capture: &Capture, is_failure_accepted: bool) -> Option<Self> {
        let exit = capture.command.filter(|exit| exit.has_failed() && !is_failure_accepted);
        match (&capture.watched, exit) {
            (Some(report), _) => report.unjudged(is_failure_accepted),
            (None, Some(exit)) if !capture.is_command_stopped => Some(Self::CommandFailed(exit)),
            (None, _) if capture.packets == 0 => Some(Self::NoPacket),
            // The packets of a file were looked at, whatever they are; a command without a connection was not, and neither
            // were connections of which none is selected.
            (None, _) if (capture.command.is_some() || capture.connections > 0) && capture.selected == 0 => {
                Some(Self::NoConnection)
            }
            (None, _) => Self::is_one_direction(&capture.flows).then_some(Self::OneDirection),
        }
    }

    /// Returns whether one direction was captured of most connections with data, and leaves a wait of them unexplained.
    fn is_one_direction(flows: &[FlowReport]) -> bool {
        let with_data = || flows.iter().filter(|flow| flow.bytes.get() > 0);
        let of_one = || with_data().filter(|flow| flow.missing_direction.is_some());
        of_one().any(|flow| flow.unexplained > Duration::ZERO) && of_one().count() * 2 > with_data().count()
    }
}

impl Unjudged {
    /// Returns the result in place of a verdict. What is seen of a command that failed is shown, but not judged.
    pub const fn title(self) -> &'static str {
        match self {
            Self::CommandFailed(_) => "no verdict",
            Self::NoPacket | Self::NoConnection | Self::FewSamples { .. } | Self::OneDirection => {
                "nothing could be judged"
            }
        }
    }

    /// Returns the result with its reason.
    pub fn sentence(self) -> String {
        format!("{}: {self}", self.title())
    }
}

impl fmt::Display for Unjudged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPacket => f.write_str("no packet was captured"),
            Self::OneDirection => f.write_str("one direction was captured, which does not explain its waits"),
            Self::NoConnection => f.write_str("no connection was seen, or none that is selected"),
            Self::FewSamples { samples } => {
                write!(
                    f,
                    "sockets were busy between samples, of which there were {samples}; capture packets instead"
                )
            }
            Self::CommandFailed(exit) => write!(f, "the command {exit}"),
        }
    }
}
