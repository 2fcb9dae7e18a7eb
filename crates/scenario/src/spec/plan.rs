//! Expansion of a specification: every scenario of its [`Grid`], in memory.

use quantity::names::Quoted;
use tcp::stack::Acks;

use super::Grid;
use crate::network::changes::RequiredValue;
use crate::network::{Network, NetworkError};
use crate::{Defaults, Engine, Page, Scenario, Spec};
use page::PageError;

/// Scenarios and engines to run.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Scenarios, each valid; at least one.
    pub scenarios: Vec<Scenario>,
    /// Engines that run each; at least one.
    pub engines: Vec<Engine>,
    /// The scenarios by number, and what was set.
    pub grid: Grid,
}

impl Plan {
    /// The receiver's acknowledgement policy in the model; `None`: the stack's.
    pub fn acks(&self, scenario: &Scenario) -> Option<Acks> {
        self.grid.acks(scenario)
    }
}

impl Spec {
    /// Expands the specification, with `defaults` for unset values.
    ///
    /// # Errors
    /// An invalid network or page, half a network, more than 10,000 scenarios or 2,000,000 objects in all.
    pub fn plan(&self, defaults: &Defaults) -> Result<Plan, PlanError> {
        self.grid(defaults)?.plan()
    }
}

impl Grid {
    /// All scenarios in memory.
    ///
    /// # Errors
    /// More than 10,000 scenarios or 2,000,000 objects in all.
    pub fn plan(self) -> Result<Plan, PlanError> {
        if self.len() > MAX_SCENARIOS {
            return Err(PlanError::TooMany { count: self.len(), max: MAX_SCENARIOS });
        }
        if self.objects() > MAX_TOTAL_OBJECTS {
            return Err(PlanError::TooManyObjects(self.objects()));
        }
        let scenarios = (0..self.len()).map(|number| self.scenario(number)).collect();
        Ok(Plan { scenarios, engines: self.engines.clone(), grid: self })
    }
}

/// Maximum number of scenarios in memory.
pub const MAX_SCENARIOS: usize = 10_000;
/// Maximum number of objects: each scenario has its own copy of its page, 50 MB in all.
const MAX_TOTAL_OBJECTS: usize = 2_000_000;

pub(super) fn or_default<'a, T>(spec_of: &'a [T], default: &'a [T]) -> &'a [T] {
    if spec_of.is_empty() { default } else { spec_of }
}

pub(super) fn check_network(network: &Network) -> Result<(), PlanError> {
    network.check().map_err(|error| PlanError::Network { name: network.name.clone(), error })
}

pub(super) fn check_page(page: &Page) -> Result<(), PlanError> {
    page.check().map_err(|error| PlanError::Page { name: page.name.clone(), error })
}

/// Reason why a specification cannot be expanded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Either round trip or rate, and no network that it would change.
    #[error(
        "a network of your own needs rtt and rate, and {}, or name a network to change",
        missing_values(.0)
    )]
    HalfANetwork(Vec<RequiredValue>),
    /// An invalid network.
    #[error("network {}: {error}", Quoted(.name))]
    Network {
        /// Name of the network.
        name: String,
        /// Reason why it is invalid.
        error: NetworkError,
    },
    /// An invalid page.
    #[error("page {}: {error}", Quoted(.name))]
    Page {
        /// Name of the page.
        name: String,
        /// Reason why it is invalid.
        error: PageError,
    },
    /// More scenarios than the maximum.
    #[error("{count} scenarios are too many; give fewer names or values, for at most {max}")]
    TooMany {
        /// Their number.
        count: usize,
        /// The maximum.
        max: usize,
    },
    /// More objects in all scenarios than the maximum.
    #[error(
        "{0} objects in all scenarios are too many; give smaller pages or fewer names, for at most \
         {MAX_TOTAL_OBJECTS}"
    )]
    TooManyObjects(usize),
}

