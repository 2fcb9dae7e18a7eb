//! A plan under construction: users and times, then files, then their sizes.
//!
//! The distributions are in [`crate::set`], their combination in [`crate::popularity`].

use std::collections::BTreeSet;

use wire::seed::Random;
use wire::{Bytes, Duration, Time};

use crate::distribution::Distribution;
use crate::plan::{MAX_OBJECTS, ObjectRequest, Page, PageStart, PlanSpec};
use crate::popularity::{counts, matched, order};
use crate::schedule::{Schedule, Times};
use crate::set::DistributionSet;

/// A plan under construction.
pub(super) struct Draft<'a> {
    wanted: &'a PlanSpec,
    set: DistributionSet,
    pages: Vec<Page>,
    /// For each request, in order, whether it is for an embedded file.
    kinds: Vec<bool>,
    chosen: Random,
    conditional: Random,
}

impl<'a> Draft<'a> {
    pub(super) fn new(wanted: &'a PlanSpec) -> Self {
        let (chosen, conditional) =
            (wanted.seed.stream("surge-kinds", 0), wanted.seed.stream("surge-conditional", 0));
        Self { wanted, set: wanted.set.set(), pages: Vec::new(), kinds: Vec::new(), chosen, conditional }
    }

    /// Generates the sizes of the files, and the pages.
    pub(super) fn drawn(mut self) -> (Vec<u64>, Vec<Page>) {
        match &self.wanted.schedule {
            Schedule::Users(users) => self.closed(*users),
            Schedule::Rates(legs, arrivals) => {
                let times = Times::new(legs, *arrivals, self.wanted.seed.stream("surge-arrivals", 0));
                times.zip(0..).for_each(|(at, user)| self.single(at, user));
            }
            // A replay is read, not sampled.
            Schedule::Replay(_) => {}
        }
        self.filled()
    }

    /// Adds a request for a file that is not chosen yet.
    fn add_request(&mut self, is_embedded: bool, after: Duration) -> ObjectRequest {
        self.kinds.push(is_embedded && self.set.embedded.is_some());
        ObjectRequest { file: 0, after, is_conditional: self.conditional.chance(self.wanted.conditional) }
    }

    /// Adds a single request; documents and embedded files in the ratio of the median page.
    fn single(&mut self, at: Time, user: u32) {
        let at = Time::from_nanos(at.as_nanos() / 1_000 * 1_000);
        let is_embedded = self.chosen.unit() * self.set.objects.quantile(0.5).round() >= 1.0;
        let objects = vec![self.add_request(is_embedded, Duration::default())];
        self.pages.push(Page { user, begins: PageStart::At(at), objects, ends_session: false });
    }

    fn closed(&mut self, users: u32) {
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
        let end = Time::ZERO + self.wanted.lasts;
        let mut streams: Vec<Random> =
            (0..users).map(|user| self.wanted.seed.stream("surge-user", u64::from(user))).collect();
        let mut left: Vec<Option<u64>> = streams.iter_mut().map(|random| pages_of(session, random)).collect();
        let mut next = BTreeSet::new();
        for (user, random) in (0_u32..).zip(&mut streams) {
            let after = pause(inactive_off, random);
            next.insert((Time::ZERO + after, user, after));
        }
        // If the first start lies beyond the end, all others start still later.
        while let Some((at, user, after)) = next.pop_first().filter(|(at, ..)| *at < end) {
            let random = &mut streams[user as usize];
            let count = nearest(objects, random).min(MAX_OBJECTS);
            let pauses: Vec<Duration> = (1..count).map(|_| pause(active_off, random)).collect();
            let left = &mut left[user as usize];
            let ends_session = *left == Some(1);
            *left = if ends_session { pages_of(session, random) } else { left.map(|left| left - 1) };
            let thinking = pause(inactive_off, random);
            let there = at + pauses.iter().copied().sum::<Duration>();
            next.insert((there + thinking, user, thinking));
            let mut page = vec![self.add_request(false, Duration::default())];
            page.extend(pauses.into_iter().map(|after| self.add_request(true, after)));
            self.pages.push(Page { user, begins: PageStart::After(after), objects: page, ends_session });
        }
    }

    /// Sizes of the files, and the pages with a file for each request.
    fn filled(mut self) -> (Vec<u64>, Vec<Page>) {
        let embedded = self.kinds.iter().filter(|is_embedded| **is_embedded).count();
        let documents = self.wanted.documents();
        let kinds = [
            Some((self.set.documents, documents, self.kinds.len() - embedded)),
            self.set.embedded.map(|kind| (kind, self.wanted.files - documents, embedded)),
        ];
        let (mut files, mut orders) = (Vec::new(), [const { Vec::new() }; 2]);
        for (index, (kind, count, requests)) in (0..).zip(kinds.into_iter().flatten()) {
            let counts = counts(count, requests, self.set.popularity);
            let mut random = self.wanted.seed.stream("surge-sizes", index);
            let sizes: Vec<u64> =
                counts.iter().map(|_| size(kind.sizes, self.wanted.cap, &mut random)).collect();
            let first = if index == 0 { 0 } else { documents };
            files.extend(match kind.requests {
                Some(requests) => matched(&counts, sizes, requests),
                None => sizes,
            });
            let order = order(&counts, self.set.depth, &mut self.wanted.seed.stream("surge-order", index));
            orders[usize::from(index != 0)] = order.into_iter().map(|file| first + file).collect();
        }
        let mut orders = orders.map(Vec::into_iter);
        let asks = self.pages.iter_mut().flat_map(|page| &mut page.objects);
        for (ask, is_embedded) in asks.zip(self.kinds) {
            ask.file = orders[usize::from(is_embedded)]
                .next()
                .expect("counts are for as many requests as there are");
        }
        (files, self.pages)
    }
}

/// A sample rounded to the nearest whole number, at least 1.
fn nearest(distribution: Distribution, random: &mut Random) -> u64 {
    // Positive; the cast loses nothing.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let drawn = distribution.draw(random).round() as u64;
    drawn.max(1)
}

/// Number of pages in a session.
fn pages_of(session: Option<Distribution>, random: &mut Random) -> Option<u64> {
    session.map(|distribution| nearest(distribution, random))
}

/// A size of whole bytes, at most `cap`.
fn size(distribution: Distribution, cap: Bytes, random: &mut Random) -> u64 {
    // Positive; the cast loses nothing.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let drawn = distribution.draw(random).ceil() as u64;
    drawn.min(cap.get())
}

/// A pause. Times in a plan are whole microseconds, so that its file states them exactly.
fn pause(distribution: Distribution, random: &mut Random) -> Duration {
    // Beyond 584 years, which overflows `Duration`, 2^33 s.
    let drawn = Duration::from_secs_f64(distribution.draw(random)).unwrap_or(Duration::from_secs(1 << 33));
    Duration::from_micros(drawn.as_nanos() / 1_000)
}
