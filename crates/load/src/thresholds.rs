//! Thresholds of a load run, and whether it met them.
//!
//! Latencies are response times: they count from the scheduled time. Not the bottleneck, which is in the verdict.

use quantity::ValueError;
use quantity::names::UnknownName;
use render::output::number;
use serde::Serialize;

use crate::Record;

/// A limit and its measure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    measure: Measure,
    /// In milliseconds, as a share, or a second.
    limit: f64,
}

/// A figure of a run that has a limit.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Measure {
    /// The latency that this share of requests stays below.
    Percentile(&'static str, f64),
    Mean,
    Max,
    /// The share of requests that failed.
    ErrorRate,
    /// Successes a second: the limit is a minimum.
    Rate,
    /// The error rate, by the flag `--max-failures`.
    MaxFailures,
}

const MEASURES: [Measure; 9] = [
    Measure::Percentile("p50", 0.5),
    Measure::Percentile("p90", 0.9),
    Measure::Percentile("p95", 0.95),
    Measure::Percentile("p99", 0.99),
    Measure::Percentile("p99.9", 0.999),
    Measure::Mean,
    Measure::Max,
    Measure::ErrorRate,
    Measure::Rate,
];

/// A threshold and the figure of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckedThreshold {
    /// The threshold.
    pub name: &'static str,
    /// `ms`, `share` (from 0 to 1) or `per_second`.
    unit: &'static str,
    limit: f64,
    /// The figure; none where no response came.
    value: Option<f64>,
    /// Whether the run met it.
    pub passed: bool,
}

impl Measure {
    const fn name(self) -> &'static str {
        match self {
            Self::Percentile(name, _) => name,
            Self::Mean => "mean",
            Self::Max => "max",
            Self::ErrorRate => "error-rate",
            Self::Rate => "rate",
            Self::MaxFailures => "max-failures",
        }
    }

    const fn unit(self) -> &'static str {
        match self {
            Self::Percentile(..) | Self::Mean | Self::Max => "ms",
            Self::ErrorRate | Self::MaxFailures => "share",
            Self::Rate => "per_second",
        }
    }

    fn of(self, record: &Record) -> Option<f64> {
        let millis = |nanos: f64| (!record.intended.is_empty()).then_some(nanos / 1e6);
        match self {
            Self::Percentile(_, share) => millis(record.intended.value_at_quantile(share) as f64),
            Self::Mean => millis(record.intended.mean()),
            Self::Max => millis(record.intended.max() as f64),
            Self::ErrorRate | Self::MaxFailures => Some(record.failure_share()),
            Self::Rate => Some(record.responses_per_second()),
        }
    }
}

/// Error of a threshold's text.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ThresholdError {
    /// The text has no `=`.
    #[error("`{}` has no limit; write NAME=LIMIT, such as p99=50ms", .0.escape_debug())]
    NoLimit(String),
    /// No figure has this name.
    #[error(transparent)]
    Unknown(UnknownName),
    /// The limit is not a duration, or not a share.
    #[error(transparent)]
    Limit(ValueError),
    /// The limit is not a rate.
    #[error("`{}` is not a rate; write responses a second, such as 500/s", .0.escape_debug())]
    Rate(String),
}

impl Threshold {
    /// The maximum share of failures, as `1%` or `0.01`.
    ///
    /// # Errors
    /// If it is not a share.
    pub fn max_failures(text: &str) -> Result<Self, ValueError> {
        Ok(Self { measure: Measure::MaxFailures, limit: quantity::probability(text)?.get() })
    }

    /// The threshold of a text such as `p99=50ms`.
    ///
    /// # Errors
    /// If the figure is unknown, or the limit does not fit it.
    pub fn parse(text: &str) -> Result<Self, ThresholdError> {
        let (name, limit) = text.split_once('=').ok_or_else(|| ThresholdError::NoLimit(text.to_owned()))?;
        let measure = MEASURES.into_iter().find(|measure| measure.name() == name).ok_or_else(|| {
            ThresholdError::Unknown(UnknownName::new("threshold", name, MEASURES.map(Measure::name)))
        })?;
        let limit = match measure {
            Measure::Percentile(..) | Measure::Mean | Measure::Max => {
                quantity::duration(limit).map_err(ThresholdError::Limit)?.as_millis_f64()
            }
            Measure::ErrorRate | Measure::MaxFailures => {
                quantity::probability(limit).map_err(ThresholdError::Limit)?.get()
            }
            Measure::Rate => {
                let number = limit.strip_suffix("/s").unwrap_or(limit);
                let rate = number.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate >= 0.0);
                rate.ok_or_else(|| ThresholdError::Rate(limit.to_owned()))?
            }
        };
        Ok(Self { measure, limit })
    }
}

