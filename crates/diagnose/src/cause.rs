//! The causes of stalls, by name. What each looks like, and what to do about it, is in the file of its name in
//! `causes/`.

use wire::Duration;

use crate::causes;

/// Why time was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The three-way handshake.
    ConnectionSetup,
    /// A new connection for each request.
    ConnectionPerRequest,
    /// A client that asks before it sends a body.
    ExpectContinue,
    /// A short segment held for an acknowledgement that was delayed.
    NagleDelayedAck,
    /// A short segment held for an acknowledgement that came when it could.
    Nagle,
    /// A window used up by a short first segment.
    ShortInitialSegment,
    /// An acknowledgement that came late while the sender had nothing left to send with.
    DelayedAck,
    /// A window that starts anew after a pause.
    SlowStartRestart,
    /// A window that is still opening.
    SlowStart,
    /// A window made small by losses.
    CongestionWindow,
    /// A sender's buffer too small for the path.
    SendBufferLimited,
    /// A receiver's window too small for the path.
    ReceiveWindowLimited,
    /// A receiver that takes nothing.
    ZeroWindow,
    /// A loss that only a timer noticed.
    RetransmissionTimeout,
    /// A loss at the end of a flight, probed for.
    TailLossProbe,
    /// A loss that the receiver's acknowledgements told.
    FastRetransmit,
    /// Answers thrown away by a reset.
    ResetLostData,
    /// A server that computes.
    ServerThink,
    /// A client that computes.
    ClientThink,
    /// Answers that wait behind a slow one.
    HeadOfLine,
    /// A connection that was refused.
    ConnectionRefused,
    /// A SYN that nobody answers.
    SynUnanswered,
    /// A SYN that meets an older connection between the same ports.
    SynTimeWait,
    /// A reset in the middle of a transfer.
    ResetMidTransfer,
    /// A peer that does not answer any more.
    PeerVanished,
    /// A TLS handshake that failed.
    TlsAlert,
    /// The TLS handshake.
    TlsHandshake,
    /// Certificates too large for the initial window.
    TlsCertificateFlight,
    /// A path that takes only smaller packets.
    PathMtu,
    /// A queue on the path.
    BottleneckQueue,
    /// The path's bandwidth.
    BandwidthLimited,
    /// Distance.
    PathLatency,
    /// A proxy that acknowledges for the server.
    ProxyInPath,
    /// A capture of one direction.
    OneDirectionOnly,
    /// Packets that the capture lost.
    CaptureLoss,
    /// Packets that were captured twice.
    DuplicateCapture,
    /// A tunnel that is not read.
    TunnelNotRead,
    /// Packets of other protocols.
    NotTcp,
}

impl Cause {
    /// Every one, in the order of the enumeration.
    pub const ALL: [Self; 38] = [
        Self::ConnectionSetup,
        Self::ConnectionPerRequest,
        Self::ExpectContinue,
        Self::NagleDelayedAck,
        Self::Nagle,
        Self::ShortInitialSegment,
        Self::DelayedAck,
        Self::SlowStartRestart,
        Self::SlowStart,
        Self::CongestionWindow,
        Self::SendBufferLimited,
        Self::ReceiveWindowLimited,
        Self::ZeroWindow,
        Self::RetransmissionTimeout,
        Self::TailLossProbe,
        Self::FastRetransmit,
        Self::ResetLostData,
        Self::ServerThink,
        Self::ClientThink,
        Self::HeadOfLine,
        Self::ConnectionRefused,
        Self::SynUnanswered,
        Self::SynTimeWait,
        Self::ResetMidTransfer,
        Self::PeerVanished,
        Self::TlsAlert,
        Self::TlsHandshake,
        Self::TlsCertificateFlight,
        Self::PathMtu,
        Self::BottleneckQueue,
        Self::BandwidthLimited,
        Self::PathLatency,
        Self::ProxyInPath,
        Self::OneDirectionOnly,
        Self::CaptureLoss,
        Self::DuplicateCapture,
        Self::TunnelNotRead,
        Self::NotTcp,
    ];

