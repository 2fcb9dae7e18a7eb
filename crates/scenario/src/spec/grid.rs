//! Scenarios of a specification by number, without storing them: networks x pages x protocols x stacks x TLS versions x the
//! other lists of values, in that order, the last fastest. Path values vary within their network: x round trips x rates x
//! other path values.

use tcp::stack::Acks;

use super::axes::{combination, combinations};
use super::plan::{PlanError, check_network, check_page, or_default};
use super::{Axis, Defaults, Key, PathKey};
use crate::network::changes::{CUSTOM, Changes};
use crate::serving::MIN_SEGMENT_OF_HTTP3;
use crate::{
    Client, Engine, Network, Page, Programs, Protocol, Requests, Scenario, Server, Spec, Stack, Tls,
};

/// Scenarios by number, and the engines that run each.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    spec: Spec,
    defaults: Defaults,
    /// Networks before their changes; `None`: custom networks of the changes alone.
    networks: Option<Vec<Network>>,
    pages: Vec<Page>,
    protocols: Vec<Protocol>,
    /// Lists of values but those of paths; each combination is a variant.
    variants: Vec<Axis>,
    path_axes: Vec<Axis>,
    /// Engines that run each scenario; at least one.
    pub engines: Vec<Engine>,
    papers_acks: Option<Acks>,
    len: usize,
}

/// Maximum number of scenarios of a grid.
pub const MAX_GRID: usize = 10_000_000;

impl Spec {
    /// The grid of the specification, with `defaults` for unset values. Every network and page is checked.
    ///
    /// # Errors
    /// An invalid network or page, half a network, more than 10,000,000 scenarios.
    pub fn grid(&self, defaults: &Defaults) -> Result<Grid, PlanError> {
        let pages = or_default(&self.pages, &defaults.pages);
        let of_graphs = Some(&defaults.of_graphs).filter(|_| !pages.iter().all(Page::is_plain));
        let usual = of_graphs.map_or(&defaults.networks, |graphs| &graphs.networks);
        let networks = self.base_networks(usual)?;
        let mut protocols =
            or_default(&self.protocols, of_graphs.map_or(&defaults.protocols, |graphs| &graphs.protocols))
                .to_vec();
        if of_graphs.is_some()
            && self.protocols.is_empty()
            && self.suits_http3(pages, networks.as_deref().unwrap_or_default())
        {
            protocols.push(Protocol::Http3);
        }
        let usual = of_graphs.map_or(&defaults.engines, |graphs| &graphs.engines);
        let owned = |axes: Vec<&Axis>| axes.into_iter().cloned().collect::<Vec<_>>();
        let mut grid = Grid {
            networks,
            pages: pages.to_vec(),
            protocols,
            variants: owned(self.axes_of(false)),
            path_axes: owned(self.axes_of(true)),
            engines: or_default(&self.engines, usual).to_vec(),
            // A named stack determines when the receiver acknowledges, and the papers' assumption does not apply.
            papers_acks: defaults.acks.filter(|_| self.stacks.is_empty()),
            spec: Self { networks: vec![], pages: vec![], ..self.clone() },
            defaults: defaults.clone(),
            len: 0,
        };
        grid.len = grid.dimensions().iter().fold(1, |len, count| len.saturating_mul(*count));
        if grid.len > MAX_GRID {
            return Err(PlanError::TooMany { count: grid.len, max: MAX_GRID });
        }
        grid.check()?;
        Ok(grid)
    }

    /// Whether a page has a host that offers HTTP/3, and nothing refuses it: TLS is 1.3, and datagrams are as large as QUIC needs.
    fn suits_http3(&self, pages: &[Page], networks: &[Network]) -> bool {
        let offers = |page: &Page| page.hosts.iter().any(|host| host.protocols.tls && host.protocols.http3);
        let is_sized = |key: &Key| matches!(key, Key::Path(PathKey::Mss | PathKey::Mtu));
        // QUIC does not build for WebAssembly.
        !cfg!(target_family = "wasm")
            && pages.iter().all(offers)
            && !self.tls.iter().any(|tls| matches!(tls, Tls::None | Tls::V12))
            && networks.iter().all(|network| network.mss >= MIN_SEGMENT_OF_HTTP3)
            && !self.set_keys().iter().any(is_sized)
            && self.programs == Programs::default()
    }

    /// Networks before their changes; `None` if round trips and rates make custom ones.
    fn base_networks(&self, defaults: &[Network]) -> Result<Option<Vec<Network>>, PlanError> {
        if self.networks.is_empty() && !(self.rtts.is_empty() && self.rates.is_empty()) {
            let changes = Changes {
                rtt: self.rtts.first().copied(),
                rate: self.rates.first().copied(),
                ..self.path.clone()
            };
            let missing = changes.missing();
            return if missing.is_empty() { Ok(None) } else { Err(PlanError::HalfANetwork(missing)) };
        }
        Ok(Some(or_default(&self.networks, defaults).to_vec()))
    }
}

