//! Builds plans from flags and a scenario file.
//!
//! `scenario` parses the values. This module reads the files, and adds the flag's name to errors.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use content::directory;
use page::har;
use quantity::names::Listing;
use scenario::spec::{Defaults, Key, Plan};
use scenario::{Page, Spec};

use crate::cli::flags::{AdvancedFlags, ScenarioFlags};
use crate::failure::{Failure, shown};

/// Builds a plan from the flags, `more` keys of some verbs, and the scenario file, which flags override.
pub fn plan(
    flags: &ScenarioFlags,
    advanced: &AdvancedFlags,
    more: &[(Key, &str)],
    defaults: &Defaults,
) -> Result<Plan, Failure> {
    let mut spec = Spec::default();
    for (key, text) in flags.entries(advanced).iter().chain(more) {
        set(&mut spec, *key, text)?;
    }
    if let Some(path) = &flags.file {
        spec = spec.over(read(path)?);
    }
    // A warning for users who read neither the table's notes nor the JSON.
    for Page { name, notes, .. } in &spec.pages {
        notes.iter().for_each(|note| eprintln!("roundtrip: {name}: {note}"));
    }
    spec.plan(defaults).map_err(|error| Failure::Value(error.to_string()))
}

fn set(spec: &mut Spec, key: Key, text: &str) -> Result<(), Failure> {
    if key == Key::Page && is_har(text) {
        spec.pages.push(read_har(Path::new(text))?);
        return Ok(());
    }
    if key == Key::Page && is_directory(text) {
        spec.pages.push(directory::page(Path::new(text)).map_err(page_error)?);
        return Ok(());
    }
    spec.set(key, text).map_err(|error| Failure::Value(format!("--{key}: {error}")))
}

/// Adds the flag to errors of a directory that is not a page.
fn page_error(error: content::Error) -> Failure {
    match error {
        content::Error::NotAPage { .. } | content::Error::TooLarge { .. } => {
            Failure::Value(format!("--page: {error}"))
        }
        error => error.into(),
    }
}

/// Whether the text is a directory. Names of pages take precedence over directories.
fn is_directory(text: &str) -> bool {
    Page::listings().all(|Listing { name, .. }| name != text) && Path::new(text).is_dir()
}

/// Whether the text names a HAR file. No other form of a page ends in `.har`.
fn is_har(text: &str) -> bool {
    Path::new(text).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("har"))
}

/// Reads the page of a recorded browser visit.
fn read_har(path: &Path) -> Result<Page, Failure> {
    let unreadable = |error| Failure::Read { path: path.to_owned(), error };
    let file = File::open(path).map_err(unreadable)?;
    let name = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    har::read(&name.replace(char::is_control, "?"), BufReader::new(file.take(MAX_HAR_BYTES)))
        .map_err(|error| Failure::Value(format!("--page: {}: {error}", shown(path))))
}

/// Maximum size of a HAR file with bodies, in bytes. A truncated file no longer parses as HAR.
const MAX_HAR_BYTES: u64 = 1 << 30;

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
