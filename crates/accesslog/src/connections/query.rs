//! Query: every timeout, every limit, every threshold, and the rule by which connections are reused.
//!
//! Flags are read by the command line, not here.

use wire::{Bytes, Duration};

/// A validated query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    timeouts: Vec<Duration>,
    limits: Vec<usize>,
    thresholds: Vec<Bytes>,
    rule: Rule,
    durations: bool,
    curve: usize,
}

/// Rule by which a client's request takes a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rule {
    /// A new one while it has fewer than K, else the least recently used one: the paper's "the oldest connection
    /// is reused".
    #[default]
    LeastRecentlyUsed,
    /// A new one while it has fewer than K, else the first created one: the same sentence, read in the other way.
    FirstCreated,
    /// An idle one if there is one, the most recently used first; else as above. The behaviour of current clients; without
    /// durations every connection is idle, and a client has one.
    IdleFirst,
}

/// Reason why a query is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// No timeout, no limit or no threshold.
    #[error("no {0}; give one")]
    Nothing(&'static str),
    /// More than the maximum, and the number given.
    #[error("give at most {1} values for the {0}")]
    TooMany(&'static str, usize),
    /// A timeout that is not a whole number of milliseconds, or longer than a week.
    #[error("a timeout of {} s is out of range; give whole milliseconds, up to a week", .0.as_secs_f64())]
    Timeout(Duration),
    /// Zero connections per client, or more than 64.
    #[error("{0} connections per client are out of range; give 1 to {MAX_CONNECTIONS}")]
    Limit(usize),
}

/// Longest timeout.
const MAX_TIMEOUT: Duration = Duration::from_secs(7 * 86_400);
/// Maximum number of timeouts: their indices fit a byte, with two to spare.
const MAX_TIMEOUTS: usize = 200;
/// Maximum number of connections per client.
const MAX_CONNECTIONS: usize = 64;
/// Maximum number of limits.
const MAX_LIMITS: usize = 16;
/// Maximum number of thresholds.
pub const MAX_THRESHOLDS: usize = 16;

impl Query {
    /// A query for all of these, in any order; repetitions are removed. The curve of connections over time is
    /// for the timeout nearest to `curve`.
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn new(
        timeouts: &[Duration],
        limits: &[usize],
        thresholds: &[Bytes],
        curve: Duration,
    ) -> Result<Self, QueryError> {
        let (timeouts, limits, thresholds) = (sorted(timeouts), sorted(limits), sorted(thresholds));
        let counts = [
            ("timeout", timeouts.len(), MAX_TIMEOUTS),
            ("limit of connections per client", limits.len(), MAX_LIMITS),
            ("threshold", thresholds.len(), MAX_THRESHOLDS),
        ];
        for (what, count, max) in counts {
            if count == 0 {
                return Err(QueryError::Nothing(what));
            }
            if count > max {
                return Err(QueryError::TooMany(what, max));
            }
        }
        let is_invalid =
            |timeout: &&Duration| **timeout > MAX_TIMEOUT || !timeout.as_nanos().is_multiple_of(1_000_000);
        if let Some(timeout) = timeouts.iter().find(is_invalid) {
            return Err(QueryError::Timeout(*timeout));
        }
        if let Some(limit) = limits.iter().find(|limit| !(1..=MAX_CONNECTIONS).contains(*limit)) {
            return Err(QueryError::Limit(*limit));
        }
        let distance = |timeout: Duration| timeout.as_nanos().abs_diff(curve.as_nanos());
        let curve = (0..timeouts.len()).min_by_key(|index| distance(timeouts[*index])).unwrap_or(0);
        Ok(Self { timeouts, limits, thresholds, rule: Rule::default(), durations: false, curve })
    }

    /// The same query under another rule, with the log's durations used or ignored.
    #[must_use]
    pub fn under(self, rule: Rule, durations: bool) -> Self {
        Self { rule, durations, ..self }
    }

    /// Timeouts, ascending, each once.
    pub fn timeouts(&self) -> &[Duration] {
        &self.timeouts
    }

    /// Longest timeout: earlier requests do not matter.
    pub fn longest(&self) -> Duration {
        self.timeouts.last().copied().unwrap_or_default()
    }

    /// Maximum connections per client, ascending.
    pub fn limits(&self) -> &[usize] {
        &self.limits
    }

    /// Sizes from which a response goes by TCP, ascending; 0 is plain HTTP.
    pub fn thresholds(&self) -> &[Bytes] {
        &self.thresholds
    }

    /// The rule.
    pub fn rule(&self) -> Rule {
        self.rule
    }

    /// Whether a connection is busy for the response's duration in the log.
    pub fn durations(&self) -> bool {
        self.durations
    }

    /// Index of the timeout whose connections are followed over time.
    pub fn curve(&self) -> usize {
        self.curve
    }

    /// Whether the single pass can count it, so that a log can be split anywhere
    /// ([`Counter`](super::Counter)).
    pub fn one_pass(&self) -> bool {
        match self.rule {
            Rule::LeastRecentlyUsed => !self.durations,
            Rule::FirstCreated | Rule::IdleFirst => false,
        }
    }
}

fn sorted<T: Copy + Ord>(values: &[T]) -> Vec<T> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    sorted
}

impl Rule {
    /// Every rule.
    pub const ALL: [Self; 3] = [Self::LeastRecentlyUsed, Self::FirstCreated, Self::IdleFirst];

    /// Name in flags.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LeastRecentlyUsed => "least-recently-used",
            Self::FirstCreated => "first-created",
            Self::IdleFirst => "idle-first",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(timeouts_ms: &[u64], limits: &[usize], thresholds: &[u64]) -> Result<Query, QueryError> {
        let timeouts: Vec<Duration> = timeouts_ms.iter().copied().map(Duration::from_millis).collect();
        let thresholds: Vec<Bytes> = thresholds.iter().copied().map(Bytes::new).collect();
        Query::new(&timeouts, limits, &thresholds, Duration::from_secs(15))
    }

    #[test]
    fn query_is_sorted_and_deduplicated() {
        let query = query(&[20_000, 1_000, 14_000, 1_000], &[3, 1, 3], &[4_096, 0]).unwrap();
        assert_eq!(query.timeouts().len(), 3);
        assert_eq!(query.limits(), [1, 3]);
        assert_eq!((query.longest(), query.curve()), (Duration::from_secs(20), 1));
    }

    #[test]
    fn rejects_invalid_queries() {
        assert_eq!(query(&[], &[1], &[0]), Err(QueryError::Nothing("timeout")));
        assert_eq!(query(&[1], &[0], &[0]), Err(QueryError::Limit(0)));
        assert_eq!(query(&[1], &[65], &[0]), Err(QueryError::Limit(65)));
        assert!(query(&[604_800_001], &[1], &[0]).is_err());
        let many: Vec<u64> = (0..201).collect();
        assert_eq!(query(&many, &[1], &[0]), Err(QueryError::TooMany("timeout", 200)));
    }
}
