//! Prometheus metrics of the services, from their counters.

use std::collections::BTreeMap;

use super::{cell, table};

/// The page.
pub fn page() -> String {
    let server = dhttp::counters::Counters::text(&[dhttp::counters::Counters::default()]);
    let cache = dhttp_proxy::cache::counters::Counters::default().metrics((0, 0));
    let origin = dhttp_proxy::origin::counters::Counters::default();
    let origin = dhttp_proxy::origin::counters::Counters::text(&[origin]);
    let gateway = dhttp_proxy::gateway::counters::Counters::default().metrics();
    let nat = dhttp_proxy::nat::counters::Counters::default();
    let nat = dhttp_proxy::nat::counters::Counters::text(&[nat]);
    let mut text = "# Metrics\n\nGenerated from the counters of the services. `--metrics ADDR:PORT` serves them in \
                    Prometheus' text format, version 0.0.4, at any path. Names that end in `_total` are counters, the \
                    others gauges. The names of the previous version, without the prefix, with `answers` and `why`, \
                    are aliases.\n"
        .to_owned();
    for (title, metrics) in [
        ("Server: `serve` and `cache`", server),
        ("Cache: `cache`, `serve --origin` and `gateway --cache`", cache),
        ("Requests to origins: `cache` and `serve --origin`", dhttp_proxy::fetches::metrics()),
        ("Origin: `serve --origin`", origin),
        ("Gateway: `gateway`", gateway),
        ("NAT helper: `nat`", nat),
    ] {
        text += &format!("\n## {title}\n\n{}", table(&["metric", "labels", "meaning"], &rows(&metrics)));
    }
    text
}

/// A row for each metric, in the order of the text.
fn rows(metrics: &str) -> Vec<Vec<String>> {
    let mut helps = Vec::new();
    let mut labels: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in metrics.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            helps.push(help.split_once(' ').expect("a name and its help"));
        } else if !line.starts_with('#') {
            let sample = line.split_whitespace().next().unwrap_or_default();
            let (name, label) = sample.split_once('{').unwrap_or((sample, ""));
            labels.entry(name).or_default().push(label.trim_end_matches('}'));
        }
    }
    let row = |(name, help): (&str, &str)| {
        let labels = labels.get(name).into_iter().flatten().filter(|label| !label.is_empty());
        let labels: Vec<String> = labels.map(|label| format!("`{label}`")).collect();
        vec![format!("`{name}`"), labels.join(", "), cell(help)]
    };
    helps.into_iter().map(row).collect()
}