    /// Its name in kebab-case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ConnectionSetup => "connection-setup",
            Self::ConnectionPerRequest => "connection-per-request",
            Self::ExpectContinue => "expect-100-continue",
            Self::NagleDelayedAck => "nagle-delayed-ack",
            Self::Nagle => "nagle",
            Self::ShortInitialSegment => "short-initial-segment",
            Self::DelayedAck => "delayed-ack",
            Self::SlowStartRestart => "slow-start-restart",
            Self::SlowStart => "slow-start",
            Self::CongestionWindow => "congestion-window",
            Self::SendBufferLimited => "send-buffer-limited",
            Self::ReceiveWindowLimited => "receive-window-limited",
            Self::ZeroWindow => "zero-window",
            Self::RetransmissionTimeout => "retransmission-timeout",
            Self::TailLossProbe => "tail-loss-probe",
            Self::FastRetransmit => "fast-retransmit",
            Self::ResetLostData => "reset-lost-data",
            Self::ServerThink => "server-think",
            Self::ClientThink => "client-think",
            Self::HeadOfLine => "head-of-line",
            Self::ConnectionRefused => "connection-refused",
            Self::SynUnanswered => "syn-unanswered",
            Self::SynTimeWait => "syn-time-wait",
            Self::ResetMidTransfer => "reset-mid-transfer",
            Self::PeerVanished => "peer-vanished",
            Self::TlsAlert => "tls-alert",
            Self::TlsHandshake => "tls-handshake",
            Self::TlsCertificateFlight => "tls-certificate-flight",
            Self::PathMtu => "path-mtu",
            Self::BottleneckQueue => "bottleneck-queue",
            Self::BandwidthLimited => "bandwidth-limited",
            Self::PathLatency => "path-latency",
            Self::ProxyInPath => "proxy-in-path",
            Self::OneDirectionOnly => "one-direction-only",
            Self::CaptureLoss => "capture-loss",
            Self::DuplicateCapture => "duplicate-capture",
            Self::TunnelNotRead => "tunnel-not-read",
            Self::NotTcp => "not-tcp",
        }
    }

    /// By its name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| cause.name() == name)
    }

    /// Whether it ends a connection before its purpose is served, whatever time that takes.
    pub const fn is_failure(self) -> bool {
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

    /// What is known of it.
    pub const fn about(self) -> &'static About {
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
        }
    }
}

/// What is known of a cause.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// What happens, in one sentence.
    pub what: &'static str,
    /// What to change, by who can.
    pub fixes: &'static [Fix],
    /// Whether it is a fault that somebody can mend, or the way of things that is good to know of.
    pub is_fault: bool,
    /// What is shorter is in the account, and no finding.
    pub least: Duration,
}

/// Something to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fix {
    /// Who can.
    pub who: Who,
    /// The exact knob.
    pub change: &'static str,
}

/// Who can change something. The sender is whichever end was held up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// The program that sends.
    SendingApplication,
    /// The program that receives.
    ReceivingApplication,
    /// The system that sends.
    SendingKernel,
    /// The system that receives.
    ReceivingKernel,
    /// The program that asks.
    ClientApplication,
    /// The program that answers.
    ServerApplication,
    /// Whoever runs the path.
    Network,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_listed_in_order_and_every_one_says_what_it_is() {
        for (place, cause) in Cause::ALL.into_iter().enumerate() {
            assert_eq!(cause as usize, place);
            assert_eq!(Cause::by_name(cause.name()), Some(cause));
            let About { what, fixes, is_fault, least: _ } = cause.about();
            assert!(what.ends_with('.'), "{}", cause.name());
            assert!(!is_fault || !fixes.is_empty(), "{} is a fault without a remedy", cause.name());
        }
    }
}
