//! A threshold of `--fail-on`: `low`, `medium`, `high`, `none`, `CAUSE` or `CAUSE:MS`.

use diagnose::cause::Describe as _;
use diagnose::{Cause, Severity};
use quantity::names::{self, Quoted, UnknownName};
use wire::Duration;

/// Threshold that a finding must reach to fail a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threshold {
    /// This severity, whatever the cause.
    Severity(Severity),
    /// This cause, and this time lost in one stall.
    Cause {
        /// The cause.
        cause: Cause,
        /// Minimum time lost.
        min: Duration,
    },
}

impl Threshold {
    /// Parses a threshold; `None` for `none`.
    ///
    /// # Errors
    /// An unknown name, a cause that is never a fault, or an invalid number of milliseconds.
    pub fn parse(text: &str) -> Result<Option<Self>, ThresholdError> {
        let severities = [Severity::Low, Severity::Medium, Severity::High];
        if text == "none" {
            return Ok(None);
        }
        if let Some(severity) = severities.into_iter().find(|severity| severity.name() == text) {
            return Ok(Some(Self::Severity(severity)));
        }
        let (name, millis) = text.split_once(':').map_or((text, None), |(name, millis)| (name, Some(millis)));
        let cause = names::find("severity or cause", name, &Cause::ALL, Cause::name);
        let cause = cause.map_err(|mut unknown| {
            unknown.known.splice(0..0, severities.map(Severity::name).into_iter().chain(["none"]));
            ThresholdError::Unknown(unknown)
        })?;
        if !cause.about().is_fault {
            return Err(ThresholdError::NoFault(cause));
        }
        let min = millis.map_or(Ok(Duration::ZERO), |millis| {
            milliseconds(millis).ok_or_else(|| ThresholdError::Millis(millis.to_owned()))
        })?;
        Ok(Some(Self::Cause { cause, min }))
    }

    /// Returns whether a finding of this cause and severity reaches it, whose longest stall took this long. Notes never do.
    pub fn is_reached(self, cause: Cause, severity: Severity, longest: Duration) -> bool {
        severity != Severity::Note
            && match self {
                Self::Severity(min) => severity >= min,
                Self::Cause { cause: own, min } => cause == own && longest >= min,
            }
    }
}

/// Parses `20`, `0.5` or `20ms`, up to a day.
fn milliseconds(text: &str) -> Option<Duration> {
    const DAY_MS: f64 = 86_400_000.0;
    let digits = text.strip_suffix("ms").unwrap_or(text);
    let number: f64 = digits.parse().ok()?;
    if (0.0..=DAY_MS).contains(&number) { Duration::from_secs_f64(number / 1_000.0) } else { None }
}

/// Reason why a text is not a valid threshold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ThresholdError {
    /// Neither a severity nor a cause.
    #[error("{0}")]
    Unknown(UnknownName),
    /// A cause that occurs only in notes.
    #[error("`{}` is never a fault and fails nothing; name another cause", .0.name())]
    NoFault(Cause),
    /// Not a number of milliseconds.
    #[error("{}: not a number of milliseconds; write `CAUSE:20`", Quoted(.0))]
    Millis(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn severities_causes_and_times_are_read() {
        let cause = |min| Some(Threshold::Cause { cause: Cause::Nagle, min });
        assert_eq!(Threshold::parse("none"), Ok(None));
        assert_eq!(Threshold::parse("high"), Ok(Some(Threshold::Severity(Severity::High))));
        assert_eq!(Threshold::parse("nagle"), Ok(cause(Duration::ZERO)));
        assert_eq!(Threshold::parse("nagle:20"), Ok(cause(Duration::from_millis(20))));
        assert_eq!(Threshold::parse("nagle:0.5ms"), Ok(cause(Duration::from_micros(500))));
    }

    #[test]
    fn errors_name_the_remedy() {
        let reported = |text| Threshold::parse(text).unwrap_err().to_string();
        assert!(reported("nagel").contains("did you mean `nagle`?"), "{}", reported("nagel"));
        assert!(reported("hihg").contains("unknown severity or cause `hihg`; did you mean `high`?"));
        assert!(reported("slow-start").contains("never a fault"));
        for wrong in ["nagle:", "nagle:-1", "nagle:1e400", "nagle:NaN", "nagle:\u{1b}"] {
            assert!(reported(wrong).ends_with("write `CAUSE:20`"), "{}", reported(wrong));
        }
    }
}
