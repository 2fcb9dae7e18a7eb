//! From what was asked for to what is run: networks x pages x protocols x stacks, in that order, the last fastest.

use std::fmt;

use crate::network::changes::Needed;
use crate::network::{Network, NetworkError};
use crate::page::PageError;
use crate::stack::Acks;
use crate::{Client, Defaults, Engine, Requests, Scenario, Server, Spec, Stack};

/// What is to be run.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// At least one; each is possible.
    pub scenarios: Vec<Scenario>,
    /// Who runs each; at least one.
    pub engines: Vec<Engine>,
    /// What the model assumes of the receiver; `None`: what the stack does.
    pub acks: Option<Acks>,
}

impl Spec {
    /// What is to be run, with `defaults` where nothing was said.
    ///
    /// # Errors
    /// A network or a page that cannot be, half a network, more than 10,000 scenarios or 2,000,000 objects in all.
    pub fn plan(&self, defaults: &Defaults) -> Result<Plan, PlanError> {
        let networks = self.all_networks(&defaults.networks)?;
        let pages = or(&self.pages, &defaults.pages);
        let protocols = or(&self.protocols, &defaults.protocols);
        let stacks = or(&self.stacks, &defaults.stacks);
        check(&networks, pages)?;

        let per_page =
            [protocols.len(), stacks.len()].into_iter().fold(networks.len(), usize::saturating_mul);
        let count = per_page.saturating_mul(pages.len());
        if count > SCENARIOS_MOST {
            return Err(PlanError::TooMany(count));
        }
        let objects = pages.iter().map(|page| page.objects.len()).sum::<usize>().saturating_mul(per_page);
        if objects > OBJECTS_MOST {
            return Err(PlanError::TooManyObjects(objects));
        }
        let mut scenarios = Vec::with_capacity(count);
        for network in &networks {
            for page in pages {
                for protocol in protocols {
                    for stack in stacks {
                        scenarios.push(Scenario {
                            network: network.clone(),
                            page: page.clone(),
                            visit: self.visit.unwrap_or(defaults.visit),
                            protocol: *protocol,
                            stack: self.shared(stack),
                            client: self.client(defaults),
                            server: Server { processing: self.processing.unwrap_or(defaults.processing) },
                            programs: self.programs,
                            runs: self.runs.unwrap_or(defaults.runs),
                            seed: self.seed.unwrap_or(defaults.seed),
                        });
                    }
                }
            }
        }
        let engines = or(&self.engines, &defaults.engines).to_vec();
        Ok(Plan { scenarios, engines, acks: self.acks(defaults) })
    }

    /// Whoever names a stack means it: then it, and not the default, says when the receiver acknowledges.
    fn acks(&self, defaults: &Defaults) -> Option<Acks> {
        self.acks.or(defaults.acks.filter(|_| self.stacks.is_empty()))
    }

    fn shared(&self, stack: &Stack) -> Stack {
        let mut stack = stack.clone();
        stack.packets.sharing = self.sharing.unwrap_or(stack.packets.sharing);
        stack
    }

    fn client(&self, defaults: &Defaults) -> Client {
        let parallel = self.parallel.unwrap_or(defaults.parallel);
        // Whoever asks for several connections at once means to use them.
        let requests = if parallel > 1 { Requests::Independent } else { defaults.requests };
        Client {
            request: self.request.unwrap_or(defaults.request),
            requests: self.requests.unwrap_or(requests),
            parallel,
            connection: self.connection.unwrap_or(defaults.connection),
        }
    }

    /// The networks with the changes made; or the one that the changes alone are.
    fn all_networks(&self, defaults: &[Network]) -> Result<Vec<Network>, PlanError> {
        let changes = &self.path;
        if !self.networks.is_empty() {
            return Ok(self.networks.iter().map(|network| changes.applied_to(network)).collect());
        }
        if let Some(own) = changes.network("custom") {
            return Ok(vec![own]);
        }
        if changes.missing().len() == Needed::ALL.len() {
            return Ok(defaults.iter().map(|network| changes.applied_to(network)).collect());
        }
        Err(PlanError::HalfANetwork(changes.missing()))
    }
}

/// More than anyone waits for; what a slip would make.
const SCENARIOS_MOST: usize = 10_000;
/// Each scenario has its own copy of its page: 50 MB of them.
const OBJECTS_MOST: usize = 2_000_000;

fn or<'a, T>(said: &'a [T], default: &'a [T]) -> &'a [T] {
    if said.is_empty() { default } else { said }
}

fn check(networks: &[Network], pages: &[crate::Page]) -> Result<(), PlanError> {
    for network in networks {
        network.check().map_err(|error| PlanError::Network { name: network.name.clone(), error })?;
    }
    for page in pages {
        page.check().map_err(|error| PlanError::Page { name: page.name.clone(), error })?;
    }
    Ok(())
}

