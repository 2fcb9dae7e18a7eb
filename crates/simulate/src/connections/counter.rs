//! The one pass: each request once, for all time-outs, limits and thresholds.
//!
//! Only for the rule of the least recently used, without durations; [`ByRule`](super::ByRule) is for the others.

use scenario::access_log::Request;
use scenario::access_log::sizing::LARGE;
use wire::{Bytes, Duration, Time};

use super::client_table::{ClientTable, Look};
use super::counts::{Counts, Known};
use super::gap::Gaps;
use super::question::{Question, THRESHOLDS};
use super::uses::{FLOCK, Now, Uses};

/// Counts requests that come in order of time.
#[derive(Clone, Debug)]
pub struct Counter {
    gaps: Gaps,
    /// From the smallest.
    thresholds: Vec<Bytes>,
    limits: Vec<usize>,
    /// How many uses of a client matter under each threshold.
    depth: usize,
    curve: usize,
    clients: ClientTable,
    uses: Vec<Uses>,
    counts: Counts,
    /// For each limit, the last uses that matter to a flock of requests.
    before: Vec<[u32; FLOCK]>,
    /// Requests, and what was sent for them, by how many thresholds they reach.
    reached: Vec<(u64, Bytes)>,
    /// Flocks of requests until uses are forgotten next, lest their numbers wrap around.
    until_forgetting: u32,
}

/// With 32 requests each, well below 2^32, at which the numbers of uses come round.
const FORGET_EVERY: u32 = 1 << 25;

impl Counter {
    /// Nothing counted yet.
    pub fn new(question: &Question) -> Self {
        let gaps = Gaps::new(question.timeouts());
        let limits = question.limits().to_vec();
        let depth = limits.last().copied().unwrap_or(1);
        let thresholds = question.thresholds().to_vec();
        Self {
            clients: ClientTable::new(thresholds.len() * depth),
            uses: vec![Uses::new(limits.len(), &gaps); thresholds.len()],
            counts: Counts::new(question),
            before: vec![[0; FLOCK]; limits.len()],
            reached: vec![(0, Bytes::ZERO); thresholds.len() + 1],
            curve: question.curve(),
            gaps,
            thresholds,
            limits,
            depth,
            until_forgetting: FORGET_EVERY,
        }
    }

    /// Nothing counted yet, and peaks that are lower than known ones need not be found: they are 0 in what is counted.
    pub fn knowing(question: &Question, known: &Known) -> Self {
        let mut counter = Self::new(question);
        counter.clients.reserve(known.clients());
        let mut below = known.below();
        counter.uses.iter_mut().for_each(|uses| uses.look_above(&mut below));
        counter
    }

    /// Takes in what came before the stretch that counts: all of the longest time-out before it.
    pub fn warm_up(&mut self, requests: &[Request]) {
        requests.chunks(FLOCK).for_each(|flock| self.flock(flock, false));
        // The stretch may begin in the middle of a moment: what came before does not count.
        for uses in &mut self.uses {
            uses.end_moment(&self.gaps, self.curve);
        }
    }

    /// Counts.
    pub fn count(&mut self, requests: &[Request]) {
        let (Some(first), Some(last)) = (requests.first(), requests.last()) else { return };
        let before = self.counts.span.map_or(first.time, |(first, _)| first);
        self.counts.span = Some((before, last.time));
        requests.chunks(FLOCK).for_each(|flock| self.flock(flock, true));
    }

    /// What was counted.
    pub fn finish(self) -> Counts {
        let mut counts = self.counts;
        for (place, (requests, bytes)) in self.reached.into_iter().enumerate() {
            counts.requests += requests;
            counts.bytes += bytes;
            for stream in &mut counts.streams[..place] {
                stream.requests += requests;
                stream.bytes += bytes;
            }
        }
        for (uses, stream) in self.uses.into_iter().zip(&mut counts.streams) {
            uses.finish(&mut stream.lines, &self.gaps, self.curve);
        }
        counts
    }

    /// About how many clients it must remember at a time.
    pub fn clients(&self) -> usize {
        self.clients.active()
    }

    /// Bytes that its memory of clients takes.
    pub fn client_bytes(&self) -> usize {
        self.clients.bytes()
    }

