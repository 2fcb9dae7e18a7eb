//! Cost of each host of a page: its time on the critical path of a simulated load, its bytes and its requests.
//!
//! One load over the first network of [`Defaults::laboratory`] for graphs, by HTTP/2 as browsers speak it. A host without time on the
//! path may still cost: what it delays is not what ends last.

use page::Page;
use scenario::spec::Defaults;
use scenario::{Protocol, Spec};
use wire::Duration;

use crate::simulate;
use crate::waterfall::Wait;

/// Maximum number of objects of a page that is simulated for its table.
const MAX_OBJECTS: usize = 2_000;

/// Cost of a host's objects.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HostCost {
    /// Requests over the network.
    pub requests: usize,
    /// Bytes of the bodies.
    pub bytes: u64,
    /// Time on the critical path; `None` if the page is not simulated.
    pub path_time: Option<Duration>,
}

/// The costs of a page's hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct PageCosts {
    /// In the order of the page's hosts.
    pub hosts: Vec<HostCost>,
    /// The load that was simulated.
    pub load: Option<SimulatedLoad>,
}

/// A simulated load.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulatedLoad {
    /// Name of the network.
    pub network: String,
    /// The protocol.
    pub protocol: Protocol,
    /// Its time: that of all hosts and the client's.
    pub elapsed: Duration,
    /// Time on the critical path that is the client's own work.
    pub client: Duration,
}

impl PageCosts {
    /// The costs of a page; pages of one host or without dependencies of their own are not simulated.
    pub fn of(page: &Page) -> Self {
        let mut hosts = vec![HostCost::default(); page.hosts.len()];
        for object in page.objects.iter().filter(|object| object.local.is_none()) {
            hosts[object.host].requests += 1;
            hosts[object.host].bytes += object.size.get();
        }
        let load =
            (!page.is_plain() && page.objects.len() <= MAX_OBJECTS).then(|| simulated(page, &mut hosts));
        Self { hosts, load: load.flatten() }
    }

    /// Positions of the hosts, the most expensive first.
    pub fn ranked(&self) -> Vec<usize> {
        let mut ranked: Vec<usize> = (0..self.hosts.len()).collect();
        let key = |index: &usize| (self.hosts[*index].path_time, self.hosts[*index].bytes);
        ranked.sort_by_key(|index| std::cmp::Reverse(key(index)));
        ranked
    }
}

/// Simulates a load, and adds the times on its path to the hosts.
fn simulated(page: &Page, hosts: &mut [HostCost]) -> Option<SimulatedLoad> {
    let mut spec = Spec::default();
    (spec.pages, spec.protocols, spec.runs) =
        (vec![page.clone().over_network()], vec![Protocol::Http2], Some(1));
    let scenario = spec.plan(&Defaults::laboratory()).ok()?.scenarios.into_iter().next()?;
    let waterfall = simulate::outcome(&scenario, |_| ()).waterfall?;
    hosts.iter_mut().for_each(|host| host.path_time = Some(Duration::ZERO));
    for (at, time) in waterfall.critical.iter().zip(&waterfall.network_times) {
        // Hosts of anonymous requests come after those whose names they have.
        let name = &scenario.page.hosts[scenario.page.objects[waterfall.courses[*at].object].host].name;
        let host = page.hosts.iter().position(|host| host.name == *name)?;
        *hosts[host].path_time.get_or_insert_default() += *time;
    }
    Some(SimulatedLoad {
        network: scenario.network.name.clone(),
        protocol: scenario.protocol,
        elapsed: waterfall.waits.values().copied().sum(),
        client: waterfall.waits.get(&Wait::Think).copied().unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "
        [[host]]
        name = 'www.example.com'
        [[host]]
        name = 'big.example.com'
        [[host]]
        name = 'slow.example.com'
        [[object]]
        size = 9000
        [[object]]
        host = 'big.example.com'
        size = 20000
        after = ['1']
        [[object]]
        host = 'slow.example.com'
        size = 900
        server-time = '900ms'
        after = ['1 + 50ms']
    ";

    #[test]
    fn hosts_are_ranked_by_their_time_on_the_critical_path_which_adds_up_with_the_clients() {
        let page = page::file::read("shop", PAGE).unwrap();
        let costs = PageCosts::of(&page);
        assert_eq!(costs.ranked(), [2, 0, 1]);
        let load = costs.load.unwrap();
        assert_eq!((load.network.as_str(), load.client), ("4g", Duration::from_millis(50)));
        let all: Duration = costs.hosts.iter().filter_map(|host| host.path_time).sum();
        assert_eq!(all + load.client, load.elapsed);
        assert_eq!((costs.hosts[1].requests, costs.hosts[1].path_time), (1, Some(Duration::ZERO)));
        assert!(costs.hosts[2].path_time > Some(Duration::from_millis(900)));
    }

    #[test]
    fn sizes_alone_are_not_simulated_and_are_ranked_by_bytes() {
        let costs = PageCosts::of(&page::text::page("5000+300").unwrap());
        assert_eq!((costs.load, costs.hosts[0].requests, costs.hosts[0].path_time), (None, 2, None));
    }
}
