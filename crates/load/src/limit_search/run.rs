//! Runs of a search, one for each rate.

use wire::{Duration, Seed};
use workload::schedule::{Arrivals, Leg, Times};

use super::{LimitSearch, Step};
use crate::config::{Config, Target};
use crate::job::{Turns, timed_pages};
use crate::progress::{Progress, Stop};
use crate::ramp;
use crate::run::{Error, run_until};
use crate::thresholds::{Threshold, judge};
use crate::traffic::RequestList;

/// First rate as a share of that of a single user.
const FIRST: f64 = 0.5;

/// Parameters of a search.
#[derive(Debug)]
pub struct SearchSpec<'a> {
    /// The requests; their schedule is the search's.
    pub list: RequestList,
    /// The server.
    pub target: &'a Target,
    /// Its connections.
    pub config: &'a Config,
    /// A request, for the next command.
    pub url: &'a str,
    /// Limits of each step.
    pub thresholds: &'a [Threshold],
    /// Duration of each step.
    pub lasts: Duration,
    /// Duration of the ramp.
    pub ramp: Duration,
    /// Intervals of the requests.
    pub arrivals: Arrivals,
    /// Random seed of the intervals.
    pub seed: Seed,
}

impl SearchSpec<'_> {
    /// Runs the search; `watch` is called every second with the rate, `stepped` after each step. An interrupted search ends with
    /// the steps so far.
    ///
    /// # Errors
    /// As for [`run_until`].
    pub fn run(
        mut self,
        stop: &Stop,
        watch: &mut dyn FnMut(f64, &Progress),
        stepped: &mut dyn FnMut(&Step),
    ) -> Result<LimitSearch, Error> {
        (self.list.lasts, self.list.turns) = (self.lasts, Turns::Once);
        let stages = ramp::climb(&self.list, self.target, self.config, stop, self.ramp)?;
        let mut search = LimitSearch::new(stages.first().map_or(0.0, |stage| stage.rate) * FIRST);
        while let Some(rate) = search.next().filter(|_| !stop.is_set()) {
            let legs = [Leg { duration: self.lasts, from: rate, to: rate }];
            let times = Times::new(&legs, self.arrivals, self.seed.stream("load-arrivals", 0));
            self.list.pages = timed_pages(self.list.requests.len(), times);
            let mut watch = |progress: &Progress| watch(rate, progress);
            let mut record = run_until(self.list.job(), self.target, self.config, stop, &mut watch)?;
            if record.cut.is_some() {
                break;
            }
            record.evidence.ramp.clone_from(&stages);
            let has_passed = judge(self.thresholds, &record).iter().all(|judged| judged.passed);
            let step = Step::of(rate, self.lasts, &record, has_passed, self.url);
            stepped(&step);
            search.add(step);
        }
        Ok(search)
    }
}