impl Grid {
    /// Number of scenarios, from 1 to [`MAX_GRID`].
    #[expect(clippy::len_without_is_empty, reason = "it has at least one scenario")]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// The scenario of that number, below [`Grid::len`].
    pub fn scenario(&self, number: usize) -> Scenario {
        let [_, _, pages, protocols, stacks, tls, variants] = self.dimensions();
        let mut rest = number;
        let mut digit = |count: usize| {
            let digit = rest % count.max(1);
            rest /= count.max(1);
            digit
        };
        let (variant, tls, stack) = (digit(variants), digit(tls), digit(stacks));
        let (protocol, page) = (digit(protocols), digit(pages));
        let network = self.network(rest);
        let (page, protocol) = (&self.pages[page], self.protocols[protocol]);
        let stack = &self.stacks(&network)[stack];
        let tls = self.spec.tls.get(tls).copied().unwrap_or_else(|| Tls::usual(&network, page, protocol));
        let varied = self.variant(variant);
        let (spec, defaults) = (varied.as_ref().unwrap_or(&self.spec), &self.defaults);
        Scenario {
            page: page.clone(),
            visit: spec.visit.unwrap_or(defaults.visit),
            protocol,
            tls,
            stack: spec.shared(stack),
            client: spec.client(defaults, protocol),
            server: Server { processing: spec.processing.unwrap_or(defaults.processing) },
            programs: spec.programs,
            runs: spec.runs.unwrap_or(defaults.runs),
            seed: spec.seed.unwrap_or(defaults.seed),
            network,
        }
    }

    /// The receiver's acknowledgement policy in the model; `None`: the stack's.
    pub fn acks(&self, scenario: &Scenario) -> Option<Acks> {
        self.spec
            .acks
            .map(|_| scenario.stack.acks)
            .or(self.papers_acks.filter(|_| scenario.network.is_of_the_papers()))
    }

    /// Keys that the user set, or whose values differ between the networks.
    pub fn keys(&self) -> Vec<Key> {
        let mut keys = self.spec.set_keys();
        let networks = self.networks.as_deref().unwrap_or_default();
        let differ = networks.windows(2).flat_map(|pair| pair[1].differences(&pair[0]));
        let own = networks.iter().flat_map(Network::own_differences);
        for (key, _) in differ.chain(own) {
            if !keys.contains(&Key::Path(key)) {
                keys.push(Key::Path(key));
            }
        }
        keys
    }

    /// Networks of the grid, each once.
    pub fn networks(&self) -> impl Iterator<Item = Network> {
        let [bases, changes, ..] = self.dimensions();
        (0..bases * changes).map(|number| self.network(number))
    }

    /// The first network of each base, and one for each value of a path's lists but round trip and rate.
    pub fn sample_networks(&self) -> Vec<Network> {
        let [bases, changes, ..] = self.dimensions();
        let mut samples: Vec<Network> = (0..bases).map(|base| self.network(base * changes)).collect();
        let mut stride = 1;
        for axis in self.path_axes.iter().rev() {
            samples.extend((1..axis.values.len()).map(|value| self.network(value * stride)));
            stride *= axis.values.len();
        }
        samples
    }

    /// The pages.
    pub fn pages(&self) -> &[Page] {
        &self.pages
    }

    /// Number of objects of all pages together.
    pub fn objects(&self) -> usize {
        let objects: usize = self.pages.iter().map(|page| page.objects.len()).sum();
        objects.saturating_mul(self.len / self.pages.len().max(1))
    }

    /// Numbers of networks, of changes to each, pages, protocols, stacks, TLS versions, and variants.
    fn dimensions(&self) -> [usize; 7] {
        let Self { spec, defaults, networks, pages, protocols, variants, path_axes, .. } = self;
        let of = |axes: &[Axis]| combinations(&axes.iter().collect::<Vec<_>>());
        let changes = [spec.rtts.len().max(1), spec.rates.len().max(1), of(path_axes)];
        [
            networks.as_ref().map_or(1, Vec::len),
            changes.into_iter().fold(1, usize::saturating_mul),
            pages.len(),
            protocols.len(),
            // Either of the defaults is one stack.
            or_default(&spec.stacks, &defaults.stacks).len(),
            spec.tls.len().max(1),
            of(variants),
        ]
    }

    fn stacks(&self, network: &Network) -> &[Stack] {
        or_default(&self.spec.stacks, self.defaults.stacks_on(network))
    }

    /// The network of that number: its base, then round trip, rate and the other path values, the last fastest.
    fn network(&self, number: usize) -> Network {
        let [_, changes, ..] = self.dimensions();
        match &self.networks {
            Some(networks) => self.spec.changes(number % changes).applied_to(&networks[number / changes]),
            None => {
                let own = self.spec.own_network(self.spec.changes(number % changes));
                own.expect("a custom network has a round trip and a rate")
            }
        }
    }

    /// The specification with the values of a variant; `None` if there is one variant.
    fn variant(&self, number: usize) -> Option<Spec> {
        if self.variants.is_empty() {
            return None;
        }
        let axes: Vec<&Axis> = self.variants.iter().collect();
        let Spec {
            visit,
            request,
            requests,
            parallel,
            connection,
            processing,
            programs,
            sharing,
            acks,
            runs,
            seed,
            ..
        } = self.spec;
        let mut spec = Spec {
            visit,
            request,
            requests,
            parallel,
            connection,
            processing,
            programs,
            sharing,
            acks,
            runs,
            seed,
            ..Spec::default()
        };
        for (key, text) in combination(&axes, number) {
            spec.set(key, text).expect("values were checked when they were added");
        }
        Some(spec)
    }

