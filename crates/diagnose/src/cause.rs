//! Descriptions of stall causes. The signature and the fixes of each are in the file of its name in `causes/`. The
//! names themselves are defined in `trace`, because the engines log them, too.

use wire::Duration;

pub use trace::Cause;

use crate::causes;
use crate::dhttp;

/// Description of a cause.
pub trait Describe {
    /// Returns whether it ends a connection before its purpose is served, however long that takes.
    fn is_failure(&self) -> bool;

    /// Returns the description of the event and its fixes.
    fn about(self) -> &'static CauseInfo;
}

impl Describe for Cause {
    fn is_failure(&self) -> bool {
        matches!(
            self,
            Self::ResetLostData
                | Self::ConnectionRefused
                | Self::SynUnanswered
                | Self::ResetMidTransfer
                | Self::PeerVanished
                | Self::TlsAlert
        )
    }

    fn about(self) -> &'static CauseInfo {
        match self {
            Self::ConnectionSetup => &causes::connection_setup::ABOUT,
            Self::ConnectionPerRequest => &causes::connection_per_request::ABOUT,
            Self::ExpectContinue => &causes::expect_continue::ABOUT,
            Self::NagleDelayedAck => &causes::nagle::DELAYED,
            Self::Nagle => &causes::nagle::ABOUT,
            Self::ShortInitialSegment => &causes::short_initial_segment::ABOUT,
            Self::DelayedAck => &causes::delayed_ack::ABOUT,
            Self::SlowStartRestart => &causes::slow_start_restart::ABOUT,
            Self::SlowStart => &causes::slow_start::ABOUT,
            Self::CongestionWindow => &causes::congestion_window::ABOUT,
            Self::SendBufferLimited => &causes::send_buffer_limited::ABOUT,
            Self::ReceiveWindowLimited => &causes::receive_window_limited::ABOUT,
            Self::ZeroWindow => &causes::zero_window::ABOUT,
            Self::RetransmissionTimeout => &causes::retransmission::TIMEOUT,
            Self::TailLossProbe => &causes::retransmission::TAIL,
            Self::FastRetransmit => &causes::retransmission::FAST,
            Self::ResetLostData => &causes::reset_lost_data::ABOUT,
            Self::ServerThink => &causes::think::SERVER,
            Self::ClientThink => &causes::think::CLIENT,
            Self::HeadOfLine => &causes::head_of_line::ABOUT,
            Self::ConnectionRefused => &causes::connection_refused::ABOUT,
            Self::SynUnanswered => &causes::syn_unanswered::ABOUT,
            Self::SynTimeWait => &causes::syn_time_wait::ABOUT,
            Self::ResetMidTransfer => &causes::reset_mid_transfer::ABOUT,
            Self::PeerVanished => &causes::peer_vanished::ABOUT,
            Self::TlsAlert => &causes::tls_alert::ABOUT,
            Self::TlsHandshake => &causes::tls_handshake::ABOUT,
            Self::TlsCertificateFlight => &causes::tls_handshake::CERTIFICATES,
            Self::PathMtu => &causes::path_mtu::ABOUT,
            Self::BottleneckQueue => &causes::bottleneck_queue::ABOUT,
            Self::BandwidthLimited => &causes::bandwidth_limited::ABOUT,
            Self::PathLatency => &causes::path_latency::ABOUT,
            Self::ProxyInPath => &causes::proxy_in_path::ABOUT,
            Self::OneDirectionOnly => &causes::one_direction_only::ABOUT,
            Self::CaptureLoss => &causes::capture_loss::ABOUT,
            Self::DuplicateCapture => &causes::duplicate_capture::ABOUT,
            Self::TunnelNotRead => &causes::not_tcp::TUNNEL,
            Self::NotTcp => &causes::not_tcp::ABOUT,
            Self::DatagramResend => &dhttp::LOST,
        }
    }
}

/// Description of a cause.
#[derive(Clone, Copy, Debug)]
pub struct CauseInfo {
    /// The event in one sentence.
    pub what: &'static str,
    /// Fixes, by the party that can apply them.
    pub fixes: &'static [Fix],
    /// Whether it is a fault that can be fixed; otherwise it is a note.
    pub is_fault: bool,
    /// Minimum time of a finding; shorter times are in the account only.
    pub least: Duration,
}

/// A change that fixes a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fix {
    /// Party that can apply it.
    pub who: Party,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_is_described_and_every_fault_has_a_fix() {
        for cause in Cause::ALL {
            let CauseInfo { what, fixes, is_fault, least: _ } = cause.about();
            assert!(what.ends_with('.'), "{}", cause.name());
            assert!(!is_fault || !fixes.is_empty(), "{} is a fault without a remedy", cause.name());
        }
    }
}
