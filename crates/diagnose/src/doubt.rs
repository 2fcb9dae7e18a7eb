//! Reasons for which time is `unknown`: what the capture lacks, or what makes it ambiguous.

use dissect::Side;
use wire::Duration;

use crate::causes::{retransmission, send_buffer_limited};
use crate::gap::{Gap, GapEnd, GapStart};

/// Reason for which the cause of some time is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Doubt {
    /// The capture began before any known event.
    CaptureBegan,
    /// The capture ended before anything more was sent.
    CaptureEnded,
    /// The capture's clock was set.
    ClockJumped,
    /// The capture's clock ticks too slowly.
    CoarseClock,
    /// Data was acknowledged that was not captured.
    NotCaptured,
    /// Data before it is missing.
    DataMissing,
    /// IP IDs show packets of the sender that were not captured.
    PacketsMissing,
    /// One direction was not captured.
    OneDirection,
    /// The request was not acknowledged in full when the response began.
    RequestIncomplete,
    /// The path's own delay varies by as much.
    PathVaries,
    /// The packets do not show how the sender detected a loss.
    LossUnseen,
    /// The time equals a retransmission timeout: the end of a flight may have been lost before the point of capture.
    MaybeLostTail,
    /// The flight does not grow, but has not been constant for long enough to indicate a buffer limit.
    ShortPlateau,
    /// The window scale is unknown.
    WindowUnknown,
    /// Packets after the handshake are encrypted, acknowledgements included.
    Encrypted,
    /// A program that pauses fits, and a window or buffer that holds it.
    ProgramOrWindow,
    /// A program that takes its time fits, and the path.
    ProgramOrPath,
    /// No rule applies.
    NoRule,
}

impl Doubt {
    /// Returns its name in kebab-case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CaptureBegan => "capture-began",
            Self::CaptureEnded => "capture-ended",
            Self::ClockJumped => "clock-jumped",
            Self::CoarseClock => "coarse-clock",
            Self::NotCaptured => "not-captured",
            Self::DataMissing => "data-missing",
            Self::PacketsMissing => "packets-missing",
            Self::OneDirection => "one-direction",
            Self::RequestIncomplete => "request-incomplete",
            Self::PathVaries => "path-varies",
            Self::LossUnseen => "loss-unseen",
            Self::MaybeLostTail => "maybe-lost-tail",
            Self::ShortPlateau => "short-plateau",
            Self::WindowUnknown => "window-unknown",
            Self::Encrypted => "encrypted",
            Self::ProgramOrWindow => "program-or-window",
            Self::ProgramOrPath => "program-or-path",
            Self::NoRule => "no-rule",
        }
    }

    /// Returns the reason as a clause.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::CaptureBegan => "the capture began in the middle",
            Self::CaptureEnded => "the capture ends before anything more is sent",
            Self::ClockJumped => "a clock was set, or captures were merged",
            Self::CoarseClock => "the capture's clock ticks too slowly",
            Self::NotCaptured => "data was acknowledged that is not in the capture",
            Self::DataMissing => "data before it is missing",
            Self::PacketsMissing => "IP IDs show packets of the sender that were not captured",
            Self::OneDirection => "one direction was not captured",
            Self::RequestIncomplete => "the request had not been acknowledged in full",
            Self::PathVaries => "the path alone varies by as much",
            Self::LossUnseen => "the packets do not show how the sender detected a loss",
            Self::MaybeLostTail => {
                "it is as long as a retransmission timeout: the lost data may never have reached the point of capture"
            }
            Self::ShortPlateau => "the flight does not grow, but has not been constant for four rounds",
            Self::WindowUnknown => "the receiver's window scale is unknown",
            Self::Encrypted => "QUIC is encrypted after its handshake, acknowledgements included",
            Self::ProgramOrWindow => {
                "more than one cause fits: the sending program paused, or a window or a buffer held it"
            }
            Self::ProgramOrPath => "more than one cause fits: the program took its time, or the path did",
            Self::NoRule => "no rule applies",
        }
    }

    /// Returns the reason for which no rule names the cause of a gap.
    pub(crate) fn of(gap: &Gap) -> Self {
        let is_of_server = gap.wait.side == Side::Server;
        let is_response = matches!(gap.before, GapStart::Data(from) if from != gap.wait.side);
        let is_window_unknown = gap.headroom.is_none() && gap.flight.bytes >= 2 * gap.mss;
        match gap.end {
            GapEnd::Repair(_) => Self::LossUnseen,
            _ if is_of_server && !gap.is_peer_seen => Self::OneDirection,
            _ if gap.is_behind_hole => Self::DataMissing,
            _ if gap.skipped > 0 => Self::PacketsMissing,
            _ if matches!(gap.before, GapStart::Unseen(_)) => Self::NotCaptured,
            _ if gap.echoes_unseen || gap.awaited().is_some_and(|ack| ack.is_of_unseen) => Self::NotCaptured,
            _ if gap.acks_were_late => Self::PathVaries,
            _ if retransmission::may_be_a_lost_tail(gap) || retransmission::may_be_lost_repeatedly(gap) => {
                Self::MaybeLostTail
            }
            _ if gap.continues() && is_window_unknown => Self::WindowUnknown,
            _ if send_buffer_limited::may_be(gap) => Self::ShortPlateau,
            _ if is_response && is_of_server && !gap.has_all => Self::RequestIncomplete,
            _ if is_response && is_of_server && gap.messages.unanswered != Some(0) => Self::PathVaries,
            GapEnd::Data if gap.continues() => Self::ProgramOrWindow,
            GapEnd::Data if is_response => Self::ProgramOrPath,
            GapEnd::Data | GapEnd::Handshake { previous: _ } | GapEnd::Fin | GapEnd::Reset => Self::NoRule,
        }
    }
}