    fn check(&self) -> Result<(), PlanError> {
        let [_, changes, ..] = self.dimensions();
        for number in 0..changes {
            let contradiction = |error| PlanError::Network { name: CUSTOM.to_owned(), error };
            self.spec.changes(number).check().map_err(contradiction)?;
        }
        self.networks().try_for_each(|network| check_network(&network))?;
        self.pages.iter().try_for_each(check_page)
    }
}

impl Spec {
    fn shared(&self, stack: &Stack) -> Stack {
        let mut stack = stack.clone();
        stack.packets.sharing = self.sharing.unwrap_or(stack.packets.sharing);
        stack.acks = self.acks.unwrap_or(stack.acks);
        stack
    }

    fn client(&self, defaults: &Defaults, protocol: Protocol) -> Client {
        let parallel = self.parallel.unwrap_or(defaults.parallel.max(protocol.connections()));
        // Several connections are for requests that do not wait for one another; a browser's wait for the
        // document.
        let is_browser = protocol == Protocol::Http11Parallel;
        let requests = if parallel > 1 && !is_browser { Requests::Independent } else { defaults.requests };
        Client {
            request: self.request.unwrap_or(defaults.request),
            requests: self.requests.unwrap_or(requests),
            parallel,
            connection: self.connection.unwrap_or(defaults.connection),
        }
    }

    /// Custom networks of round trips and rates alone; empty if either is missing.
    pub(super) fn own_networks(&self) -> Vec<Network> {
        self.own_changes().filter_map(|changes| self.own_network(changes)).collect()
    }

    /// Changes to every network: each round trip, rate and other path value.
    pub(super) fn own_changes(&self) -> impl Iterator<Item = Changes> {
        let axes = combinations(&self.axes_of(true));
        let count = self.rtts.len().max(1).saturating_mul(self.rates.len().max(1)).saturating_mul(axes);
        (0..count).map(|number| self.changes(number))
    }

    /// The changes of that number, the last list of values fastest.
    fn changes(&self, number: usize) -> Changes {
        let axes = self.axes_of(true);
        let (count, rates, rtts) = (combinations(&axes), self.rates.len().max(1), self.rtts.len().max(1));
        let mut changes = Changes {
            rtt: self.rtts.get(number / count / rates % rtts).copied(),
            rate: self.rates.get(number / count % rates).copied(),
            ..self.path.clone()
        };
        for (key, text) in combination(&axes, number % count) {
            if let Key::Path(key) = key {
                changes.set(key, text).expect("values were checked when they were added");
            }
        }
        let read = self
            .traces
            .iter()
            .find(|read| changes.traces.as_ref().is_some_and(|traces| traces.has_names_of(read)));
        changes.traces = read.cloned().or(changes.traces);
        changes
    }

    /// A custom network: `custom`, or, if there are several round trips or rates, `custom-20ms` and so on; then the other
    /// values.
    fn own_network(&self, changes: Changes) -> Option<Network> {
        let rtt = changes.rtt.filter(|_| self.rtts.len() > 1).map(|rtt| format!("-{rtt}"));
        let rate = changes.rate.filter(|_| self.rates.len() > 1).map(|rate| format!("-{rate}"));
        changes.network(&[CUSTOM, &rtt.unwrap_or_default(), &rate.unwrap_or_default()].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use page::{Host, Object, OfferedProtocols};
    use wire::Bytes;

    #[test]
    fn http3_is_a_default_of_graphs_whose_hosts_offer_it_unless_something_refuses_it() {
        let graph = |protocols| {
            let hosts = vec![Host::new("a"), Host { protocols, ..Host::new("b") }];
            Page { hosts, ..Page::of("graph", vec![Object::sized(Bytes::new(10))]) }
        };
        let is_default = |page: Page, change: fn(&mut Spec)| {
            let mut spec = Spec { pages: vec![page], ..Spec::default() };
            change(&mut spec);
            let grid = spec.grid(&Defaults::compare()).unwrap();
            (0..grid.len()).any(|number| grid.scenario(number).protocol == Protocol::Http3)
        };
        let offering = || graph(OfferedProtocols::ALL);
        assert!(is_default(offering(), |_| ()));
        assert!(!is_default(offering(), |spec| spec.tls = vec![Tls::V13, Tls::V12]));
        assert!(!is_default(offering(), |spec| spec.protocols = vec![Protocol::Http2]));
        assert!(!is_default(offering(), |spec| spec.networks = vec![Network::named("modem").unwrap()]));
        assert!(!is_default(Page::named("small-cluster").unwrap(), |_| ()), "no graph");
        let mut old = graph(OfferedProtocols::HTTP1);
        old.hosts[0].protocols = OfferedProtocols::HTTP1;
        assert!(!is_default(old, |_| ()));
    }
}
