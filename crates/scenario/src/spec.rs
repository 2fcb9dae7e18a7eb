//! A user's specification, value by value, and the scenarios that it expands to.
//!
//! A value has a key. Flags and files have the same keys with the same values: `--requests dependent` and
//! `requests = "dependent"`. A [`Spec`] holds the values that were set; the others come from [`Defaults`],
//! which differ between verbs because the verbs' meanings do.
//!
//! | module | contents |
//! | --- | --- |
//! | [`key`] | the keys, and a setter for each |
//! | [`defaults`] | values of unset keys |
//! | [`axes`] | lists and ranges of values |
//! | [`grid`] | scenarios by number: networks x pages x protocols x stacks x TLS versions x lists of values |
//! | [`plan`] | the same, all in memory |

pub mod axes;
pub mod defaults;
pub mod grid;
pub mod key;
pub(crate) mod key_info;
pub mod plan;

use std::sync::Arc;

use tcp::stack::Acks;
use tcp::stack::packets::Sharing;
use wire::link::DeliverySchedule;
use wire::{Bytes, Duration, Rate, Seed};

use crate::network::{Changes, Network, Traces};
use crate::spec::key::PathKey;
use crate::{Connection, Engine, Page, Programs, Protocol, Requests, Stack, Tls, Visit};

pub use axes::Axis;
pub use defaults::{Defaults, GraphDefaults};
pub use grid::Grid;
pub use key::Key;
pub use plan::{Plan, PlanError};

/// A user's specification. An empty list and `None` leave the default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spec {
    /// `network`.
    pub networks: Vec<Network>,
    /// `rtt`: each derives a network from every one named.
    pub rtts: Vec<Duration>,
    /// `rate`: the same.
    pub rates: Vec<Rate>,
    /// Further changes to every network; without a network, the values of a custom network.
    pub path: Changes,
    /// `page`.
    pub pages: Vec<Page>,
    /// `protocol`.
    pub protocols: Vec<Protocol>,
    /// `tls`; each of several values makes a scenario.
    pub tls: Vec<Tls>,
    /// `stack`.
    pub stacks: Vec<Stack>,
    /// `visit`.
    pub visit: Option<Visit>,
    /// `request-size`.
    pub request: Option<Bytes>,
    /// `requests`.
    pub requests: Option<Requests>,
    /// `parallel`.
    pub parallel: Option<u16>,
    /// `connection`.
    pub connection: Option<Connection>,
    /// `processing`.
    pub processing: Option<Duration>,
    /// `client-setup` to `send-buffer`.
    pub programs: Programs,
    /// `sharing`: state that connections share, overriding the stack.
    pub sharing: Option<Sharing>,
    /// `acks`: the receiver's acknowledgement policy, overriding the stack.
    pub acks: Option<Acks>,
    /// `engine`.
    pub engines: Vec<Engine>,
    /// `runs`.
    pub runs: Option<u32>,
    /// `seed`.
    pub seed: Option<Seed>,
    /// Several values of keys whose fields have only the first; each makes scenarios.
    pub axes: Vec<Axis>,
    /// Traces of an axis that have been read.
    pub(crate) traces: Vec<Traces>,
}

impl Spec {
    /// Completes the specification with the values of `below`: flags over a file.
    #[must_use]
    pub fn over(self, below: Self) -> Self {
        let (above, mut below) = (self.with_own_network(), below.with_own_network());
        let above_keys = above.set_keys();
        below.axes.retain(|axis| {
            let is_of_replaced_networks = axis.key.is_of_path() && !above.networks.is_empty();
            !is_of_replaced_networks && !above_keys.contains(&axis.key)
        });
        // A custom network of too many values to be written out replaces networks, too.
        if above.path.mss.is_some() && !above.rtts.is_empty() && !above.rates.is_empty() {
            below.networks.clear();
        }
        Self {
            axes: above.axes.into_iter().chain(below.axes).collect(),
            traces: [above.traces, below.traces].concat(),
            // Changes to the networks below do not apply to networks that replace them.
            path: if above.networks.is_empty() { above.path.over(below.path) } else { above.path },
            rtts: if above.networks.is_empty() {
                first_non_empty(above.rtts, below.rtts)
            } else {
                above.rtts
            },
            rates: if above.networks.is_empty() {
                first_non_empty(above.rates, below.rates)
            } else {
                above.rates
            },
            networks: first_non_empty(above.networks, below.networks),
            pages: first_non_empty(above.pages, below.pages),
            protocols: first_non_empty(above.protocols, below.protocols),
            tls: first_non_empty(above.tls, below.tls),
            stacks: first_non_empty(above.stacks, below.stacks),
            visit: above.visit.or(below.visit),
            request: above.request.or(below.request),
            requests: above.requests.or(below.requests),
            parallel: above.parallel.or(below.parallel),
            connection: above.connection.or(below.connection),
            processing: above.processing.or(below.processing),
            programs: above.programs.over(below.programs),
            sharing: above.sharing.or(below.sharing),
            acks: above.acks.or(below.acks),
            engines: first_non_empty(above.engines, below.engines),
            runs: above.runs.or(below.runs),
            seed: above.seed.or(below.seed),
        }
    }

