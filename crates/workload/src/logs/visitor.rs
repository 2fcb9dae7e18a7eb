//! Clients of the requests: visits of a few requests, which overlap, by clients of very unequal frequency.
//!
//! A request belongs to a new visit with a probability of one in `REQUESTS`, else to one of those that began within
//! `LASTS_S` seconds. Clients are sampled from a power law, the usual shape of popularity.

use std::collections::VecDeque;

use wire::Seed;
use wire::seed::Random;

/// Mean number of requests of a visit: a page with its images.
const REQUESTS: f64 = 8.0;
/// Duration of a visit, in seconds.
const LASTS_S: u64 = 20;
/// Exponent of the power law: the frequency of the k-th most frequent client is proportional to k to the power of minus this.
const POWER: f64 = 0.8;

/// Visits in progress.
pub struct Visitors {
    clients: f64,
    random: Random,
    /// The visits: time of the beginning in seconds, and client.
    visits: VecDeque<(u64, u32)>,
}

impl Visitors {
    /// A state of `clients` clients without visits.
    pub fn new(clients: u32, seed: Seed) -> Self {
        Self {
            clients: f64::from(clients.max(1)),
            random: seed.stream("visitors", 0),
            visits: VecDeque::new(),
        }
    }

    /// The client of a request at this second, from 0.
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

    /// A sample from the power law, by the inverse of its cumulative sum, taken as an integral.
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
    fn few_clients_come_often_and_every_index_is_valid() {
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
