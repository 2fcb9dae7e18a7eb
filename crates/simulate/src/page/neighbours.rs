//! Two clients behind one access link, each with a page and servers of its own.

use wire::{Duration, Seed, Time};

use super::{Experiment, MAX_EVENTS, PageResult, account};
use crate::error::Error;
use crate::topology::add_access;
use crate::world::{Bounds, CLIENT, Counters, HostId, World};

impl Experiment {
    /// Runs the scenario once, and another client's beside it, which begins this much later: over the link of the first, whose losses
    /// both results have together. `number` selects an independent random stream.
    ///
    /// # Errors
    /// A page before the page, or a link or plan that is not possible.
    pub fn run_beside(
        &self,
        neighbour: &Self,
        later: Duration,
        number: u32,
    ) -> Result<[PageResult; 2], Error> {
        if self.warm_up.objects + neighbour.warm_up.objects > 0 {
            let remedy = "begin without an open connection";
            return Err(Error::unsuited("a page before those of two clients", remedy));
        }
        let seed = Seed::new(self.seed.stream("run", u64::from(number)).next_u64());
        let seed_of_neighbour = Seed::new(seed.stream("neighbour", 0).next_u64());
        let mut world = World::new(seed);
        let access = add_access(&mut world, &self.network)?;
        let first = self.add_hosts(&mut world, access, CLIENT, seed)?;
        let _ = world.run(Bounds { until: Time::ZERO + later, events: MAX_EVENTS });
        let client = HostId(u16::try_from(first.hosts().count()).unwrap_or(u16::MAX));
        let second = neighbour.add_hosts(&mut world, access, client, seed_of_neighbour)?;
        let ended = world.run(Bounds { until: Time::MAX, events: MAX_EVENTS });
        let lost = first.lost(&world);
        let result = |(experiment, topology): (&Self, _)| {
            account(&world, topology, [Counters::default(); 2], ended, lost, experiment.may_lose())
        };
        Ok([(self, &first), (neighbour, &second)].map(result))
    }
}
