//! Writer from a [`Spec`] to TOML that is parsed back to the same `Spec`.

use std::fmt::Write;

use quantity::print;

use crate::network::changes::{Changes, DirectionChanges};
use crate::spec::key::{DirectionKey, PathDirection, PathKey};
use crate::{Network, Page, Spec};

impl Spec {
    /// Formats the specification as a file.
    pub fn to_toml(&self) -> String {
        let Self {
            networks,
            path,
            pages,
            protocols,
            tls,
            stacks,
            visit,
            request,
            requests,
            parallel,
            connection,
            processing,
            programs,
            sharing,
            acks,
            engines,
            runs,
            seed,
            rtts,
            rates,
        } = self;
        let mut lines = Lines::default();
        lines.push_list("network", networks.iter().map(network));
        lines.push_list("page", pages.iter().map(page));
        lines.push_list("protocol", protocols.iter().map(|protocol| quoted(protocol.name())));
        lines.push_list("tls", tls.iter().map(|tls| quoted(tls.name())));
        lines.push_list("stack", stacks.iter().map(|stack| quoted(stack.name)));
        lines.push_list("engine", engines.iter().map(|engine| quoted(engine.name())));
        lines.push_value("visit", visit.map(|visit| quoted(visit.name())));
        lines.push_value("requests", requests.map(|requests| quoted(requests.name())));
        lines.push_value("request-size", request.map(|size| size.get().to_string()));
        lines.push_value("parallel", parallel.map(|parallel| parallel.to_string()));
        lines.push_value("connection", connection.map(|connection| quoted(connection.name())));
        lines.push_value("processing", processing.map(|processing| quoted(&processing.to_string())));
        for (key, value) in programs.reported() {
            lines.push_value(key.name(), Some(quoted(&value)));
        }
        lines.push_value("sharing", sharing.map(|sharing| quoted(sharing.name())));
        lines.push_value("acks", acks.map(|acks| quoted(acks.name())));
        lines.push_value("runs", runs.map(|runs| runs.to_string()));
        lines.push_value("seed", seed.map(|seed| quoted(&seed.get().to_string())));
        lines.push_list(PathKey::Rtt.name(), rtts.iter().map(|rtt| quoted(&rtt.to_string())));
        lines.push_list(PathKey::Rate.name(), rates.iter().map(|rate| quoted(&rate.to_string())));
        for (key, value) in changes(path) {
            lines.push_value(key.name(), Some(quoted(&value)));
        }
        lines.0
    }
}

#[derive(Default)]
struct Lines(String);

impl Lines {
    fn push_value(&mut self, key: &str, value: Option<String>) {
        if let Some(value) = value {
            writeln!(self.0, "{key} = {value}").expect("a String takes anything");
        }
    }

    /// Writes one value alone, several as an array with one per line.
    fn push_list(&mut self, key: &str, values: impl Iterator<Item = String>) {
        match &values.collect::<Vec<_>>()[..] {
            [] => {}
            [value] => self.push_value(key, Some(value.clone())),
            values => self.push_value(key, Some(format!("[\n    {},\n]", values.join(",\n    ")))),
        }
    }
}

/// The network as its name; as a table of its differences from the named one it is like; or as a complete
/// table.
fn network(network: &Network) -> String {
    let like = network.like.and_then(|like| Network::named(like).ok());
    let (entries, base) = match like {
        Some(like) if like == *network => return quoted(&network.name),
        Some(like) => {
            let is_own_name = network.name_as_changed_from(&like) != network.name;
            let name = is_own_name.then(|| format!("name = {}", quoted(&network.name)));
            (name.into_iter().chain([format!("like = {}", quoted(&like.name))]).collect(), like)
        }
        None => {
            (custom_entries(network), Network::new(String::new(), network.rtt, network.rate, network.mss))
        }
    };
    let differences = network.differences(&base).into_iter();
    let differences = differences.map(|(key, value)| format!("{} = {}", key.name(), quoted(&value)));
    format!("{{ {} }}", entries.into_iter().chain(differences).collect::<Vec<_>>().join(", "))
}

fn custom_entries(network: &Network) -> Vec<String> {
    let mut entries = vec![
        format!("name = {}", quoted(&network.name)),
        format!("rtt = {}", quoted(&network.rtt.to_string())),
        format!("mss = {}", network.mss.get()),
    ];
    if network.traces.is_none() {
        entries.push(format!("rate = {}", quoted(&network.rate.to_string())));
    }
    entries
}

/// The page's name where that is sufficient; otherwise its sizes, too.
fn page(page: &Page) -> String {
    match ::page::text::page(&page.name) {
        Ok(parsed) if parsed == *page => quoted(&page.name),
        Ok(_) | Err(_) => format!("{{ name = {}, sizes = {} }}", quoted(&page.name), quoted(&page.sizes())),
    }
}

/// Changes to every path, key by key.
fn changes(changes: &Changes) -> Vec<(PathKey, String)> {
    let Changes { rtt, rate, rate_up, traces, delay_up, mss, mtu, modem, both, up, down } = changes;
    let path = [
        (PathKey::Rtt, rtt.map(|rtt| rtt.to_string())),
        (PathKey::Rate, rate.map(|rate| rate.to_string())),
        (PathKey::RateUp, rate_up.map(|rate| rate.to_string())),
        (PathKey::NetworkTrace, traces.as_ref().map(|traces| traces.to_string())),
        (PathKey::DelayUp, delay_up.map(|delay| delay.to_string())),
        (PathKey::Mss, mss.map(|mss| mss.get().to_string())),
        (PathKey::Mtu, mtu.map(|mtu| mtu.get().to_string())),
        (PathKey::Modem, modem.map(print::modem)),
    ];
    let packets = [(PathDirection::Both, both), (PathDirection::Up, up), (PathDirection::Down, down)];
    let packets = packets.into_iter().flat_map(|(towards, changes)| {
        direction(changes).map(|(key, value)| (PathKey::Packets(towards, key), value))
    });
    path.into_iter().chain(packets).filter_map(|(key, value)| Some((key, value?))).collect()
}

fn direction(changes: &DirectionChanges) -> [(DirectionKey, Option<String>); 6] {
    let DirectionChanges { queue, discipline, loss, jitter, reordering, duplication } = changes;
    [
        (DirectionKey::Queue, queue.map(print::queue)),
        (DirectionKey::QueueDiscipline, discipline.map(print::queue_discipline)),
        (DirectionKey::Loss, loss.as_ref().map(print::loss)),
        (DirectionKey::Jitter, jitter.map(print::jitter)),
        (DirectionKey::Reordering, reordering.map(print::reordering)),
        (DirectionKey::Duplication, duplication.map(print::probability)),
    ]
}

fn quoted(value: &str) -> String {
    toml::Value::from(value).to_string()
}
