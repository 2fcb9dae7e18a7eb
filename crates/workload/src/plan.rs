//! A plan: every file, every page, every object, and when each is meant to be asked for.
//!
//! Not a run: how long answers take is not known here. In a closed schedule a page therefore begins so long *after* the one
//! before it was there; in an open one it begins *at* a time, come what may.

use std::fmt;

use wire::{Bytes, Duration, Probability, Seed, Time};

use crate::draft::Draft;
use crate::schedule::{Leg, Schedule};
use crate::set::{Laws, SetName};

/// What a plan is made from; the same gives the same plan on every machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// The laws.
    pub set: Laws,
    /// How many files the site has, at least 2.
    pub files: u32,
    /// No file is larger.
    pub cap: Bytes,
    /// Who asks when.
    pub schedule: Schedule,
    /// How long users go on (closed); the legs of an open schedule have lengths of their own.
    pub lasts: Duration,
    /// How many requests ask only whether the file has changed; it has not.
    pub conditional: Probability,
    /// What makes it repeatable.
    pub seed: Seed,
}

/// Everything that is going to be asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What it was made from.
    pub wanted: Wanted,
    /// The size of each file.
    pub files: Vec<u64>,
    /// The pages, in the order of their intended times if answers took none.
    pub pages: Vec<Page>,
}

/// A page: objects that a user asks for one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Who asks, from 0.
    pub user: u32,
    /// When.
    pub begins: Begins,
    /// What for; at least one.
    pub objects: Vec<Ask>,
    /// Whether the user's connections are closed after it.
    pub ends_session: bool,
}

/// When a page begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begins {
    /// So long after the user's page before was there.
    After(Duration),
    /// At this time of the plan.
    At(Time),
}

/// A request for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Which file, from 0.
    pub file: u32,
    /// How long after the page's object before was asked for; zero for the first.
    pub after: Duration,
    /// Whether it asks only for what has changed.
    pub is_conditional: bool,
}

/// Why there is no such plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unfit {
    /// A site has files.
    TooFewFiles,
    /// A log without a whole answer.
    Nothing,
    /// A log of more than anyone waits for.
    TooLong(Duration),
    /// More than memory should be asked for.
    TooManyFiles(u32),
    /// More than memory should be asked for.
    TooManyRequests(f64),
}

/// More files than that need more than a gigabyte to order.
pub const MOST_FILES: u32 = 1_000_000;
/// More requests than that need some gigabytes.
pub const MOST_REQUESTS: f64 = 50_000_000.0;
/// A page has no more objects, whatever the law draws.
pub const MOST_OBJECTS: u64 = 1_000;

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFewFiles => f.write_str("a plan needs at least 2 files"),
            Self::Nothing => f.write_str("the log has no whole answer of known size; give one that has"),
            Self::TooLong(lasts) => write!(
                f,
                "the plan would last {lasts}, and can last {}; replay the log at a higher speed, or a part of it",
                crate::replay::LONGEST
            ),
            Self::TooManyFiles(files) => {
                write!(f, "{files} files are more than a plan can have, {MOST_FILES}; ask for fewer")
            }
            Self::TooManyRequests(requests) => write!(
                f,
                "the plan would have about {requests:.0} requests, and can have {MOST_REQUESTS:.0}; plan a shorter time, \
                 fewer users or a lower rate"
            ),
        }
    }
}

impl std::error::Error for Unfit {}

impl Default for Wanted {
    /// Two minutes of 100 users at a site of 2,000 files, the largest of 10 MB.
    fn default() -> Self {
        Self {
            set: Laws::Named(SetName::Surge1998),
            files: 2_000,
            cap: Bytes::new(10_000_000),
            schedule: Schedule::Users(100),
            lasts: Duration::from_secs(120),
            conditional: Probability::NEVER,
            seed: Seed::default(),
        }
    }
}

impl Wanted {
    /// Draws the plan.
    ///
    /// # Errors
    /// [`Unfit`] when it would have no files, or more than fits into memory.
    pub fn plan(self) -> Result<Plan, Unfit> {
        self.memory()?;
        let (files, pages) = Draft::new(&self).drawn();
        Ok(Plan { wanted: self, files, pages })
    }

