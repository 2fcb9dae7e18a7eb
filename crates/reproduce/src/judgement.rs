//! The rules for the verdicts: our value of a cell against print, and against the record.
//!
//! The criteria of agreement and the recorded verdict are in the data beforehand; a run can only confirm the verdict,
//! improve it, or worsen it. `explained` is computed like the others: with the mechanism of the reason switched on, ours
//! must be within the bound of the record.

use super::published::{Cell, Exception, Table};
use super::record::Record;
use super::verdict::Verdict;

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
    /// Tolerance of the comparison: a part of the published number, or points of it; of the mechanism, if there is one.
    pub bound: Option<f64>,
    /// Name of the mechanism that was switched on, and ours with it.
    pub mechanism: Option<(String, f64)>,
    /// Whether it is an input of ours, or something that ours was fitted to.
    pub is_fitted: bool,
    /// Whether ours is further from the published number than recorded, or on the other side of a comparison.
    pub strays: bool,
}

impl Judgement {
    /// Judgement of one of our own studies.
    pub const fn of_study(ours: f64, verdict: Verdict, expected: Verdict, note: Option<String>) -> Self {
        Self {
            ours: Some(ours),
            verdict,
            expected,
            note,
            bound: None,
            mechanism: None,
            is_fitted: false,
            strays: false,
        }
    }

    /// Whether this is worse than the record.
    pub fn worsened(&self) -> bool {
        self.verdict > self.expected || self.strays
    }
}

/// Our values for a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Values {
    /// As the scenario has it; `None` where nothing can test it.
    pub ours: Option<f64>,
    /// With the recorded mechanism switched on.
    pub with_mechanism: Option<f64>,
}

impl From<Option<f64>> for Values {
    fn from(ours: Option<f64>) -> Self {
        Self { ours, with_mechanism: None }
    }
}

/// Judges one cell against print, and against the record; without a record, the table's own data has the expected verdict.
pub fn judge(table: &Table, cell: &Cell, values: Values, record: Option<Record>) -> Judgement {
    let exception = table.exception(cell);
    let is_fitted = table.is_fitted(cell);
    let stated =
        exception.map(|exception| exception.verdict).or(cell.column.expected).unwrap_or(table.expected);
    let expected = record.map_or_else(|| at_best(stated, cell, is_fitted), |record| record.verdict);
    let Some(ours) = values.ours else {
        let note = cell.column.without.clone();
        let (ours, verdict) = (None, Verdict::NotTestableHere);
        let (bound, mechanism) = (None, None);
        return Judgement { ours, verdict, expected, note, bound, mechanism, is_fitted, strays: false };
    };
    let mechanism = exception.and_then(|exception| exception.mechanism).zip(values.with_mechanism);
    let (verdict, note) = compare(cell, exception, ours, mechanism.map(|(_, with)| with));
    let mechanism = mechanism.map(|(mechanism, with)| (mechanism.name().to_owned(), with));
    let bound = match verdict {
        Verdict::Explained => exception.and_then(|exception| exception.bound.or(exception.points)),
        _ => cell.column.within.or(cell.column.within_points),
    };
    Judgement {
        ours: Some(ours),
        verdict: at_best(verdict, cell, is_fitted),
        expected,
        note: with_origin(table, is_fitted, note),
        bound,
        mechanism,
        is_fitted,
        strays: strays(cell, exception, ours, record),
    }
}

/// The verdict of an agreement: a bound holds, and a fitted value is not a finding.
fn at_best(verdict: Verdict, cell: &Cell, is_fitted: bool) -> Verdict {
    match verdict {
        Verdict::Exact | Verdict::WithinTolerance | Verdict::Holds | Verdict::Fitted if is_fitted => {
            Verdict::Fitted
        }
        Verdict::Exact | Verdict::WithinTolerance if cell.column.digits.is_bound() => Verdict::Holds,
        verdict => verdict,
    }
}

fn compare(
    cell: &Cell,
    exception: Option<&Exception>,
    ours: f64,
    with_mechanism: Option<f64>,
) -> (Verdict, Option<String>) {
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
    let Some(exception) = exception else { return (Verdict::Differs, None) };
    let Exception { cell: _, verdict: _, ours: _, within: _, mechanism, bound, points, note } = exception;
    let Some((mechanism, with)) = mechanism.as_ref().zip(with_mechanism) else {
        return (Verdict::Differs, Some(note.clone()));
    };
    let is_bounded = match (bound, points) {
        (Some(bound), _) => is_within(*bound, cell.published, with),
        (None, Some(points)) => (with - cell.published).abs() <= *points + ROUNDING,
        (None, None) => cell.column.digits.agree(cell.published, with),
    };
    let shown = cell.column.digits.print(with);
    let note = format!("with {} ours is {shown}; {note}", mechanism.name());
    (if is_bounded { Verdict::Explained } else { Verdict::Differs }, Some(note))
}

