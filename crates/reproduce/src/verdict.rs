//! The five verdicts, and the rules for them.
//!
//! The criteria of agreement and the recorded verdict are in the data beforehand; a run can only confirm the verdict,
//! improve it, or worsen it.

use serde::{Deserialize, Serialize};

use super::published::{Cell, Exception, Table};

/// Verdict on our value against the published one, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Equal as printed.
    Exact,
    /// Within the tolerance of the data.
    WithinTolerance,
    /// Not equal; the data explains it, with the number that results instead.
    Explained,
    /// Nothing here can test it.
    NotTestableHere,
    /// Not equal.
    Differs,
}

impl Verdict {
    /// Every one, best first.
    pub const ALL: [Self; 5] =
        [Self::Exact, Self::WithinTolerance, Self::Explained, Self::NotTestableHere, Self::Differs];

    /// Name in the JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::WithinTolerance => "within-tolerance",
            Self::Explained => "explained",
            Self::NotTestableHere => "not-testable-here",
            Self::Differs => "differs",
        }
    }
}

/// Judgement of a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// Ours, in full precision.
    pub ours: Option<f64>,
    /// Verdict of this run.
    pub verdict: Verdict,
    /// Recorded verdict.
    pub expected: Verdict,
    /// Explanation.
    pub note: Option<String>,
}

impl Judgement {
    /// Whether this is worse than the recorded verdict.
    pub fn worsened(&self) -> bool {
        self.verdict > self.expected
    }
}

/// Judges one cell; `ours` is `None` where nothing can test it.
pub fn judge(table: &Table, cell: &Cell, ours: Option<f64>) -> Judgement {
    let exception = table.exception(cell);
    let expected =
        exception.map(|exception| exception.verdict).or(cell.column.expected).unwrap_or(table.expected);
    let (verdict, note) = match ours {
        None => (Verdict::NotTestableHere, cell.column.without.clone()),
        Some(ours) => {
            let (verdict, note) = compare(cell, exception, ours);
            (verdict, with_origin(table, cell, note))
        }
    };
    Judgement { ours, verdict, expected, note }
}

fn compare(cell: &Cell, exception: Option<&Exception>, ours: f64) -> (Verdict, Option<String>) {
    if cell.column.digits.agree(cell.published, ours) {
        return (Verdict::Exact, None);
    }
    if let Some(tolerance) =
        cell.column.within.filter(|tolerance| is_within(*tolerance, cell.published, ours))
    {
        let note = format!("within {:.0}% of what is printed", 100.0 * tolerance);
        return (Verdict::WithinTolerance, Some(note));
    }
    if let Some(points) =
        cell.column.within_points.filter(|points| (ours - cell.published).abs() <= *points + ROUNDING)
    {
        return (Verdict::WithinTolerance, Some(format!("within {points} of what is printed")));
    }
    if let Some(exception) = exception.filter(|exception| is_foreseen(exception, cell, ours)) {
        // A refuted explanation leaves the cell different; a cell that was not testable may be testable now.
        let verdict = match exception.verdict {
            Verdict::Differs => Verdict::Differs,
            Verdict::Exact | Verdict::WithinTolerance | Verdict::Explained | Verdict::NotTestableHere => {
                Verdict::Explained
            }
        };
        return (verdict, Some(exception.note.clone()));
    }
    match &cell.column.explained {
        Some(note) => (Verdict::Explained, Some(note.clone())),
        None => (Verdict::Differs, None),
    }
}

/// Notes whether something was fitted to the cell, in tables that have such cells.
fn with_origin(table: &Table, cell: &Cell, note: Option<String>) -> Option<String> {
    let origin = if table.fitted.contains(&cell.name()) { "fitted" } else { "predicted" };
    match note {
        note if table.fitted.is_empty() => note,
        Some(note) => Some(format!("{origin}; {note}")),
        None => Some(origin.to_owned()),
    }
}

