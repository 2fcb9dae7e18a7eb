//! Scenarios run by the pure engines: keyword arguments in, Arrow tables out.
//!
//! The names and values are those of the command line, and so are the digits. Rows are computed on all CPUs without the
//! interpreter's lock; a signal such as Ctrl-C ends the run within about half a second.

use lab::{Outcome, plot, predict, row, setting, simulate};
use pyo3::prelude::*;
use render::terminal::Terminal;
use scenario::spec::{Defaults, Grid, Key};
use scenario::{Engine, Page, Spec};

use crate::arrow::{self, Table};
use crate::query::refused;

/// Maximum number of rows of which pictures and CSV can be made: each keeps its scenario.
const MAX_KEPT: usize = 10_000;

/// A notebook, which is as wide as needed.
const WIDE: Terminal = Terminal { width: None, colour: false };
/// Provenance of pictures.
const SOURCE: &str = concat!("roundtrip for Python, version ", env!("CARGO_PKG_VERSION"));

/// Pages read from a file.
#[pyclass(frozen, module = "roundtrip._kernel")]
pub struct KernelPages(Vec<Page>);

#[pymethods]
impl KernelPages {
    /// Pages of a browser's recording.
    #[staticmethod]
    fn har(py: Python<'_>, name: &str, bytes: &[u8]) -> PyResult<Self> {
        let bytes = bytes.to_vec();
        py.detach(|| {
            let unpacked = unpack::unpacked(std::io::Cursor::new(bytes)).map_err(|error| refused(error.to_string()))?;
            page::har::pages(name, unpacked).map(Self).map_err(refused)
        })
    }

    /// The page of a file in TOML.
    #[staticmethod]
    fn toml(name: &str, text: &str) -> PyResult<Self> {
        page::file::read(name, text).map(|page| Self(vec![page])).map_err(refused)
    }

    /// A page by name, or by sizes.
    #[staticmethod]
    fn named(text: &str) -> PyResult<Self> {
        page::text::page(text).map(|page| Self(vec![page])).map_err(refused)
    }

    /// Number of pages.
    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// One of the pages.
    fn page(&self, number: usize) -> PyResult<Self> {
        let page = self.0.get(number).cloned().ok_or_else(|| refused("there is no such page"))?;
        Ok(Self(vec![page]))
    }

    /// The pages as JSON.
    fn json(&self) -> String {
        render::output::json(&lab::page::rows(&self.0))
    }

    /// The pages as text.
    fn text(&self) -> String {
        lab::page::text(&self.0, WIDE)
    }

    /// The first page's graph as SVG.
    fn svg(&self) -> String {
        self.0.first().map(|page| lab::page::picture(page, SOURCE)).unwrap_or_default()
    }
}

/// Scenarios and the engines that run each.
#[pyclass(frozen, module = "roundtrip._kernel")]
pub struct KernelGrid {
    grid: Grid,
    engines: Vec<Engine>,
}

#[pymethods]
impl KernelGrid {
    /// Creates the grid of these texts for each key, with the defaults of a verb.
    #[new]
    fn new(verb: &str, values: Vec<(String, Vec<String>)>, pages: Vec<Py<KernelPages>>) -> PyResult<Self> {
        let defaults = match verb {
            "predict" => Defaults::predict(),
            "simulate" => Defaults { engines: vec![Engine::Simulate], ..Defaults::laboratory() },
            "compare" => Defaults::compare(),
            _ => return Err(refused(format!("unknown verb {verb}; known: predict, simulate, compare"))),
        };
        let mut spec = Spec::default();
        for (name, texts) in values {
            let argument = name.replace('-', "_");
            let key = Key::named(&name).map_err(|error| refused(error.to_string().replace("unknown key", "unknown argument")))?;
            let added = spec.add_all(key, texts.iter().map(String::as_str));
            added.map_err(|error| refused(format!("{argument}: {error}")))?;
        }
        for page in &pages {
            spec.pages.extend(page.get().0.iter().cloned());
        }
        spec.pages = spec.pages.into_iter().map(Page::over_network).collect();
        let grid = spec.grid(&defaults).map_err(refused)?;
        let engines = match verb {
            "predict" => vec![Engine::Model],
            "simulate" => vec![Engine::Simulate],
            // The kernel's engine is the command line's.
            _ if spec.engines.contains(&Engine::Measure) => {
                return Err(refused("engine: measuring needs namespaces of its own; run `roundtrip compare`"));
            }
            _ => grid.engines.iter().copied().filter(|engine| *engine != Engine::Measure).collect(),
        };
        Ok(Self { grid, engines })
    }

