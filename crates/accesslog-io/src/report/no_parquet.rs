//! Results as tables in a build without the feature `parquet`: none is written.
//!
//! A request for one is refused earlier ([`Part::require`]).

use super::over_time::Minute;
use super::row::Row;
use crate::error::{Error, Part};

/// The result's rows as a table.
///
/// # Errors
/// Always.
pub fn bytes(_: &[Row]) -> Result<Vec<u8>, Error> {
    Err(Part::Parquet.missing("table"))
}

/// Connections over time as a table.
///
/// # Errors
/// Always.
pub fn over_time(_: &[Minute]) -> Result<Vec<u8>, Error> {
    Err(Part::Parquet.missing("table"))
}
