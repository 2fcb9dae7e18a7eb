//! Tables in a build without the feature `parquet`: none is written.
//!
//! A request for one is refused before ([`Feature::require`]).

use super::over_time::Minute;
use super::row::Row;
use crate::feature::Feature;

/// The result's rows as a table.
///
/// # Errors
/// Always.
pub fn bytes(_: &[Row]) -> Result<Vec<u8>, String> {
    Err(Feature::Parquet.missing("table"))
}

/// Connections over time as a table.
///
/// # Errors
/// Always.
pub fn over_time(_: &[Minute]) -> Result<Vec<u8>, String> {
    Err(Feature::Parquet.missing("table"))
}
