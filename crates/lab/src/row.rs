//! Outcomes as rows for programs: objects of a JSON array, lines of comma-separated values, in full precision.
//!
//! Both have the same keys in the same order: names of what was run, its settings ([`crate::setting`]), metrics, lists. In
//! CSV, lists become text: a stall is `cause@at_ms+lost_ms`, stalls and notes are separated by `; `. `Option` is null in
//! JSON and empty in CSV. `stalls` has a line for each stall.

use render::output::csv::line;
use scenario::{Engine, Scenario};
use serde::ser::{Serialize, SerializeMap, Serializer};
use trace::Stall;

use crate::setting::Setting;
use crate::waterfall::Wait;
use crate::{Metric, Outcome, Unit};

/// An outcome as a row, with these settings.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a>(pub &'a Outcome, pub &'a [Setting]);

/// Keys of the labels.
pub const LABELS: [&str; 7] = ["network", "page", "visit", "protocol", "engine", "stack", "tls"];

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

/// Fields of rows of pages that are graphs, before `stalls`: key, type and meaning.
pub fn graph_fields() -> impl Iterator<Item = [&'static str; 3]> {
    let metrics = Wait::ALL.into_iter().map(Metric::CriticalPath);
    metrics.map(|metric| [metric.name(), "number or null", metric.meaning()])
}