    /// Takes in a few requests: first looks up whose they are, all of them, so that the processor can wait for memory
    /// once; then goes through them for one threshold after the other.
    fn flock(&mut self, requests: &[Request], counts: bool) {
        let Some(first) = requests.first() else { return };
        self.make_room(requests.len(), millis(first));
        let mut times = [0; FLOCK];
        let mut places = [0; FLOCK];
        // For each threshold the requests of the flock that reach it, one after the other: no branch depends on a
        // size, because nobody could guess which way it goes.
        let mut reaching = [[0_u8; FLOCK]; THRESHOLDS];
        let mut counted = [0_usize; THRESHOLDS];
        let mut looks = [Look::default(); FLOCK];
        for (look, request) in looks.iter_mut().zip(requests) {
            *look = self.clients.look(request.client);
        }
        for (number, request) in (0_u8..).zip(requests) {
            let mut reached = 0;
            let lists = reaching.iter_mut().zip(&mut counted).zip(&self.thresholds);
            for ((reaching, counted), threshold) in lists {
                let reaches = usize::from(request.bytes >= *threshold);
                reaching[*counted % FLOCK] = number;
                *counted += reaches;
                reached += reaches;
            }
            let number = usize::from(number);
            times[number] = millis(request);
            if reached > 0 {
                places[number] = self.place(looks[number]);
            }
            if counts {
                let (requests, bytes) = &mut self.reached[reached];
                *requests += 1;
                *bytes += if request.bytes == LARGE { Bytes::ZERO } else { request.bytes };
            }
        }
        let now = Now { time_ms: millis(first), gaps: &self.gaps, curve: self.curve, counts };
        for (threshold, uses) in self.uses.iter_mut().enumerate() {
            let reaching = &reaching[threshold][..counted[threshold]];
            let from = threshold * self.depth;
            uses.begin(now);
            let number = uses.extend(reaching.iter().map(|request| times[usize::from(*request)]));
            for (place, request) in reaching.iter().enumerate() {
                let numbers = &mut self.clients.at(places[usize::from(*request)])[from..from + self.depth];
                // The latest is first: the K-th last is the connection that was used longest ago.
                for (before, limit) in self.before.iter_mut().zip(&self.limits) {
                    before[place] = numbers[limit - 1];
                }
                // Less than a flock.
                #[expect(clippy::cast_possible_truncation)]
                let number = number.wrapping_add(place as u32);
                put_first(numbers, number);
            }
            uses.end(reaching.len(), &self.before, now);
        }
    }

    /// Where a client is remembered.
    #[inline]
    fn place(&mut self, look: Look) -> usize {
        let (depth, uses) = (self.depth, &self.uses);
        self.clients.place(look, |numbers| {
            for (numbers, uses) in numbers.chunks_exact_mut(depth).zip(uses) {
                numbers.fill(uses.none());
            }
        })
    }

    /// Leaves room for so many new clients, and forgets what is too long ago, when it is time to.
    #[inline]
    fn make_room(&mut self, requests: usize, time_ms: u64) {
        self.until_forgetting = self.until_forgetting.saturating_sub(1);
        if self.clients.has_room(requests) && self.until_forgetting > 0 {
            return;
        }
        self.until_forgetting = FORGET_EVERY;
        let now = Now { time_ms, gaps: &self.gaps, curve: self.curve, counts: false };
        let (depth, uses) = (self.depth, &self.uses);
        self.clients.rebuild(|numbers| forget(numbers, depth, uses, now));
    }
}

/// Puts a number before the others; the last of them is gone.
#[inline]
fn put_first(numbers: &mut [u32], number: u32) {
    match numbers {
        // As many as the paper has, without a loop.
        [one] => *one = number,
        [one, two, three] => (*one, *two, *three) = (number, *one, *two),
        many => {
            let mut next = number;
            many.iter_mut().for_each(|place| next = std::mem::replace(place, next));
        }
    }
}

#[inline]
fn millis(request: &Request) -> u64 {
    request.time.since(Time::ZERO).as_nanos() / MILLI
}

const MILLI: u64 = Duration::from_millis(1).as_nanos();

/// Puts away the numbers of uses that no longer matter; tells whether any are left.
fn forget(numbers: &mut [u32], depth: usize, uses: &[Uses], now: Now<'_>) -> bool {
    let mut matters = false;
    for (numbers, uses) in numbers.chunks_exact_mut(depth).zip(uses) {
        for number in numbers {
            let kept = uses.forget(*number, now);
            matters |= kept.is_some();
            *number = kept.unwrap_or(uses.none());
        }
    }
    matters
}
