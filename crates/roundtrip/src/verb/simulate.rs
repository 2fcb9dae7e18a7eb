//! `roundtrip simulate`: page loads in packets and virtual time.

use std::ffi::OsStr;
use std::path::Path;

use ::simulate::capture::{self, CapturePoint};
use ::simulate::qlog;
use lab::simulate::panels::Panels;
use lab::simulate::{FirstRun, probes, visit};
use lab::table::Layout;
use lab::{Outcome, description, exchanges, outcome, setting, simulate};
use render::plot::time_sequence::xplot;
use scenario::spec::{Defaults, Grid, Key, Plan};
use scenario::{Engine, Scenario};
use trace::har::{self, Visit};

use crate::cli::{PcapAt, Simulate};
use crate::failure::{Failure, shown};
use crate::feature::Feature;
use crate::file::{self, PendingFile};
use crate::grid_run::GridRun;
use crate::plan_flags;
use crate::plots::raster::Raster;
use crate::show::Results;
use crate::verb::waterfall::{self, WaterfallForm};

/// Prints a row for each scenario.
pub fn run(arguments: &Simulate) -> Result<(), Failure> {
    let Simulate {
        scenario,
        runs,
        plot,
        waterfall,
        probe,
        har,
        pcap,
        qlog,
        output,
        into,
        grid: flags,
        advanced,
        ..
    } = arguments;
    let runs: Vec<(Key, &str)> = runs.iter().map(|runs| (Key::Runs, runs.as_str())).collect();
    let grid = plan_flags::grid(scenario, advanced, &runs, &Defaults::laboratory())?;
    if [plot, waterfall, probe, har, pcap, qlog].into_iter().all(Option::is_none) {
        let row = |_: &Grid, scenario: &Scenario| simulate::outcome(scenario, |_| ());
        return GridRun { grid, engine: Engine::Simulate, output, into, flags }
            .run(row, simulate::provenance);
    }
    let plan = plan_flags::all_in_memory(grid)?;
    let kind = plot.as_deref().map(PlotKind::of).transpose()?;
    let form = waterfall.as_deref().map(|path| WaterfallForm::of(path, plan.scenarios.len())).transpose()?;
    if let Some(reason) = qlog.as_ref().and_then(|_| simulate::without_quic(&plan)) {
        return Err(Failure::Value(format!("--qlog: {reason}")));
    }
    let more = [plot, waterfall, probe, har, pcap, qlog].into_iter().flatten();
    file::check(output.report.iter().chain(more))?;
    let mut files = RunFiles::create(arguments, &plan)?;
    let (mut outcomes, mut waterfalls) = (Vec::new(), Vec::new());
    for scenario in &plan.scenarios {
        let outcome = simulate::outcome(scenario, |first| {
            files.add(outcomes.len(), first);
            waterfalls.extend(form.and_then(|_| lab::waterfall::of(first)));
        });
        files.label(&outcome);
        outcomes.push(outcome);
    }
    if let Some(reason) = outcome::nothing(&outcomes) {
        return Err(Failure::Value(reason));
    }
    outcome::name_critical_paths(&mut outcomes);
    if let (Some(path), Some(traces)) = (qlog, &files.traces) {
        file::write(path, qlog::file("roundtrip simulate", traces).as_bytes())?;
    }
    let (visits, panels) = files.commit()?;
    if let Some(path) = har {
        file::write(path, har::file(&visits).as_bytes())?;
    }
    if let (Some(path), Some(kind), Some(panels)) = (plot, kind, panels) {
        file::write(path, &plot_of(&panels, path, kind)?)?;
    }
    if let (Some(path), Some(form)) = (waterfall, form) {
        waterfall::write(path, form, &waterfalls, simulate::provenance(&plan))?;
    }
    let settings = setting::settings(&plan.grid);
    let results =
        Results { outcomes, settings, layout: Layout::Rows, provenance: simulate::provenance(&plan) };
    results.write_stalls(flags.stalls.as_deref())?;
    results.show(output)
}

/// Files about the first run of each scenario, filled when it happens. A scenario that cannot be simulated has none.
struct RunFiles {
    pcap: Option<(PendingFile, CapturePoint)>,
    probe: Option<PendingFile>,
    traces: Option<Vec<String>>,
    /// Visits, if there is an HTTP archive; the last one lacks the means of its scenario until it is complete.
    visits: Option<Vec<Visit>>,
    unlabelled: Option<Visit>,
    /// Panels, if there is a plot.
    panels: Option<Panels>,
    failure: Option<Failure>,
}