    /// Bytes of memory that drawing it takes, on the safe side: a million requests took 100 to 120 MB and 100,000 files 25 MB, on
    /// 2026-11-21.
    ///
    /// # Errors
    /// [`Unfit`] if there is no such plan, whatever the memory.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "there are not more requests than were looked at before, nor less than none"
    )]
    pub fn memory(&self) -> Result<Bytes, Unfit> {
        const OF_REQUEST: u64 = 128;
        const OF_FILE: u64 = 256;
        const ANYWAY: u64 = 16 << 20;
        match self.files {
            0 | 1 => return Err(Unfit::TooFewFiles),
            files if files > MOST_FILES => return Err(Unfit::TooManyFiles(files)),
            _ => {}
        }
        let requests = self.expected();
        if requests > MOST_REQUESTS {
            return Err(Unfit::TooManyRequests(requests));
        }
        Ok(Bytes::new(ANYWAY + requests as u64 * OF_REQUEST + u64::from(self.files) * OF_FILE))
    }

    /// About how many requests there will be.
    fn expected(&self) -> f64 {
        match &self.schedule {
            Schedule::Rates(legs, _) => legs.iter().map(Leg::due).sum(),
            // What a log has is counted when it is read.
            Schedule::Replay(_) => 0.0,
            Schedule::Users(users) => {
                let set = self.set.set();
                // Half of the pauses are longer than this, and the mean of both laws is about three times it.
                let cycle = set.inactive_off.quantile(0.5) + 0.1;
                f64::from(*users) * self.lasts.as_secs_f64() / cycle
                    * set.objects.quantile(0.7).min(MOST_OBJECTS as f64)
            }
        }
    }

    /// How many of the files are documents, where these are a kind of their own: a quarter, for want of a source.
    pub(super) fn documents(&self) -> u32 {
        if self.set.set().embedded.is_some() { self.files.div_ceil(4) } else { self.files }
    }
}

/// Where a file lies, below the site's folder and in its URLs.
pub fn path(file: u32) -> String {
    format!("{file}.bin")
}

/// What a file has in it: bytes that no coding makes fewer, the same from the same seed.
pub fn contents(seed: Seed, file: u32, size: u64) -> Vec<u8> {
    let mut random = seed.stream("surge-contents", u64::from(file));
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    let words = std::iter::repeat_with(|| random.next_u64().to_le_bytes());
    words.take(size.div_ceil(8)).flatten().take(size).collect()
}

impl Plan {
    /// How many requests there are.
    pub fn requests(&self) -> usize {
        self.pages.iter().map(|page| page.objects.len()).sum()
    }

    /// The share of answers with a body of at most `limit`, or with none because nothing has changed.
    pub fn small(&self, limit: Bytes) -> f64 {
        let is_small = |ask: &&Ask| ask.is_conditional || self.size(ask.file) <= limit.get();
        let small = self.asks().filter(is_small).count();
        small as f64 / self.requests().max(1) as f64
    }

    /// How many files the cap has cut.
    pub fn capped(&self) -> usize {
        self.files.iter().filter(|size| **size == self.wanted.cap.get()).count()
    }

    /// The size of a file.
    pub fn size(&self, file: u32) -> u64 {
        usize::try_from(file).ok().and_then(|file| self.files.get(file)).copied().unwrap_or(0)
    }

    pub(super) fn asks(&self) -> impl Iterator<Item = &Ask> {
        self.pages.iter().flat_map(|page| &page.objects)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fits::fits;
    use crate::schedule::Arrivals;

    fn wanted(set: SetName, schedule: Schedule) -> Wanted {
        let conditional = Probability::new(0.26).unwrap();
        Wanted {
            set: Laws::Named(set),
            cap: Bytes::new(100_000_000),
            schedule,
            conditional,
            ..Wanted::default()
        }
    }

    #[test]
    fn all_laws_hold_together() {
        for set in SetName::ALL {
            let plan = wanted(set, Schedule::Users(400)).plan().unwrap();
            for fit in fits(&plan) {
                assert!(fit.distance < 0.11, "{fit:?}");
                assert!(fit.likelihood.is_none_or(|likelihood| likelihood > 0.001), "{fit:?}");
            }
            assert!((0.4..0.55).contains(&plan.small(Bytes::new(1_460))));
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_plan_and_another_another() {
        let make =
            |seed| Wanted { seed: Seed::new(seed), ..wanted(SetName::Surge1998, Schedule::Users(5)) }.plan();
        assert_eq!(make(1), make(1));
        assert_ne!(make(1).unwrap().pages, make(2).unwrap().pages);
    }

    #[test]
    fn an_open_schedule_has_its_times_whatever_users_do() {
        let leg = Leg { lasts: Duration::from_secs(10), from: 50.0, to: 50.0 };
        let plan = wanted(SetName::Surge1998, Schedule::Rates(vec![leg], Arrivals::Constant)).plan().unwrap();
        assert_eq!(plan.pages.len(), 500);
        assert_eq!(plan.pages[0].begins, Begins::At(Time::from_nanos(20_000_000)));
        assert!(plan.pages.iter().all(|page| page.objects.len() == 1));
    }

    #[test]
    fn what_does_not_fit_is_refused_with_the_figure() {
        let refused = |wanted: Wanted| wanted.plan().unwrap_err().to_string();
        let sentence = refused(wanted(SetName::Surge1998, Schedule::Users(100_000_000)));
        assert!(sentence.starts_with("the plan would have about "), "{sentence}");
        assert_eq!(
            refused(Wanted { files: 1, ..wanted(SetName::Surge1998, Schedule::Users(1)) }),
            "a plan needs at least 2 files"
        );
    }
}
