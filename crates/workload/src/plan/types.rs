//! Parts of a plan, and the settings that it is made from.

use wire::{Bytes, Duration, Probability, Seed, Time};

use crate::schedule::Schedule;
use crate::set::{PlanDistributions, SetName};

/// Specification of a plan; the same specification gives the same plan on every host.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanSpec {
    /// The distributions.
    pub set: PlanDistributions,
    /// Number of files of the site, at least 2.
    pub files: u32,
    /// Maximum size of a file.
    pub cap: Bytes,
    /// Schedule of the requests.
    pub schedule: Schedule,
    /// Duration of the users' activity (closed); the legs of an open schedule have durations of their own.
    pub duration: Duration,
    /// Share of requests that are conditional; the file has not changed.
    pub conditional: Probability,
    /// Random seed.
    pub seed: Seed,
}

/// A page: objects that a user requests sequentially.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The user, from 0.
    pub user: u32,
    /// Start time.
    pub start: PageStart,
    /// Requests; at least one.
    pub objects: Vec<ObjectRequest>,
    /// Whether the user's connections are closed after it.
    pub ends_session: bool,
}

/// Start of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageStart {
    /// This time after the user's previous page is complete.
    After(Duration),
    /// At this time of the plan.
    At(Time),
}

/// A request for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectRequest {
    /// The file, from 0.
    pub file: u32,
    /// Pause after the page's previous object; zero for the first.
    pub after: Duration,
    /// Whether it is conditional.
    pub is_conditional: bool,
}

/// Maximum number of objects per page.
pub const MAX_OBJECTS: u64 = 1_000;

impl Default for PlanSpec {
    /// Two minutes of 100 users at a site of 2,000 files, at most 10 MB each.
    fn default() -> Self {
        Self {
            set: PlanDistributions::Named(SetName::Surge1998),
            files: 2_000,
            cap: Bytes::new(10_000_000),
            schedule: Schedule::Users(100),
            duration: Duration::from_secs(120),
            conditional: Probability::NEVER,
            seed: Seed::default(),
        }
    }
}
