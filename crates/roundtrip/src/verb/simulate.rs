//! `roundtrip simulate`: page loads in packets and virtual time.

use std::io;
use std::path::Path;

use ::simulate::capture::CapturePoint;
use render::output::number;
use render::output::table::{self, Layout};
use render::plot::time_sequence::Panel;
use render::plot::time_sequence::picture::{Form, Picture};
use render::plot::time_sequence::xplot;
use reproduce::engine::simulate::{probes, sequence, visits};
use reproduce::engine::{self, simulate};
use scenario::Scenario;
use scenario::spec::{Defaults, Key, Plan};

use crate::cli::{PcapAt, Simulate};
use crate::failure::{Failure, shown};
use crate::feature::Feature;
use crate::file;
use crate::plan_flags;
use crate::plots::raster::Raster;
use crate::show::Results;

/// Prints a row for each scenario.
pub fn run(arguments: &Simulate) -> Result<(), Failure> {
    let Simulate { scenario, runs, plot, probe, har, pcap, pcap_at, output, advanced } = arguments;
    let runs: Vec<(Key, &str)> = runs.iter().map(|runs| (Key::Runs, runs.as_str())).collect();
    let plan = plan_flags::plan(scenario, advanced, &runs, &Defaults::laboratory())?;
    let kind = plot.as_deref().map(PlotKind::of).transpose()?;
    for path in output.report.iter().chain(pcap).chain(plot).chain(probe).chain(har) {
        file::check(path)?;
    }
    let outcomes = simulate::outcomes(&plan);
    if let Some(reason) = engine::nothing(&outcomes) {
        return Err(Failure::Value(reason));
    }
    if let Some(path) = pcap {
        file::write_with(path, |out| capture(&plan, *pcap_at, out))?;
    }
    if let Some(path) = probe {
        file::write_with(path, |out| probes::write(&plan, out))?;
    }
    if let Some(path) = har {
        file::write(path, visits::file(&plan, &outcomes).as_bytes())?;
    }
    if let (Some(path), Some(kind)) = (plot, kind) {
        file::write(path, &plot_of(&plan, path, kind)?)?;
    }
    Results { outcomes, layout: Layout::Rows, provenance: simulate::provenance(&plan) }.show(output)
}

/// Writes the packets of each scenario's first run as a section of the file, named by its comment. A scenario that
/// cannot be simulated has none.
fn capture(plan: &Plan, at: PcapAt, mut out: &mut dyn io::Write) -> io::Result<()> {
    let at = match at {
        PcapAt::Client => CapturePoint::Client,
        PcapAt::Server => CapturePoint::Server,
        PcapAt::Both => CapturePoint::Both,
    };
    for scenario in &plan.scenarios {
        if let Ok((_, fetched)) = simulate::first_run(scenario) {
            ::simulate::capture::write(&fetched.records, at, &mut out, &title(scenario))?;
        }
    }
    Ok(())
}

/// Format of a plot, by its file name extension.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PlotKind {
    Svg,
    Png,
    Xplot,
}

impl PlotKind {
    /// Returns the format; SVG for names without an extension, such as `/dev/stdout`.
    ///
    /// # Errors
    /// An unknown extension.
    fn of(path: &Path) -> Result<Self, Failure> {
        match path.extension().map(|end| end.to_ascii_lowercase()) {
            None => Ok(Self::Svg),
            Some(end) if end == "svg" => Ok(Self::Svg),
            Some(end) if end == "png" => {
                Feature::Png.require(&format!("--plot {}", shown(path)))?;
                Ok(Self::Png)
            }
            Some(end) if end == "xpl" => Ok(Self::Xplot),
            Some(_) => Err(Failure::Value(format!(
                "--plot {}: not a format of plots; give FILE.svg, FILE.png or FILE.xpl",
                shown(path)
            ))),
        }
    }
}

/// Renders the plot.
fn plot_of(plan: &Plan, path: &Path, kind: PlotKind) -> Result<Vec<u8>, Failure> {
    let is_shared = have_same_title(&plan.scenarios);
    let first_scenarios = plan.scenarios.iter().take(MAX_PANELS + 1);
    let panels: Vec<Panel> = first_scenarios.filter_map(|scenario| panel(scenario, is_shared)).collect();
    let refused = |reason: &str| Err(Failure::Value(format!("--plot {}: {reason}", shown(path))));
    match (kind, panels.as_slice()) {
        (PlotKind::Xplot, [panel]) => Ok(xplot::file(panel).into_bytes()),
        (PlotKind::Xplot, _) => refused("xplot shows one run; name one network, page, protocol and stack"),
        (PlotKind::Svg | PlotKind::Png, panels) if panels.len() > MAX_PANELS => {
            refused(&format!("more than {MAX_PANELS} runs are too many for a picture; name fewer"))
        }
        (PlotKind::Svg, panels) => Ok(picture(&plan.scenarios, panels).into_bytes()),
        (PlotKind::Png, panels) => Raster::new()
            .image(&picture(&plan.scenarios, panels))
            .map_err(|error| Failure::Write { path: path.to_owned(), error }),
    }
}

/// Maximum number of distinguishable panels.
const MAX_PANELS: usize = 20;

/// Renders all panels under a title with their page and network.
fn picture(scenarios: &[Scenario], panels: &[Panel]) -> String {
    let Some(first) = scenarios.first() else { return String::new() };
    let source =
        format!("roundtrip simulate, version {}, seed {}", env!("CARGO_PKG_VERSION"), first.seed.get());
    let (title, subtitle) = match have_same_title(scenarios) {
        true => (table::title(first), table::about(scenarios.iter()).join(", ")),
        false => ("Packets in time".to_owned(), String::new()),
    };
    let is_one_time = have_same_title(scenarios);
    Picture { title: &title, subtitle: &subtitle, panels, is_one_time, source: &source, form: Form::Print }
        .draw()
}

/// Whether all scenarios have the same page and network.
fn have_same_title(scenarios: &[Scenario]) -> bool {
    scenarios.windows(2).all(|pair| table::title(&pair[0]) == table::title(&pair[1]))
}

/// Returns the panel of a scenario's first run, if it can be simulated; its title omits what all panels share.
fn panel(scenario: &Scenario, have_same_title: bool) -> Option<Panel> {
    let (experiment, fetched) = simulate::first_run(scenario).ok()?;
    let elapsed = fetched.elapsed.map_or_else(
        || "failed".to_owned(),
        |elapsed| format!("{} ms", number::significant(elapsed.as_millis_f64())),
    );
    let subject = if have_same_title { scenario.protocol.name().to_owned() } else { title(scenario) };
    let title = format!("{subject}, TCP as {}: {elapsed}", scenario.stack.name);
    Some(sequence::panel(title, &experiment, &fetched))
}

fn title(scenario: &Scenario) -> String {
    format!("{}, {}", scenario.protocol.name(), table::title(scenario))
}
