//! First runs of several scenarios as one time-sequence plot, a panel each.

use render::output::number;
use render::plot::time_sequence::Panel;
use render::plot::time_sequence::picture::{Form, Picture};
use scenario::Scenario;

use super::{FirstRun, sequence};
use crate::description;
use crate::setting::{self, Setting};

/// Panels under a title; each names what the title does not.
#[derive(Debug)]
pub struct Panels {
    /// In the order of the runs.
    pub panels: Vec<Panel>,
    title: String,
    subtitle: String,
    source: String,
    have_same_title: bool,
    varied: Vec<Setting>,
}

impl Panels {
    /// No panels yet, of runs of these scenarios.
    pub fn new(scenarios: &[Scenario]) -> Self {
        let have_same_title =
            scenarios.windows(2).all(|pair| description::title(&pair[0]) == description::title(&pair[1]));
        let (title, subtitle) = match scenarios.first().filter(|_| have_same_title) {
            Some(first) => (description::title(first), description::about(scenarios.iter()).join(", ")),
            None => ("Packets in time".to_owned(), String::new()),
        };
        let seed = scenarios.first().map_or(0, |first| first.seed.get());
        let source = format!("roundtrip simulate, version {}, seed {seed}", env!("CARGO_PKG_VERSION"));
        let varied = setting::varied_between(scenarios.iter());
        Self { panels: Vec::new(), title, subtitle, source, have_same_title, varied }
    }

    /// Adds the panel of a scenario's first run.
    pub fn add(&mut self, first: FirstRun<'_>) {
        let FirstRun { scenario, experiment, result } = first;
        let elapsed = result.elapsed.map_or_else(
            || "failed".to_owned(),
            |elapsed| format!("{} ms", number::significant(elapsed.as_millis_f64())),
        );
        let subject = match self.have_same_title {
            true => scenario.protocol.name().to_owned(),
            false => description::full_title(scenario),
        };
        let subject = match setting::described(&self.varied, scenario) {
            varied if varied.is_empty() => subject,
            varied => format!("{subject}, {varied}"),
        };
        let title = format!("{subject}, TCP as {}: {elapsed}", scenario.stack.name);
        self.panels.push(sequence::panel(title, experiment, result));
    }

    /// Renders all panels.
    pub fn svg(&self) -> String {
        let Self { panels, title, subtitle, source, have_same_title, varied: _ } = self;
        Picture { title, subtitle, panels, is_one_time: *have_same_title, source, form: Form::Print }.draw()
    }
}
