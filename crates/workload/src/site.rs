//! Distributions of a site, estimated from its own access log.
//!
//! Estimates of single distributions are in `estimate`. Here a log is split as SURGE's authors split theirs, into files
//! and users, and each user's requests into pages and sessions.
//!
//! - A *user* is a client of the log. A proxy with a thousand people behind it is one busy user.
//! - A *page* is a user's requests with at most a second between one and the next ([`MAX_ACTIVE_OFF`]): the threshold
//!   by which Barford and Crovella (1998) distinguish active OFF times from inactive ones. Where a log has
//!   whole seconds, two requests in neighbouring seconds are one page, and the order within a second is
//!   unknown: pauses between objects are then those of 1998.
//! - A *session* ends where a user sends no request for half an hour ([`SESSION_PAUSE`]), as is usual in log analysis;
//!   longer pauses are not think time. Only sessions that both began and ended within the log, by that
//!   measure, are counted.
//!
//! Times are those of the log: when a request was read, or its response sent, as the server logs it. The
//! whole log is held in memory: 48 bytes for each request of at most [`MAX_LOGGED_REQUESTS`], and as much again while
//! it is sorted.

use wire::{Duration, Probability, Time};

use crate::distribution::Distribution;
use crate::estimate::{
    MIN_VALUES, hybrid, inverse_gaussian, lognormal, most_likely, most_likely_rounded, pareto,
    rounded_pareto, weibull, zipf,
};
use crate::fit::Fit;
use crate::goodness_of_fit::{
    ACTIVE, DEPTH, INACTIVE, OBJECTS, REQUESTED_SIZE, SIZE, fit_rounded, fit_seconds, fit_whole, popularity,
    without_p_value,
};
use crate::log_sample::{LogSample, ResponseKind, SampledRequest, files, has_whole_seconds};
use crate::plan::{MAX_FILES, MAX_OBJECTS};
use crate::popularity::depths;
use crate::set::{DistributionSet, Files, SetName};

/// Maximum number of requests read from a log; the distributions are those of the first ones.
pub const MAX_LOGGED_REQUESTS: usize = 1 << 22;
/// Minimum number of requests; a shorter log does not determine popularity.
pub const MIN_REQUESTS: usize = 1_000;
/// Maximum pause within a page (active OFF time).
pub const MAX_ACTIVE_OFF: Duration = Duration::from_secs(1);
/// Pause that ends a session.
pub const SESSION_PAUSE: Duration = Duration::from_secs(1_800);

/// Distributions and figures estimated from a log.
#[derive(Clone, Debug, PartialEq)]
pub struct Site {
    /// The distributions.
    pub set: DistributionSet,
    /// Share of requests with the response 304 Not Modified.
    pub conditional: Probability,
    /// Number of files requested; a plan can have at most [`MAX_FILES`].
    pub files: u32,
    /// Number of requests that were used.
    pub requests: usize,
    /// Number of users.
    pub users: usize,
    /// Time from the first request to the last.
    pub duration: Duration,
    /// Goodness of fit of each estimated distribution.
    pub fits: Vec<Fit>,
    /// Quantities that the log does not contain, and the values used instead; sentences.
    pub notes: Vec<String>,
}

/// Reason why a log gives no estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EstimateError {
    /// Too few requests.
    #[error(
        "the log has {0} complete or unchanged responses, and distributions need at least {MIN_REQUESTS}; \
         {LONGER_LOG}"
    )]
    Requests(usize),
    /// Too few files with a size.
    #[error(
        "the log has {0} files with different sizes, and distributions need at least {MIN_VALUES}; \
         {LONGER_LOG}"
    )]
    Files(usize),
}

const LONGER_LOG: &str = "give a longer log, or name a set with --laws";

