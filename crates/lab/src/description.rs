//! Scenarios in words: a title, and the numbers behind the names.

use render::output::number;
use scenario::{Network, Scenario};

/// Page and network: `small-cluster over fast-internet`.
pub fn title(scenario: &Scenario) -> String {
    let visit = match scenario.visit {
        scenario::Visit::First => "",
        scenario::Visit::Revalidate => " revalidated",
    };
    format!("{}{visit} over {}", scenario.page.name, scenario.network.name)
}

/// Protocol, page and network: `http11, small-cluster over fast-internet`.
pub fn full_title(scenario: &Scenario) -> String {
    let tls = match scenario.tls {
        scenario::Tls::None => String::new(),
        tls => format!(" with TLS {}", tls.name()),
    };
    format!("{}{tls}, {}", scenario.protocol.name(), title(scenario))
}

/// The numbers behind the names, of scenarios that differ in protocol and stack alone; empty for none.
pub fn about<'a>(scenarios: impl Iterator<Item = &'a Scenario> + Clone) -> Vec<String> {
    let Some(scenario) = scenarios.clone().next() else { return Vec::new() };
    let network = &scenario.network;
    let mut parts = vec![
        number::counted(scenario.page.objects.len() as f64, "object"),
        number::counted(scenario.page.size().as_f64(), "byte"),
        format!("rtt {}", network.rtt),
        rates(network),
        format!("mss {}", network.mss.get()),
    ];
    parts.extend(path_values(network));
    parts.extend(tls(scenarios.clone()));
    parts.push(stacks(scenarios.clone()));
    parts.push(match scenario.client.requests {
        scenario::Requests::Independent => "independent requests".to_owned(),
        scenario::Requests::AfterDocument => "requests after the document".to_owned(),
        scenario::Requests::Dependent => "dependent requests".to_owned(),
    });
    parts.extend(match scenario.client.connection {
        scenario::Connection::Cold => None,
        scenario::Connection::Warm => Some("warm connection".to_owned()),
    });
    parts.extend(connections(scenarios.clone()));
    let processing = scenario.server.processing;
    let is_same = |scenario: &Scenario| scenario.server.processing == processing;
    if processing > wire::Duration::ZERO && scenarios.clone().all(is_same) {
        parts.push(format!("{processing} of server processing"));
    }
    let mut programs = scenarios.map(|scenario| scenario.programs.described());
    let first = programs.next().flatten();
    parts.extend(first.filter(|first| programs.all(|other| other.as_ref() == Some(first))));
    parts
}

/// Values of a path beside round trip, rates and segment size: `loss 2%`, `queue 20p`.
fn path_values(network: &Network) -> impl Iterator<Item = String> {
    let Network { rtt, rate, mss, .. } = *network;
    let plain = Network { rate_up: network.rate_up, ..Network::new(String::new(), rtt, rate, mss) };
    network
        .differences(&plain)
        .into_iter()
        .map(|(key, value)| format!("{} {value}", key.name().replace('-', " ")))
}

/// `1 Mbit/s`, or the rates of both directions where they differ.
fn rates(network: &Network) -> String {
    let down = number::rate(network.rate);
    match network.rate_up.filter(|up| *up != network.rate) {
        Some(up) => format!("{down} down, {} up", number::rate(up)),
        None => down,
    }
}

/// `TLS 1.3`, where all connections have it; tables show what differs.
fn tls<'a>(mut scenarios: impl Iterator<Item = &'a Scenario> + Clone) -> Option<String> {
    let tls = scenarios.clone().next()?.tls;
    let is_same = tls != scenario::Tls::None && scenarios.all(|scenario| scenario.tls == tls);
    is_same.then(|| format!("TLS {}", tls.name()))
}

/// `stack linux`, or `stacks period and linux`.
fn stacks<'a>(scenarios: impl Iterator<Item = &'a Scenario>) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in scenarios.map(|scenario| scenario.stack.name) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let plural = if names.len() > 1 { "s" } else { "" };
    format!("stack{plural} {}", names.join(" and "))
}

/// Parallel connections, where any scenario has more than one; with the protocol, where they differ.
fn connections<'a>(scenarios: impl Iterator<Item = &'a Scenario> + Clone) -> Option<String> {
    let parallel = |scenario: &Scenario| scenario.client.parallel;
    let several = scenarios.clone().find(|scenario| parallel(scenario) > 1)?;
    let (count, name) = (parallel(several), several.protocol.name());
    let is_all = scenarios.into_iter().all(|scenario| parallel(scenario) == count);
    Some(if is_all {
        format!("{count} parallel connections")
    } else {
        format!("{name}: {count} connections")
    })
}
