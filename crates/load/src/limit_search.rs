//! Search for the rate that a server sustains: steps of an open schedule, first doubled, then bisected.
//!
//! The search itself runs nothing: [`SearchSpec`] runs each step, and adds its result.

mod run;

use serde::Serialize;
use wire::Duration;

use crate::attribution::{Attribution, Kind, attribute, has_backlog};
use crate::record::Record;

pub use run::SearchSpec;

/// Steps of a search.
#[derive(Clone, Debug)]
pub struct LimitSearch {
    first: f64,
    steps: Vec<Step>,
}

/// A run at one rate.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    /// Requests per second, as scheduled.
    pub rate: f64,
    /// Responses per second.
    pub responses_per_second: f64,
    /// Share of failed requests.
    pub failed_share: f64,
    /// Median response time, from when requests were due.
    pub response_p50_ms: f64,
    /// 99th percentile of it.
    pub response_p99_ms: f64,
    /// Requests in flight, on average.
    pub in_flight: f64,
    /// CPUs that the server used; absent if its process is not on this host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_cpus: Option<f64>,
    /// Whether the server sustained the rate, and thresholds were met.
    pub sustained: bool,
    /// Bottleneck of the run.
    pub bottleneck: Attribution,
}

/// Share of the scheduled rate that counts as all of it: intervals are random.
const SUSTAINED: f64 = 0.95;
/// Share of a step's duration in which the last responses come.
const DRAIN: f64 = 0.1;
/// Precision of the limit, as a ratio of two rates.
const PRECISION: f64 = 1.1;
/// Maximum number of steps, and maximum rate per second.
const MAX_STEPS: usize = 30;
const MAX_RATE: f64 = 1e6;

impl Step {
    /// The result of a run at this rate and of this duration.
    pub fn of(rate: f64, lasts: Duration, record: &Record, has_passed: bool, url: &str) -> Self {
        let at = |share: f64| record.intended.value_at_quantile(share) as f64 / 1e6;
        let due: u64 = record.seconds.iter().map(|second| second.due).sum();
        let bottleneck = attribute(record, url);
        let is_free = match bottleneck.kind {
            Kind::Nothing | Kind::Users | Kind::DelayedAck | Kind::RoundTrip | Kind::FixedWait => true,
            // Late requests spoil latencies; the server may have responded to all of them nevertheless.
            Kind::Generator => !has_backlog(record),
            _ => false,
        };
        let responses_per_second = record.responses_per_second();
        let service_ms = if record.experienced.is_empty() { 0.0 } else { record.experienced.mean() / 1e6 };
        // Requests that queue are served after the end; a response in flight is not queued.
        let unloaded_ms = record.evidence.ramp.first().map_or(0.0, |stage| stage.median_ms);
        let drained_after = record.elapsed.saturating_sub(lasts).as_secs_f64();
        let is_drained = drained_after <= DRAIN * lasts.as_secs_f64() + 2.0 * unloaded_ms / 1e3;
        Self {
            rate,
            responses_per_second,
            failed_share: record.failure_share(),
            response_p50_ms: at(0.5),
            response_p99_ms: at(0.99),
            in_flight: responses_per_second * service_ms / 1e3,
            server_cpus: record.evidence.server.as_ref().map(|server| server.all.used),
            sustained: has_passed
                && is_free
                && is_drained
                && record.responses() as f64 >= SUSTAINED * due as f64,
            bottleneck,
        }
    }

    /// The rate and its result, for a terminal.
    pub fn line(&self) -> String {
        let reached = if self.sustained { "sustained" } else { self.bottleneck.kind.name() };
        format!("{} a second: {reached}", render::output::number::significant(self.rate))
    }

    fn is_generators(&self) -> bool {
        matches!(self.bottleneck.kind, Kind::Generator | Kind::GeneratorSockets | Kind::Connections)
    }
}

