//! Table I by simulation (`papers/dhttp#table-1`, section VI-B.2): what of DHTTP's answers goes by UDP where the line is full.
//!
//! Not the simulation: that is [`simulate::town`].

use crate::reproduce::measured::Measured;
use crate::reproduce::published::Cell;

/// The first label is the number of machines.
pub fn table_1(cell: &Cell, measured: &mut Measured<'_>) -> Result<Option<f64>, String> {
    let machines = cell.label(0).parse().unwrap_or(1);
    let found = measured.crowd(machines)?;
    Ok(Some(match cell.column.name.as_str() {
        "udp" => 100.0 * found.udp_share(),
        "resent" => 100.0 * found.resent(),
        _ => 100.0 * found.ignored(),
    }))
}
