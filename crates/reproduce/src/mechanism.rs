//! Mechanisms: reasons why ours differs from print, switched on.
//!
//! A reason is only as good as its computed effect. The data names a mechanism for a cell and a bound. The cell is
//! computed again with it, and the verdict is `explained` only within that bound of the printed number.
//!
//! [`Mechanism`] lists them.

use model::Assumptions;

use super::published::{Cell, Mechanism, Table};
use super::{heidemann, w3c};

/// Ours for a cell of a table with this mechanism; `None` where there is nothing to compute it from.
///
/// # Errors
/// The error of an engine, or that the mechanism does not apply to the table.
pub fn our_value(key: &str, table: &Table, mechanism: Mechanism, cell: &Cell) -> Result<Option<f64>, String> {
    match (key, mechanism) {
        ("heidemann-model/table-2", Mechanism::DecimalKilobits) => heidemann::decimal_kilobits(cell),
        ("heidemann-model/figure-5", Mechanism::EverySegmentAcknowledged) => {
            heidemann::limit_round_trips(cell, &Assumptions::paper())
        }
        ("heidemann-model/figure-5", Mechanism::SumWithoutItsRoundTrip) => {
            let whole = heidemann::limit_round_trips(cell, &Assumptions::paper())?;
            Ok(whole.map(|round_trips| round_trips - 1.0))
        }
        ("w3c/modem-compression", Mechanism::HeaderCompression) => w3c::header_compression(cell),
        _ => w3c::with_mechanism(key, table, mechanism, cell)
            .unwrap_or_else(|| Err(format!("{key}: the mechanism {} does not apply", mechanism.name()))),
    }
}
