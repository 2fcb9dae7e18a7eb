//! The one pass: each request once, for all time-outs, limits and thresholds.
//!
//! Only for the rule of the least recently used, without durations; [`ByRule`](super::ByRule) is for the others.

use scenario::access_log::Request;
use scenario::access_log::sizing::LARGE;
use wire::{Bytes, Duration};

use super::client_table::ClientTable;
use super::counts::{Counts, Known};
use super::gap::Gaps;
use super::question::Question;
use super::uses::{Now, Uses};

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
    /// Requests, and what was sent for them, by how many thresholds they reach.
    reached: Vec<(u64, Bytes)>,
    /// Requests until uses are forgotten next, lest their numbers wrap around.
    until_forgetting: u32,
}

/// Well below 2^32, at which the numbers of uses come round.
const FORGET_EVERY: u32 = 1 << 30;

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
        let mut below = known.below();
        counter.uses.iter_mut().for_each(|uses| uses.look_above(&mut below));
        counter
    }

    /// Takes in what came before the stretch that counts: all of the longest time-out before it.
    pub fn warm_up(&mut self, requests: &[Request]) {
        for request in requests {
            self.request(request, false);
        }
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
        for request in requests {
            let reached = self.request(request, true);
            let (requests, bytes) = &mut self.reached[reached];
            *requests += 1;
            *bytes += if request.bytes == LARGE { Bytes::ZERO } else { request.bytes };
        }
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

    /// Bytes that its memory of clients takes.
    pub fn client_bytes(&self) -> usize {
        self.clients.bytes()
    }

    /// Gives how many thresholds the answer reaches.
    #[inline]
    fn request(&mut self, request: &Request, counts: bool) -> usize {
        let by_tcp = self.thresholds.iter().take_while(|threshold| request.bytes >= **threshold).count();
        if by_tcp == 0 {
            return 0;
        }
        let time_ms = request.time.since(wire::Time::ZERO).as_nanos() / MILLI;
        let Self {
            gaps,
            thresholds: _,
            limits,
            depth,
            curve,
            clients,
            uses,
            counts: _,
            reached: _,
            until_forgetting,
        } = self;
        let now = Now { time_ms, gaps, curve: *curve, counts };
        *until_forgetting -= 1;
        if clients.is_full() || *until_forgetting == 0 {
            *until_forgetting = FORGET_EVERY;
            clients.rebuild(|numbers| forget(numbers, *depth, uses, now));
        }
        let fresh = |numbers: &mut [u32]| {
            for (numbers, uses) in numbers.chunks_exact_mut(*depth).zip(uses.iter()) {
                numbers.fill(uses.none());
            }
        };
        let numbers = clients.uses(request.client, fresh);
        for (place, uses) in uses[..by_tcp].iter_mut().enumerate() {
            let numbers = &mut numbers[place * *depth..(place + 1) * *depth];
            // The latest is first: the K-th last is the connection that was used longest ago.
            let number = uses.request(now, limits.iter().map(|limit| numbers[limit - 1]));
            for later in (1..numbers.len()).rev() {
                numbers[later] = numbers[later - 1];
            }
            numbers[0] = number;
        }
        by_tcp
    }
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
