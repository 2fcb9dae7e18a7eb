//! Generation of a plan: users and times, then files, then their sizes.
//!
//! The distributions are in [`crate::set`], their combination in [`crate::popularity`].

use std::collections::BTreeSet;

use wire::seed::Random;
use wire::{Bytes, Duration, Time};

use crate::distribution::Distribution;
use crate::plan::types::{MAX_OBJECTS, ObjectRequest, Page, PageStart, PlanSpec};
use crate::popularity::{counts, match_sizes, order};
use crate::schedule::{Schedule, Times};
use crate::set::DistributionSet;

/// Plan under construction.
pub(super) struct Draft<'a> {
    spec: &'a PlanSpec,
    set: DistributionSet,
    pages: Vec<Page>,
    /// For each request, in order, whether it is for an embedded file.
    kinds: Vec<bool>,
    kind_random: Random,
    conditional_random: Random,
}

impl<'a> Draft<'a> {
    pub(super) fn new(spec: &'a PlanSpec) -> Self {
        let (kind_random, conditional_random) =
            (spec.seed.stream("surge-kinds", 0), spec.seed.stream("surge-conditional", 0));
        Self {
            spec,
            set: spec.set.set(),
            pages: Vec::new(),
            kinds: Vec::new(),
            kind_random,
            conditional_random,
        }
    }

    /// Generates the sizes of the files, and the pages.
    pub(super) fn generate(mut self) -> (Vec<u64>, Vec<Page>) {
        match &self.spec.schedule {
            Schedule::Users(users) => self.add_user_pages(*users),
            Schedule::Rates(legs, arrivals) => {
                let times = Times::new(legs, *arrivals, self.spec.seed.stream("surge-arrivals", 0));
                times.zip(0..).for_each(|(at, user)| self.add_single_request(at, user));
            }
            // A replay is read, not sampled.
            Schedule::Replay(_) => {}
        }
        self.assign_files()
    }

    /// Adds a request for a file that is not chosen yet.
    fn add_request(&mut self, is_embedded: bool, after: Duration) -> ObjectRequest {
        self.kinds.push(is_embedded && self.set.embedded.is_some());
        ObjectRequest {
            file: 0,
            after,
            is_conditional: self.conditional_random.chance(self.spec.conditional),
        }
    }

    /// Adds a single request; documents and embedded files in the ratio of the median page.
    fn add_single_request(&mut self, at: Time, user: u32) {
        let at = Time::from_nanos(at.as_nanos() / 1_000 * 1_000);
        let is_embedded = self.kind_random.unit() * self.set.objects.quantile(0.5).round() >= 1.0;
        let objects = vec![self.add_request(is_embedded, Duration::default())];
        self.pages.push(Page { user, start: PageStart::At(at), objects, ends_session: false });
    }

    fn add_user_pages(&mut self, users: u32) {
        let DistributionSet {
            documents: _,
            embedded: _,
            popularity: _,
            objects,
            active_off,
            inactive_off,
            session,
            depth: _,
        } = self.set;
        let end = Time::ZERO + self.spec.duration;
        let mut streams: Vec<Random> =
            (0..users).map(|user| self.spec.seed.stream("surge-user", u64::from(user))).collect();
        let mut pages_left: Vec<Option<u64>> =
            streams.iter_mut().map(|random| sample_session_pages(session, random)).collect();
        let mut next = BTreeSet::new();
        for (user, random) in (0_u32..).zip(&mut streams) {
            let after = sample_pause(inactive_off, random);
            next.insert((Time::ZERO + after, user, after));
        }
        // If the first start lies beyond the end, all others start still later.
        while let Some((at, user, after)) = next.pop_first().filter(|(at, ..)| *at < end) {
            let random = &mut streams[user as usize];
            let count = sample_rounded(objects, random).min(MAX_OBJECTS);
            let pauses: Vec<Duration> = (1..count).map(|_| sample_pause(active_off, random)).collect();
            let pages_left = &mut pages_left[user as usize];
            let ends_session = *pages_left == Some(1);
            *pages_left = if ends_session {
                sample_session_pages(session, random)
            } else {
                pages_left.map(|pages_left| pages_left - 1)
            };
            let thinking = sample_pause(inactive_off, random);
            let page_end = at + pauses.iter().copied().sum::<Duration>();
            next.insert((page_end + thinking, user, thinking));
            let mut page = vec![self.add_request(false, Duration::default())];
            page.extend(pauses.into_iter().map(|after| self.add_request(true, after)));
            self.pages.push(Page { user, start: PageStart::After(after), objects: page, ends_session });
        }
    }

    /// Assigns a file to each request. Returns the sizes of the files, and the pages.
    fn assign_files(mut self) -> (Vec<u64>, Vec<Page>) {
        let embedded = self.kinds.iter().filter(|is_embedded| **is_embedded).count();
        let documents = self.spec.documents();
        let kinds = [
            Some((self.set.documents, documents, self.kinds.len() - embedded)),
            self.set.embedded.map(|kind| (kind, self.spec.files - documents, embedded)),
        ];
        let (mut files, mut orders) = (Vec::new(), [const { Vec::new() }; 2]);
        for (index, (kind, count, requests)) in (0..).zip(kinds.into_iter().flatten()) {
            let counts = counts(count, requests, self.set.popularity);
            let mut random = self.spec.seed.stream("surge-sizes", index);
            let sizes: Vec<u64> =
                counts.iter().map(|_| sample_size(kind.sizes, self.spec.cap, &mut random)).collect();
            let first = if index == 0 { 0 } else { documents };
            files.extend(match kind.requests {
                Some(requests) => match_sizes(&counts, sizes, requests),
                None => sizes,
            });
            let order = order(&counts, self.set.depth, &mut self.spec.seed.stream("surge-order", index));
            orders[usize::from(index != 0)] = order.into_iter().map(|file| first + file).collect();
        }
        let mut orders = orders.map(Vec::into_iter);
        let requests = self.pages.iter_mut().flat_map(|page| &mut page.objects);
        for (request, is_embedded) in requests.zip(self.kinds) {
            request.file =
                orders[usize::from(is_embedded)].next().expect("counts add up to the number of requests");
        }
        (files, self.pages)
    }
}

/// Samples a whole number, rounded to the nearest; at least 1.
fn sample_rounded(distribution: Distribution, random: &mut Random) -> u64 {
    // Positive; the cast loses nothing.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let sample = distribution.sample(random).round() as u64;
    sample.max(1)
}

/// Samples the number of pages in a session.
fn sample_session_pages(session: Option<Distribution>, random: &mut Random) -> Option<u64> {
    session.map(|distribution| sample_rounded(distribution, random))
}

/// Samples a size in whole bytes, at most `cap`.
fn sample_size(distribution: Distribution, cap: Bytes, random: &mut Random) -> u64 {
    // Positive; the cast loses nothing.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let sample = distribution.sample(random).ceil() as u64;
    sample.min(cap.get())
}

/// Samples a pause, in whole microseconds, so that the plan's text is exact.
fn sample_pause(distribution: Distribution, random: &mut Random) -> Duration {
    // 2^33 s if it overflows `Duration`, beyond 584 years.
    let sample = Duration::from_secs_f64(distribution.sample(random)).unwrap_or(Duration::from_secs(1 << 33));
    Duration::from_micros(sample.as_nanos() / 1_000)
}