/// Estimates the distributions of these requests.
///
/// # Errors
/// [`EstimateError`] if sizes or popularity cannot be estimated.
pub fn site(lines: LogSample) -> Result<Site, EstimateError> {
    if lines.len() < MIN_REQUESTS {
        return Err(EstimateError::Requests(lines.len()));
    }
    let is_named = lines.with_target > 0;
    let lines = lines.sorted();
    let mut results = FitResults { fits: Vec::new(), notes: Vec::new() };
    if !is_named {
        results.notes.push("the log has no paths: responses of one size are one file".to_owned());
    }
    let default = SetName::Surge1998.set();
    let logged_files = files(&lines);
    let (documents, depth) =
        (results.documents(&lines, &logged_files, default.documents)?, results.depth(&lines, &logged_files));
    let counts: Vec<u64> = logged_files.iter().map(|(_, usage)| usage.count).collect();
    let exponent = zipf(&counts);
    let users = Users::new(&lines);
    let set = DistributionSet {
        documents,
        embedded: None,
        popularity: exponent,
        objects: results.objects(users.objects, default.objects),
        active_off: results.active(users.active, users.is_whole, default.active_off),
        inactive_off: results.inactive(users.inactive, users.is_whole, default.inactive_off),
        session: results.session(users.sessions),
        depth: depth.unwrap_or(default.depth),
    };
    // Rounded to a hundredth of a percent.
    let share = |count: usize| (1e4 * count as f64 / lines.len() as f64).round() / 1e4;
    let unchanged = lines.iter().filter(|line| line.response == ResponseKind::Unchanged).count();
    let duration = lines.first().zip(lines.last()).map(|(first, last)| last.time.since(first.time));
    Ok(Site {
        set,
        conditional: Probability::new(share(unchanged)).unwrap_or(Probability::NEVER),
        files: u32::try_from(logged_files.len()).unwrap_or(u32::MAX).min(MAX_FILES),
        requests: lines.len(),
        users: users.count,
        duration: duration.unwrap_or_default(),
        fits: results.fits,
        notes: results.notes,
    })
}

/// Results so far: goodness of fit, and quantities that could not be estimated.
struct FitResults {
    fits: Vec<Fit>,
    notes: Vec<String>,
}

type LoggedFile = (accesslog::Target, crate::log_sample::FileUse);

impl FitResults {
    /// Estimates the distributions of sizes, and compares popularity with Zipf's law.
    fn documents(
        &mut self,
        lines: &[SampledRequest],
        logged_files: &[LoggedFile],
        default: Files,
    ) -> Result<Files, EstimateError> {
        // Empty files are skipped: their size has no logarithm.
        let mut sizes: Vec<f64> =
            logged_files.iter().filter_map(|(_, usage)| usage.size()).map(|size| size as f64).collect();
        sizes.retain(|size| *size > 0.0);
        sizes.sort_by(f64::total_cmp);
        let distribution = most_likely(&sizes, [lognormal(&sizes), hybrid(&sizes)])
            .ok_or(EstimateError::Files(sizes.len()))?;
        self.fits.push(fit_whole(SIZE, distribution, sizes, f64::INFINITY));
        let numbers: std::collections::BTreeMap<_, u64> =
            logged_files.iter().map(|(target, usage)| (*target, usage.size().unwrap_or(0))).collect();
        // Every response counts as complete, as in a plan.
        let expected = lines.iter().filter_map(|line| numbers.get(&line.file?)).map(|size| *size as f64);
        let mut expected = thin_out(expected.filter(|size| *size > 0.0).collect());
        expected.sort_by(f64::total_cmp);
        let min = expected.first().copied().unwrap_or(1.0);
        let requests =
            most_likely(&expected, [lognormal(&expected), hybrid(&expected), pareto(&expected, min)]);
        if let Some(distribution) = requests {
            self.fits.push(without_p_value(fit_whole(REQUESTED_SIZE, distribution, expected, f64::INFINITY)));
        }
        let counts: Vec<u64> = logged_files.iter().map(|(_, usage)| usage.count).collect();
        let ranks = counts.iter().zip(1_u32..).flat_map(|(count, rank)| {
            std::iter::repeat_n(f64::from(rank), usize::try_from(*count).unwrap_or(usize::MAX))
        });
        let files = u32::try_from(counts.len()).unwrap_or(u32::MAX);
        self.fits.push(without_p_value(popularity(files, zipf(&counts), ranks.collect())));
        Ok(Files { sizes: distribution, requests: requests.or(default.requests) })
    }

