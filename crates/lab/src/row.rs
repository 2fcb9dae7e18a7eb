//! Outcomes as rows for programs: objects of a JSON array, lines of comma-separated values, in full precision.
//!
//! Both have the same keys in the same order. In CSV, lists become text: a stall is `cause@at_ms+lost_ms`, stalls and
//! notes are separated by `; `. `Option` is null in JSON and empty in CSV.

use render::output::csv::line;
use serde::ser::{Serialize, SerializeMap, Serializer};
use trace::Stall;

use crate::{Metric, Outcome, Unit};

/// An outcome as a row.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a>(pub &'a Outcome);

/// Keys of the labels.
const LABELS: [&str; 7] = ["network", "page", "visit", "protocol", "engine", "stack", "tls"];

/// Meanings of the labels.
const LABEL_MEANINGS: [&str; LABELS.len()] = [
    "The network's name.",
    "The page's name.",
    "`first` or `revalidate`.",
    "The protocol's name.",
    "`model`, `simulate` or `measure`.",
    "The stack profile's name.",
    "TLS of the connections: `none`, or the version and the kind of handshake.",
];

/// Fields of a row in their order: key, type and meaning.
pub fn fields() -> impl Iterator<Item = [&'static str; 3]> {
    let labels = LABELS.into_iter().zip(LABEL_MEANINGS).map(|(key, meaning)| [key, "string", meaning]);
    let metrics = Metric::ALL.into_iter().map(|metric| {
        let kind = if metric.unit() == Unit::Whole { "number" } else { "number or null" };
        [metric.name(), kind, metric.meaning()]
    });
    let lists = [
        ["stalls", "array", "Stalls, where the engine knows them."],
        [
            "notes",
            "array",
            "Sentences: assumptions that this scenario breaks, parts of it that the engine does not honour.",
        ],
    ];
    labels.chain(metrics).chain(lists)
}

impl<'a> Row<'a> {
    /// Names of what was run, in the order of [`LABELS`].
    fn labels(self) -> [&'a str; LABELS.len()] {
        let Outcome { scenario, engine, .. } = self.0;
        [
            &scenario.network.name,
            &scenario.page.name,
            scenario.visit.name(),
            scenario.protocol.name(),
            engine.name(),
            scenario.stack.name,
            scenario.tls.name(),
        ]
    }
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let outcome = self.0;
        let mut map = serializer.serialize_map(None)?;
        for (key, label) in LABELS.iter().zip(self.labels()) {
            map.serialize_entry(key, label)?;
        }
        for metric in Metric::ALL {
            match metric.unit() {
                Unit::Whole => map.serialize_entry(metric.name(), &outcome.metrics.runs)?,
                Unit::Milliseconds | Unit::Bytes | Unit::Percent | Unit::Ratio | Unit::Count => {
                    map.serialize_entry(metric.name(), &metric.value(outcome))?;
                }
            }
        }
        map.serialize_entry("stalls", &outcome.stalls)?;
        map.serialize_entry("notes", &outcome.notes())?;
        map.end()
    }
}

/// An array of objects.
pub fn json(outcomes: &[Outcome]) -> String {
    render::output::json(&outcomes.iter().map(Row).collect::<Vec<_>>())
}

/// A heading line and a line for each outcome, with CRLF as in RFC 4180.
pub fn csv(outcomes: &[Outcome]) -> String {
    let metrics = Metric::ALL.map(Metric::name);
    let heading = LABELS.into_iter().chain(metrics).chain(["stalls", "notes"]).map(str::to_owned);
    std::iter::once(line(heading)).chain(outcomes.iter().map(|outcome| line(cells(Row(outcome))))).collect()
}

fn cells(row: Row<'_>) -> impl Iterator<Item = String> {
    let outcome = row.0;
    let number = |metric: Metric| metric.value(outcome).map(|value| value.to_string()).unwrap_or_default();
    let stalls = outcome.stalls.iter().map(stall).collect::<Vec<_>>().join("; ");
    let labels = row.labels().into_iter().map(str::to_owned);
    labels.chain(Metric::ALL.into_iter().map(number)).chain([stalls, outcome.notes().join("; ")])
}

fn stall(stall: &Stall) -> String {
    let Stall { cause, at_ms, lost_ms } = stall;
    format!("{cause}@{at_ms}+{lost_ms}")
}

#[cfg(test)]
mod tests {
    use scenario::{Defaults, Spec};

    use super::*;

    #[test]
    fn json_and_csv_have_the_same_keys_in_the_same_order() {
        let plan = Spec::default().plan(&Defaults::predict()).unwrap();
        let outcomes = crate::predict::outcomes(&plan);
        let (json, csv) = (json(&outcomes), csv(&outcomes));
        // Keys of an object that is not in a list have four spaces before them.
        let keys = json.lines().filter_map(|line| line.strip_prefix("    \"")?.split_once("\":"));
        let keys: Vec<&str> = keys.map(|(key, _)| key).collect();
        let heading: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
        assert_eq!(keys[..heading.len()], heading);
        assert_eq!(fields().map(|[key, ..]| key).collect::<Vec<_>>(), heading);
        assert_eq!(keys.len(), heading.len() * outcomes.len());
        assert_eq!(csv.lines().count(), outcomes.len() + 1);
    }
}
