//! Validation of an endpoint's configuration.

use wire::Duration;

use super::{Acks, Config, Estimator, Idle, OddSegmentAck, ReceiveBuffer, Rto, TIMESTAMP_BYTES, Ticks};

/// An invalid configuration value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A segment without payload.
    #[error("mss {mss}: no space for data; give at least {min}")]
    MssTooSmall {
        /// The configured segment size.
        mss: u16,
        /// Minimum segment size: its options and one byte.
        min: u16,
    },
    /// A buffer smaller than one segment.
    #[error("{which} buffer of {bytes} bytes: smaller than a segment; give at least the mss, {mss}")]
    BufferBelowSegment {
        /// `send` or `receive`.
        which: &'static str,
        /// Its size.
        bytes: u32,
        /// Size of a segment.
        mss: u16,
    },
    /// A window of zero segments.
    #[error("{0} of 0 segments: nothing is ever sent; give at least 1")]
    ZeroSegments(&'static str),
    /// A clock period or a timeout of zero.
    #[error("{0} of 0: invalid; give a time above zero")]
    ZeroDuration(&'static str),
}

impl Config {
    /// Validates the configuration.
    ///
    /// # Errors
    /// The first invalid knob.
    pub fn check(&self) -> Result<(), ConfigError> {
        let Self {
            mss,
            send_buffer,
            occupancy: _,
            unsent_limit: _,
            receive_buffer,
            timestamps,
            window_scaling: _,
            acks,
            nagle: _,
            congestion,
            recovery: _,
            idle,
            rto,
            termination: _,
            handshake: _,
            sharing: _,
            idle_after: _,
        } = self;
        // Timestamps take twelve bytes of every segment, and at least one byte must remain.
        let min = if *timestamps { TIMESTAMP_BYTES + 1 } else { 1 };
        if *mss < min {
            return Err(ConfigError::MssTooSmall { mss: *mss, min });
        }
        let receive_buffer = match *receive_buffer {
            ReceiveBuffer::Fixed(bytes) => bytes,
            ReceiveBuffer::Growing { initial, max } => initial.min(max),
        };
        for (which, bytes) in [("send", *send_buffer), ("receive", receive_buffer)] {
            if bytes < u32::from(*mss) {
                return Err(ConfigError::BufferBelowSegment { which, bytes, mss: *mss });
            }
        }
        if congestion.initial_window == 0 {
            return Err(ConfigError::ZeroSegments("initial window"));
        }
        match idle {
            Idle::Restarted { segments: 0, since: _ } => {
                return Err(ConfigError::ZeroSegments("window after idle"));
            }
            Idle::Restarted { .. } | Idle::Unchanged | Idle::Decayed | Idle::Paced => {}
        }
        acks.check()?;
        rto.check()
    }
}

impl Acks {
    fn check(self) -> Result<(), ConfigError> {
        let odd = match self {
            Self::EverySegment | Self::Linux => return Ok(()),
            Self::Counted { segments: 0, odd: _ } => {
                return Err(ConfigError::ZeroSegments("acknowledgement"));
            }
            Self::Counted { segments: _, odd } | Self::ReadBytes { odd } => odd,
        };
        match odd {
            OddSegmentAck::OnTick(Ticks { period: Duration::ZERO, phase: _ }) => {
                Err(ConfigError::ZeroDuration("period of the delayed-ACK clock"))
            }
            OddSegmentAck::OnTick(_)
            | OddSegmentAck::After(_)
            | OddSegmentAck::Estimated
            | OddSegmentAck::Never => Ok(()),
        }
    }
}

impl Rto {
    fn check(self) -> Result<(), ConfigError> {
        let Self { estimator, initial, min, max, syn_retries: _, data_retries: _ } = self;
        let period = match estimator {
            Estimator::Coarse(ticks) => ticks.period,
            Estimator::Fine | Estimator::FineVariation => Duration::MAX,
        };
        let times = [
            (period, "period of the retransmission clock"),
            (initial, "initial retransmission timeout"),
            (min, "minimum retransmission timeout"),
            (max, "maximum retransmission timeout"),
        ];
        match times.iter().find(|(time, _)| *time == Duration::ZERO) {
            Some((_, which)) => Err(ConfigError::ZeroDuration(which)),
            None => Ok(()),
        }
    }
}