/// The keys of missing values, and the remedy.
fn missing_values(missing: &[RequiredValue]) -> String {
    let keys = Vec::from_iter(missing.iter().map(|needed| needed.key())).join(" and ");
    match missing.len() {
        1 => format!("{keys} is missing; give it"),
        _ => format!("{keys} are missing; give them"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Key;
    use crate::{Client, Requests, Tls};

    fn spec_of(pieces: &[(&str, &str)]) -> Spec {
        let mut spec = Spec::default();
        for (key, value) in pieces {
            spec.set(Key::named(key).unwrap(), value).unwrap();
        }
        spec
    }

    fn networks(pieces: &[(&str, &str)]) -> Result<Vec<String>, PlanError> {
        let plan = spec_of(pieces)
            .plan(&Defaults { protocols: vec![crate::Protocol::Http11], ..Defaults::predict() })?;
        Ok(plan.scenarios.into_iter().map(|scenario| scenario.network.name).collect())
    }

    #[test]
    fn scenarios_come_in_the_order_of_their_lists_the_last_fastest() {
        let all = spec_of(&[
            ("network", "all"),
            ("page", "all"),
            ("protocol", "all"),
            ("stack", "period"),
            ("stack", "linux"),
        ]);
        let plan = all.plan(&Defaults::predict()).unwrap();
        assert_eq!(plan.scenarios.len(), 10 * 6 * PROTOCOLS * 2);
        let [first, second] = [&plan.scenarios[0], &plan.scenarios[1]];
        assert_eq!((first.stack.name, second.stack.name), ("period", "linux"));
        assert_eq!(
            (&first.network, &first.page, first.protocol),
            (&second.network, &second.page, second.protocol)
        );
    }

    #[test]
    fn tls_versions_multiply_and_have_a_default_by_network_and_protocol() {
        let tls = |pieces: &[_]| -> Vec<Tls> {
            let plan = spec_of(pieces).plan(&Defaults::laboratory()).unwrap();
            plan.scenarios.iter().map(|scenario| scenario.tls).collect()
        };
        let http2 = [("protocol", "http2"), ("network", "4g")];
        assert_eq!(tls(&http2), [Tls::V13]);
        assert_eq!(tls(&http2[..1]), [Tls::None]);
        let both = [http2[0], http2[1], ("tls", "1.2"), ("tls", "none")];
        assert_eq!(tls(&both), [Tls::V12, Tls::None]);
    }

    #[test]
    fn path_values_make_a_network_or_change_the_named_ones() {
        let own = [("rtt", "89ms"), ("rate", "1mbit"), ("mss", "512")];
        assert_eq!(networks(&own), Ok(vec!["custom".to_owned()]));
        assert_eq!(networks(&own[..2]), Ok(vec!["custom".to_owned()]));
        assert_eq!(networks(&own[..1]), Err(PlanError::HalfANetwork(vec![RequiredValue::Rate])));
        assert_eq!(networks(&own[1..2]), Err(PlanError::HalfANetwork(vec![RequiredValue::Rtt])));
        assert_eq!(networks(&own[2..]), Ok(vec!["fast-internet".to_owned()]));
        assert_eq!(networks(&[("loss", "1%")]), Ok(vec!["fast-internet+loss=1%".to_owned()]));
        assert_eq!(networks(&[("network", "modem"), ("rtt", "1s")]), Ok(vec!["modem+rtt=1s".to_owned()]));
    }

    #[test]
    fn round_trips_and_rates_multiply() {
        let several =
            [("rtt", "20ms"), ("rtt", "60ms"), ("rate", "1mbit"), ("rate", "2mbit"), ("rtt", "20ms")];
        let expected = ["custom-20ms-1mbit", "custom-20ms-2mbit", "custom-60ms-1mbit", "custom-60ms-2mbit"];
        assert_eq!(networks(&several), Ok(expected.map(str::to_owned).into()));
        let changed = [("network", "modem"), ("network", "isdn"), ("rtt", "20ms"), ("rtt", "60ms")];
        let expected = ["modem+rtt=20ms", "modem+rtt=60ms", "isdn+rtt=20ms", "isdn+rtt=60ms"];
        assert_eq!(networks(&changed), Ok(expected.map(str::to_owned).into()));
        let mut many = spec_of(&[("network", "modem")]);
        many.rtts = (0..200).map(wire::Duration::from_millis).collect();
        many.rates = (1..200).filter_map(wire::Rate::from_bits_per_second).collect();
        assert_eq!(
            many.plan(&Defaults::predict()),
            Err(PlanError::TooMany {
                count: 200 * 199 * Defaults::predict().protocols.len(),
                max: MAX_SCENARIOS
            })
        );
    }

    #[test]
    fn lists_of_path_values_multiply_within_their_network_and_others_within_the_stack() {
        let mut spec =
            spec_of(&[("network", "modem"), ("network", "isdn"), ("rtt", "20ms"), ("protocol", "http10")]);
        for (key, text) in
            [("loss", "0%"), ("loss", "1%"), ("parallel", "1"), ("parallel", "6"), ("seed", "1..2")]
        {
            spec.add(Key::named(key).unwrap(), text).unwrap();
        }
        let grid = spec.grid(&Defaults::laboratory()).unwrap();
        let of = |number: usize| {
            let scenario = grid.scenario(number);
            format!("{} {} {}", scenario.network.name, scenario.client.parallel, scenario.seed.get())
        };
        assert_eq!(grid.len(), 2 * 2 * 2 * 2);
        assert_eq!(
            [0, 1, 2, 4, 8].map(of),
            [
                "modem+rtt=20ms 1 1",
                "modem+rtt=20ms 1 2",
                "modem+rtt=20ms 6 1",
                "modem+rtt=20ms+loss=1% 1 1",
                "isdn+rtt=20ms 1 1",
            ]
        );
        let plan = grid.clone().plan().unwrap();
        assert!(
            plan.scenarios.iter().enumerate().all(|(number, scenario)| grid.scenario(number) == *scenario)
        );
    }

    #[test]
    fn custom_networks_spell_every_value_beside_round_trip_and_rate() {
        let own = [("rtt", "20ms"), ("rate", "10mbit"), ("loss", "2%"), ("queue", "20p"), ("jitter", "5ms")];
        assert_eq!(networks(&own), Ok(vec!["custom+queue=20p+loss=2%+jitter=5ms".to_owned()]));
    }

    #[test]
    fn rejects_a_grid_of_more_than_ten_million_rows_with_its_count() {
        let mut spec = spec_of(&[("network", "modem"), ("protocol", "http11")]);
        spec.add(Key::Seed, "1..100000").unwrap();
        assert_eq!(spec.grid(&Defaults::predict()).unwrap().len(), 100_000);
        spec.add(Key::Parallel, "1..110").unwrap();
        let error = spec.grid(&Defaults::predict()).unwrap_err();
        assert_eq!(error, PlanError::TooMany { count: 11_000_000, max: 10_000_000 });
    }

    #[test]
    fn the_papers_networks_have_the_papers_stack_and_all_others_linux() {
        let stacks = |pieces: &[_]| -> Vec<&str> {
            let protocols = vec![crate::Protocol::Http11];
            let plan = spec_of(pieces).plan(&Defaults { protocols, ..Defaults::laboratory() }).unwrap();
            plan.scenarios.iter().map(|scenario| scenario.stack.name).collect()
        };
        assert_eq!(stacks(&[]), ["period"]);
        assert_eq!(stacks(&[("network", "modem"), ("rtt", "1s")]), ["period"]);
        assert_eq!(stacks(&[("rtt", "20ms"), ("rate", "20Mbit")]), ["linux"]);
        assert_eq!(stacks(&[("network", "4g"), ("loss", "1%"), ("network", "isdn")]), ["linux", "period"]);
        assert_eq!(stacks(&[("rtt", "20ms"), ("rate", "20Mbit"), ("stack", "period")]), ["period"]);
        let file = "network = [{ name = 'a', like = 'modem' }, { name = 'b', rtt = '1s', rate = '1bit' }]";
        let plan = Spec::from_toml(file, "file").unwrap().plan(&Defaults::laboratory()).unwrap();
        let stacks: Vec<&str> = plan.scenarios.iter().map(|scenario| scenario.stack.name).collect();
        assert_eq!(stacks, ["period", "period", "linux", "linux"]);
    }

    #[test]
    fn named_stack_determines_the_acknowledgement_policy() {
        let acks = |pieces: &[_]| {
            let plan = spec_of(pieces).plan(&Defaults::predict()).unwrap();
            plan.acks(&plan.scenarios[0])
        };
        assert_eq!(acks(&[]), Some(Acks::EverySegment));
        assert_eq!(acks(&[("rtt", "20ms"), ("rate", "20Mbit")]), None);
        assert_eq!(acks(&[("stack", "period")]), None);
        assert_eq!(acks(&[("stack", "period"), ("acks", "delayed")]), Some(Acks::Delayed));
    }

    #[test]
    fn several_connections_are_used_concurrently_by_default() {
        let requests = |pieces: &[_]| {
            spec_of(pieces).plan(&Defaults::laboratory()).unwrap().scenarios[0].client.requests
        };
        assert_eq!(requests(&[]), Requests::Dependent);
        assert_eq!(requests(&[("parallel", "4")]), Requests::Independent);
        assert_eq!(requests(&[("parallel", "4"), ("requests", "dependent")]), Requests::Dependent);
    }

    #[test]
    fn browsers_open_six_connections_by_default_and_wait_for_the_document() {
        let client = |pieces: &[_]| {
            let mut spec = spec_of(pieces);
            spec.set(Key::Protocol, "http11-parallel").unwrap();
            spec.plan(&Defaults::laboratory()).unwrap().scenarios[0].client
        };
        let settings = |client: Client| (client.parallel, client.requests);
        assert_eq!(settings(client(&[])), (6, Requests::Dependent));
        assert_eq!(settings(client(&[("parallel", "2")])), (2, Requests::Dependent));
        assert_eq!(settings(client(&[("parallel", "1")])), (1, Requests::Dependent));
        assert_eq!(settings(client(&[("requests", "independent")])), (6, Requests::Independent));
    }

    #[test]
    fn rejects_too_many_scenarios_and_objects() {
        let all = [("network", "all"), ("protocol", "all"), ("stack", "period"), ("stack", "linux")];
        let large = |objects: usize| {
            let mut spec = spec_of(&all);
            spec.set(Key::Page, &vec!["1"; objects].join("+")).unwrap();
            spec.plan(&Defaults::predict()).map(|plan| plan.scenarios.len())
        };
        assert_eq!(large(7_000), Ok(10 * PROTOCOLS * 2));
        let many = Spec { pages: (1..=56).map(one_object).collect(), ..spec_of(&all) };
        assert_eq!(
            many.plan(&Defaults::predict()),
            Err(PlanError::TooMany { count: 10 * PROTOCOLS * 2 * 56, max: MAX_SCENARIOS })
        );
        let mut oversized = spec_of(&all);
        for document in ["1", "2"] {
            oversized.set(Key::Page, &[document, &vec!["1"; 9_999].join("+")].join("+")).unwrap();
        }
        assert_eq!(
            oversized.plan(&Defaults::predict()),
            Err(PlanError::TooManyObjects(10 * PROTOCOLS * 2 * 20_000))
        );
    }

    const PROTOCOLS: usize = crate::Protocol::ALL.len();

    fn one_object(size: u64) -> crate::Page {
        crate::Page::from_sizes(&size.to_string(), [wire::Bytes::new(size)]).unwrap()
    }

    #[test]
    fn rejects_invalid_networks_and_pages() {
        assert!(matches!(networks(&[("network", "modem"), ("mtu", "100")]), Err(PlanError::Network { .. })));
        assert!(matches!(
            networks(&[("network", "modem"), ("delay-up", "1h")]),
            Err(PlanError::Network { .. })
        ));
    }
}
