//! Default values. They differ between verbs: predictions use the papers' basic assumptions, measurements use
//! a robot.

use tcp::stack::Acks;
use wire::{Bytes, Duration, Seed};

use crate::{Connection, Engine, Network, Page, Protocol, Requests, Stack, Visit};

/// A value for every key. A caller may change any of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Defaults {
    /// Networks.
    pub networks: Vec<Network>,
    /// Pages.
    pub pages: Vec<Page>,
    /// Protocols.
    pub protocols: Vec<Protocol>,
    /// Networks, protocols and engines for pages of several hosts or with dependencies of their own: those of today.
    pub of_graphs: GraphDefaults,
    /// Stacks on the papers' networks.
    pub stacks: Vec<Stack>,
    /// Stacks on every other network.
    pub stacks_today: Vec<Stack>,
    /// First or revalidate.
    pub visit: Visit,
    /// The size of each request.
    pub request: Bytes,
    /// Independent or dependent requests.
    pub requests: Requests,
    /// Maximum number of concurrent connections.
    pub parallel: u16,
    /// Cold or warm.
    pub connection: Connection,
    /// The server's time for each request.
    pub processing: Duration,
    /// The receiver's acknowledgement policy in the model, where no stack is named; `None`: the stack's.
    pub acks: Option<Acks>,
    /// Engines.
    pub engines: Vec<Engine>,
    /// Number of runs.
    pub runs: u32,
    /// Random seed.
    pub seed: Seed,
}

/// Values for pages that are graphs.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphDefaults {
    /// Networks.
    pub networks: Vec<Network>,
    /// Protocols.
    pub protocols: Vec<Protocol>,
    /// Engines.
    pub engines: Vec<Engine>,
}

impl GraphDefaults {
    /// The protocols of browsers, over this network, by these engines.
    fn over(networks: &[&str], engines: &[Engine]) -> Self {
        Self {
            networks: networks.iter().map(|name| named(Network::named(name))).collect(),
            protocols: vec![Protocol::Http11Parallel, Protocol::Http2],
            engines: engines.to_vec(),
        }
    }
}

impl Defaults {
    /// The papers' basic model (`papers/heidemann-model#table-6`): requests are independent, every segment is
    /// acknowledged, the server takes no time. Every protocol of the papers, for small-cluster over fast-internet.
    pub fn predict() -> Self {
        Self {
            networks: vec![named(Network::named("fast-internet"))],
            pages: vec![named(Page::named("small-cluster"))],
            protocols: Protocol::OF_THE_PAPERS.to_vec(),
            of_graphs: GraphDefaults::over(&["4g"], &[Engine::Model]),
            stacks: vec![named(Stack::named("period"))],
            stacks_today: vec![named(Stack::named("linux"))],
            visit: Visit::First,
            // papers/heidemann-model#workloads
            request: Bytes::new(256),
            requests: Requests::Independent,
            parallel: 1,
            connection: Connection::Cold,
            processing: Duration::ZERO,
            acks: Some(Acks::EverySegment),
            engines: vec![Engine::Model],
            runs: 1,
            seed: Seed::default(),
        }
    }

    /// Defaults of a laboratory (`papers/heidemann-model#table-7`): a robot requests one object after
    /// another, and the receiver acknowledges as the stack does. Compares a connection per object with one
    /// kept alive.
    pub fn laboratory() -> Self {
        Self {
            protocols: vec![Protocol::Http10, Protocol::Http10KeepAlive],
            of_graphs: GraphDefaults::over(&["4g"], &[Engine::Measure]),
            requests: Requests::Dependent,
            acks: None,
            engines: vec![Engine::Measure],
            runs: 10,
            ..Self::predict()
        }
    }

    /// Defaults to compare the laboratory, the model and the simulator under the same assumptions, over the
    /// two networks of that table.
    pub fn compare() -> Self {
        Self {
            networks: ["fast-internet", "ethernet"].map(|name| named(Network::named(name))).into(),
            engines: vec![Engine::Model, Engine::Simulate, Engine::Measure],
            of_graphs: GraphDefaults::over(
                &["fibre", "cable", "4g", "3g"],
                &[Engine::Model, Engine::Simulate],
            ),
            ..Self::laboratory()
        }
    }

    /// Stacks where none is named: a network of the papers has the papers' hosts.
    pub fn stacks_on(&self, network: &Network) -> &[Stack] {
        if network.is_of_the_papers() { &self.stacks } else { &self.stacks_today }
    }
}

fn named<T>(entry: Result<T, quantity::names::UnknownName>) -> T {
    entry.expect("the defaults are in the catalogues, which a test proves")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_in_its_catalogue() {
        assert_eq!(Defaults::predict().networks[0].name, "fast-internet");
        assert_eq!(Defaults::laboratory().requests, Requests::Dependent);
        assert_eq!(Defaults::compare().networks.len(), 2);
    }
}
