//! One file for each cause: its description, the rule that detects it, what would refute it, and tests.
//!
//! | rules of | take | in the order of |
//! | --- | --- | --- |
//! | waits | a [`Gap`](crate::gap::Gap) | `judge` |
//! | openings, failures | the facts of [`failure`](crate::failure) | `flow/{opening,failures,ledger,closed_windows}` |
//! | notes on a connection | [`WholeFacts`](crate::whole::WholeFacts) | `flow/notes` |
//! | TLS, QUIC, DHTTP | what `dissect` read | `flow/tls`, `quic`, `dhttp/dialogue` |
//!
//! A rule assumes nothing that the facts do not show: it then returns nothing, and a wait counts as `unknown`. One rule is
//! elsewhere, because it needs no connection: `not_tcp` is decided by `report::skipped`, which counts what is not followed.

pub(crate) mod bandwidth_limited;
pub(crate) mod bottleneck_queue;
pub(crate) mod capture_loss;
pub(crate) mod congestion_window;
pub(crate) mod connection_per_request;
pub(crate) mod connection_refused;
pub(crate) mod connection_setup;
pub(crate) mod datagram_resend;
pub(crate) mod delayed_ack;
pub(crate) mod duplicate_capture;
pub(crate) mod expect_continue;
pub(crate) mod head_of_line;
pub(crate) mod http2_flow_control;
pub(crate) mod nagle;
pub(crate) mod not_tcp;
pub(crate) mod one_direction_only;
pub(crate) mod opening;
pub(crate) mod path_latency;
pub(crate) mod path_mtu;
pub(crate) mod peer_vanished;
pub(crate) mod proxy_in_path;
pub(crate) mod quic;
pub(crate) mod receive_window_limited;
pub(crate) mod reset_lost_data;
pub(crate) mod reset_mid_transfer;
pub(crate) mod retransmission;
pub(crate) mod send_buffer_limited;
pub(crate) mod short_initial_segment;
pub(crate) mod slow_start;
pub(crate) mod slow_start_restart;
pub(crate) mod syn_time_wait;
pub(crate) mod syn_unanswered;
pub(crate) mod think;
pub(crate) mod tls_alert;
pub(crate) mod tls_certificate_flight;
pub(crate) mod tls_handshake;
pub(crate) mod tls_hello_retry;
pub(crate) mod zero_window;

use crate::cause::{Cause, CauseInfo, Describe};

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
                | Self::QuicUnanswered
        )
    }

    fn about(self) -> &'static CauseInfo {
        match self {
            Self::ConnectionSetup => &connection_setup::ABOUT,
            Self::ConnectionPerRequest => &connection_per_request::ABOUT,
            Self::ExpectContinue => &expect_continue::ABOUT,
            Self::NagleDelayedAck => &nagle::DELAYED,
            Self::Nagle => &nagle::ABOUT,
            Self::ShortInitialSegment => &short_initial_segment::ABOUT,
            Self::DelayedAck => &delayed_ack::ABOUT,
            Self::SlowStartRestart => &slow_start_restart::ABOUT,
            Self::SlowStart => &slow_start::ABOUT,
            Self::CongestionWindow => &congestion_window::ABOUT,
            Self::SendBufferLimited => &send_buffer_limited::ABOUT,
            Self::ReceiveWindowLimited => &receive_window_limited::ABOUT,
            Self::ZeroWindow => &zero_window::ABOUT,
            Self::RetransmissionTimeout => &retransmission::TIMEOUT,
            Self::TailLossProbe => &retransmission::TAIL,
            Self::FastRetransmit => &retransmission::FAST,
            Self::ResetLostData => &reset_lost_data::ABOUT,
            Self::ServerThink => &think::SERVER,
            Self::ClientThink => &think::CLIENT,
            Self::HeadOfLine => &head_of_line::ABOUT,
            Self::ConnectionRefused => &connection_refused::ABOUT,
            Self::SynUnanswered => &syn_unanswered::ABOUT,
            Self::SynTimeWait => &syn_time_wait::ABOUT,
            Self::ResetMidTransfer => &reset_mid_transfer::ABOUT,
            Self::PeerVanished => &peer_vanished::ABOUT,
            Self::TlsAlert => &tls_alert::ABOUT,
            Self::TlsHandshake => &tls_handshake::ABOUT,
            Self::TlsCertificateFlight => &tls_certificate_flight::ABOUT,
            Self::TlsHelloRetry => &tls_hello_retry::ABOUT,
            Self::Http2FlowControl => &http2_flow_control::ABOUT,
            Self::QuicHandshake => &quic::HANDSHAKE,
            Self::QuicAmplificationLimit => &quic::AMPLIFICATION,
            Self::QuicUnanswered => &quic::UNANSWERED,
            Self::PathMtu => &path_mtu::ABOUT,
            Self::BottleneckQueue => &bottleneck_queue::ABOUT,
            Self::BandwidthLimited => &bandwidth_limited::ABOUT,
            Self::PathLatency => &path_latency::ABOUT,
            Self::ProxyInPath => &proxy_in_path::ABOUT,
            Self::OneDirectionOnly => &one_direction_only::ABOUT,
            Self::CaptureLoss => &capture_loss::ABOUT,
            Self::DuplicateCapture => &duplicate_capture::ABOUT,
            Self::TunnelNotRead => &not_tcp::TUNNEL,
            Self::NotTcp => &not_tcp::ABOUT,
            Self::DatagramResend => &datagram_resend::ABOUT,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_is_described_and_every_fault_has_a_fix() {
        for cause in Cause::ALL {
            let CauseInfo { description, fixes, is_fault, min_duration: _ } = cause.about();
            assert!(description.ends_with('.'), "{}", cause.name());
            assert!(!is_fault || !fixes.is_empty(), "{} is a fault without a remedy", cause.name());
        }
    }
}
