//! Plan of a load test: every file, every page, every object, and the intended time of each request.
//!
//! The duration of responses is unknown here. In a closed schedule a page therefore starts some time *after* the
//! previous one is complete; in an open one it starts *at* a time, regardless of the server.

pub(crate) mod types;

use wire::{Bytes, Duration, Seed};

use crate::draft::Draft;
use crate::schedule::{Leg, Schedule};
pub use types::{MAX_OBJECTS, ObjectRequest, Page, PageStart, PlanSpec};

/// A complete plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Its specification.
    pub spec: PlanSpec,
    /// Size of each file, in bytes.
    pub files: Vec<u64>,
    /// Pages, in the order of their intended times if responses took no time.
    pub pages: Vec<Page>,
}

/// Reason why a plan cannot be generated.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// Fewer than the minimum number of files.
    #[error("a plan needs at least 2 files")]
    TooFewFiles,
    /// A log without a complete response.
    #[error("the log has no complete response of known size; give another log")]
    EmptyLog,
    /// A log that takes longer than the maximum.
    #[error(
        "the plan would last {0}, and can last {MAX_DURATION}; replay the log at a higher speed, or a part \
         of it"
    )]
    TooLong(Duration),
    /// More files than fit the memory limit.
    #[error("{0} files are more than a plan can have, {MAX_FILES}; use fewer")]
    TooManyFiles(u32),
    /// More requests than fit the memory limit.
    #[error(
        "the plan would have about {0:.0} requests, and can have {MAX_REQUESTS:.0}; plan a shorter time, \
         fewer users or a lower rate"
    )]
    TooManyRequests(f64),
}

/// Maximum number of files: ordering more takes over a gigabyte of memory.
pub const MAX_FILES: u32 = 1_000_000;
/// Maximum number of requests: more take several gigabytes of memory.
pub const MAX_REQUESTS: f64 = 50_000_000.0;
/// Maximum duration of a plan.
pub const MAX_DURATION: Duration = Duration::from_secs(3 * 3_600);

impl PlanSpec {
    /// Generates the plan.
    ///
    /// # Errors
    /// [`PlanError`] if it would have no files, or more than fits into memory.
    pub fn plan(self) -> Result<Plan, PlanError> {
        self.memory()?;
        let (files, pages) = Draft::new(&self).generate();
        Ok(Plan { spec: self, files, pages })
    }

    /// Returns an upper bound of the memory that generating it takes. A million requests took 100 to 120 MB, and
    /// 100,000 files 25 MB.
    ///
    /// # Errors
    /// [`PlanError`] if the plan cannot be generated.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the number of requests is checked above"
    )]
    pub fn memory(&self) -> Result<Bytes, PlanError> {
        const BYTES_PER_REQUEST: u64 = 128;
        const BYTES_PER_FILE: u64 = 256;
        const BASE_BYTES: u64 = 16 << 20;
        match self.files {
            0 | 1 => return Err(PlanError::TooFewFiles),
            files if files > MAX_FILES => return Err(PlanError::TooManyFiles(files)),
            _ => {}
        }
        let requests = self.expected_requests();
        if requests > MAX_REQUESTS {
            return Err(PlanError::TooManyRequests(requests));
        }
        Ok(Bytes::new(
            BASE_BYTES + requests as u64 * BYTES_PER_REQUEST + u64::from(self.files) * BYTES_PER_FILE,
        ))
    }

    /// Returns the approximate number of requests.
    fn expected_requests(&self) -> f64 {
        match &self.schedule {
            Schedule::Rates(legs, _) => legs.iter().map(Leg::due).sum(),
            // A log's requests are counted when it is read.
            Schedule::Replay(_) => 0.0,
            Schedule::Users(users) => {
                let set = self.set.set();
                // The median pause; the mean of both distributions is about three times that.
                let cycle = set.inactive_off.quantile(0.5) + 0.1;
                f64::from(*users) * self.duration.as_secs_f64() / cycle
                    * set.objects.quantile(0.7).min(MAX_OBJECTS as f64)
            }
        }
    }

    /// Returns the number of documents: a quarter of the files where documents have separate distributions (an
    /// assumption).
    pub(super) fn documents(&self) -> u32 {
        if self.set.set().embedded.is_some() { self.files.div_ceil(4) } else { self.files }
    }
}