/// Judges a run.
pub fn judge(thresholds: &[Threshold], record: &Record) -> Vec<CheckedThreshold> {
    let judged = |Threshold { measure, limit }: &Threshold| {
        let value = measure.of(record);
        let passed = value.is_some_and(|value| match measure {
            Measure::Rate => value >= *limit,
            Measure::Percentile(..)
            | Measure::Mean
            | Measure::Max
            | Measure::ErrorRate
            | Measure::MaxFailures => value <= *limit,
        });
        CheckedThreshold { name: measure.name(), unit: measure.unit(), limit: *limit, value, passed }
    };
    thresholds.iter().map(judged).collect()
}

/// The lines of a table; empty if only the default threshold was judged, and met.
pub fn lines(judged: &[CheckedThreshold]) -> String {
    let is_quiet = |judged: &CheckedThreshold| judged.name == Measure::MaxFailures.name() && judged.passed;
    let shown: Vec<_> = judged.iter().filter(|judged| !is_quiet(judged)).collect();
    if shown.is_empty() {
        return String::new();
    }
    format!("\n{}", shown.iter().map(|judged| judged.sentence()).collect::<String>())
}

impl CheckedThreshold {
    /// The line of a table.
    pub(crate) fn sentence(&self) -> String {
        let Self { name, unit, limit, value, passed } = self;
        let figure = |value: f64| match *unit {
            "share" => format!("{}%", number::significant(100.0 * value)),
            "ms" => format!("{} ms", number::significant(value)),
            _ => format!("{}/s", number::significant(value)),
        };
        let side = if *unit == "per_second" { "at least" } else { "at most" };
        let value = value.map_or_else(|| "no responses".to_owned(), figure);
        let verdict = if *passed { "passed" } else { "FAILED" };
        format!("  {verdict}  {name:12} {value:>12}, {side} {}\n", figure(*limit))
    }
}

#[cfg(test)]
mod tests {
    use wire::Duration;

    use crate::record::{Channel, FailureReason};

    use super::*;

    fn record() -> Record {
        let mut record = Record { elapsed: Duration::from_secs(2), ..Record::default() };
        for millis in 1..=100_u64 {
            record.intended.record(millis * 1_000_000).unwrap();
        }
        record.channels.insert(Channel::TcpClient, 98);
        record.failure_counts.insert(FailureReason::Status, 2);
        record
    }

    #[test]
    fn each_threshold_is_judged_by_its_own_figure() {
        for (text, passed) in [
            ("p50=51ms", true),
            ("p50=49ms", false),
            ("p99=100ms", true),
            ("p99=98ms", false),
            ("mean=51ms", true),
            ("max=99ms", false),
            ("error-rate=2%", true),
            ("error-rate=1.9%", false),
            ("rate=49/s", true),
            ("rate=50", false),
        ] {
            let thresholds = [Threshold::max_failures("2%").unwrap(), Threshold::parse(text).unwrap()];
            let judged = judge(&thresholds, &record());
            assert_eq!((judged[0].passed, judged[1].passed), (true, passed), "{text}: {judged:?}");
        }
        assert!(!judge(&[Threshold::max_failures("1%").unwrap()], &record())[0].passed);
    }

    #[test]
    fn without_responses_no_latency_threshold_passes() {
        let nothing = Record::default();
        let judged = judge(&[Threshold::parse("p99=1h").unwrap()], &nothing);
        assert!(judged.iter().any(|judged| judged.name == "p99" && !judged.passed), "{judged:?}");
        assert!(lines(&judged).contains("FAILED  p99          no responses, at most"), "{}", lines(&judged));
    }

    #[test]
    fn invalid_thresholds_are_refused() {
        for (text, message) in [
            ("p99", "`p99` has no limit; write NAME=LIMIT"),
            ("p98=1ms", "unknown threshold `p98`; did you mean `p90`?"),
            ("p99=fast", "`fast`"),
            ("error-rate=200%", "200%"),
            ("rate=-1", "is not a rate"),
        ] {
            let refused = Threshold::parse(text).unwrap_err().to_string();
            assert!(refused.contains(message), "{text}: {refused}");
        }
        assert!(Threshold::max_failures("many").is_err());
    }
}