/// Why what was asked for cannot be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanError {
    /// Some of round trip, rate and segment size, and no network that they would change.
    HalfANetwork(Vec<Needed>),
    /// A network that cannot be.
    Network {
        /// Which.
        name: String,
        /// Why not.
        error: NetworkError,
    },
    /// A page that cannot be.
    Page {
        /// Which.
        name: String,
        /// Why not.
        error: PageError,
    },
    /// More scenarios than anyone waits for.
    TooMany(usize),
    /// More objects in all of them than there is room for.
    TooManyObjects(usize),
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HalfANetwork(missing) => {
                let missing: Vec<_> = missing.iter().map(|needed| needed.key()).collect();
                let (are, them) = if missing.len() == 1 { ("is", "it") } else { ("are", "them") };
                let missing = missing.join(" and ");
                write!(
                    f,
                    "a network of your own needs rtt, rate and mss, and {missing} {are} missing; give {them}, or name a \
                     network to change"
                )
            }
            Self::Network { name, error } => write!(f, "network {}: {error}", crate::names::Quoted(name)),
            Self::Page { name, error } => write!(f, "page {}: {error}", crate::names::Quoted(name)),
            Self::TooMany(count) => {
                write!(f, "{count} scenarios are too many; give fewer names, for at most {SCENARIOS_MOST}")
            }
            Self::TooManyObjects(count) => write!(
                f,
                "{count} objects in all scenarios are too many; give smaller pages or fewer names, for at most \
                 {OBJECTS_MOST}"
            ),
        }
    }
}

impl std::error::Error for PlanError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Key;

    fn said(pieces: &[(&str, &str)]) -> Spec {
        let mut spec = Spec::default();
        for (key, value) in pieces {
            spec.set(Key::named(key).unwrap(), value).unwrap();
        }
        spec
    }

    fn networks(pieces: &[(&str, &str)]) -> Result<Vec<String>, PlanError> {
        let plan = said(pieces)
            .plan(&Defaults { protocols: vec![crate::Protocol::Http11], ..Defaults::predict() })?;
        Ok(plan.scenarios.into_iter().map(|scenario| scenario.network.name).collect())
    }

    #[test]
    fn scenarios_come_in_the_order_of_their_lists_the_last_fastest() {
        let all = said(&[
            ("network", "all"),
            ("page", "all"),
            ("protocol", "all"),
            ("stack", "period"),
            ("stack", "linux"),
        ]);
        let plan = all.plan(&Defaults::predict()).unwrap();
        assert_eq!(plan.scenarios.len(), 10 * 6 * 9 * 2);
        let [first, second] = [&plan.scenarios[0], &plan.scenarios[1]];
        assert_eq!((first.stack.name, second.stack.name), ("period", "linux"));
        assert_eq!(
            (&first.network, &first.page, first.protocol),
            (&second.network, &second.page, second.protocol)
        );
    }

    #[test]
    fn what_is_said_of_a_path_makes_one_or_changes_those_there_are() {
        let own = [("rtt", "89ms"), ("rate", "1mbit"), ("mss", "512")];
        assert_eq!(networks(&own), Ok(vec!["custom".to_owned()]));
        assert_eq!(networks(&own[..2]), Err(PlanError::HalfANetwork(vec![Needed::Mss])));
        assert_eq!(networks(&[("loss", "1%")]), Ok(vec!["fast-internet+loss=1%".to_owned()]));
        assert_eq!(networks(&[("network", "modem"), ("rtt", "1s")]), Ok(vec!["modem+rtt=1s".to_owned()]));
    }

    #[test]
    fn a_stack_that_is_named_says_when_the_receiver_acknowledges() {
        let acks = |pieces: &[_]| said(pieces).plan(&Defaults::predict()).unwrap().acks;
        assert_eq!(acks(&[]), Some(Acks::EverySegment));
        assert_eq!(acks(&[("stack", "period")]), None);
        assert_eq!(acks(&[("stack", "period"), ("acks", "delayed")]), Some(Acks::Delayed));
    }

    #[test]
    fn several_connections_at_once_are_used_unless_it_is_said_otherwise() {
        let requests =
            |pieces: &[_]| said(pieces).plan(&Defaults::laboratory()).unwrap().scenarios[0].client.requests;
        assert_eq!(requests(&[]), Requests::Dependent);
        assert_eq!(requests(&[("parallel", "4")]), Requests::Independent);
        assert_eq!(requests(&[("parallel", "4"), ("requests", "dependent")]), Requests::Dependent);
    }

    #[test]
    fn what_is_too_much_is_refused() {
        let all = [("network", "all"), ("protocol", "all"), ("stack", "period"), ("stack", "linux")];
        let large = |objects: usize| {
            let mut spec = said(&all);
            spec.set(Key::Page, &vec!["1"; objects].join("+")).unwrap();
            spec.plan(&Defaults::predict()).map(|plan| plan.scenarios.len())
        };
        assert_eq!(large(10_000), Ok(10 * 9 * 2));
        let many = Spec { pages: (1..=56).map(one_object).collect(), ..said(&all) };
        assert_eq!(many.plan(&Defaults::predict()), Err(PlanError::TooMany(10 * 9 * 2 * 56)));
        let mut twice = said(&all);
        for document in ["1", "2"] {
            twice.set(Key::Page, &[document, &vec!["1"; 9_999].join("+")].join("+")).unwrap();
        }
        assert_eq!(twice.plan(&Defaults::predict()), Err(PlanError::TooManyObjects(3_600_000)));
    }

    fn one_object(size: u64) -> crate::Page {
        crate::Page::from_sizes(&size.to_string(), [wire::Bytes::new(size)]).unwrap()
    }

    #[test]
    fn what_cannot_be_is_refused() {
        assert!(matches!(networks(&[("network", "modem"), ("mtu", "100")]), Err(PlanError::Network { .. })));
        assert!(matches!(
            networks(&[("network", "modem"), ("delay-up", "1h")]),
            Err(PlanError::Network { .. })
        ));
    }
}
