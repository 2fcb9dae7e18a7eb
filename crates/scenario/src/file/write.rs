//! Writer from a [`Spec`] to TOML that is parsed back to the same `Spec`.

use std::fmt::Write;

use crate::spec::Key;
use crate::spec::key::PathKey;
use crate::{Network, Page, Spec};

impl Spec {
    /// Formats the specification as a file.
    pub fn to_toml(&self) -> String {
        let Self { networks, pages, protocols, tls, stacks, engines, rtts, rates, axes, .. } = self;
        let mut lines = Lines::default();
        lines.push_list("network", networks.iter().map(network));
        lines.push_list("page", pages.iter().map(page));
        lines.push_list("protocol", protocols.iter().map(|protocol| quoted(protocol.name())));
        lines.push_list("tls", tls.iter().map(|tls| quoted(tls.name())));
        lines.push_list("stack", stacks.iter().map(|stack| quoted(stack.name)));
        lines.push_list("engine", engines.iter().map(|engine| quoted(engine.name())));
        lines.push_list(PathKey::Rtt.name(), rtts.iter().map(|rtt| quoted(&rtt.to_string())));
        lines.push_list(PathKey::Rate.name(), rates.iter().map(|rate| quoted(&rate.to_string())));
        for (key, value) in self.values() {
            match axes.iter().find(|axis| axis.key == key) {
                Some(axis) => {
                    lines.push_list(key.name(), axis.values.iter().map(|value| literal(key, value)))
                }
                None => lines.push_value(key.name(), Some(literal(key, &value))),
            }
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
        // The reader adds the other values to the name of a custom network.
        format!("name = {}", quoted(network.name.split('+').next().unwrap_or_default())),
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

/// A value as a number where files usually have one, else as a text.
fn literal(key: Key, value: &str) -> String {
    match key {
        Key::RequestSize | Key::Parallel | Key::Runs => value.to_owned(),
        _ => quoted(value),
    }
}

fn quoted(value: &str) -> String {
    toml::Value::from(value).to_string()
}
