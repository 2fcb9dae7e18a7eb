//! The saving of a changed page.

use page::what_if::Change;
use render::output::number;

/// A change of a page, and what it saves.
#[derive(Clone, Debug, PartialEq)]
pub struct Saving {
    /// The change.
    pub change: Change,
    /// Simulated time without it.
    pub before_ms: f64,
    /// Simulated time with it.
    pub after_ms: f64,
}

impl Saving {
    /// `--no-think saves most of single changes: 812 ms become 610.`
    pub fn sentence(&self) -> String {
        let Self { change, before_ms, after_ms } = self;
        let [before, after] = [before_ms, after_ms].map(|millis| number::significant(*millis));
        format!("Of single changes, {} saves most: {before} ms become {after}.", flag(change))
    }
}

/// The flag of a change, as it is typed.
fn flag(change: &Change) -> String {
    let text = change.to_string();
    match text.split_once('=') {
        Some((name, value)) => format!("`--{name} {value}`"),
        None => format!("`--{text}`"),
    }
}
