//! Validation of an endpoint's configuration.

use std::fmt;

use wire::Duration;

use super::{Acks, Config, Estimator, Idle, OddSegmentAck, ReceiveBuffer, Rto, TIMESTAMP_BYTES, Ticks};

/// An invalid configuration value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// A segment without payload.
    MssTooSmall {
        /// The configured segment size.
        mss: u16,
        /// Minimum segment size: its options and one byte.
        least: u16,
    },
    /// A buffer smaller than one segment.
    BufferBelowSegment {
        /// `send` or `receive`.
        which: &'static str,
        /// Its size.
        bytes: u32,
        /// Size of a segment.
        mss: u16,
    },
    /// A window of zero segments.
    WindowZero(&'static str),
    /// A clock with period zero, or a timeout of zero.
    NoTime(&'static str),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MssTooSmall { mss, least } => {
                write!(f, "a segment of {mss} bytes carries nothing; give an mss of at least {least}")
            }
            Self::BufferBelowSegment { which, bytes, mss } => {
                write!(
                    f,
                    "a {which} buffer of {bytes} bytes holds no full segment; give at least the mss, {mss}"
                )
            }
            Self::WindowZero(which) => write!(f, "{which} of 0 segments never sends; give at least 1"),
            Self::NoTime(which) => write!(f, "{which} must be longer than 0"),
        }
    }
}

impl std::error::Error for ConfigError {}

impl Config {
    /// Validates the configuration.
    ///
    /// # Errors
    /// The first invalid knob.
    pub fn check(&self) -> Result<(), ConfigError> {
        let Self {
            mss,
            send_buffer,
            holding: _,
            receive_buffer,
            timestamps,
            window_scaling: _,
            acks,
            nagle: _,
            congestion,
            recovery: _,
            idle,
            rto,
            ending: _,
            shortcut: _,
            sharing: _,
            idle_after: _,
        } = self;
        // Timestamps take twelve bytes of every segment, and at least one byte must remain.
        let least = if *timestamps { TIMESTAMP_BYTES + 1 } else { 1 };
        if *mss < least {
            return Err(ConfigError::MssTooSmall { mss: *mss, least });
        }
        let receive_buffer = match *receive_buffer {
            ReceiveBuffer::Fixed(bytes) => bytes,
            ReceiveBuffer::Growing { initial, most } => initial.min(most),
        };
        for (which, bytes) in [("send", *send_buffer), ("receive", receive_buffer)] {
            if bytes < u32::from(*mss) {
                return Err(ConfigError::BufferBelowSegment { which, bytes, mss: *mss });
            }
        }
        if congestion.initial_window == 0 {
            return Err(ConfigError::WindowZero("an initial window"));
        }
        match idle {
            Idle::Restarted { segments: 0, since: _ } => {
                return Err(ConfigError::WindowZero("a window after idle"));
            }
            Idle::Restarted { .. } | Idle::Kept | Idle::Decayed | Idle::Paced => {}
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
                return Err(ConfigError::WindowZero("an acknowledgement"));
            }
            Self::Counted { segments: _, odd } | Self::ReadBytes { odd } => odd,
        };
        match odd {
            OddSegmentAck::OnTick(Ticks { period: Duration::ZERO, phase: _ }) => {
                Err(ConfigError::NoTime("the period of the delayed-ACK clock"))
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
        let Self { estimator, initial, least, most, syn_retries: _, data_retries: _ } = self;
        let period = match estimator {
            Estimator::Coarse(ticks) => ticks.period,
            Estimator::Fine | Estimator::FineVariation => Duration::MAX,
        };
        let times = [
            (period, "the period of the retransmission clock"),
            (initial, "the first retransmission time-out"),
            (least, "the least retransmission time-out"),
            (most, "the greatest retransmission time-out"),
        ];
        match times.iter().find(|(time, _)| *time == Duration::ZERO) {
            Some((_, which)) => Err(ConfigError::NoTime(which)),
            None => Ok(()),
        }
    }
}
