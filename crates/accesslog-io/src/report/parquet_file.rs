//! The result's rows, and connections over time, as Parquet tables with the columns of JSON and CSV.
//!
//! `columns` reads Parquet.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::ArrowError;
use parquet::arrow::ArrowWriter;

use super::distribution;
use super::over_time::{self, Minute};
use super::row::Row;

/// The file's bytes: the result is small, and written whole.
///
/// # Errors
/// None for rows of a count.
pub fn bytes(rows: &[Row]) -> Result<Vec<u8>, ArrowError> {
    written(&batch(rows)?)
}

/// Connections over time, the same way.
///
/// # Errors
/// None for minutes of a count.
pub fn over_time(minutes: &[Minute]) -> Result<Vec<u8>, ArrowError> {
    let integers = |value: fn(&Minute) -> u64| -> ArrayRef {
        Arc::new(minutes.iter().map(|minute| Some(value(minute))).collect::<UInt64Array>())
    };
    let protocols: StringArray = minutes.iter().map(|minute| Some(minute.protocol)).collect();
    let timeouts: Float64Array = minutes.iter().map(|minute| Some(minute.timeout_s)).collect();
    let columns: [ArrayRef; over_time::COLUMNS.len()] = [
        integers(|minute| minute.minute_s),
        Arc::new(protocols),
        Arc::new(timeouts),
        integers(|minute| minute.connections_per_client),
        integers(|minute| minute.threshold_bytes),
        integers(|minute| minute.max_simultaneous),
    ];
    written(&RecordBatch::try_from_iter(over_time::COLUMNS.into_iter().zip(columns))?)
}

fn written(batch: &RecordBatch) -> Result<Vec<u8>, ArrowError> {
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None)?;
    writer.write(batch)?;
    Ok(writer.into_inner()?)
}

fn batch(rows: &[Row]) -> Result<RecordBatch, ArrowError> {
    let integers = |value: fn(&Row) -> u64| -> ArrayRef {
        Arc::new(rows.iter().map(|row| Some(value(row))).collect::<UInt64Array>())
    };
    let real = |value: fn(&Row) -> Option<f64>| -> ArrayRef {
        Arc::new(rows.iter().map(value).collect::<Float64Array>())
    };
    let protocols: StringArray = rows.iter().map(|row| Some(row.protocol)).collect();
    let columns: [(&str, ArrayRef, bool); super::row::COLUMNS.len()] = [
        ("protocol", Arc::new(protocols), false),
        ("timeout_s", real(|row| Some(row.timeout_s)), false),
        ("connections_per_client", integers(|row| row.connections_per_client as u64), false),
        ("threshold_bytes", integers(|row| row.threshold_bytes), false),
        ("max_simultaneous", integers(|row| row.max_simultaneous), false),
        ("max_simultaneous_at_s", real(|row| row.max_simultaneous_at_s), true),
        ("total_connections", integers(|row| row.total_connections), false),
        ("mean_bytes_per_connection", real(|row| row.mean_bytes_per_connection), true),
        ("mean_requests_per_connection", real(|row| row.mean_requests_per_connection), true),
        ("udp_share", real(|row| Some(row.udp_share)), false),
        ("udp_bytes_share", real(|row| Some(row.udp_bytes_share)), false),
        ("requests", integers(|row| row.requests), false),
    ];
    let spread = |index: usize| -> ArrayRef {
        let value =
            |row: &Row| row.distribution.as_ref().and_then(|distribution| distribution.values()[index]);
        Arc::new(rows.iter().map(value).collect::<UInt64Array>())
    };
    let is_spread = rows.iter().any(|row| row.distribution.is_some());
    let more = distribution::COLUMNS.into_iter().enumerate().filter(|_| is_spread);
    let more = more.map(|(index, name)| (name, spread(index), true));
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().chain(more))
}

#[cfg(test)]
mod tests {
    use super::super::row::COLUMNS;
    use super::*;

    #[test]
    fn the_columns_are_those_of_csv() {
        let batch = batch(&[]).unwrap();
        let names: Vec<String> = batch.schema().fields().iter().map(|field| field.name().clone()).collect();
        assert_eq!(names, COLUMNS);
    }
}
