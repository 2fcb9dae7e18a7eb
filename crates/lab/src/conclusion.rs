//! The conclusions of a comparison in sentences: savings of the best protocols, and agreement of the engines.
//!
//! They repeat the table's numbers.

use render::output::number;
use scenario::{Engine, Protocol, Scenario};

use crate::comparison::{ComparisonRow, lines, ratio};
use crate::{Outcome, best_change, grid, setting};

/// Savings of the best protocols, and agreement of the engines; fewer sentences where there is nothing to report.
pub fn sentences(outcomes: &[Outcome]) -> Vec<String> {
    let groups = named_groups(outcomes);
    let pairs: [(&str, &str, Ratio); 3] = [
        ("Simulated", "predicted", |line| ratio(line.simulated, line.predicted)),
        ("Measured", "predicted", |line| ratio(line.measured, line.predicted)),
        ("Simulated", "measured", |line| ratio(line.simulated, line.measured)),
    ];
    let agreements = pairs.map(|(engine, other, of)| agreement(&groups, engine, other, of));
    std::iter::once(savings(&groups)).chain(agreements).chain([critical_path(outcomes)]).flatten().collect()
}

/// The critical path of the fastest simulated run of one page, and the change that saves most there.
fn critical_path(outcomes: &[Outcome]) -> Option<String> {
    if outcomes.windows(2).any(|pair| pair[0].scenario.page.name != pair[1].scenario.page.name) {
        return None;
    }
    let fastest = &outcomes[best_change::fastest(outcomes)?];
    let waterfall = fastest.waterfall.as_ref()?;
    let Scenario { network, protocol, .. } = &fastest.scenario;
    let saving = fastest.saving.as_ref().map(|saving| format!(" {}", saving.sentence())).unwrap_or_default();
    let (protocol, path) = (protocol.name(), waterfall.sentence());
    Some(format!("Fastest simulated, by {protocol} on {}. {path}{saving}", network.name))
}

/// A ratio of two engines' times in one line.
type Ratio = fn(&ComparisonRow<'_>) -> Option<f64>;

/// Baseline of savings: a connection for every object, as the Web began.
const BASELINE: Protocol = Protocol::Http10;
/// Maximum number of networks and pages to list; with more, a sentence gives only the maximum and the minimum.
const MAX_LISTED: usize = 3;

/// One network and page.
struct Group<'a> {
    context: String,
    /// Whether rows of one protocol differ in more than the stack.
    is_varied: bool,
    lines: Vec<ComparisonRow<'a>>,
}

/// The groups, each named by its difference from the others.
fn named_groups<'a>(outcomes: &'a [Outcome]) -> Vec<Group<'a>> {
    let groups: Vec<&[Outcome]> = grid::groups(outcomes).collect();
    let differ = |of: fn(&Scenario) -> &str| {
        groups.windows(2).any(|pair| of(&pair[0][0].scenario) != of(&pair[1][0].scenario))
    };
    let (networks, pages) = (differ(network), differ(page));
    let context = |scenario: &Scenario| match (networks, pages) {
        (_, false) => format!("on {}", network(scenario)),
        (false, true) => format!("for {}", page(scenario)),
        (true, true) => format!("for {} on {}", page(scenario), network(scenario)),
    };
    let of = |group: &&'a [Outcome]| {
        let is_varied = !setting::varied(group).is_empty();
        Group { context: context(&group[0].scenario), is_varied, lines: lines(group) }
    };
    groups.iter().map(of).collect()
}

fn network(scenario: &Scenario) -> &str {
    &scenario.network.name
}

fn page(scenario: &Scenario) -> &str {
    &scenario.page.name
}

impl<'a> Group<'a> {
    /// The first line of a protocol, whatever its stack.
    fn line(&self, protocol: Protocol) -> Option<&ComparisonRow<'a>> {
        self.lines.iter().find(|line| line.outcomes().any(|outcome| outcome.scenario.protocol == protocol))
    }

    /// Saving of a protocol relative to the baseline's time; both by the same engine.
    fn saving(&self, protocol: Protocol) -> Option<Saving<'_>> {
        let (baseline, other) = (self.line(BASELINE)?.best()?, self.line(protocol)?.best()?);
        let stacks = [baseline, other].map(|outcome| outcome.scenario.stack.name);
        if self.is_varied || baseline.engine != other.engine || stacks[0] != stacks[1] {
            return None;
        }
        let of_ms = baseline.metrics.elapsed_ms?;
        let (engine, context) = (other.engine, &self.context);
        Some(Saving { engine, context, saved_ms: of_ms - other.metrics.elapsed_ms?, of_ms })
    }
}