    /// Number of rows.
    fn __len__(&self) -> usize {
        self.grid.len() * self.engines.len()
    }

    /// Computes `count` rows from row `first` on so many threads (0: the CPUs).
    fn run(&self, py: Python<'_>, first: usize, count: usize, threads: usize) -> PyResult<KernelRows> {
        self.compute(py, first, count, threads, true)
    }

    /// The same rows on one thread, none of which depends on another one: no critical paths in notes, no pictures.
    fn slice(&self, py: Python<'_>, first: usize, count: usize) -> PyResult<KernelRows> {
        self.compute(py, first, count, 1, false)
    }
}

impl KernelGrid {
    fn compute(&self, py: Python<'_>, first: usize, count: usize, threads: usize, keep: bool) -> PyResult<KernelRows> {
        let rows = self.__len__();
        let last = first.saturating_add(count).min(rows);
        let threads = if threads == 0 { sweep::cpus() } else { threads };
        let settings = setting::settings(&self.grid);
        py.detach(|| {
            let mut result = KernelRows {
                rows: arrow::Rows::new(&settings),
                outcomes: (keep && last.saturating_sub(first) <= MAX_KEPT).then(Vec::new),
                settings: settings.clone(),
            };
            sweep::run(first.min(last)..last, threads, |number| self.outcome(number), |first, outcomes| -> PyResult<()> {
                match &mut result.outcomes {
                    Some(kept) => kept.extend(outcomes),
                    None => result.rows.add(first, &outcomes).map_err(refused)?,
                }
                Python::attach(|py| py.check_signals())
            })?;
            if let Some(kept) = &mut result.outcomes {
                lab::outcome::name_critical_paths(kept);
                result.rows.add(first, kept).map_err(refused)?;
            }
            Ok(result)
        })
    }

    /// The row of that number: engines vary fastest.
    fn outcome(&self, number: usize) -> Outcome {
        let (scenario, engine) = (number / self.engines.len(), self.engines[number % self.engines.len()]);
        let scenario = self.grid.scenario(scenario);
        match engine {
            Engine::Model => predict::outcome(&scenario, self.grid.acks(&scenario)),
            // `measure` was refused.
            Engine::Simulate | Engine::Measure => simulate::outcome(&scenario, |_| ()),
        }
    }
}

/// Computed rows.
#[pyclass(frozen, module = "roundtrip._kernel")]
pub struct KernelRows {
    rows: arrow::Rows,
    outcomes: Option<Vec<Outcome>>,
    settings: Vec<setting::Setting>,
}

#[pymethods]
impl KernelRows {
    /// A row for each scenario and engine.
    fn rows(&self) -> Table {
        self.rows.rows()
    }

    /// A row for each stall.
    fn stalls(&self) -> Table {
        self.rows.stalls()
    }

    /// The rows as the command line's CSV.
    fn csv(&self) -> PyResult<String> {
        Ok(row::csv(self.kept("CSV")?, &self.settings))
    }

    /// A picture of the rows as SVG.
    fn svg(&self) -> PyResult<String> {
        plot::picture(self.kept("a picture")?, &self.settings).map_err(refused)
    }

    /// The rows as the command line's table.
    fn text(&self) -> PyResult<String> {
        Ok(lab::table::render(self.kept("a table of text")?, lab::table::Layout::Rows, WIDE))
    }
}

impl KernelRows {
    fn kept(&self, form: &str) -> PyResult<&[Outcome]> {
        let too_many = || refused(format!("the rows are too many for {form}; at most {MAX_KEPT}"));
        self.outcomes.as_deref().ok_or_else(too_many)
    }
}
