//! Who asks: visits of a few requests, which overlap, by clients some of whom come far more often than others.
//!
//! A request belongs to a new visit with a chance of one in [`REQUESTS`], else to one of those that began within
//! [`LASTS_S`] seconds. Visitors are drawn by a power law, which is how popularity is usually found to fall.

use std::collections::VecDeque;

use wire::Seed;
use wire::seed::Random;

/// Requests of a visit, in the mean: a page with its images.
const REQUESTS: f64 = 8.0;
/// How long a visit lasts.
const LASTS_S: u64 = 20;
/// The k-th most frequent visitor comes in proportion to k to the power of minus this.
const POWER: f64 = 0.8;

/// Visits in progress.
pub struct Visitors {
    clients: f64,
    random: Random,
    /// When each began, in seconds, and by whom.
    visits: VecDeque<(u64, u32)>,
}

impl Visitors {
    /// So many clients, nobody there yet.
    pub fn new(clients: u32, seed: Seed) -> Self {
        Self {
            clients: f64::from(clients.max(1)),
            random: seed.stream("visitors", 0),
            visits: VecDeque::new(),
        }
    }

    /// Who asks at this second, from 0.
    pub fn next(&mut self, second: u64) -> u32 {
        while self.visits.front().is_some_and(|(began, _)| began + LASTS_S < second) {
            self.visits.pop_front();
        }
        let draw = self.random.unit() * REQUESTS;
        let last = self.visits.len().checked_sub(1).filter(|_| draw >= 1.0);
        match last {
            Some(last) => {
                let place = usize::try_from(self.random.up_to(last as u64)).unwrap_or(last);
                self.visits[place].1
            }
            None => {
                let client = self.newcomer();
                self.visits.push_back((second, client));
                client
            }
        }
    }

    /// By the inverse of the power law's sum, taken as an integral.
    fn newcomer(&mut self) -> u32 {
        let rest = 1.0 - POWER;
        let rank = (self.random.unit() * (self.clients.powf(rest) - 1.0) + 1.0).powf(1.0 / rest);
        // From 1 to the number of clients.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let client = rank as u32 - 1;
        client
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn few_come_often_and_none_is_unknown() {
        let mut visitors = Visitors::new(1_000, Seed::default());
        let mut visits: BTreeMap<u32, u32> = BTreeMap::new();
        for request in 0..200_000 {
            *visits.entry(visitors.next(request / 50)).or_default() += 1;
        }
        assert!(visits.keys().all(|client| *client < 1_000));
        let first: u32 = visits.range(..100).map(|(_, count)| count).sum();
        assert!((80_000..140_000).contains(&first), "{first}");
    }
}