/// Returns the path of a file, below the site's directory and in its URLs.
pub fn path(file: u32) -> String {
    format!("{file}.bin")
}

/// Returns the contents of a file: incompressible bytes, determined by the seed.
pub fn contents(seed: Seed, file: u32, size: u64) -> Vec<u8> {
    let mut random = seed.stream("surge-contents", u64::from(file));
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    let words = std::iter::repeat_with(|| random.next_u64().to_le_bytes());
    words.take(size.div_ceil(8)).flatten().take(size).collect()
}

impl Plan {
    /// Returns the number of requests.
    pub fn requests(&self) -> usize {
        self.pages.iter().map(|page| page.objects.len()).sum()
    }

    /// Returns the share of responses whose body has at most `limit` bytes, or is missing because the file is unchanged.
    pub fn share_of_small(&self, limit: Bytes) -> f64 {
        let is_small =
            |request: &&ObjectRequest| request.is_conditional || self.size(request.file) <= limit.get();
        let share_of_small = self.object_requests().filter(is_small).count();
        share_of_small as f64 / self.requests().max(1) as f64
    }

    /// Returns the number of files that the cap has truncated.
    pub fn capped_files(&self) -> usize {
        self.files.iter().filter(|size| **size == self.spec.cap.get()).count()
    }

    /// Returns the size of a file.
    pub fn size(&self, file: u32) -> u64 {
        usize::try_from(file).ok().and_then(|file| self.files.get(file)).copied().unwrap_or(0)
    }

    pub(super) fn object_requests(&self) -> impl Iterator<Item = &ObjectRequest> {
        self.pages.iter().flat_map(|page| &page.objects)
    }
}

#[cfg(test)]
mod tests {
    use wire::{Probability, Time};

    use super::*;
    use crate::goodness_of_fit::fits;
    use crate::schedule::Arrivals;
    use crate::set::{PlanDistributions, SetName};

    fn spec(set: SetName, schedule: Schedule) -> PlanSpec {
        let conditional = Probability::new(0.26).unwrap();
        PlanSpec {
            set: PlanDistributions::Named(set),
            cap: Bytes::new(100_000_000),
            schedule,
            conditional,
            ..PlanSpec::default()
        }
    }

    #[test]
    fn plan_fits_all_its_distributions() {
        for set in SetName::ALL {
            let plan = spec(set, Schedule::Users(400)).plan().unwrap();
            for fit in fits(&plan) {
                assert!(fit.distance < 0.11, "{fit:?}");
                assert!(fit.likelihood.is_none_or(|likelihood| likelihood > 0.001), "{fit:?}");
            }
            assert!((0.4..0.55).contains(&plan.share_of_small(Bytes::new(1_460))));
        }
    }

    #[test]
    fn seed_determines_the_plan() {
        let make =
            |seed| PlanSpec { seed: Seed::new(seed), ..spec(SetName::Surge1998, Schedule::Users(5)) }.plan();
        assert_eq!(make(1), make(1));
        assert_ne!(make(1).unwrap().pages, make(2).unwrap().pages);
    }

    #[test]
    fn open_schedule_times_are_independent_of_users() {
        let leg = Leg { duration: Duration::from_secs(10), from: 50.0, to: 50.0 };
        let plan = spec(SetName::Surge1998, Schedule::Rates(vec![leg], Arrivals::Constant)).plan().unwrap();
        assert_eq!(plan.pages.len(), 500);
        assert_eq!(plan.pages[0].start, PageStart::At(Time::from_nanos(20_000_000)));
        assert!(plan.pages.iter().all(|page| page.objects.len() == 1));
    }

    #[test]
    fn rejects_plans_beyond_the_limits_with_the_figure() {
        let error = |wanted: PlanSpec| wanted.plan().unwrap_err().to_string();
        let sentence = error(spec(SetName::Surge1998, Schedule::Users(100_000_000)));
        assert!(sentence.starts_with("the plan would have about "), "{sentence}");
        assert_eq!(
            error(PlanSpec { files: 1, ..spec(SetName::Surge1998, Schedule::Users(1)) }),
            "a plan needs at least 2 files"
        );
    }
}