/// Names of what was run, in the order of [`LABELS`].
pub fn labels(scenario: &Scenario, engine: Engine) -> [&str; LABELS.len()] {
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

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let outcome = self.0;
        let mut map = serializer.serialize_map(None)?;
        for (key, label) in LABELS.iter().zip(labels(&outcome.scenario, outcome.engine)) {
            map.serialize_entry(key, label)?;
        }
        for setting in self.1 {
            map.serialize_entry(&setting.name, &setting.value(&outcome.scenario))?;
        }
        for metric in Metric::of_rows(self.1) {
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
pub fn json(outcomes: &[Outcome], settings: &[Setting]) -> String {
    render::output::json(&outcomes.iter().map(|outcome| Row(outcome, settings)).collect::<Vec<_>>())
}

/// A heading line and a line for each outcome, with CRLF as in RFC 4180.
pub fn csv(outcomes: &[Outcome], settings: &[Setting]) -> String {
    let lines = outcomes.iter().map(|outcome| csv_line(outcome, settings));
    std::iter::once(csv_heading(settings)).chain(lines).collect()
}

/// The heading line.
pub fn csv_heading(settings: &[Setting]) -> String {
    let metrics = Metric::of_rows(settings).map(Metric::name).chain(["stalls", "notes"]).map(str::to_owned);
    line(identity_heading(settings).chain(metrics))
}

/// The line of an outcome.
pub fn csv_line(outcome: &Outcome, settings: &[Setting]) -> String {
    let number = |metric: Metric| metric.value(outcome).map(|value| value.to_string()).unwrap_or_default();
    let stalls = outcome.stalls.iter().map(stall).collect::<Vec<_>>().join("; ");
    let metrics = Metric::of_rows(settings).map(number);
    line(
        identity(&outcome.scenario, outcome.engine, settings)
            .chain(metrics)
            .chain([stalls, outcome.notes().join("; ")]),
    )
}

/// The beginning of a line, which says what was run.
pub fn csv_identity(scenario: &Scenario, engine: Engine, settings: &[Setting]) -> String {
    line(identity(scenario, engine, settings)).trim_end().to_owned() + ","
}

/// Heading line of the table of stalls.
pub fn stalls_heading(settings: &[Setting]) -> String {
    line(["row".to_owned()].into_iter().chain(identity_heading(settings)).chain(STALL.map(str::to_owned)))
}

/// A line for each stall of an outcome, which is row `number` of its results, from 1.
pub fn stalls_lines(number: usize, outcome: &Outcome, settings: &[Setting]) -> String {
    let lines = outcome.stalls.iter().map(|Stall { cause, at_ms, lost_ms }| {
        let cells = [cause.to_string(), at_ms.to_string(), lost_ms.to_string()];
        line(
            [number.to_string()]
                .into_iter()
                .chain(identity(&outcome.scenario, outcome.engine, settings))
                .chain(cells),
        )
    });
    lines.collect()
}

/// Columns of a stall.
pub const STALL: [&str; 3] = ["cause", "at_ms", "lost_ms"];

fn identity_heading(settings: &[Setting]) -> impl Iterator<Item = String> {
    LABELS.into_iter().map(str::to_owned).chain(settings.iter().map(|setting| setting.name.clone()))
}

fn identity(scenario: &Scenario, engine: Engine, settings: &[Setting]) -> impl Iterator<Item = String> {
    let labels = labels(scenario, engine).into_iter().map(str::to_owned);
    labels.chain(settings.iter().map(|setting| setting.value(scenario).cell()))
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
        let (json, csv) = (json(&outcomes, &[]), csv(&outcomes, &[]));
        // Keys of an object that is not in a list have four spaces before them.
        let keys = json.lines().filter_map(|line| line.strip_prefix("    \"")?.split_once("\":"));
        let keys: Vec<&str> = keys.map(|(key, _)| key).collect();
        let heading: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
        assert_eq!(keys[..heading.len()], heading);
        assert_eq!(fields().map(|[key, ..]| key).collect::<Vec<_>>(), heading);
        assert_eq!(keys.len(), heading.len() * outcomes.len());
        assert_eq!(csv.lines().count(), outcomes.len() + 1);
    }

    #[test]
    fn rows_of_graphs_have_the_shares_of_the_critical_path_and_others_have_not() {
        let page = "[[object]]\nsize = 9000\n[[object]]\nsize = 20000\nafter = ['1 + 40ms']";
        let mut spec = Spec::default();
        spec.pages = vec![page::file::read("two", page).unwrap()];
        spec.set(scenario::spec::Key::Network, "4g").unwrap();
        let plan = spec.plan(&Defaults::laboratory()).unwrap();
        let settings = crate::setting::settings(&plan.grid);
        let outcomes =
            [crate::simulate::outcome(&plan.scenarios[0], |_| ()), crate::predict::outcomes(&plan).remove(0)];
        let lines: Vec<Vec<String>> = [csv_heading(&settings)]
            .into_iter()
            .chain(outcomes.iter().map(|outcome| csv_line(outcome, &settings)))
            .map(|line| line.split(',').map(str::to_owned).collect())
            .collect();
        let first = lines[0].iter().position(|key| key == "critical_path_think_percent").unwrap();
        let keys: Vec<&str> = lines[0][first..first + 9].iter().map(String::as_str).collect();
        assert_eq!(keys, graph_fields().map(|[key, ..]| key).collect::<Vec<_>>());
        let shares: Vec<f64> = lines[1][first..first + 9].iter().map(|cell| cell.parse().unwrap()).collect();
        assert!((shares.iter().sum::<f64>() - 100.0).abs() < 1e-6, "{shares:?}");
        let elapsed_ms = outcomes[0].metrics.elapsed_ms.unwrap();
        assert!((shares[0] - 100.0 * 40.0 / elapsed_ms).abs() < 1e-6, "{shares:?} of {elapsed_ms}");
        assert!(lines[2][first..first + 9].iter().all(String::is_empty), "the formulas have no path");
        assert!(csv_heading(&settings).contains(",requests,elapsed_ms,"));
        assert!(!csv_heading(&[]).contains("critical_path"));
        assert_eq!(json(&outcomes, &settings).matches("\"critical_path_transfer_percent\":").count(), 2);
    }

    #[test]
    fn lines_begin_with_what_was_run_and_every_stall_has_one() {
        let spec =
            Spec::from_toml("network = 'modem'\nloss = ['0%', '1%']\nprotocol = 'http11'", "file").unwrap();
        let plan = spec.plan(&Defaults::laboratory()).unwrap();
        let settings = crate::setting::settings(&plan.grid);
        let outcomes = crate::predict::outcomes(&plan);
        assert!(
            csv_heading(&settings)
                .starts_with("network,page,visit,protocol,engine,stack,tls,loss_percent,elapsed_ms,")
        );
        let identity = "modem+loss=1%,small-cluster,first,http11,model,period,none,1,";
        assert_eq!(csv_identity(&outcomes[1].scenario, outcomes[1].engine, &settings), identity);
        assert!(csv_line(&outcomes[1], &settings).starts_with(identity));
        let lines = stalls_lines(2, &outcomes[1], &settings);
        assert!(lines.lines().count() == outcomes[1].stalls.len() && !lines.is_empty());
        assert!(lines.lines().all(|line| line.starts_with(&format!("2,{identity}"))), "{lines}");
    }
}