impl RunFiles {
    fn create(arguments: &Simulate, plan: &Plan) -> Result<Self, Failure> {
        let Simulate { plot, probe, har, pcap, pcap_at, qlog, .. } = arguments;
        let at = match pcap_at {
            PcapAt::Client => CapturePoint::Client,
            PcapAt::Server => CapturePoint::Server,
            PcapAt::Both => CapturePoint::Both,
        };
        let open = |path: &Option<_>| path.as_deref().map(PendingFile::create).transpose();
        let mut probe = open(probe)?;
        if let Some(file) = &mut probe {
            probes::write_heading(file).map_err(|error| file.failure(error))?;
        }
        Ok(Self {
            pcap: open(pcap)?.map(|file| (file, at)),
            probe,
            traces: qlog.as_ref().map(|_| Vec::new()),
            visits: har.as_ref().map(|_| Vec::new()),
            unlabelled: None,
            panels: plot.as_ref().map(|_| Panels::new(&plan.scenarios)),
            failure: None,
        })
    }

    /// Adds the first run of the scenario with this index.
    fn add(&mut self, index: usize, first: FirstRun<'_>) {
        let FirstRun { scenario, experiment: _, result } = first;
        let title = description::full_title(scenario);
        let pcap = self.pcap.as_mut().and_then(|(file, at)| {
            let written = capture::write(&result.records, *at, &mut *file, &title);
            written.err().map(|error| file.failure(error))
        });
        let probe = self.probe.as_mut().and_then(|file| {
            let written = probes::write(&mut *file, first);
            written.err().map(|error| file.failure(error))
        });
        self.failure = self.failure.take().or(pcap).or(probe);
        if let Some(traces) = &mut self.traces {
            traces.extend(qlog::traces(&title, result, CapturePoint::Both));
        }
        self.unlabelled = self.visits.is_some().then(|| visit::of(first));
        if let Some(panels) = self.panels.as_mut().filter(|_| index <= MAX_PANELS) {
            panels.add(first);
        }
    }

    /// Completes the last scenario.
    fn label(&mut self, outcome: &Outcome) {
        if let (Some(visits), Some(visit)) = (&mut self.visits, self.unlabelled.take()) {
            visits.push(exchanges::labelled(visit, outcome));
        }
    }

    /// Completes the files; returns the visits and panels.
    fn commit(self) -> Result<(Vec<Visit>, Option<Panels>), Failure> {
        let Self { pcap, probe, visits, panels, failure, .. } = self;
        failure.map_or(Ok(()), Err)?;
        pcap.map_or(Ok(()), |(file, _)| file.commit())?;
        probe.map_or(Ok(()), PendingFile::commit)?;
        Ok((visits.unwrap_or_default(), panels))
    }
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
        match path.extension().map(|end| end.to_ascii_lowercase()).as_deref().map(OsStr::as_encoded_bytes) {
            None | Some(b"svg") => Ok(Self::Svg),
            Some(b"png") => {
                Feature::Png.require(&format!("--plot {}", shown(path))).map_err(Failure::Value)?;
                Ok(Self::Png)
            }
            Some(b"xpl") => Ok(Self::Xplot),
            Some(_) => Err(Failure::Value(format!(
                "--plot {}: not a format of plots; give FILE.svg, FILE.png or FILE.xpl",
                shown(path)
            ))),
        }
    }
}

/// Renders the plot.
fn plot_of(panels: &Panels, path: &Path, kind: PlotKind) -> Result<Vec<u8>, Failure> {
    let refused = |reason: &str| Err(Failure::Value(format!("--plot {}: {reason}", shown(path))));
    match (kind, &panels.panels[..]) {
        (PlotKind::Xplot, [panel]) => Ok(xplot::file(panel).into_bytes()),
        (PlotKind::Xplot, _) => refused("xplot shows one run; name one network, page, protocol and stack"),
        (PlotKind::Svg | PlotKind::Png, all) if all.len() > MAX_PANELS => {
            refused(&format!("more than {MAX_PANELS} runs are too many for a picture; name fewer"))
        }
        (PlotKind::Svg, _) => Ok(panels.svg().into_bytes()),
        (PlotKind::Png, _) => Raster::new()
            .image(&panels.svg())
            .map_err(|error| Failure::Write { path: path.to_owned(), error }),
    }
}

/// Maximum number of distinguishable panels.
const MAX_PANELS: usize = 20;
