//! Form of the description of a stall cause. The description of each is in the file of its name in `causes/`. The names
//! themselves are defined in `trace`, because the engines log them, too.

use wire::Duration;

pub use trace::Cause;

/// Description of a cause.
pub trait Describe {
    /// Returns whether it ends a connection before its purpose is served, however long that takes.
    fn is_failure(&self) -> bool;

    /// Returns the description of the event and its fixes.
    fn about(self) -> &'static CauseInfo;
}

/// Description of a cause.
#[derive(Clone, Copy, Debug)]
pub struct CauseInfo {
    /// The event in one sentence.
    pub description: &'static str,
    /// Fixes, by the party that can apply them.
    pub fixes: &'static [Fix],
    /// Whether it is a fault that can be fixed; otherwise it is a note.
    pub is_fault: bool,
    /// Minimum time of a finding; shorter times are in the account only.
    pub min_duration: Duration,
}

/// A change that fixes a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fix {
    /// Party that can apply it.
    pub party: Party,
    /// The exact knob.
    pub change: &'static str,
}

/// Party that can apply a fix. The sender is the end that was held up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Party {
    /// The sending program.
    SendingApplication,
    /// The receiving program.
    ReceivingApplication,
    /// The operating system of the sender.
    SendingKernel,
    /// The operating system of the receiver.
    ReceivingKernel,
    /// The program that sends requests.
    ClientApplication,
    /// The program that responds.
    ServerApplication,
    /// Operator of the path.
    Network,
}