/// Whether a cell with a recorded number of ours is further from print than that, or a comparison has another order than
/// recorded.
fn strays(cell: &Cell, exception: Option<&Exception>, ours: f64, record: Option<Record>) -> bool {
    let stated = exception.and_then(|exception| {
        let ours = exception.ours.as_ref()?.parse::<f64>().ok()?;
        Some((ours, exception.within.unwrap_or(RECORD)))
    });
    let recorded = match record {
        Some(record) => record.ours.map(|ours| (ours, RECORD)),
        None => stated,
    };
    let before = recorded.map_or(cell.published, |(before, _)| before);
    // A value nearer to print is not worse.
    let agrees = cell.column.digits.agree(cell.published, ours);
    let flips = !agrees
        && cell.column.pivot.is_some_and(|pivot| {
            (ours - pivot) * (before - pivot) < 0.0 && (ours - pivot) * (cell.published - pivot) <= 0.0
        });
    let is_further = recorded.is_some_and(|(recorded, within)| {
        let off = |value: f64| (value - cell.published).abs();
        off(ours) > off(recorded) + within * recorded.abs() + ROUNDING
            && !cell.column.digits.agree(recorded, ours)
            && !agrees
    });
    flips || is_further
}

/// Tolerance of a recorded number of ours, unless the record has its own.
const RECORD: f64 = 0.02;

/// Notes whether something was fitted to the cell, in tables that have such cells.
fn with_origin(table: &Table, is_fitted: bool, note: Option<String>) -> Option<String> {
    let origin = if is_fitted { "fitted" } else { "predicted" };
    match note {
        note if table.fitted.is_empty() => note,
        Some(note) => Some(format!("{origin}; {note}")),
        None => Some(origin.to_owned()),
    }
}

/// Tolerance for rounding errors.
const ROUNDING: f64 = 1e-9;