    /// Estimates the distribution of stack depths of repeated requests.
    fn depth(&mut self, lines: &[SampledRequest], logged_files: &[LoggedFile]) -> Option<Distribution> {
        let numbers: std::collections::BTreeMap<_, u32> =
            logged_files.iter().map(|(target, _)| *target).zip(0..).collect();
        let order: Vec<u32> = lines.iter().filter_map(|line| numbers.get(&line.file?)).copied().collect();
        let depths = thin_out(depths(&order, logged_files.len()));
        // Depths were rounded upwards, by a half on average.
        let middles: Vec<f64> = depths.iter().map(|depth| depth - 0.5).collect();
        let Some(distribution) = most_likely(&middles, [lognormal(&middles)]) else {
            self.note_too_few("repeated requests for a file", depths.len());
            return None;
        };
        self.fits.push(without_p_value(fit_whole(DEPTH, distribution, depths, f64::INFINITY)));
        Some(distribution)
    }

    fn objects(&mut self, values: Vec<f64>, default: Distribution) -> Distribution {
        let values = thin_out(values);
        let Some(distribution) = most_likely_rounded(&values, [rounded_pareto(&values), lognormal(&values)])
        else {
            self.note_too_few("pages", values.len());
            return default;
        };
        self.fits.push(fit_rounded(OBJECTS, distribution, values));
        distribution
    }

    fn active(&mut self, values: Vec<f64>, is_whole: bool, default: Distribution) -> Distribution {
        if is_whole {
            self.notes.push(
                "the log has whole seconds, which hide pauses from object to object: they are those of surge-1998"
                    .to_owned(),
            );
            return default;
        }
        let values = thin_out(values);
        let Some(distribution) = most_likely(&values, [weibull(&values), lognormal(&values)]) else {
            self.note_too_few("pauses from object to object", values.len());
            return default;
        };
        self.fits.push(fit_seconds(ACTIVE, distribution, values));
        distribution
    }

    fn inactive(&mut self, values: Vec<f64>, is_whole: bool, default: Distribution) -> Distribution {
        let values = thin_out(values);
        // With whole seconds, a difference of two seconds is the first that is certainly more than one: a second and a half or
        // more, rounded.
        let min = if is_whole { 1.5 } else { MAX_ACTIVE_OFF.as_secs_f64() };
        let distributions = [pareto(&values, min), lognormal(&values), weibull(&values)];
        let (distribution, fit): (_, fn(_, _, _) -> Fit) = match is_whole {
            true => (most_likely_rounded(&values, distributions), fit_rounded),
            false => (most_likely(&values, distributions), fit_seconds),
        };
        let Some(distribution) = distribution else {
            self.note_too_few("pauses from page to page", values.len());
            return default;
        };
        self.fits.push(without_p_value(fit(INACTIVE, distribution, values)));
        distribution
    }

    fn session(&mut self, values: Vec<f64>) -> Option<Distribution> {
        let distribution = most_likely_rounded(&values, [inverse_gaussian(&values)]);
        match distribution {
            Some(distribution) => self.fits.push(fit_rounded("pages of a session", distribution, values)),
            None => self.notes.push(format!(
                "the log has {} sessions that both begin and end in it, by half an hour without a request, and a distribution \
                 needs {MIN_VALUES}: users stay for as many pages as come",
                values.len()
            )),
        }
        distribution
    }

    fn note_too_few(&mut self, what: &str, count: usize) {
        self.notes.push(format!(
            "the log has {count} {what}, and a distribution needs {MIN_VALUES} that are not all the same; that of surge-1998 is used"
        ));
    }
}

/// Behaviour of the users.
#[derive(Default)]
struct Users {
    count: usize,
    is_whole: bool,
    /// Objects per page.
    objects: Vec<f64>,
    /// Pauses within pages, in seconds.
    active: Vec<f64>,
    /// Pauses between pages, in seconds.
    inactive: Vec<f64>,
    /// Pages per complete session.
    sessions: Vec<f64>,
}

impl Users {
    fn new(lines: &[SampledRequest]) -> Self {
        let mut users =
            Self { is_whole: has_whole_seconds(lines.iter().map(|line| line.time)), ..Self::default() };
        let (Some(first), Some(last)) = (lines.first(), lines.last()) else { return users };
        let mut by_user: Vec<&SampledRequest> = lines.iter().collect();
        // Stable: each user's lines stay in order.
        by_user.sort_by_key(|line| line.client);
        for user in by_user.chunk_by(|a, b| a.client == b.client) {
            users.count += 1;
            for session in user.chunk_by(|a, b| b.time.since(a.time) <= SESSION_PAUSE) {
                users.session(session, first.time, last.time);
            }
        }
        // Intervals below the clock's resolution count as half of it.
        let tick = users.active.iter().copied().filter(|pause| *pause > 0.0).fold(1.0, f64::min);
        users.active.iter_mut().filter(|pause| **pause == 0.0).for_each(|pause| *pause = tick / 2.0);
        users
    }

