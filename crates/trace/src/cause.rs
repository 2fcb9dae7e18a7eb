//! Names of the causes of stalls, as engines and the diagnosis report them. Their signatures and fixes are in the crate
//! `diagnose`.

use core::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Cause of lost time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The three-way handshake.
    ConnectionSetup,
    /// A new connection for each request.
    ConnectionPerRequest,
    /// A client that waits for `100 Continue` before it sends a body.
    ExpectContinue,
    /// A short segment held for a delayed acknowledgement.
    NagleDelayedAck,
    /// A short segment held for an acknowledgement that was not delayed.
    Nagle,
    /// An initial window used up by a short first segment.
    ShortInitialSegment,
    /// A delayed acknowledgement while the sender could send nothing more.
    DelayedAck,
    /// A window that restarts after a pause.
    SlowStartRestart,
    /// A window that is still opening.
    SlowStart,
    /// A window reduced by losses.
    CongestionWindow,
    /// A send buffer too small for the path.
    SendBufferLimited,
    /// A receive window too small for the path.
    ReceiveWindowLimited,
    /// A receiver that accepts no data.
    ZeroWindow,
    /// A loss detected only by a timer.
    RetransmissionTimeout,
    /// A loss at the end of a flight, detected by a probe.
    TailLossProbe,
    /// A loss reported by duplicate ACKs or SACK.
    FastRetransmit,
    /// Responses discarded by a reset.
    ResetLostData,
    /// A server that computes.
    ServerThink,
    /// A client that computes.
    ClientThink,
    /// Responses that wait behind a slow one.
    HeadOfLine,
    /// A connection that was refused.
    ConnectionRefused,
    /// A SYN without a response.
    SynUnanswered,
    /// A SYN that meets an older connection between the same ports.
    SynTimeWait,
    /// A reset in the middle of a transfer.
    ResetMidTransfer,
    /// A peer that does not respond any more.
    PeerVanished,
    /// A TLS handshake that failed.
    TlsAlert,
    /// The TLS handshake.
    TlsHandshake,
    /// Certificates too large for the initial window.
    TlsCertificateFlight,
    /// A Hello Retry Request: the client had not sent a key share that the server accepts.
    TlsHelloRetry,
    /// A window of HTTP/2 too small for the path.
    Http2FlowControl,
    /// The QUIC handshake.
    QuicHandshake,
    /// A server that may not send more before it has validated the client's address.
    QuicAmplificationLimit,
    /// QUIC packets without a response.
    QuicUnanswered,
    /// A path with a smaller MTU than its ends assume.
    PathMtu,
    /// A queue on the path.
    BottleneckQueue,
    /// The path's bandwidth.
    BandwidthLimited,
    /// The path's latency.
    PathLatency,
    /// A proxy that acknowledges for the server.
    ProxyInPath,
    /// A capture of one direction.
    OneDirectionOnly,
    /// Packets that the capture lost.
    CaptureLoss,
    /// Packets that were captured twice.
    DuplicateCapture,
    /// A tunnel that cannot be decapsulated.
    TunnelNotRead,
    /// Packets of other protocols.
    NotTcp,
    /// A lost DHTTP datagram.
    DatagramResend,
}

impl Cause {
    /// All causes, in the order of the enumeration.
    pub const ALL: [Self; 44] = [
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
        Self::TlsHelloRetry,
        Self::Http2FlowControl,
        Self::QuicHandshake,
        Self::QuicAmplificationLimit,
        Self::QuicUnanswered,
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
        Self::DatagramResend,
    ];

    /// Returns its name in kebab-case.
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
            Self::TlsHelloRetry => "tls-hello-retry",
            Self::Http2FlowControl => "http2-flow-control",
            Self::QuicHandshake => "quic-handshake",
            Self::QuicAmplificationLimit => "quic-amplification-limit",
            Self::QuicUnanswered => "quic-unanswered",
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
            Self::DatagramResend => "datagram-resend",
        }
    }

    /// Returns the cause with this name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| cause.name() == name)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Serialize for Cause {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Cause {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::by_name(&name).ok_or_else(|| serde::de::Error::custom(format!("unknown cause {name}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_listed_in_order_and_found_by_their_names() {
        for (index, cause) in Cause::ALL.into_iter().enumerate() {
            assert_eq!(cause as usize, index);
            assert_eq!(Cause::by_name(cause.name()), Some(cause));
            let text = serde_json::to_string(&cause).unwrap();
            assert_eq!(text, format!("\"{cause}\""));
            assert_eq!(serde_json::from_str::<Cause>(&text).unwrap(), cause);
        }
        assert!(serde_json::from_str::<Cause>("\"gremlins\"").is_err());
    }
}
