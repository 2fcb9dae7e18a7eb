//! Parts that tables of results and comparisons have in common: groups of rows, cells, footnotes.

use render::output::grid::Column;

use crate::Outcome;
use crate::setting::Setting;

/// Consecutive outcomes of the same network, page and visit.
pub(crate) fn groups(outcomes: &[Outcome]) -> impl Iterator<Item = &[Outcome]> {
    outcomes.chunk_by(|a, b| {
        let (a, b) = (&a.scenario, &b.scenario);
        a.network == b.network && a.page == b.page && a.visit == b.visit
    })
}

/// Whether a name differs between outcomes; what is the same in all is in the heading.
pub(crate) fn differs(group: &[Outcome], of: fn(&Outcome) -> &'static str) -> bool {
    group.windows(2).any(|pair| of(&pair[0]) != of(&pair[1]))
}

/// A column for each of these settings; they identify a row.
pub(crate) fn setting_columns(settings: &[Setting]) -> impl Iterator<Item = Column> {
    settings.iter().map(|setting| {
        let title = setting.title();
        let (upper, lower) = title.split_once(' ').unwrap_or((&title, ""));
        Column { side: setting.side(), ..Column::of([upper.to_owned(), lower.to_owned()], 1) }
    })
}

/// A number as printed, or an empty text if it is unknown.
pub(crate) fn cell(value: Option<f64>, print: impl Fn(f64) -> String) -> String {
    value.map(print).unwrap_or_default()
}

/// The longest wait of a run's critical path and its share; empty without a path.
pub(crate) fn longest_wait(outcome: Option<&Outcome>) -> String {
    let waterfall = outcome.and_then(|outcome| outcome.waterfall.as_ref());
    waterfall.map(|waterfall| waterfall.longest()).unwrap_or_default()
}

/// Notes, each printed once and referred to by number.
#[derive(Debug, Default)]
pub struct Footnotes(Vec<String>);

impl Footnotes {
    /// Marks such as `[1] [3]`.
    pub(crate) fn marks(&mut self, notes: &[String]) -> String {
        notes.iter().map(|note| format!("[{}]", self.number(note))).collect::<Vec<_>>().join(" ")
    }

    fn number(&mut self, note: &String) -> usize {
        let index = self.0.iter().position(|known| known == note).unwrap_or_else(|| {
            self.0.push(note.clone());
            self.0.len() - 1
        });
        index + 1
    }

    /// Each note with its number.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &str)> {
        self.0.iter().enumerate().map(|(index, note)| (index + 1, note.as_str()))
    }
}
