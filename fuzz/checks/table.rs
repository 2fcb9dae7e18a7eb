//! Invariants for any bytes as a table of requests (Parquet, or an Arrow file or stream): it is rejected with a message, or
//! read in batches whose rows are records or bad for a reason; nothing panics, and a few bytes do not allocate gigabytes.

use accesslog::ClientDefinition;
use accesslog_io::table_file::{ColumnNames, batches};
use accesslog_io::table_format::{TableFormat, TableSource};

/// Batches that are read of one table: a few bytes may stand for many rows.
const MAX_BATCHES: usize = 64;

/// Panics if these bytes violate an invariant.
pub(crate) fn check(bytes: &[u8]) {
    let Some(kind) = TableFormat::of(bytes) else { return };
    let table = match batches(kind, TableSource::Memory(bytes.to_vec().into()), &ColumnNames::default()) {
        Ok(table) => table,
        Err(error) => return assert!(!error.to_string().is_empty(), "refused without a reason"),
    };
    for batch in table.batches.take(MAX_BATCHES) {
        let Ok(batch) = batch else { return };
        let mut records = 0;
        // Rows are refused together where a column has no times.
        let Ok(tally) = table.columns.read(&batch, &ClientDefinition::default(), |_| records += 1) else {
            return;
        };
        assert_eq!(tally.records, records, "records that were not handed over");
        assert!(records <= batch.num_rows() as u64, "more records than rows");
    }
}
