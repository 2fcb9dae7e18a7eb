//! Clients of the requests: overlapping visits of a few requests, by clients of unequal frequency.
//!
//! A request belongs to a new visit with a probability of one in `REQUESTS_PER_VISIT`, else to one of those that began within
//! `VISIT_SECONDS`. Clients are sampled from a power law, the usual shape of popularity.

use std::collections::VecDeque;

use wire::Seed;
use wire::seed::Random;

/// Mean number of requests of a visit: a page with its images.
const REQUESTS_PER_VISIT: f64 = 8.0;
/// Duration of a visit, in seconds.
const VISIT_SECONDS: u64 = 20;
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
    /// Creates `clients` clients without visits.
    pub fn new(clients: u32, seed: Seed) -> Self {
        Self {
            clients: f64::from(clients.max(1)),
            random: seed.stream("visitors", 0),
            visits: VecDeque::new(),
        }
    }

    /// Returns the index of the client that sends a request at this second, from 0.
    pub fn next(&mut self, second: u64) -> u32 {
        while self.visits.front().is_some_and(|(began, _)| began + VISIT_SECONDS < second) {
            self.visits.pop_front();
        }
        let position = self.random.unit() * REQUESTS_PER_VISIT;
        let last = self.visits.len().checked_sub(1).filter(|_| position >= 1.0);
        match last {
            Some(last) => {
                let index = usize::try_from(self.random.up_to(last as u64)).unwrap_or(last);
                self.visits[index].1
            }
            None => {
                let client = self.sample_client();
                self.visits.push_back((second, client));
                client
            }
        }
    }

    /// Samples a client from the power law, by inverting the integral of its density.
    fn sample_client(&mut self) -> u32 {
        let complement = 1.0 - POWER;
        let rank = (self.random.unit() * (self.clients.powf(complement) - 1.0) + 1.0).powf(1.0 / complement);
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
    fn few_clients_send_most_requests_and_every_index_is_valid() {
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
