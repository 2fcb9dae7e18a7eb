//! Builds plans from flags and a scenario file.
//!
//! `scenario` parses the values. This module reads the files, and adds the flag's name to errors.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use scenario::network::trace_file;
use scenario::spec::{Defaults, Grid, Key, Plan};
use scenario::{Page, Spec};
use wire::link::DeliverySchedule;

use crate::cli::flags::{AdvancedFlags, ScenarioFlags, WhatIfFlags};
use crate::failure::{Failure, shown};
use crate::page_source;

/// Builds a plan from the flags, `more` keys of some verbs, and the scenario file, which flags override.
pub fn plan(
    flags: &ScenarioFlags,
    advanced: &AdvancedFlags,
    more: &[(Key, &str)],
    defaults: &Defaults,
) -> Result<Plan, Failure> {
    all_in_memory(grid(flags, advanced, more, defaults)?)
}

/// Expands a grid.
pub fn all_in_memory(grid: Grid) -> Result<Plan, Failure> {
    grid.plan().map_err(|error| Failure::Value(error.to_string()))
}

/// Builds a grid of scenarios, as [`plan`], without storing them.
pub fn grid(
    flags: &ScenarioFlags,
    advanced: &AdvancedFlags,
    more: &[(Key, &str)],
    defaults: &Defaults,
) -> Result<Grid, Failure> {
    let mut spec = Spec::default();
    for (key, text) in flags.entries(advanced).iter().chain(more) {
        set(&mut spec, *key, text, &flags.what_if)?;
    }
    if let Some(path) = &flags.file {
        spec = spec.over(read(path)?);
    }
    if page_source::has_changes(&flags.what_if) {
        if spec.pages.is_empty() {
            return Err(Failure::Value("changes of a page need --page; name the page to change".to_owned()));
        }
        spec.pages = page_source::changed(spec.pages, &flags.what_if)?;
    }
    spec.pages = spec.pages.into_iter().map(Page::over_network).collect();
    read_traces(&mut spec)?;
    spec.grid(defaults).map_err(|error| Failure::Value(error.to_string()))
}

fn set(spec: &mut Spec, key: Key, text: &str, what_if: &WhatIfFlags) -> Result<(), Failure> {
    if key == Key::Page
        && let Some(pages) = page_source::from_files(text, "--page: ", what_if)?
    {
        spec.pages.extend(pages);
        return Ok(());
    }
    spec.add(key, text).map_err(|error| Failure::Value(format!("--{key}: {error}")))
}

/// Reads the files of network traces, each once.
pub fn read_traces(spec: &mut Spec) -> Result<(), Failure> {
    let mut known: BTreeMap<String, Arc<DeliverySchedule>> = BTreeMap::new();
    spec.read_traces(|name| match known.get(name) {
        Some(schedule) => Ok(Arc::clone(schedule)),
        None => {
            let schedule = Arc::new(read_trace(Path::new(name))?);
            known.insert(name.to_owned(), Arc::clone(&schedule));
            Ok(schedule)
        }
    })
}

fn read_trace(path: &Path) -> Result<DeliverySchedule, Failure> {
    let unreadable = |error| Failure::Read { path: path.to_owned(), error };
    let file = File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    unpack::unpacked(file)
        .map_err(unreadable)?
        .take(trace_file::MAX_FILE_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    let refused = |error| Failure::Value(format!("--network-trace: {}: {error}", shown(path)));
    trace_file::read(&bytes).map_err(refused)
}

/// Reads a scenario file.
fn read(path: &Path) -> Result<Spec, Failure> {
    let unreadable = |error| Failure::Read { path: path.to_owned(), error };
    let mut text = String::new();
    let file = File::open(path).map_err(unreadable)?;
    // A byte above the limit, so that a larger file is detected.
    file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text).map_err(unreadable)?;
    Spec::from_toml(&text, &shown(path)).map_err(|error| Failure::Value(error.to_string()))
}

/// Maximum size of a scenario file, in bytes, because `/dev/zero` is endless.
const MAX_FILE_BYTES: u64 = 1 << 20;