/// Unknown time by its reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Doubts(Vec<(Doubt, Duration)>);

impl Doubts {
    /// Adds `time` to `doubt`.
    pub(crate) fn add(&mut self, doubt: Doubt, time: Duration) {
        match self.0.iter_mut().find(|(other, _)| *other == doubt) {
            Some((_, sum)) => *sum += time,
            None if time > Duration::ZERO => {
                // Most connections have one reason, and there are many connections.
                self.0.reserve_exact(1);
                self.0.push((doubt, time));
            }
            None => {}
        }
    }

    /// Subtracts `time` from `doubt`, to no less than zero.
    pub(crate) fn take(&mut self, doubt: Doubt, time: Duration) {
        self.0
            .iter_mut()
            .filter(|(other, _)| *other == doubt)
            .for_each(|(_, sum)| *sum = sum.saturating_sub(time));
        self.0.retain(|(_, sum)| *sum > Duration::ZERO);
    }

    /// Adds the times of another connection.
    pub fn merge(&mut self, other: &Self) {
        other.0.iter().for_each(|(doubt, time)| self.add(*doubt, *time));
    }

    /// Returns the reasons, the longest time first.
    pub fn sorted(&self) -> Vec<(Doubt, Duration)> {
        let mut sorted = self.0.clone();
        sorted.sort_by_key(|(doubt, time)| (std::cmp::Reverse(*time), *doubt));
        sorted
    }

    /// Returns the time of one reason.
    pub(crate) fn of(&self, doubt: Doubt) -> Duration {
        self.0.iter().filter(|(other, _)| *other == doubt).map(|(_, time)| *time).sum()
    }

    /// Returns the total time.
    pub fn total(&self) -> Duration {
        self.0.iter().map(|(_, time)| *time).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_add_up_and_the_longest_comes_first() {
        let [short, long] = [1, 5].map(Duration::from_millis);
        let mut doubts = Doubts::default();
        for (doubt, time) in [(Doubt::NoRule, short), (Doubt::CaptureEnded, long), (Doubt::NoRule, short)] {
            doubts.add(doubt, time);
        }
        assert_eq!(doubts.sorted(), [(Doubt::CaptureEnded, long), (Doubt::NoRule, short * 2)]);
        doubts.take(Doubt::CaptureEnded, long);
        assert_eq!(doubts.total(), short * 2);
    }
}