impl LimitSearch {
    /// A search that begins with this rate per second.
    pub fn new(first: f64) -> Self {
        Self { first: first.clamp(1.0, MAX_RATE), steps: Vec::new() }
    }

    /// Adds the result of a step.
    pub fn add(&mut self, step: Step) {
        self.steps.push(step);
    }

    /// The highest sustained rate, and the lowest that was not; a failure below a success was a chance event.
    fn bounds(&self) -> (Option<f64>, Option<f64>) {
        let sustained =
            self.steps.iter().filter(|step| step.sustained).map(|step| step.rate).reduce(f64::max);
        let failed = self.steps.iter().filter(|step| !step.sustained).map(|step| step.rate);
        let failed = failed.filter(|rate| sustained.is_none_or(|sustained| *rate > sustained));
        (sustained, failed.reduce(f64::min))
    }

    /// The rate of the next step; `None` at the end of the search.
    pub fn next(&self) -> Option<f64> {
        if self.steps.len() >= MAX_STEPS {
            return None;
        }
        match self.bounds() {
            (None, None) => Some(self.first),
            (Some(sustained), None) => Some(sustained * 2.0).filter(|rate| *rate <= MAX_RATE),
            // Below the first rate there may be a limit, too.
            (None, Some(failed)) => Some(failed / 2.0).filter(|rate| *rate >= 1.0),
            (Some(sustained), Some(failed)) => {
                (failed / sustained > PRECISION).then(|| (sustained * failed).sqrt())
            }
        }
    }

    /// The steps in the order of their rates.
    pub fn by_rate(&self) -> Vec<&Step> {
        let mut steps: Vec<&Step> = self.steps.iter().collect();
        steps.sort_by(|one, other| one.rate.total_cmp(&other.rate));
        steps
    }

    /// The highest sustained rate per second.
    pub fn limit(&self) -> Option<f64> {
        self.bounds().0
    }

    /// The lowest rate above the limit, which shows the bottleneck.
    pub fn above(&self) -> Option<&Step> {
        let failed = self.bounds().1?;
        self.steps.iter().find(|step| step.rate.total_cmp(&failed).is_eq())
    }

    /// The limit and its bottleneck in a sentence.
    pub fn sentence(&self) -> String {
        use render::output::number::significant;
        let limit = match self.limit() {
            Some(limit) => format!("sustained up to {} requests a second", significant(limit)),
            None => "no rate was sustained".to_owned(),
        };
        match self.above() {
            Some(step) if step.is_generators() => format!(
                "{limit}, as far as this generator goes; at {}: {}",
                significant(step.rate),
                step.bottleneck.sentence
            ),
            Some(step) => format!("{limit}; at {}: {}", significant(step.rate), step.bottleneck.sentence),
            None => format!("{limit}; the search ended there"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(limit: f64, first: f64) -> LimitSearch {
        let mut search = LimitSearch::new(first);
        while let Some(rate) = search.next() {
            let mut step = Step::of(rate, Duration::from_secs(1), &Record::default(), true, "");
            step.sustained = rate <= limit;
            search.add(step);
        }
        search
    }

    #[test]
    fn a_limit_is_found_within_a_tenth_from_below_and_from_above() {
        for (limit, first) in [(1_000.0, 3.0), (1_000.0, 50_000.0), (37.0, 37.0)] {
            let search = search(limit, first);
            let found = search.limit().unwrap();
            assert!(found <= limit && found * PRECISION >= limit, "{found} of {limit}");
            assert!(search.above().unwrap().rate > limit);
            assert!(search.by_rate().is_sorted_by(|one, other| one.rate <= other.rate));
        }
    }

    #[test]
    fn a_server_that_sustains_nothing_or_anything_ends_the_search() {
        assert_eq!(search(0.0, 100.0).limit(), None);
        let all = search(f64::INFINITY, 100.0);
        assert!(all.limit().unwrap() > 5e5 && all.above().is_none());
        assert!(all.sentence().ends_with("the search ended there"), "{}", all.sentence());
    }
}