    fn session(&mut self, session: &[&SampledRequest], first: Time, last: Time) {
        let mut pages = 0;
        let mut previous: Option<Time> = None;
        for page in session.chunk_by(|a, b| b.time.since(a.time) <= MAX_ACTIVE_OFF) {
            let (Some(start), Some(ends)) = (page.first(), page.last()) else { continue };
            pages += 1;
            let count = u64::try_from(page.len()).unwrap_or(u64::MAX).min(MAX_OBJECTS);
            self.objects.push(count as f64);
            self.active.extend(page.windows(2).map(|two| two[1].time.since(two[0].time).as_secs_f64()));
            self.inactive.extend(previous.map(|previous| start.time.since(previous).as_secs_f64()));
            previous = Some(ends.time);
        }
        let (Some(start), Some(ends)) = (session.first(), session.last()) else { return };
        if start.time.since(first) > SESSION_PAUSE && last.since(ends.time) > SESSION_PAUSE {
            self.sessions.push(f64::from(pages));
        }
    }
}

/// Returns every n-th value, if there are more than estimates use.
fn thin_out(values: Vec<f64>) -> Vec<f64> {
    let step = values.len().div_ceil(MAX_VALUES).max(1);
    if step == 1 { values } else { values.into_iter().step_by(step).collect() }
}

/// Maximum number of values for an estimate; more do not improve it.
const MAX_VALUES: usize = 250_000;

#[cfg(test)]
mod tests {
    use accesslog::{Client, Record, SizeScope, Target};
    use wire::{Bytes, Seed};

    use super::*;
    use crate::plan::{PageStart, Plan, PlanSpec};
    use crate::schedule::Schedule;
    use crate::set::PlanDistributions;

    /// The log of a plan whose responses take no time, with a clock of this resolution.
    fn log(plan: &Plan, tick: Duration) -> LogSample {
        let mut clocks = std::collections::BTreeMap::new();
        let mut lines = LogSample::default();
        for page in &plan.pages {
            let clock = clocks.entry(page.user).or_insert(Time::ZERO + Duration::from_secs(800_000_000));
            *clock = match page.start {
                PageStart::After(after) => *clock + after,
                PageStart::At(at) => at,
            };
            for request in &page.objects {
                *clock += request.after;
                let ticks = clock.since(Time::ZERO).as_nanos() / tick.as_nanos();
                let record = Record {
                    time: Time::from_nanos(ticks * tick.as_nanos()),
                    client: Client::from_bits(u64::from(page.user)),
                    status: if request.is_conditional { 304 } else { 200 },
                    size: Some(Bytes::new(plan.size(request.file))),
                    covers: SizeScope::Body,
                    taken: None,
                };
                lines.push(&record, Target::of(request.file.to_string().as_bytes()));
            }
        }
        lines
    }

    fn plan(name: SetName, users: u32, duration: u64, seed: u64) -> Plan {
        let spec = PlanSpec {
            set: PlanDistributions::Named(name),
            files: 3_000,
            cap: Bytes::new(1_000_000_000),
            schedule: Schedule::Users(users),
            duration: Duration::from_secs(duration),
            conditional: Probability::new(0.2).unwrap(),
            seed: Seed::new(seed),
        };
        spec.plan().unwrap()
    }

    fn near(what: &str, value: f64, expected: f64, within: f64) {
        assert!((value - expected).abs() <= within, "{what}: {value} for {expected}");
    }