    /// Adds the contents of network traces, which `read` returns by the names of the files.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn read_traces<E>(
        &mut self,
        mut read: impl FnMut(&str) -> Result<Arc<DeliverySchedule>, E>,
    ) -> Result<(), E> {
        let of_axes = self.axes.iter().filter(|axis| axis.key == Key::Path(PathKey::NetworkTrace));
        for text in of_axes.flat_map(|axis| &axis.values) {
            let Ok(mut traces) = Traces::named(text) else { continue };
            traces.read(&mut read)?;
            self.traces.push(traces);
        }
        let of_networks = self.networks.iter_mut().filter_map(|network| network.traces.as_mut());
        self.path.traces.iter_mut().chain(of_networks).try_for_each(|traces| traces.read(&mut read))?;
        self.networks.iter_mut().for_each(Network::set_mean_rates);
        Ok(())
    }

    /// Makes round trip, rate and segment size without a network a custom network, whatever networks a file
    /// has.
    fn with_own_network(self) -> Self {
        let axes = self.axes_of(true);
        let count =
            axes::combinations(&axes).saturating_mul(self.rtts.len()).saturating_mul(self.rates.len().max(1));
        if !self.networks.is_empty()
            || self.path.mss.is_none()
            || count > plan::MAX_SCENARIOS
            || self.own_changes().any(|changes| changes.check().is_err())
        {
            return self;
        }
        match self.own_networks() {
            networks if networks.is_empty() => self,
            networks => {
                let axes = self.axes.into_iter().filter(|axis| !axis.key.is_of_path()).collect();
                Self { networks, rtts: vec![], rates: vec![], path: Changes::default(), axes, ..self }
            }
        }
    }
}

fn first_non_empty<T>(above: Vec<T>, below: Vec<T>) -> Vec<T> {
    if above.is_empty() { below } else { above }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec_of(pieces: &[(&str, &str)]) -> Spec {
        let mut spec = Spec::default();
        for (key, value) in pieces {
            spec.set(Key::named(key).unwrap(), value).unwrap();
        }
        spec
    }

    #[test]
    fn flags_override_a_file_key_by_key() {
        let file = spec_of(&[("network", "modem"), ("page", "small-page"), ("runs", "5"), ("loss", "1%")]);
        let flags = spec_of(&[("page", "large-page"), ("rtt", "1s"), ("seed", "7")]);
        let both = spec_of(&[
            ("network", "modem"),
            ("page", "large-page"),
            ("runs", "5"),
            ("loss", "1%"),
            ("rtt", "1s"),
            ("seed", "7"),
        ]);
        assert_eq!(flags.over(file), both);
    }

    #[test]
    fn a_whole_path_by_flags_replaces_the_networks_of_a_file_and_their_changes() {
        let file = spec_of(&[("network", "modem"), ("loss", "1%")]);
        let merged = spec_of(&[("rtt", "89ms"), ("rate", "1mbit"), ("mss", "512")]).over(file);
        assert_eq!(merged.networks.len(), 1);
        assert_eq!(merged.networks[0].name, "custom");
        assert!(merged.path.is_empty() && merged.rtts.is_empty() && merged.rates.is_empty());
    }
}