/// A saving, the time it is relative to, and the network and page.
struct Saving<'a> {
    engine: Engine,
    context: &'a str,
    saved_ms: f64,
    of_ms: f64,
}

impl Saving<'_> {
    fn share(&self) -> f64 {
        self.saved_ms / self.of_ms
    }

    /// The verb in singular and plural, with its object.
    fn verb_and_object(&self) -> ([&'static str; 2], String) {
        let Self { engine: _, context, saved_ms, of_ms } = self;
        let of = number::significant(*of_ms);
        let amount = number::significant(saved_ms.abs());
        // Less than 1% gets no figure.
        if self.share().abs() < 0.01 {
            (["changes", "change"], format!("nothing {context}"))
        } else if *saved_ms > 0.0 {
            (["saves", "save"], format!("{amount} ms of {of} {context}"))
        } else {
            (["costs", "cost"], format!("{amount} ms more than {of} {context}"))
        }
    }
}

/// `Measured, keep-alive saves 660 ms of 1,730 on fast-internet and 1.40 ms of 26.8 on ethernet.`
fn savings(groups: &[Group<'_>]) -> Option<String> {
    let mut best: Option<(f64, Vec<Protocol>, Vec<Saving<'_>>)> = None;
    for protocol in
        Protocol::ALL.into_iter().filter(|protocol| ![Protocol::Minimum, BASELINE].contains(protocol))
    {
        let savings: Vec<Saving<'_>> = groups.iter().filter_map(|group| group.saving(protocol)).collect();
        let total: f64 = savings.iter().map(Saving::share).sum();
        match &mut best {
            _ if savings.is_empty() => {}
            // The formulas give the same figures for several protocols.
            Some((highest, protocols, _)) if (total - *highest).abs() < 1e-9 => protocols.push(protocol),
            Some((highest, _, _)) if total < *highest => {}
            Some(_) | None => best = Some((total, vec![protocol], savings)),
        }
    }
    let (_, protocols, savings) = best?;
    Some(sentence(&protocols, savings))
}

fn sentence(protocols: &[Protocol], mut savings: Vec<Saving<'_>>) -> String {
    let is_summarised = savings.len() > MAX_LISTED;
    if is_summarised {
        savings.sort_by(|a, b| b.share().total_cmp(&a.share()));
        savings.drain(1..savings.len() - 1);
    }
    let predicates: Vec<(&str, String)> = savings
        .iter()
        .map(|saving| {
            let ([singular, plural], object) = saving.verb_and_object();
            (if protocols.len() == 1 { singular } else { plural }, object)
        })
        .collect();
    let subjects: Vec<String> = protocols.iter().map(|protocol| subject(*protocol).to_owned()).collect();
    let predicate = match predicates.as_slice() {
        [(verb, highest), (same, lowest)] if is_summarised && verb == same => {
            format!("{verb} from {highest} to {lowest}")
        }
        _ => series(&without_repeated_verbs(&predicates)),
    };
    capitalised(&format!("{}{} {predicate}.", engine_prefix(&savings), series(&subjects)))
}

/// The engine of these figures; empty if they have several.
fn engine_prefix(savings: &[Saving<'_>]) -> &'static str {
    match savings.first().map(|saving| saving.engine) {
        Some(first) if savings.iter().any(|saving| saving.engine != first) => "",
        Some(Engine::Measure) => "measured, ",
        Some(Engine::Simulate) => "simulated, ",
        Some(Engine::Model) => "by the model, ",
        None => "",
    }
}

fn without_repeated_verbs(predicates: &[(&str, String)]) -> Vec<String> {
    let mut previous = "";
    predicates
        .iter()
        .map(|(verb, object)| {
            let part = if *verb == previous { object.clone() } else { format!("{verb} {object}") };
            previous = verb;
            part
        })
        .collect()
}

fn capitalised(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// `one`, `one and two`, `one, two and three`.
fn series(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [only] => only.clone(),
        [previous @ .., last] => format!("{} and {last}", previous.join(", ")),
    }
}

/// The protocol's name within a sentence.
const fn subject(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Minimum => "the minimum",
        Protocol::Http10 => "HTTP/1.0",
        Protocol::Http10KeepAlive => "keep-alive",
        Protocol::Http11 => "HTTP/1.1",
        Protocol::Http11Parallel => "HTTP/1.1 over parallel connections",
        Protocol::Http11Pipelined => "pipelining",
        Protocol::Http11PipelinedDeflate => "pipelining with deflate",
        Protocol::Ttcp => "T/TCP",
        Protocol::Ardp => "ARDP",
        Protocol::Dhttp => "DHTTP",
        Protocol::Http2 => "HTTP/2",
        Protocol::Http3 => "HTTP/3",
        Protocol::Http3Upgrade => "HTTP/3 after HTTP/2",
    }
}

/// The range of one engine's times divided by another's.
fn agreement(
    groups: &[Group<'_>],
    engine: &str,
    other: &str,
    of: fn(&ComparisonRow<'_>) -> Option<f64>,
) -> Option<String> {
    let ratios = groups.iter().flat_map(|group| {
        let known = |line| {
            Some((of(line)?, line.outcomes().next()?.scenario.protocol.name(), group.context.as_str()))
        };
        group.lines.iter().filter_map(known)
    });
    let mut ratios: Vec<_> = ratios.collect();
    ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (lowest, highest) = (ratios.first()?, ratios.last()?);
    let (low, high) = (number::ratio(lowest.0), number::ratio(highest.0));
    if low == high {
        return Some(format!("{engine} times are {low} times the {other} ones."));
    }
    let (_, protocol, context) = if highest.0 - 1.0 > 1.0 - lowest.0 { highest } else { lowest };
    Some(format!(
        "{engine} times are {low} to {high} times the {other} ones; the farthest apart is {protocol} {context}."
    ))
}

#[cfg(test)]
mod tests {
    use scenario::Spec;
    use scenario::spec::{Defaults, Key};

    use super::*;
    use crate::test_outcomes;

    /// The model's results for the two protocols of a comparison, with other times.
    fn predicted(networks: &str, times_ms: &[f64]) -> Vec<Outcome> {
        let mut spec = Spec::default();
        for network in networks.split(',') {
            spec.set(Key::Network, network).unwrap();
        }
        let mut outcomes = test_outcomes::outcomes(&spec.plan(&Defaults::compare()).unwrap());
        for (outcome, elapsed_ms) in outcomes.iter_mut().zip(times_ms) {
            outcome.metrics.elapsed_ms = Some(*elapsed_ms);
        }
        outcomes
    }

    /// The same, measured: each `factor` times as long.
    fn measured(predicted: &[Outcome], factors: &[f64]) -> Vec<Outcome> {
        let mut measured = predicted.to_vec();
        for (outcome, factor) in measured.iter_mut().zip(factors) {
            outcome.engine = Engine::Measure;
            outcome.metrics.elapsed_ms = outcome.metrics.elapsed_ms.map(|elapsed_ms| elapsed_ms * factor);
        }
        measured
    }

    #[test]
    fn each_network_gets_its_saving_with_the_right_verb() {
        let outcomes = predicted("fast-internet,ethernet", &[1730.0, 1070.0, 26.8, 26.7]);
        let expected = "By the model, keep-alive saves 660 ms of 1,730 on fast-internet and changes nothing on ethernet.";
        assert_eq!(sentences(&outcomes), [expected]);
        let outcomes = predicted("modem", &[100.0, 150.0]);
        assert_eq!(sentences(&outcomes), ["By the model, keep-alive costs 50.0 ms more than 100 on modem."]);
    }

    #[test]
    fn many_networks_are_summarised_by_maximum_and_minimum() {
        let times = [100.0, 90.0, 100.0, 40.0, 100.0, 60.0, 100.0, 80.0];
        let outcomes = predicted("modem,isdn,adsl,direcpc", &times);
        assert_eq!(
            sentences(&outcomes),
            ["By the model, keep-alive saves from 60.0 ms of 100 on isdn to 10.0 ms of 100 on modem."]
        );
    }

    #[test]
    fn measurements_take_precedence_and_are_compared_with_predictions() {
        let predicted = predicted("modem", &[100.0, 80.0]);
        let measured = measured(&predicted, &[1.5, 0.98]);
        let outcomes = [predicted, measured].concat();
        let expected = [
            "Measured, keep-alive saves 71.6 ms of 150 on modem.",
            "Measured times are 0.98 to 1.50 times the predicted ones; the farthest apart is http10 on modem.",
        ];
        assert_eq!(sentences(&outcomes), expected);
    }

    #[test]
    fn without_a_baseline_there_is_no_sentence() {
        let alone: Vec<Outcome> = predicted("modem", &[100.0, 80.0]).split_off(1);
        assert_eq!(sentences(&alone), [""; 0]);
    }
}