fn is_within(tolerance: f64, published: f64, ours: f64) -> bool {
    (ours - published).abs() <= tolerance * published.abs() + ROUNDING
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
        rows = [["modem", "100", "7"], ["isdn", "50", ""], ["adsl", "50", ""]]
        [[cells]]
        cell = "isdn/a"
        verdict = "explained"
        mechanism = "early-retransmission"
        bound = 0.2
        ours = "80"
        note = "the host of print was slow"
        [[cells]]
        cell = "adsl/a"
        verdict = "differs"
        ours = "80"
        note = "not known"
    "#;

    fn judged(index: usize, values: impl Into<Values>) -> Judgement {
        let table = Table::read(TABLE).unwrap();
        judge(&table, &table.cells()[index], values.into(), None)
    }

    fn with(ours: f64, mechanism: f64) -> Values {
        Values { ours: Some(ours), with_mechanism: Some(mechanism) }
    }

    #[test]
    fn a_cell_is_exact_or_within_tolerance_or_differs() {
        assert_eq!(judged(0, Some(100.4)).verdict, Verdict::Exact);
        assert_eq!(judged(0, Some(109.0)).verdict, Verdict::WithinTolerance);
        assert_eq!(judged(0, Some(111.0)).verdict, Verdict::Differs);
        assert!(judged(0, Some(109.0)).worsened() && !judged(0, Some(100.0)).worsened());
    }

    #[test]
    fn a_cell_is_explained_only_while_its_mechanism_brings_it_within_the_bound() {
        let explained = judged(2, with(80.0, 58.0));
        assert_eq!(explained.verdict, Verdict::Explained);
        assert_eq!(
            (explained.bound, explained.mechanism),
            (Some(0.2), Some(("early-retransmission".to_owned(), 58.0)))
        );
        assert_eq!(
            explained.note.as_deref(),
            Some("with early-retransmission ours is 58; the host of print was slow")
        );
        assert!(
            judged(2, with(80.0, 61.0)).verdict == Verdict::Differs && judged(2, with(80.0, 61.0)).worsened()
        );
        assert!(judged(2, Some(80.0)).worsened(), "a mechanism that nothing computes");
        assert!(!judged(2, Some(50.0)).worsened());
        let bare = TABLE.replace("mechanism = \"early-retransmission\"", "");
        assert!(Table::read(&bare).unwrap_err().contains("isdn/a"), "explained without a mechanism");
    }

    #[test]
    fn a_difference_on_record_may_shrink_and_not_grow() {
        assert!(!judged(3, Some(80.0)).worsened() && !judged(3, Some(70.0)).worsened());
        assert!(!judged(3, Some(30.0)).worsened(), "as far, on the other side");
        assert!(judged(3, Some(83.0)).worsened());
    }

    #[test]
    fn a_reversed_comparison_is_worse_whatever_the_verdict() {
        let table = Table::read(&TABLE.replace("within = 0.1", "within = 0.1, pivot = 60.0")).unwrap();
        let worsened = |recorded: Option<f64>, ours| {
            let record = Some(Record { verdict: Verdict::Differs, ours: recorded });
            judge(&table, &table.cells()[3], Values::from(Some(ours)), record).worsened()
        };
        assert!(worsened(None, 65.0) && !worsened(None, 59.0));
        assert!(worsened(Some(58.0), 61.0), "it said the contrary before");
        assert!(
            !worsened(Some(65.0), 65.0) && !worsened(Some(65.0), 51.0),
            "the turn is on record, or undone"
        );
    }

    #[test]
    fn the_record_comes_before_the_tables_own_data() {
        let table = Table::read(TABLE).unwrap();
        let worsened = |verdict, ours| {
            let record = Some(Record { verdict, ours: None });
            judge(&table, &table.cells()[0], Values::from(Some(ours)), record).worsened()
        };
        assert!(worsened(Verdict::Exact, 109.0) && !worsened(Verdict::WithinTolerance, 109.0));
        assert!(!worsened(Verdict::Differs, 150.0));
    }

    #[test]
    fn fitted_cells_are_no_findings_and_the_others_are_predictions() {
        let table = Table::read(&TABLE.replace("rows =", "fitted = [\"isdn/a\"]\nrows =")).unwrap();
        let judged =
            |index: usize, ours| judge(&table, &table.cells()[index], Values::from(Some(ours)), None);
        let note = |index: usize, ours| judged(index, ours).note.unwrap();
        assert_eq!(
            [note(0, 100.0), note(0, 109.0), note(2, 50.0)],
            ["predicted", "predicted; within 10% of what is printed", "fitted"]
        );
        assert_eq!([judged(2, 50.0).verdict, judged(2, 90.0).verdict], [Verdict::Fitted, Verdict::Differs]);
        assert!(Table::read(&TABLE.replace("rows =", "fitted = [\"isdn/c\"]\nrows =")).is_err());
    }

    #[test]
    fn a_bound_that_is_met_holds() {
        let table = Table::read(&TABLE.replace("\"whole\", within = 0.1", "\"at-least\"")).unwrap();
        let verdict = |ours| judge(&table, &table.cells()[0], Values::from(Some(ours)), None);
        assert_eq!((verdict(100.0).verdict, verdict(100.0).expected), (Verdict::Holds, Verdict::Holds));
        assert_eq!(verdict(99.0).verdict, Verdict::Differs);
    }

    #[test]
    fn a_percentage_may_be_off_by_points() {
        let points = TABLE.replace("within = 0.1", "within_points = 0.3");
        let table = Table::read(&points).unwrap();
        let verdict = |ours| judge(&table, &table.cells()[1], Values::from(Some(ours)), None).verdict;
        let table = Table::read(
            &points
                .replace("\"100\"", "\"5.5\"")
                .replace("\"whole\", within_points", "\"decimals-1\", within_points"),
        )
        .unwrap();
        let first = |ours| judge(&table, &table.cells()[0], Values::from(Some(ours)), None).verdict;
        assert_eq!(
            [first(5.5), first(5.8), first(5.9)],
            [Verdict::Exact, Verdict::WithinTolerance, Verdict::Differs]
        );
        assert_eq!(verdict(7.0), Verdict::Exact);
    }

    #[test]
    fn an_untestable_cell_names_what_a_test_needs() {
        let judgement = judged(1, None);
        assert_eq!(judgement.verdict, Verdict::NotTestableHere);
        assert_eq!(judgement.note.as_deref(), Some("a laboratory"));
        assert!(!judgement.worsened());
        assert!(judged(1, Some(8.0)).worsened());
    }
}
