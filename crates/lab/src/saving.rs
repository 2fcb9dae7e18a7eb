//! The saving of a changed page.

use page::what_if::Change;
use render::output::number;

/// The change of a page that saves most, and the bound that no change reaches.
#[derive(Clone, Debug, PartialEq)]
pub struct Saving {
    /// Simulated time with the best change, and the change, if any saves time.
    pub best: Option<(f64, Change)>,
    /// Simulated time without a change.
    pub before_ms: f64,
    /// Simulated time without the client's own work, if that takes time.
    pub without_think_ms: Option<f64>,
}

impl Saving {
    /// `Of single changes, ... saves most: 812 ms become 610. Without the client's own work (...) they would be 400: ...`
    pub fn sentence(&self) -> String {
        let Self { best, before_ms, without_think_ms } = self;
        let before = number::significant(*before_ms);
        let best = best.as_ref().map(|(after_ms, change)| {
            let after = number::significant(*after_ms);
            format!("Of single changes, {} saves most: {before} ms become {after}.", flag(change))
        });
        let bound = without_think_ms.map(|bound_ms| {
            let bound = number::significant(bound_ms);
            format!(
                "Without the client's own work (`--no-think`) {before} ms would be {bound}: a bound, as some work remains."
            )
        });
        best.into_iter().chain(bound).collect::<Vec<_>>().join(" ")
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