/// Whether ours is the number that the exception explains.
fn is_foreseen(exception: &Exception, cell: &Cell, ours: f64) -> bool {
    let foreseen = exception.ours.as_ref().and_then(|text| text.parse::<f64>().ok());
    foreseen.is_some_and(|foreseen| match exception.within {
        Some(tolerance) => is_within(tolerance, foreseen, ours),
        None => cell.column.digits.agree(foreseen, ours),
    })
}

/// Tolerance for rounding errors.
const ROUNDING: f64 = 1e-9;

fn is_within(tolerance: f64, published: f64, ours: f64) -> bool {
    (ours - published).abs() <= tolerance * published.abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = r#"
        title = "t"
        source = "s"
        scenario = "s"
        agreement = "a"
        expected = "exact"
        labels = ["network"]
        columns = [
            { name = "a", unit = "ms", digits = "whole", within = 0.1 },
            { name = "b", unit = "ms", digits = "whole", expected = "not-testable-here", without = "a laboratory" },
        ]
        rows = [["modem", "100", "7"], ["isdn", "50", ""]]
        [[cells]]
        cell = "isdn/a"
        verdict = "explained"
        ours = "80"
        note = "a slip in print"
    "#;

    fn verdict(place: usize, ours: Option<f64>) -> Judgement {
        let table = Table::read(TABLE).unwrap();
        judge(&table, &table.cells()[place], ours)
    }

    #[test]
    fn a_cell_is_exact_or_within_tolerance_or_differs() {
        assert_eq!(verdict(0, Some(100.4)).verdict, Verdict::Exact);
        assert_eq!(verdict(0, Some(109.0)).verdict, Verdict::WithinTolerance);
        assert_eq!(verdict(0, Some(111.0)).verdict, Verdict::Differs);
        assert!(verdict(0, Some(109.0)).worsened() && !verdict(0, Some(100.0)).worsened());
    }

    #[test]
    fn an_exception_explains_its_own_number_and_no_other() {
        let explained = verdict(2, Some(80.2));
        assert_eq!(
            (explained.verdict, explained.note.as_deref()),
            (Verdict::Explained, Some("a slip in print"))
        );
        assert_eq!(verdict(2, Some(81.0)).verdict, Verdict::Differs);
        assert!(!verdict(2, Some(50.0)).worsened());
    }

    #[test]
    fn fitted_cells_are_marked_and_the_others_are_predictions() {
        let table = Table::read(&TABLE.replace("rows =", "fitted = [\"isdn/a\"]\nrows =")).unwrap();
        let note = |place: usize, ours| judge(&table, &table.cells()[place], Some(ours)).note.unwrap();
        assert_eq!(
            [note(0, 100.0), note(0, 109.0)],
            ["predicted", "predicted; within 10% of what is printed"]
        );
        assert_eq!([note(2, 50.0), note(2, 80.0)], ["fitted", "fitted; a slip in print"]);
        assert!(Table::read(&TABLE.replace("rows =", "fitted = [\"isdn/c\"]\nrows =")).is_err());
    }

    #[test]
    fn a_percentage_may_be_off_by_points() {
        let points = TABLE.replace("within = 0.1", "within_points = 0.3");
        let table = Table::read(&points).unwrap();
        let verdict = |ours| judge(&table, &table.cells()[1], Some(ours)).verdict;
        let table = Table::read(
            &points
                .replace("\"100\"", "\"5.5\"")
                .replace("\"whole\", within_points", "\"decimals-1\", within_points"),
        )
        .unwrap();
        let first = |ours| judge(&table, &table.cells()[0], Some(ours)).verdict;
        assert_eq!(
            [first(5.5), first(5.8), first(5.9)],
            [Verdict::Exact, Verdict::WithinTolerance, Verdict::Differs]
        );
        assert_eq!(verdict(7.0), Verdict::Exact);
    }

    #[test]
    fn an_untestable_cell_names_what_a_test_needs() {
        let judgement = verdict(1, None);
        assert_eq!(judgement.verdict, Verdict::NotTestableHere);
        assert_eq!(judgement.note.as_deref(), Some("a laboratory"));
        assert!(!judgement.worsened());
        assert!(verdict(1, Some(8.0)).worsened());
    }
}
