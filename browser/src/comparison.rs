//! Scenarios: computed by the formulas and by the simulator, then shown as `roundtrip compare` shows them.

use lab::description;
use lab::report::Report;
use lab::simulate::steps::{self, Step};
use lab::simulate::{FirstRun, sequence};
use lab::table::Layout;
use lab::waterfall::RunWaterfall;
use lab::{Outcome, best_change, outcome, predict, row, setting, simulate, waterfall};
use page::{Page, har};
use render::output::number;
use render::plot::svg::INTERACTIVE_STYLE;
use render::plot::time_sequence::picture::{Form, Picture};
use render::provenance::Provenance;
use scenario::spec::{Defaults, Key, Plan};
use scenario::{Engine, Network, Protocol, Spec, Stack};
use serde::Deserialize;
use serde_json::{Value, json};
use wire::Time;

use crate::input::PageFile;

/// Scenarios as keys and values: those of flags, in their order.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    settings: Vec<(String, String)>,
    /// Whether the pages are those of the recording.
    #[serde(default)]
    is_recorded: bool,
}

impl Experiment {
    fn plan(&self, recorded: &[Page]) -> Result<Plan, String> {
        let mut spec = Spec::default();
        for (key, text) in &self.settings {
            let named = Key::named(key).map_err(|error| error.to_string())?;
            spec.add(named, text).map_err(|error| format!("{key}: {error}"))?;
        }
        if self.is_recorded {
            if recorded.is_empty() {
                return Err("the link names a recording; drop its file on the page".to_owned());
            }
            spec.pages = recorded.to_vec();
        }
        spec.pages = spec.pages.into_iter().map(Page::over_network).collect();
        let mut plan = spec.plan(&Defaults::compare()).map_err(|error| error.to_string())?;
        plan.engines.retain(|engine| *engine != Engine::Measure);
        Ok(plan)
    }

    /// Computes the scenarios: conclusions, chart and tables as HTML, and the rows of the JSON.
    ///
    /// # Errors
    /// An invalid value.
    pub fn compare(&self, recorded: &[Page]) -> Result<Value, String> {
        let plan = self.plan(recorded)?;
        let by_engine = plan.engines.iter().map(|engine| match engine {
            Engine::Model => predict::outcomes(&plan),
            Engine::Simulate | Engine::Measure => simulate::outcomes(&plan),
        });
        let mut engines: Vec<_> = by_engine.map(Vec::into_iter).collect();
        let mut outcomes: Vec<Outcome> = Vec::new();
        for _ in &plan.scenarios {
            outcomes.extend(engines.iter_mut().filter_map(Iterator::next));
        }
        outcome::name_critical_paths(&mut outcomes);
        best_change::find(&mut outcomes);
        if let Some(reason) = outcome::nothing(&outcomes) {
            return Err(reason);
        }
        let layout = Layout::Comparison;
        let sentences = layout.conclusions(&outcomes);
        let rows = row::json(&outcomes, &setting::settings(&plan.grid));
        let report = Report { outcomes: &outcomes, layout, provenance: Provenance::default() };
        Ok(json!({ "sentences": sentences, "html": report.sections(), "rows": rows }))
    }

    /// Shows the first simulated run of the first scenario: its objects and packets in time, each packet in words, critical path
    /// and stalls.
    ///
    /// # Errors
    /// An invalid value, or a scenario that cannot be simulated.
    pub fn run(&self, recorded: &[Page]) -> Result<Value, String> {
        let plan = self.plan(recorded)?;
        let mut scenario = plan.scenarios[0].clone();
        scenario.runs = 1;
        let mut pictures = None;
        let outcome = simulate::outcome(&scenario, |first| {
            pictures = Some((packets(first), waterfall::of(first), steps::of(first, MAX_STEPS)));
        });
        let Some((packets, waterfall, (steps, packet_count))) = pictures else { return Err(outcome.notes().join("; ")) };
        let stalls = outcome.stalls.iter().map(
            |stall| json!({ "cause": stall.cause.name(), "at_ms": stall.at_ms, "lost_ms": stall.lost_ms }),
        );
        Ok(json!({
            "title": description::full_title(&scenario),
            "elapsed_ms": outcome.metrics.elapsed_ms,
            "packets": packets,
            "critical_path": waterfall.as_ref().map(RunWaterfall::sentence),
            "waterfall": waterfall.as_ref().map(RunWaterfall::html),
            "stalls": stalls.collect::<Value>(),
            "steps": steps.iter().map(step).collect::<Value>(),
            "packet_count": packet_count,
        }))
    }
}

/// Maximum number of packets that are shown one by one.
const MAX_STEPS: usize = 1_000;

/// A packet for the page, with the time at which the server sees it, as in the plot.
fn step(step: &Step) -> Value {
    let Step { sent, ended, is_lost, is_from_client, connection, kind, name, plotted, sentences, stalls } = step;
    let millis = |time: Time| time.as_millis_f64();
    let seen = if *is_from_client { ended.unwrap_or(*sent) } else { *sent };
    json!({
        "sent_ms": millis(*sent),
        "ended_ms": ended.map(millis),
        "seen_ms": millis(seen),
        "is_lost": is_lost,
        "is_from_client": is_from_client,
        "connection": connection,
        "kind": kind,
        "name": name,
        "plotted": plotted,
        "text": sentences.join(" "),
        "lost_ms": stalls.iter().map(|stall| stall.lost_ms).sum::<f64>(),
        "causes": stalls.iter().map(|stall| stall.cause.name()).collect::<Vec<_>>(),
    })
}

/// The packets of a run in time, for a page that zooms it.
fn packets(first: FirstRun<'_>) -> String {
    let FirstRun { scenario, experiment, result } = first;
    let elapsed = result.elapsed.map_or_else(
        || "failed".to_owned(),
        |elapsed| format!("{} ms", number::significant(elapsed.as_millis_f64())),
    );
    let title = format!("Bytes sent by the server, TCP as {}: {elapsed}", scenario.stack.name);
    let panel = sequence::panel(title, experiment, result);
    let title = description::full_title(scenario);
    Picture {
        title: &title,
        subtitle: "",
        panels: &[panel],
        is_one_time: true,
        source: "",
        form: Form::Interactive,
    }
    .draw()
    .replace(INTERACTIVE_STYLE, "")
}

/// The pages of a recording.
///
/// # Errors
/// The sentence of the command line.
pub fn recorded(name: &str, file: u32) -> Result<Vec<Page>, String> {
    let refused = |error: &dyn std::fmt::Display| format!("{name}: {error}");
    let bytes = unpack::unpacked(PageFile::new(file)).map_err(|error| refused(&error))?;
    har::pages(&har::page_name(name), bytes).map_err(|error| refused(&error))
}

/// Pages of a recording, as the page shows them.
pub fn summary(pages: &[Page]) -> Value {
    let page = |page: &Page| {
        json!({
            "name": page.name,
            "objects": page.objects.len(),
            "notes": page.notes,
            "html": lab::page::picture(page, "").replacen("<svg ", "<svg class=\"plot\" ", 1),
        })
    };
    pages.iter().map(page).collect()
}

/// Names that settings may have, with their descriptions.
pub fn names() -> Value {
    let listed = |listings: Vec<quantity::names::Listing>| -> Value {
        listings.into_iter().map(|one| json!({ "name": one.name, "description": one.description })).collect()
    };
    json!({
        "networks": listed(Network::listings().collect()),
        "pages": listed(Page::listings().collect()),
        "protocols": listed(Protocol::ALL.map(Protocol::listing).to_vec()),
        "stacks": listed(Stack::listings().collect()),
    })
}