    #[test]
    fn estimates_recover_the_distributions_of_a_plan() {
        for seed in 1..=2 {
            let plan = plan(SetName::Surge1998, 300, 400, seed);
            let site = site(log(&plan, Duration::from_micros(1))).unwrap();
            let DistributionSet {
                documents,
                embedded: _,
                popularity,
                objects,
                active_off,
                inactive_off,
                session,
                depth,
            } = site.set;
            near("share of 304", site.conditional.get(), 0.2, 0.01);
            near("popularity", popularity, 1.0, 0.1);
            // Of 3,000 files, 210 are in the tail, which leaves its beginning undetermined; the distribution of all together is
            // determined.
            let sizes = plan.spec.set.set().documents.sizes;
            for share in [0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999] {
                near("sizes", documents.sizes.cdf(sizes.quantile(share)), share, 0.03);
            }
            let far = documents.sizes.quantile(0.999).ln() - documents.sizes.quantile(0.99).ln();
            near("tail", 10.0_f64.ln() / far, 1.1, 0.3);
            // A Pareto(1000, 1) has half of it below 2,000, three quarters below 4,000; but an eighth of all
            // requests is for one file of one size.
            let requests = documents.requests.unwrap();
            near("half of the requested sizes", requests.cdf(2_000.0), 0.5, 0.15);
            near("three quarters of the requested sizes", requests.cdf(4_000.0), 0.75, 0.15);
            match (objects, active_off, inactive_off, depth) {
                (
                    Distribution::Pareto { min: 1.0, shape: objects },
                    Distribution::Weibull { scale, shape: active },
                    Distribution::Pareto { min: 1.0, shape: inactive },
                    Distribution::Lognormal { mu, sigma },
                ) => {
                    near("objects", objects, 2.43, 0.15);
                    near("active, scale", scale, 0.382, 0.02);
                    near("active, shape", active, 1.46, 0.1);
                    near("inactive", inactive, 1.5, 0.1);
                    // A plan's files recur in time whatever the distribution of depths: few requests are deep in the stack.
                    near("depth, mu", mu, 1.5, 0.25);
                    near("depth, sigma", sigma, 0.8, 0.4);
                }
                other => panic!("{other:?}"),
            }
            assert_eq!((session, site.notes.len()), (None, 1), "{:?}", site.notes);
            for fit in site.fits {
                assert!(fit.distance < 0.15, "{fit:?}");
            }
        }
    }

    #[test]
    fn pauses_within_a_page_are_unknown_with_whole_seconds() {
        let plan = plan(SetName::Surge1998, 200, 400, 1);
        let site = site(log(&plan, Duration::from_secs(1))).unwrap();
        assert_eq!(site.set.active_off, SetName::Surge1998.set().active_off);
        assert!(
            site.notes[0].starts_with("the log has whole seconds, which hide pauses"),
            "{:?}",
            site.notes
        );
        match site.set.inactive_off {
            Distribution::Pareto { min: 1.5, shape } => near("inactive", shape, 1.5, 0.25),
            other => panic!("{other}"),
        }
        let again = super::site(log(&plan, Duration::from_secs(1))).unwrap();
        assert_eq!(again, site);
    }

    #[test]
    fn sessions_end_after_half_an_hour() {
        let mut lines = LogSample::default();
        let mut push = |user: u64, seconds: u64, file: u64| {
            let record = Record {
                time: Time::ZERO + Duration::from_secs(seconds),
                client: Client::from_bits(user),
                status: 200,
                size: Some(Bytes::new(100 + file * file)),
                covers: SizeScope::Body,
                taken: None,
            };
            lines.push(&record, None);
        };
        // Users arrive sequentially, one per minute, for two or three pages, in ten hours.
        for user in 0..600 {
            for page in 0..2 + user % 2 {
                push(user, 60 * user + 10 * page, user % 97);
            }
        }
        let site = site(lines).unwrap();
        match site.set.session {
            Some(Distribution::InverseGaussian { mean, shape: _ }) => near("pages", mean, 2.5, 0.02),
            other => panic!("{other:?}"),
        }
        assert!(
            site.notes.iter().any(|note| note.contains("responses of one size are one file")),
            "{:?}",
            site.notes
        );
    }

    #[test]
    fn rejects_a_short_log_with_the_minimum() {
        let message = site(log(&plan(SetName::Surge1998, 1, 5, 1), MAX_ACTIVE_OFF)).unwrap_err().to_string();
        assert!(
            message.contains("complete or unchanged responses, and distributions need at least 1000"),
            "{message}"
        );
        let mut lines = LogSample::default();
        for second in 0..2_000 {
            let record = Record {
                time: Time::ZERO + Duration::from_secs(second),
                client: Client::from_bits(second),
                status: 200,
                size: Some(Bytes::new(7)),
                covers: SizeScope::Body,
                taken: None,
            };
            lines.push(&record, None);
        }
        assert_eq!(site(lines), Err(EstimateError::Files(1)));
    }
}
