//! What was asked for: flags, made into a plan.
//!
//! The words are `scenario`'s; here they get the flag that they were given to.

use std::path::Path;

use scenario::names::Listing;
use scenario::spec::{Defaults, Key, Plan};
use scenario::{Page, Spec};

use crate::cli::flags::ScenarioFlags;
use crate::failure::Failure;
use crate::folder;

/// Flags, and `more` pieces that only some verbs have.
pub fn plan(flags: &ScenarioFlags, more: &[(Key, &str)], defaults: &Defaults) -> Result<Plan, Failure> {
    let mut spec = Spec::default();
    for (key, text) in flags.pieces().iter().chain(more) {
        set(&mut spec, *key, text)?;
    }
    spec.plan(defaults).map_err(|error| Failure::Value(error.to_string()))
}

fn set(spec: &mut Spec, key: Key, text: &str) -> Result<(), Failure> {
    if key == Key::Page && is_folder(text) {
        spec.pages.push(folder::page(Path::new(text))?);
        return Ok(());
    }
    spec.set(key, text).map_err(|error| Failure::Value(format!("--{key}: {error}")))
}

/// A known name is never a folder, even where one of that name lies about.
fn is_folder(text: &str) -> bool {
    Page::listings().all(|Listing { name, .. }| name != text) && Path::new(text).is_dir()
}
